"""`msstab build`: the whole book of a study."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from msstab.cli import shared

if TYPE_CHECKING:
    from msstab.study import Study


def build(
    profile: shared.Profile = "full",
    parameter: shared.Parameters = None,
    params: shared.ParameterFile = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the book; by default _build/html.")
    ] = None,
    jobs: shared.Jobs = None,
    reuse: shared.Reuse = None,
    dask: shared.Dask = None,
) -> None:
    """Train what is missing, run the chapters and build the book.

    Exit codes: 0 the book is ready, 1 a chapter or a check failed, 2 a parameter or an option
    is wrong, 130 interrupted. Unless it is 0, a former book stays as it is.
    """
    study = shared.asked_study(profile, parameter, params)
    try:
        with shared.reusing(reuse):
            _build(study, profile, out, jobs, dask)
    except KeyboardInterrupt:
        shared.fail("interrupted; a former book is unchanged, and finished trials are kept", 130)


def _build(
    study: "Study", profile_name: str, out: Path | None, jobs: int | None, dask: str | None
) -> None:
    from msstab import book

    with shared.explained(), shared.workers(dask) as found:
        result = book.build(study, out=out, jobs=jobs or found, profile_name=profile_name)
    print(f"\n{result.verdict}\n{shared.shown(result.path)}")
