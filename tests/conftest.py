"""A small project to build: the real configuration and prose, around chapters of a few cells."""

import json
import shutil
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
    "effect_text": "The error changed by 0.4%.",
    "interval_text": "95% interval from −1.2% to 2.1%",
    "p_text": "p = 0.51",
    "mechanism_text": "Predicted, not observed.",
    "pairs": 8,
    "study_key": Study().key,
}
EFFECT = (
    '<div class="msstab-figure"><svg role="img" aria-label="An interval around zero"></svg></div>'
)

FIGURE = """\
from msstab import svg
from matplotlib import pyplot as plt

with svg.style():
    figure, axes = plt.subplots()
    for shift in range(5):
        axes.plot([0, 1, 2], [shift, shift + 1, shift], "o-", label=f"arm {shift}, σ = 0.{shift}")
    axes.axhline(2, color=svg.INK, linestyle="--")
    axes.set(xlabel=r"second-moment radius $\\rho(\\sigma)$", ylabel="test error", title="A title")
    axes.legend(ncols=2)
svg.Picture(figure, alt="Five arms, each with one peak")"""
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
    (root / "book" / "index.md").write_text("# Home\n\n{{ verdict_sentence }}\n", encoding="utf-8")
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
