"""Run one chapter with papermill and keep a copy fit to publish."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from msstab import attachments

CELL_SECONDS = 1800  # a chapter only reads results, so a longer cell hangs
PARAMETERS = "parameters"
INJECTED = "injected-parameters"


@dataclass(frozen=True)
class Outcome:
    """What became of a chapter: `error` is empty when its copy is ready."""

    name: str
    seconds: float
    error: str
    warnings: list[str]


def run_chapter(
    source: Path,
    target: Path,
    parameters: Mapping[str, object],
    private: tuple[str, ...] = (),
    files: Path | None = None,
) -> Outcome:
    """Execute a notebook in its own folder and write the cleaned copy to `target`.

    What figures and tables offer goes into the folder `files`, if there is one. A failing cell is
    reported in the Outcome and leaves nothing at `target`. So does an output that shows one of the
    `private` paths, which would publish where this machine keeps things.
    """
    start = time.monotonic()
    warnings: list[str] = []
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        error = _execute(source, target, parameters)
        if not error:
            notebook = nbformat.read(target, 4)
            warnings = [f"{source.name}, cell {n}: {text}" for n, text in _stderr(notebook)]
            error = _shown_path(notebook, private)
            copy = cleaned(notebook)
            if files is not None:
                attachments.attach(copy, source.stem, files)
            target.write_text(nbformat.writes(copy) + "\n", encoding="utf-8")
    except Exception as problem:
        error = f"could not be run: {type(problem).__name__}: {_short(str(problem))}"
    if error:
        target.unlink(missing_ok=True)
        error = f"notebooks/{source.name} {error}"
    return Outcome(source.stem, time.monotonic() - start, error, warnings)


def has_parameters(notebook: Any) -> bool:
    """Say whether papermill will find the cell that it sets parameters after."""
    return any(PARAMETERS in _tags(cell) for cell in notebook.cells)


def cleaned(notebook: Any) -> Any:
    """Return a copy that is the same from run to run, without parameter cells and warnings.

    The parameters shown would otherwise be the defaults, followed by those that count; the
    book has a table of them.
    """
    notebook = nbformat.from_dict(json.loads(nbformat.writes(notebook)))
    notebook.metadata.pop("papermill", None)
    notebook.metadata.get("language_info", {}).pop("version", None)
    for cell in notebook.cells:
        for noise in ("papermill", "execution"):
            cell.metadata.pop(noise, None)
        tags = _tags(cell)
        if INJECTED in tags:
            cell["id"] = INJECTED  # papermill draws a random one
        if {INJECTED, PARAMETERS} & set(tags) and "remove-cell" not in tags:
            cell.metadata["tags"] = [*tags, "remove-cell"]
        if cell.cell_type == "code":
            cell.outputs = [out for out in cell.outputs if out.get("name") != "stderr"]
    return notebook


def plain(text: str) -> str:
    """Return a text without the escape codes of a coloured terminal."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)


def _execute(source: Path, target: Path, parameters: Mapping[str, object]) -> str:
    """Run a notebook; return what went wrong, or nothing."""
    import papermill  # takes most of a second, and only the processes that run chapters need it
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    try:
        papermill.execute_notebook(
            source,
            target,
            parameters=dict(parameters),
            cwd=source.parent,
            # A fixed name ignores whatever environment the notebook was last saved in.
            kernel_name="python3",
            kernel_manager_class=_kernel_of_this_python(),
            progress_bar=False,
            log_output=False,
            execution_timeout=CELL_SECONDS,
            # ipykernel otherwise reports its connection and its end on the terminal.
            extra_arguments=["--log-level=50"],
        )
    except papermill.PapermillExecutionError as problem:
        # papermill put a notice of its own on top, and another before the failing cell.
        notebook = nbformat.read(target, 4)
        notebook.cells = [c for c in notebook.cells if "papermill-error-cell-tag" not in _tags(c)]
        cell = next(c for c in _code(notebook) if c[1].source == problem.source and _failed(c[1]))
        return f"{_place(cell)}\n  {problem.ename}: {_short(problem.evalue)}"
    except (DeadKernelError, CellTimeoutError) as problem:
        notebook = nbformat.read(target, 4)
        last = [c for c in _code(notebook) if c[1].metadata.get("papermill", {}).get("start_time")]
        why = f"took more than {CELL_SECONDS} s"
        if isinstance(problem, DeadKernelError):
            why = "its process died, perhaps for want of memory"
        return f"{_place(last[-1]) if last else 'failed'}\n  {why}"
    # papermill takes sys.exit() for success and would publish the half that ran.
    for cell in _code(nbformat.read(target, 4)):
        if _failed(cell[1]):
            return f"{_place(cell)}\n  it ended the chapter early"
    return ""


def _kernel_of_this_python() -> type:
    """Return what starts a kernel, whatever other Python Jupyter knows by that kernel's name."""
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager

    class Manager(AsyncKernelManager):
        def __init__(self, **given: Any) -> None:
            super().__init__(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]), **given)

    return Manager


def _code(notebook: Any) -> Iterator[tuple[int, Any]]:
    """Yield the code cells, numbered from 1 among all cells as they stand in the source."""
    number = 0
    for cell in notebook.cells:
        number += INJECTED not in _tags(cell)
        if cell.cell_type == "code":
            yield number, cell


def _place(cell: tuple[int, Any]) -> str:
    lines = [line for line in cell[1].source.splitlines() if line.strip()]
    return f"failed in cell {cell[0]}, which begins with: {_short(lines[0]) if lines else ''}"


def _failed(cell: Any) -> bool:
    return any(output.output_type == "error" for output in cell.outputs)


def _stderr(notebook: Any) -> Iterator[tuple[int, str]]:
    """Yield the number of each cell that wrote warnings, and the text."""
    for number, cell in _code(notebook):
        text = "".join(out.text for out in cell.outputs if out.get("name") == "stderr").strip()
        if text:
            yield number, text


def _shown_path(notebook: Any, private: tuple[str, ...]) -> str:
    """Return a complaint about the first output that shows a private path, or nothing."""
    for cell in _code(notebook):
        shown = json.dumps(
            [_readable(out) for out in cell[1].outputs if out.get("name") != "stderr"]
        )
        for path in private:
            if re.search(rf"(?<![\w.]){re.escape(path)}(?![\w.-])", shown):
                return f"shows the local path {path}\n  in cell {cell[0]}; print a relative one"
    return ""


def _readable(output: Any) -> object:
    data = output.get("data")
    if data is None:
        return output
    return [value for kind, value in data.items() if not kind.startswith("image/")]


def _tags(cell: Any) -> list[str]:
    tags: list[str] = cell.metadata.get("tags", [])
    return tags


def _short(text: str) -> str:
    """Return at most four lines."""
    lines = plain(text).strip().splitlines()
    return "\n  ".join(line[:200] for line in lines[:4]) + (" ..." if len(lines) > 4 else "")
