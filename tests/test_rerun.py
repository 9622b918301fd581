import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from conftest import PARAMETERS, code, fake_rooms, make_project, markdown, write_notebook

from msstab import rerun
from msstab.book import BuildError
from msstab.study import Study

STUDY = Study(hidden=16)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
def trained(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[Study]:
    return fake_rooms(monkeypatch)


def fill(project: Path, *cells: tuple[str, str, dict[str, Any]]) -> Path:
    path = project / "notebooks" / "00_only.ipynb"
    write_notebook(path, [markdown("# Only"), PARAMETERS, *cells])
    return path


def test_the_executed_notebook_has_the_given_parameters(
    project: Path, trained: list[Study], tmp_path: Path
) -> None:
    out = tmp_path / "new" / "own.ipynb"
    chapter = fill(project, code("print(hidden)  # not results.collect(other)"))
    rerun.run(STUDY, chapter, out, project)
    outputs = [cell.outputs for cell in nbformat.read(out, 4).cells if cell.cell_type == "code"]
    assert outputs[-1][0].text == "16\n"
    assert [path.name for path in out.parent.iterdir()] == ["own.ipynb"]
    assert trained == []


def test_what_the_chapter_needs_is_run_before_it(
    project: Path, trained: list[Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def part(name: str) -> Callable[..., None]:
        return lambda study, **_: ran.append(f"{name} of {study.hidden}")

    names = {name: part(name) for name in ("00_only", "06_other")}
    monkeypatch.setattr(sys.modules["msstab.parts"], "PARTS", names)
    chapter = fill(project, code("'results.collect(study)'"))
    rerun.run(STUDY, chapter, tmp_path / "out.ipynb", project)
    assert trained == [STUDY]
    assert ran == ["00_only of 16"]


def test_a_failing_chapter_leaves_the_former_notebook(
    project: Path, trained: list[Study], tmp_path: Path
) -> None:
    out = tmp_path / "out.ipynb"
    out.write_text("former")
    with pytest.raises(BuildError, match="ZeroDivisionError"):
        rerun.run(STUDY, fill(project, code("1 / 0")), out, project)
    assert out.read_text() == "former"
    with pytest.raises(BuildError, match="is a folder") as error:
        rerun.run(STUDY, fill(project), tmp_path, project)
    assert error.value.exit_code == 2


def test_a_chapter_is_found_by_its_name(project: Path) -> None:
    write_notebook(project / "notebooks" / "01_data.ipynb", [PARAMETERS])
    assert rerun.chapters(project) == ["00_only", "01_data"]
    for name in ("01_data", "01_data.ipynb", "notebooks/01_data.ipynb"):
        assert rerun.find(name, project) == project / "notebooks" / "01_data.ipynb"
    with pytest.raises(BuildError, match="no chapter 01_dat; did you mean 01_data") as error:
        rerun.find("01_dat", project)
    assert error.value.exit_code == 2
