import json
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import PARAMETERS, Cell, code, markdown, write_notebook

from msstab import chapters
from msstab.chapters import Outcome, run_chapter


def run(folder: Path, cells: list[Cell], private: tuple[str, ...] = ()) -> tuple[Outcome, Path]:
    source, target = folder / "notebooks" / "02_x.ipynb", folder / "out" / "02_x.ipynb"
    write_notebook(source, cells)
    return run_chapter(source, target, {"seeds": 11, "arms": ["a", "b"]}, private), target


def test_a_chapter_runs_with_the_given_parameters_in_its_own_folder(tmp_path: Path) -> None:
    look = "import pathlib\nprint(seeds, arms, epochs, pathlib.Path('02_x.ipynb').exists())"
    outcome, target = run(tmp_path, [markdown("# X"), PARAMETERS, code(look)])
    assert outcome.error == ""
    cells = nbformat.read(target, 4).cells
    assert cells[-1].outputs[0].text == "11 ['a', 'b'] 12 True\n"
    hidden = [cell.metadata["tags"] for cell in cells[1:3]]
    assert hidden == [["parameters", "remove-cell"], ["injected-parameters", "remove-cell"]]


def test_two_runs_give_the_same_bytes(tmp_path: Path) -> None:
    cells = [PARAMETERS, code("import sys; print(1); print('careful', file=sys.stderr)")]
    copies = [run(tmp_path / name, cells)[1].read_bytes() for name in "ab"]
    assert copies[0] == copies[1]
    assert b"papermill" not in copies[0]


def test_files_are_written_for_a_book_only(tmp_path: Path) -> None:
    table = (
        "import pandas\nfrom msstab import tables\ntables.show(pandas.DataFrame({'a': [1]}), 'A.')"
    )
    source = tmp_path / "notebooks" / "02_x.ipynb"
    write_notebook(source, [PARAMETERS, code(table)])
    copies = [tmp_path / "alone.ipynb", tmp_path / "book.ipynb"]
    for copy, files in zip(copies, (None, tmp_path / "downloads"), strict=True):
        assert run_chapter(source, copy, {}, files=files).error == ""
    alone, in_book = (nbformat.read(copy, 4).cells[-1].outputs[0].data for copy in copies)
    assert alone["text/csv"] == "a\n1\n"
    assert "msstab-files" not in alone["text/html"]
    assert "downloads/02_x/cell-1.csv" in in_book["text/html"]
    assert (tmp_path / "downloads" / "02_x" / "cell-1.csv").read_text() == "a\n1\n"


def test_warnings_are_told_apart_from_the_page(tmp_path: Path) -> None:
    cells = [PARAMETERS, code("import warnings\nwarnings.warn('mind the gap')\n'result'")]
    outcome, target = run(tmp_path, cells)
    assert len(outcome.warnings) == 1
    assert outcome.warnings[0].startswith("02_x.ipynb, cell 2: ")
    assert "mind the gap" in outcome.warnings[0]
    assert "mind the gap" not in target.read_text().replace(cells[1][1].split("\n")[1], "")


def test_a_failing_cell_is_named_by_its_place_in_the_source(tmp_path: Path) -> None:
    same = code("\n1 / x")
    cells = [markdown("# X"), PARAMETERS, code("x = 1"), same, code("x = 0"), same, code("3")]
    outcome, target = run(tmp_path, cells)
    assert outcome.error == (
        "notebooks/02_x.ipynb failed in cell 6, which begins with: 1 / x\n"
        "  ZeroDivisionError: division by zero"
    )
    assert not target.exists()


def test_a_long_error_is_cut_and_loses_its_colours(tmp_path: Path) -> None:
    text = r"raise ValueError('\x1b[31mred\x1b[0m\n' + 'line\n' * 50)"
    outcome, _ = run(tmp_path, [PARAMETERS, code(text)])
    assert "ValueError: red\n" in outcome.error
    assert "\x1b" not in outcome.error
    assert len(outcome.error.splitlines()) < 8


@pytest.mark.parametrize("status", ["", "0", "1"])
def test_a_chapter_that_ends_itself_early_has_failed(tmp_path: Path, status: str) -> None:
    cells = [PARAMETERS, code(f"import sys\nsys.exit({status})"), code("print('never')")]
    outcome, target = run(tmp_path, cells)
    assert "failed in cell 2, which begins with: import sys" in outcome.error
    assert not target.exists()


def test_a_chapter_whose_process_dies_says_where(tmp_path: Path) -> None:
    outcome, target = run(tmp_path, [PARAMETERS, code("1"), code("import os\nos._exit(9)")])
    assert "failed in cell 3, which begins with: import os" in outcome.error
    assert "process died" in outcome.error
    assert not target.exists()


def test_a_cell_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chapters, "CELL_SECONDS", 1)
    outcome, target = run(tmp_path, [PARAMETERS, code("import time\ntime.sleep(60)")])
    assert "failed in cell 2, which begins with: import time" in outcome.error
    assert "more than 1 s" in outcome.error
    assert not target.exists()


def test_an_output_that_shows_a_private_path_is_refused(tmp_path: Path) -> None:
    cells = [PARAMETERS, code("print('/home/ada-too/x /home/adam')"), code("'see /home/ada/x'")]
    outcome, target = run(tmp_path, cells, private=("/home/ada",))
    assert outcome.error == (
        "notebooks/02_x.ipynb shows the local path /home/ada\n  in cell 3; print a relative one"
    )
    assert not target.exists()


def test_the_kernel_is_this_python_whatever_jupyter_and_the_notebook_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What an environment that is long gone leaves behind, where Jupyter looks first.
    folder = tmp_path / "jupyter" / "kernels" / "python3"
    folder.mkdir(parents=True)
    spec = {"argv": ["/gone/python", "{connection_file}"], "display_name": "", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    source = tmp_path / "notebooks" / "02_x.ipynb"
    write_notebook(source, [PARAMETERS, code("import sys\nprint(sys.executable)")])
    notebook = nbformat.read(source, 4)
    notebook.metadata["kernelspec"]["name"] = "my-conda-env"
    nbformat.write(notebook, source)
    target = tmp_path / "out.ipynb"
    assert run_chapter(source, target, {"seeds": 1}).error == ""
    assert nbformat.read(target, 4).cells[-1].outputs[0].text.strip() == sys.executable
