import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest

from msstab.study import Study, parameters_cell

FOLDER = Path(__file__).parents[1] / "notebooks"
CHAPTERS = sorted(FOLDER.glob("*.ipynb"))


@pytest.fixture(params=CHAPTERS, ids=lambda path: str(path.stem))
def path(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture
def notebook(path: Path) -> Any:
    return nbformat.read(path, 4)


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def assigned(source: str) -> set[str]:
    """Every name that a cell gives a value to, outside of functions and comprehensions."""
    inner = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    names: set[str] = set()
    left: list[ast.AST] = [ast.parse(source)]
    while left:
        node = left.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.split(".")[0])
        if not isinstance(node, inner):
            left += ast.iter_child_nodes(node)
    return names


def text_of(notebook: Any) -> str:
    return "\n".join(cell.source for cell in notebook.cells)


def links(notebook: Any) -> set[str]:
    """Return what the text of a notebook refers to by name: figures and terms of the glossary."""
    return {a or b for a, b in re.findall(r"\]\((?:#([\w-]+)|<#([^>]+)>)\)", text_of(notebook))}


def test_the_chapters_are_all_there() -> None:
    assert [path.stem for path in CHAPTERS] == [
        "00_original",
        "01_data",
        "02_baseline",
        "03_penalty",
        "04_mechanism",
        "05_verdict",
        "06_tracks",
        "07_sizes",
        "08_uncertainty",
        "09_quantisation",
        "10_rollouts",
        "own_idea",
    ]


def test_a_chapter_is_a_valid_notebook_for_python(notebook: Any) -> None:
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert notebook.metadata.kernelspec.language == "python"


def test_the_parameters_cell_is_the_studys_own(notebook: Any) -> None:
    first = code(notebook)[0]
    assert "parameters" in first.metadata.tags
    assert first.source == parameters_cell()
    tagged = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    assert tagged == [first]


def test_papermill_sees_every_parameter_with_its_default(path: Path) -> None:
    seen = papermill.inspect_notebook(str(path))
    defaults = Study().model_dump(mode="json")
    assert {name: json.loads(p["default"]) for name, p in seen.items()} == defaults


def test_the_parameters_are_checked_before_anything_else(notebook: Any) -> None:
    first, second, *rest = code(notebook)
    assert notebook.cells.index(second) == notebook.cells.index(first) + 1
    assert "= notebook_study(globals())" in second.source
    assert not any("notebook_study" in cell.source for cell in rest)


def test_no_later_cell_changes_a_parameter(notebook: Any) -> None:
    # In a live kernel, running the second cell again would take it for an edit.
    for cell in code(notebook)[1:]:
        assert not assigned(cell.source) & Study.model_fields.keys()


def test_a_chapter_is_kept_without_outputs(notebook: Any) -> None:
    for cell in code(notebook):
        assert cell.outputs == []
        assert cell.execution_count is None
        assert cell.source.strip()


def test_cells_have_names_that_stay(notebook: Any) -> None:
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    # What editors make up: eight hexadecimal digits, or a universally unique identifier.
    made_up = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){0,3}(-[0-9a-f]{12})?")
    assert not [name for name in ids if made_up.fullmatch(name)]


@pytest.mark.parametrize("path", CHAPTERS[:-1], ids=lambda path: str(path.stem))
def test_a_chapter_asks_and_answers_before_it_explains(notebook: Any) -> None:
    title, parameters, study, answer, *_ = notebook.cells
    assert re.fullmatch(r"# .+\n\n\*[^*]+\?\*", title.source)
    assert [parameters, study, answer] == code(notebook)[:3]
    assert "**Answer.**" in answer.source


@pytest.mark.parametrize("path", CHAPTERS[:-1], ids=lambda path: str(path.stem))
def test_a_chapter_says_what_would_refute_it(notebook: Any) -> None:
    headings = re.findall(r"^#{2,3} .+", text_of(notebook), re.MULTILINE)
    assert [heading for heading in headings if re.search(r"refute|change this", heading)]


def test_every_figure_is_spoken_of(notebook: Any) -> None:
    figures = {
        cell.metadata.mystnb.figure.name for cell in code(notebook) if "mystnb" in cell.metadata
    }
    assert figures <= links(notebook)


def test_words_lead_to_the_glossary(notebook: Any) -> None:
    page = (FOLDER.parent / "book" / "glossary.md").read_text(encoding="utf-8")
    entries = page.partition("```{glossary}\n")[2].partition("```")[0]
    terms = re.findall(r"^(\S.*)$", entries, re.MULTILINE)
    assert terms == sorted(set(terms), key=str.lower)
    used = {name for name in links(notebook) if not name.startswith("fig-")}
    assert used
    assert used <= set(terms)


def papermill_alone(
    *arguments: str | Path, cwd: Path, package: Path = FOLDER.parent
) -> subprocess.CompletedProcess[str]:
    """Run papermill's own command, with a package that lies somewhere."""
    return subprocess.run(
        [sys.executable, "-m", "papermill", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.slow
def test_papermill_stops_at_a_misspelt_parameter_and_names_the_right_one(tmp_path: Path) -> None:
    out = tmp_path / "out.ipynb"
    done = papermill_alone("03_penalty.ipynb", out, "-p", "hiden", "64", cwd=FOLDER)
    assert done.returncode != 0
    line = "StudyError: hiden is not a parameter; did you mean hidden? Known: track,"
    assert done.stderr.strip().splitlines()[-1].startswith(line)
    cells = nbformat.read(out, 4).cells
    (error,) = (own for cell in cells for own in cell.get("outputs", []))
    assert len(error.traceback) == 1  # what Jupyter shows: no code but the reader's own


@pytest.mark.slow
def test_papermill_runs_a_chapter_from_anywhere_with_the_package_alone(tmp_path: Path) -> None:
    """As after an installation that is not editable: what `pyproject.toml` lists, no repository."""
    listed = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text())["tool"]["setuptools"]
    for name in listed["packages"]:
        folder = Path(*name.split("."))
        for pattern in ("*.py", *listed["package-data"].get(name, ())):
            for file in (FOLDER.parent / folder).glob(pattern):
                target = tmp_path / "site" / file.relative_to(FOLDER.parent)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, target)
    chapter, out = FOLDER / "00_original.ipynb", tmp_path / "out.ipynb"
    done = papermill_alone(
        *(chapter, out, "-p", "sesoi", "0.1"), cwd=tmp_path, package=tmp_path / "site"
    )
    assert done.returncode == 0, done.stderr
    cells = {cell.id: cell for cell in nbformat.read(out, 4).cells}
    assert "to find one of 10% would take" in str(cells["00-08"].outputs)
    assert {path.name for path in tmp_path.iterdir()} == {"site", "out.ipynb"}
