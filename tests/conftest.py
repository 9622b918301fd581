"""A small project to build: the real configuration and prose, around chapters of a few cells."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import types
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import nbformat
import pytest

import msstab
from msstab import results
from msstab.results import Results
from msstab.study import Study, parameters_cell

REPOSITORY = Path(__file__).parents[1]
VERDICT = "The penalty changed nothing that matters."
NUMBERS = {
    "verdict_sentence": VERDICT,
    "answer_text": VERDICT,
    "found_text": "- The error changed by 0.4%.\n- Nothing else did.",
    "reason_text": "Predicted, not observed.",
    "certainty_text": "8 pairs of networks, p = 0.51.",
    "meaning_text": "It means nothing.",
    "seeds_line": "2 tune, 8 confirm",
    "networks_text": "1,234",
    "training_text": "5 min",
    "pairs": 8,
    "study_key": Study().key,
}
EFFECT = (
    '<div class="msstab-figure"><svg role="img" aria-label="An interval around zero"></svg></div>'
)

CARD = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes([0, 0, 4, 176, 0, 0, 2, 118])
"""The head of a picture of 1200 x 630 pixels, which is all that is looked at."""

FIGURE = """\
import pandas

from msstab import svg
from matplotlib import pyplot as plt

with svg.style():
    figure, axes = plt.subplots()
    for shift in range(5):
        axes.plot([0, 1, 2], [shift, shift + 1, shift], "o-", label=f"arm {shift}, σ = 0.{shift}")
    axes.axhline(2, color=svg.INK, linestyle="--")
    axes.set(xlabel=r"second-moment radius $\\rho(\\sigma)$", ylabel="test error", title="A title")
    axes.legend(ncols=2)
data = pandas.DataFrame({"arm": range(5), "peak": range(1, 6)})
svg.Picture(figure, "Five arms, each with one peak", data)"""
TABLE = """\
import pandas
pandas.DataFrame({f"a rather long column {k}": [k / 7, k / 3] for k in range(9)}).round(3)"""
PROSE = """\
# A chapter

The pairs are {{ pairs }}, see {numref}`fig-arms` and {cite:t}`cho2014gru`. In line $\\rho < 1$, and

