"""`msstab compare`: two reports beside each other."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from msstab.cli import shared

if TYPE_CHECKING:
    from msstab.report import Report

Side = Annotated[Path, typer.Argument(help="A bench_report.json, or the folder of a built book.")]


def compare(
    first: Side,
    second: Side,
    as_json: shared.AsJson = False,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg", help="Also draw both effects with their intervals."),
    ] = None,
) -> None:
    """Show what differs between two reports: parameters, effects and verdict.

    Exit codes: 0 compared, 2 a file or folder cannot be used.
    """
    from msstab import books, comparing, targets, terminal

    if figure is not None:
        with shared.usable("--figure"):
            targets.require_file(figure, ".svg")
    try:
        reports = [books.open_report(path) for path in (first, second)]
        rows = comparing.compare(*reports)
    except books.BookError as error:
        shared.fail(str(error), 2)
    names = [first.name, second.name]
    titles = names if names[0] != names[1] else [str(first), str(second)]
    if figure is not None:
        _draw(reports, titles, figure)
    if as_json:
        paths = {"first": str(first), "second": str(second)}
        shared.print_json({**paths, **comparing.to_json(rows)})
    else:
        headings = ("Quantity", *titles, "Differs")
        terminal.print_table(headings, comparing.to_texts(rows))
        print(comparing.sentence(rows))


def _draw(reports: "list[Report]", titles: list[str], path: Path) -> None:
    from msstab import comparing, store, svg

    picture = comparing.picture(dict(zip(titles, reports, strict=True)))
    try:
        store.replace(path, svg.standalone(picture).encode())
    except OSError as error:
        shared.fail(f"{path}: {error.strerror}", 2)
