"""`msstab publish`: the results of a study, for others to reuse and to check."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from msstab.cli import shared

if TYPE_CHECKING:
    from msstab.study import Study


def publish(
    profile: shared.Profile = "full",
    parameter: shared.Parameters = None,
    params: shared.ParameterFile = None,
    out: Annotated[Path | None, typer.Option(help="Folder for them; by default results.")] = None,
    jobs: shared.Jobs = None,
) -> None:
    """Write a study's plan, trials, report and all that its chapters read into a folder.

    What is missing is run first. Where the folder is the project's own `results`, the opening of
    README.md is written from it too. Exit codes: 0 they are written, 1 a chapter failed, 2 a
    parameter or an option is wrong, 130 interrupted. Unless it is 0, former results stay.
    """
    study = shared.asked_study(profile, parameter, params)
    try:
        _publish(study, profile, out, jobs)
    except KeyboardInterrupt:
        shared.fail("interrupted; former results are unchanged, and finished trials are kept", 130)


def _publish(study: "Study", profile_name: str, out: Path | None, jobs: int | None) -> None:
    from msstab import book, published

    with shared.explained():
        root = book.find_root()
        folder = published.write(
            study,
            out or root / published.DEFAULT.name,
            root,
            jobs=jobs or shared.cores(),
            profile_name=profile_name,
        )
        if folder == root / published.DEFAULT.name:
            published.update_readme(root / "README.md", published.open_results(folder))
    print(shared.shown(folder))