$$\\rho(L) = \\max_i |\\lambda_i(J \\otimes J + \\sigma^2 \\sum_k Q_k \\otimes Q_k)| < 1
.$$ (eq-chapter)"""

Cell = tuple[str, str, dict[str, Any]]


def markdown(source: str) -> Cell:
    return "markdown", source, {}


def code(source: str, *tags: str, **metadata: object) -> Cell:
    return "code", source, {"tags": list(tags), **metadata}


PARAMETERS = code(parameters_cell(), "parameters")
RICH_CHAPTER = [
    markdown(PROSE),
    PARAMETERS,
    code("print(hidden, seeds)"),
    code(
        FIGURE,
        "remove-input",
        mystnb={"figure": {"caption": "What the arms do, with $\\rho$.", "name": "fig-arms"}},
    ),
    code(TABLE, "remove-input"),
]


def write_notebook(path: Path, cells: list[Cell]) -> None:
    made = []
    for number, (kind, source, metadata) in enumerate(cells):
        new: Callable[..., Any] = (
            nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
        )
        made.append(new(source, metadata=metadata, id=f"cell-{number}"))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=made, metadata={"kernelspec": kernel})
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)


def make_project(root: Path) -> Path:
    """Write a project with one chapter, which each test fills as it likes."""
    root.mkdir(parents=True, exist_ok=True)
    for name in ("_config.yml", "CITATION.cff"):
        shutil.copy(REPOSITORY / name, root)
    ignored = shutil.ignore_patterns("notebooks", "_results")
    shutil.copytree(REPOSITORY / "book", root / "book", ignore=ignored)
    # Chapters refer to the list of parameters.
    home = "# Home\n\n{{ verdict_sentence }}\n\n(all-parameters)=\n## All parameters\n"
    (root / "book" / "index.md").write_text(home, encoding="utf-8")
    (root / "_toc.yml").write_text(
        "format: jb-book\nroot: index\nchapters:\n- file: notebooks/00_only\n", encoding="utf-8"
    )
    write_notebook(root / "notebooks" / "00_only.ipynb", [markdown("# Only"), PARAMETERS])
    return root


def make_whole_project(root: Path) -> Path:
    """Write a project with the real front page and table of contents."""
    make_project(root)
    shutil.copy(REPOSITORY / "book" / "index.md", root / "book" / "index.md")
    shutil.copy(REPOSITORY / "_toc.yml", root)
    others = (
        *("00_original", "01_data", "02_baseline", "04_mechanism", "05_verdict"),
        *("06_tracks", "07_sizes", "08_uncertainty", "09_quantisation", "10_rollouts"),
        "own_idea",
    )
    for name in others:
        write_notebook(root / "notebooks" / f"{name}.ipynb", [markdown(f"# {name}"), PARAMETERS])
    write_notebook(root / "notebooks" / "03_penalty.ipynb", RICH_CHAPTER)
    return root


def fake_rooms(patch: pytest.MonkeyPatch, numbers: dict[str, object] | None = None) -> list[Study]:
    """Replace training and its results; return the list that each trained study is added to."""
    import_module("msstab.outlook")  # which else would keep what is replaced here
    trained: list[Study] = []

    def collect(
        study: Study, *, jobs: int = 1, progress: Callable[[int, int], None] | None = None
    ) -> Study:
        trained.append(study)
        if progress is not None:
            progress(1, 2)
            progress(2, 2)
        return study

    def write(study: Study, directory: Path, free_run: object = None) -> str:
        texts = {**NUMBERS, "study_key": study.key, **(numbers or {})}
        (directory / "numbers.json").write_text(json.dumps(texts), encoding="utf-8")
        (directory / "bench_report.json").write_text("{}", encoding="utf-8")
        (directory / "effect.html").write_text(EFFECT, encoding="utf-8")
        (directory / "card.png").write_bytes(CARD)
        return VERDICT

    rooms: dict[str, dict[str, Any]] = {
        "results": {"collect": collect},
        "downloads": {"write": write},
        "parts": {"PARTS": {}, "FREE_RUNS": "10_rollouts", "free_run": lambda *_, **__: None},
    }
    for name, content in rooms.items():
        room = types.ModuleType(f"msstab.{name}")
        vars(room).update(content)
        patch.setitem(sys.modules, f"msstab.{name}", room)
        patch.setattr(msstab, name, room, raising=False)
    return trained


TINY = Study(
    arms=("baseline", "spectral_proxy"),
    hidden=6,
    epochs=3,
    n_train=64,
    n_validation=16,
    n_test=16,
    learning_rates=(0.01, 0.05),
    strengths=(0.0, 0.5),
    draws=4,
    mechanism_sequences=8,
    tuning_seeds=2,
    seeds=6,
)


@pytest.fixture(scope="session")
def tiny_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache for the tiny Study, filled by the first test that needs it."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def tiny_results(tiny_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Results:
    """Return the results of a real Study of tiny networks, run once for all tests.

    Tests share them: one that changes its table takes a copy.
    """
    monkeypatch.setenv("MSSTAB_CACHE", str(tiny_cache))
    return _tiny_results()


@cache
def _tiny_results() -> Results:
    return results.collect(TINY, jobs=1)


@pytest.fixture(scope="session")
def tiny_book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a book of the real chapters at a tiny scale, around the example of an own arm.

    Built once, whichever of several workers needs it first.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    project = shared / "tiny-book"
    with (shared / "tiny-book.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not project.exists():
            _build_tiny_book(project)
    html = project / "_build" / "html"
    assert html.is_dir(), "the tiny book could not be built, as another test has said"
    return html


@pytest.fixture(scope="session")
def shown_book(request: pytest.FixtureRequest) -> Path:
    """Return the book that the tests in a browser look at: MSSTAB_BOOK, or the tiny one."""
    if given := os.environ.get("MSSTAB_BOOK"):
        return Path(given).resolve()
    built: Path = request.getfixturevalue("tiny_book")
    return built


def _build_tiny_book(project: Path) -> None:
    ignored = shutil.ignore_patterns("notebooks", "_results")
    shutil.copytree(REPOSITORY / "book", project / "book", ignore=ignored)
    shutil.copytree(REPOSITORY / "notebooks", project / "notebooks")
    for name in ("_config.yml", "_toc.yml", "CITATION.cff"):
        shutil.copy(REPOSITORY / name, project)
    example = nbformat.read(REPOSITORY / "notebooks" / "own_idea.ipynb", 4)
    (cell,) = (cell for cell in example.cells if cell.id == "arm")
    (project / "my_idea.py").write_text(cell.source, encoding="utf-8")
    changes = {"arms": "baseline,my_idea.py:slow_states,noise_injection", "hidden": 6, "epochs": 2}
    few: dict[str, object] = {
        "tuning_seeds": 2,
        "seeds": 6,
        "other_seeds": 2,
        "draws": 8,
        "sigma_grid": "0.2,0.4",
    }
    few |= {"n_train": 96, "n_validation": 32, "n_test": 64, "mechanism_sequences": 8}
    options = [f"-p{name}={value}" for name, value in (changes | few).items()]
    done = subprocess.run(
        [sys.executable, "-m", "msstab", "build", "--profile", "quick", "--jobs", "2", *options],
        cwd=project,
        env={**os.environ, "MSSTAB_CACHE": str(project / ".cache")},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
