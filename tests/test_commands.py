import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import fake_rooms, make_project
from shelves import report_of, write_book, write_page
from typer.testing import CliRunner, Result

from msstab import cli, rerun
from msstab.study import Study

KEY = "a1b2c3d4e5f6"
ORIGINAL = Path(__file__).parents[1] / "msstab" / "data" / "stage2_report.json"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """No terminal's width, which some runners of tests set."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def shelf(tmp_path: Path) -> tuple[Path, Path]:
    better, worse = report_of(KEY, hidden=8), report_of("bbbbbbbbbbbb", effect=0.2, hidden=16)
    first = write_book(tmp_path / "first", KEY, better)
    return first, write_book(tmp_path / "second", "bbbbbbbbbbbb", worse)


# ---- check


def test_check_of_a_sound_book_exits_0(shelf: tuple[Path, Path]) -> None:
    result = run("check", shelf[0])
    assert result.exit_code == 0
    assert result.stdout == f"{shelf[0]}: no problems\n"
    content = json.loads(run("check", shelf[0], "--json").stdout)
    assert content == {"folder": str(shelf[0]), "study_key": KEY, "problems": []}


def test_check_of_a_broken_book_exits_1_with_each_problem(shelf: tuple[Path, Path]) -> None:
    write_page(shelf[0], "index", KEY, '<a href="gone.html">x</a>')
    result = run("check", shelf[0])
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "index.html: <a> gone.html leads nowhere",
        f"{shelf[0]}: 1 problem",
    ]
    result = run("check", shelf[0], "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["problems"] == ["index.html: <a> gone.html leads nowhere"]


def test_check_tells_a_second_build_from_another_book(shelf: tuple[Path, Path]) -> None:
    first, second = shelf
    same = run("check", first, "--same-as", write_book(first.parent / "again", KEY, None))
    assert same.exit_code == 1  # its report is another one
    assert same.stdout.startswith("bench_report.json differs: ")
    assert run("check", first, "--same-as", first).exit_code == 0
    assert "index.html differs: " in run("check", first, "--same-as", second).stdout


def test_check_loads_no_torch(shelf: tuple[Path, Path]) -> None:
    program = (
        "import sys; from msstab.cli import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {'torch', 'pandas', 'matplotlib'} & set(sys.modules)"
    )
    for arguments in (("check", shelf[0]), ("compare", *shelf)):
        subprocess.run([sys.executable, "-c", program, *arguments], check=True, capture_output=True)


# ---- compare


def test_compare_shows_what_differs(shelf: tuple[Path, Path]) -> None:
    result = run("compare", *shelf)
    assert result.exit_code == 0
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in result.stdout.split("\n")]
    assert ["hidden", "8", "16", "yes"] in lines
    assert ["outcome", "better", "worse", "yes"] in lines
    assert ["pairs", "10", "10", ""] in lines
    assert "The outcome changes from better to worse; 1 parameter differs: hidden." in (
        result.stdout.splitlines()
    )


def test_compare_says_the_same_to_a_program(shelf: tuple[Path, Path]) -> None:
    first, second = shelf
    content = json.loads(run("compare", first, second / "bench_report.json", "--json").stdout)
    assert content["first"] == str(first)
    rows = {row["quantity"]: row for row in content["rows"]}
    assert (rows["hidden"]["first"], rows["hidden"]["second"]) == (8, 16)
    assert rows["effect, % of the baseline's error"]["first"] == pytest.approx(-10, abs=3)


def test_compare_draws_both_effects(shelf: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "figures" / "both.svg"
    assert run("compare", *shelf, "--figure", path).exit_code == 0
    text = path.read_text()
    assert text.startswith("<svg")
    assert "first: -" in text
    assert "second: +" in text


def test_compare_takes_the_original(shelf: tuple[Path, Path]) -> None:
    result = run("compare", ORIGINAL, shelf[0])
    assert result.exit_code == 0
    assert "not recorded" in result.stdout


# ---- site


def test_site_gathers_books(
    shelf: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make_project(tmp_path / "project"))
    result = run("site", *shelf, "--out", "shelf")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "shelf/index.html\n"
    assert (tmp_path / "project" / "shelf" / "first" / "index.html").is_file()


# ---- run


def test_run_writes_one_executed_chapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(tmp_path / "project")
    monkeypatch.chdir(project)
    asked: list[tuple[Study, Path, Path, int]] = []

    def record(study: Study, chapter: Path, out: Path, root: Path, *, jobs: int) -> None:
        assert root == project
        asked.append((study, chapter, out, jobs))

    monkeypatch.setattr(rerun, "run", record)
    (project / "run.yml").write_text("hidden: 8\nseeds: 6\n")
    result = run(
        *("run", "00_only", "--profile", "stage2", "--params", "run.yml"),
        *("-p", "hidden=12", "--out", "mine.ipynb", "--jobs", "3"),
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "mine.ipynb\n"
    (study, chapter, out, jobs), *_ = asked
    assert (study.hidden, study.seeds, study.other_seeds) == (12, 6, 8)
    assert chapter == project / "notebooks" / "00_only.ipynb"
    assert (out, jobs) == (Path("mine.ipynb"), 3)
    assert run("run", "00_only").stdout == "_build/00_only.ipynb\n"
    assert len(asked) == 2


def test_run_of_a_chapter_that_fails_exits_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_rooms(monkeypatch)
    monkeypatch.chdir(make_project(tmp_path / "project"))
    path = Path("notebooks", "00_only.ipynb")
    path.write_text(path.read_text().replace("# fmt: off", "1 / 0"))
    result = run("run", "00_only", "-p", "hidden=8")
    assert result.exit_code == 1
    assert "ZeroDivisionError" in result.stderr
    assert not Path("_build", "00_only.ipynb").exists()


# ---- plan


def test_plan_shows_what_a_build_would_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(make_project(tmp_path / "project"))
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path / "cache"))
    arguments = ("plan", "--profile", "quick", "--jobs", "2")
    content = json.loads(run(*arguments, "--json").stdout)
    (stage,) = content["stages"]
    assert content["jobs"] == 2
    assert content["seconds"] == pytest.approx(stage["seconds"] / 2)
    assert stage["train"] > 0
    result = run(*arguments)
    assert result.exit_code == 0
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in result.stdout.split("\n")]
    row = next(line for line in lines if line and line[0] == "trials")
    assert row[1:5] == [str(stage[name]) for name in ("kept", "train", "score", "later")]
    assert "2 processes: training a network takes" in " ".join(result.stdout.split())
    assert not (tmp_path / "cache").exists()


# ---- completion


def completed(*words: str, cwd: Path | None = None) -> list[str]:
    """Return what bash would be offered for the last word."""
    environment = {
        **os.environ,
        "_MSSTAB_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("msstab", *words)),
        "COMP_CWORD": str(len(words)),
    }
    program = (
        "import sys; sys.argv[0] = 'msstab'; from msstab.cli import app; app(prog_name='msstab')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_names_of_parameters_complete_with_their_defaults() -> None:
    assert completed("build", "-p", "hid") == ["hidden=32"]
    assert completed("plan", "-p", "learn") == ["learning_rates=0.001,0.003,0.01"]
    offered = completed("run", "03_penalty", "--parameter", "s")
    assert {name.partition("=")[0] for name in offered} == {
        name for name in Study.model_fields if name.startswith("s")
    }


def test_profiles_and_chapters_complete(tmp_path: Path) -> None:
    assert completed("build", "--profile", "s") == ["stage2"]
    assert completed("run", "0", cwd=make_project(tmp_path)) == ["00_only"]
    assert "compare" in completed("co")
