import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_audit import ORIGINAL, clean_report
from typer.testing import CliRunner, Result

from msstab import cli
from msstab.report import write_report


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, ["audit", *arguments])


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """No terminal's width, which some runners of tests set."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    write_report(clean_report(), tmp_path / "clean.json")
    return tmp_path / "clean.json"


def test_a_report_without_a_flag_exits_0(clean: Path) -> None:
    result = run(str(clean))
    assert result.exit_code == 0
    last = result.stdout.splitlines()[-1]
    assert ", 0 flags, 0 not recorded" in last
    assert "p value" in result.stdout


def test_the_original_exits_1_and_says_what_is_wrong() -> None:
    result = run(str(ORIGINAL))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "38 checks: 18 ok, 12 flags, 8 not recorded"
    line = next(line for line in result.stdout.splitlines() if "baseline: learning rate" in line)
    assert "flag" in line
    assert "edge" in line
    assert "0.001 to 0.01" in line


def test_json_says_the_same_to_a_program() -> None:
    result = run(str(ORIGINAL), "--json")
    assert result.exit_code == 1
    content = json.loads(result.stdout)
    assert content["file"] == str(ORIGINAL)
    assert content["summary"] == {"ok": 18, "flag": 12, "not recorded": 8}
    checks = {check["check"]: check for check in content["checks"]}
    assert set(checks["p value"]) == {"check", "stated", "follows", "result", "why"}
    assert checks["p value"]["follows"] == 0.703125
    assert checks["p value"]["result"] == "flag"
    assert checks["idea: sweep"]["result"] == "not recorded"


def test_level_and_margin_apply_where_the_file_states_none(clean: Path) -> None:
    words = "the smallest p is 0.00781"
    assert words not in run(str(ORIGINAL), "--json").stdout
    assert words in run(str(ORIGINAL), "--json", "--alpha", "0.001").stdout
    assert '"equivalent"' in run(str(ORIGINAL), "--json", "--sesoi", "0.5").stdout
    assert run(str(clean), "--alpha", "0.001").exit_code == 0


def test_a_narrow_terminal_still_shows_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = run(str(ORIGINAL))
    assert max(map(len, result.stdout.splitlines())) <= 80
    lines = [line.split("│")[1:-1] for line in result.stdout.splitlines() if "│" in line]
    place = next(k for k, cells in enumerate(lines) if "baseline: learning rate" in cells[0])
    assert lines[place][3].strip() == "flag"
    assert "on the grid's edge" in lines[place + 1][0]


def test_a_terminal_without_unicode_is_served_too(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "msstab", "audit", str(ORIGINAL)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == b""
    assert done.stdout.decode("ascii").splitlines()[-1].startswith("38 checks")


def test_codes_in_a_file_do_not_reach_the_terminal(tmp_path: Path) -> None:
    content = json.loads(ORIGINAL.read_text())
    content["practical_verdict"] = "\x1b[2J[red]gone[/red]\ud800" + "x" * 10_000
    path = tmp_path / "report.json"
    path.write_text(json.dumps(content))
    result = run(str(path))
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    assert "[red]gone" in result.stdout
    assert "x" * 61 not in result.stdout


def test_it_works_from_anywhere_without_loading_torch(tmp_path: Path) -> None:
    program = (
        "import sys; from msstab.cli import app\n"
        f"try: app(['audit', {str(ORIGINAL)!r}])\n"
        "except SystemExit as end: assert end.code == 1\n"
        "assert not {'torch', 'pandas', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "COLUMNS"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "12 flags" in done.stdout
    assert not list(tmp_path.iterdir())
