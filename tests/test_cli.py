import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import VERDICT, fake_rooms, make_project
from typer.testing import CliRunner, Result

from msstab import book, cli, experiment, study
from msstab.study import Study

Run = Callable[..., Result]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """Replace the build itself; return the list of what it was asked for."""
    fake_rooms(monkeypatch)
    assert experiment  # importing it declares what a study may name
    known = {kind: list(names) for kind, names in study.KNOWN_NAMES.items()}
    known["arm"].append("hinge")
    monkeypatch.setattr(study, "KNOWN_NAMES", known)
    monkeypatch.chdir(tmp_path)
    asked: list[dict[str, Any]] = []

    def build(given: Study, **options: Any) -> book.BuildResult:
        asked.append({"study": given, **options})
        return book.BuildResult(tmp_path / "_build" / "html" / "index.html", VERDICT, {})

    monkeypatch.setattr(book, "build", build)
    return asked


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


def test_a_build_ends_with_the_answer_and_where_to_read_it(built: list[dict[str, Any]]) -> None:
    result = run("build")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-2:] == [VERDICT, "_build/html/index.html"]
    assert built[0]["study"] == study.profile("full")
    assert built[0]["profile_name"] == "full"
    assert built[0]["jobs"] >= 1


def test_parameters_change_the_profile(built: list[dict[str, Any]], tmp_path: Path) -> None:
    result = run(
        *("build", "--profile", "stage2", "-p", "seeds=16", "-p", "arms=baseline,hinge"),
        *("--out", "elsewhere", "--jobs", "3"),
    )
    assert result.exit_code == 0, result.stderr
    expected = study.profile("stage2").model_copy(
        update={"seeds": 16, "arms": ("baseline", "hinge")}
    )
    assert built[0]["study"] == expected
    assert built[0]["out"] == Path("elsewhere")
    assert built[0]["jobs"] == 3


def test_a_file_of_parameters_changes_the_profile_and_single_ones_change_the_file(
    built: list[dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "run.yml").write_text("seeds: 16\nhidden: 8\n")
    result = run("build", "--profile", "stage2", "--params", "run.yml", "-p", "hidden=12")
    assert result.exit_code == 0, result.stderr
    expected = study.profile("stage2").model_copy(update={"seeds": 16, "hidden": 12})
    assert built[0]["study"] == expected


@pytest.mark.parametrize(
    ("problem", "code", "message"),
    [
        (book.BuildError("chapter x failed"), 1, "error: chapter x failed\n"),
        (book.BuildError("a file is in the way", exit_code=2), 2, "error: a file is in the way\n"),
        (PermissionError(13, "denied", "/locked"), 2, "error: no permission to write /locked\n"),
        (
            OSError(28, "No space left on device"),
            2,
            "error: no space left on device; a former book is unchanged, and finished trials are",
        ),
        (
            OSError(30, "Read-only file system", "/cdrom"),
            2,
            "error: read-only file system (/cdrom)",
        ),
        (KeyboardInterrupt(), 130, "error: interrupted; a former book is unchanged"),
    ],
)
def test_a_failed_build_says_why_in_a_line_and_an_exit_code(
    built: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    problem: BaseException,
    code: int,
    message: str,
) -> None:
    def build(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr(book, "build", build)
    result = run("build")
    assert result.exit_code == code
    assert result.stderr.startswith(message)
    assert len(result.stderr.splitlines()) == 1


def test_a_real_failing_chapter_reaches_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = make_project(tmp_path / "project")
    program = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import pytest, conftest\n"
        "conftest.fake_rooms(pytest.MonkeyPatch())\n"
        "from conftest import *; from msstab.cli import main\n"
        "write_notebook(Path('notebooks/00_only.ipynb'), [PARAMETERS, code('1 / 0')])\n"
        "main()"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).parent), "build", "--jobs", "1"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    # ZeroMQ, whose process is stopped, now and then has a last word of its own.
    said = [line for line in done.stderr.splitlines() if not line.endswith("signaler.cpp:238)")]
    assert said == [
        "error: notebooks/00_only.ipynb failed in cell 2, which begins with: 1 / 0",
        "  ZeroDivisionError: division by zero",
    ]
    assert "00_only failed in" in done.stdout


def test_help_and_version_answer_without_loading_torch() -> None:
    program = (
        "import sys; from msstab.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {'torch', 'pydantic', 'pandas', 'yaml', 'nbformat'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "build" in done.stdout
    assert run("--version").stdout == "msstab 0.1.0\n"
