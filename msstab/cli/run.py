"""`msstab run`: one chapter alone."""

from pathlib import Path
from typing import Annotated

import typer

from msstab.cli import shared


def run(
    chapter: Annotated[
        str,
        typer.Argument(
            metavar="CHAPTER",
            help="Name of a notebook, such as 03_penalty.",
            autocompletion=shared.complete_chapter,
        ),
    ],
    profile: shared.Profile = "full",
    parameter: shared.Parameters = None,
    params: shared.ParameterFile = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File for the executed notebook; by default _build/CHAPTER.ipynb."),
    ] = None,
    jobs: shared.Jobs = None,
    reuse: shared.Reuse = None,
    dask: shared.Dask = None,
) -> None:
    """Train what one chapter needs, run it, and write the executed notebook.

    Exit codes: 0 the notebook is ready, 1 the chapter failed, 2 a name, a parameter or an option
    is wrong, 130 interrupted. Unless it is 0, a former notebook stays as it is.
    """
    try:
        with shared.reusing(reuse):
            _run(chapter, (profile, parameter, params), out, jobs, dask)
    except KeyboardInterrupt:
        shared.fail("interrupted; finished trials are kept", 130)


def _run(
    name: str, asked: shared.Asked, out: Path | None, jobs: int | None, dask: str | None
) -> None:
    from msstab import book, rerun

    with shared.explained():
        root = book.find_root()
        chapter = rerun.find(name, root)
    study = shared.asked_study(*asked)
    path = out or root / "_build" / chapter.name
    with shared.explained(), shared.workers(dask) as found:
        rerun.run(study, chapter, path, root, jobs=jobs or found)
    print(shared.shown(path))
