"""`msstab verify`: a spot check of the published results."""

from pathlib import Path
from typing import Annotated

import typer

from msstab.cli import shared


def verify(
    sample: Annotated[int, typer.Option(min=2, help="Networks to run again.")] = 20,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Choose the same networks again; by default others.")
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The published results; by default the project's."),
    ] = None,
    jobs: shared.Jobs = None,
    as_json: shared.AsJson = False,
) -> None:
    """Train and score random networks of the published study again, and compare every score.

    What is kept here is not used. Exit codes: 0 identical, or no systematic difference, 1 a
    systematic difference, 2 the results cannot be used, 130 interrupted.
    """
    import os

    for name in shared.THREADS:
        os.environ.setdefault(name, "1")
    from rich.console import Console
    from rich.progress import Progress

    from msstab import published

    console = Console(stderr=True)
    try:
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("running again", total=None)
            found = published.verify(
                published.open_results(results or published.DEFAULT),
                sample,
                seed=seed,
                jobs=jobs or shared.cores(),
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
    except published.PublishedError as error:
        shared.fail(str(error), 2)
    except KeyboardInterrupt:
        shared.fail("interrupted", 130)
    if as_json:
        shared.print_json(published.to_json(found))
    else:
        print(published.agreement_sentence(found.found))
    if not found.found.agrees:
        raise typer.Exit(1)
