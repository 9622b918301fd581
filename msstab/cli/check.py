"""`msstab check`: whether a built book is whole."""

from pathlib import Path
from typing import Annotated

import typer

from msstab.cli import shared


def check(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A built book, such as _build/html.")
    ],
    same_as: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Another build of the same study, which must be the same but times."
        ),
    ] = None,
    as_json: shared.AsJson = False,
) -> None:
    """Check a built book: its report, its links, and that one study made all of it.

    Besides, that no page fetches anything from another site and none is left of an earlier
    build; with --same-as, that another build gave the same bytes, but for the times that
    `msstab.rebuilt.VARYING` lists. Exit codes: 0 nothing is wrong, 1 something is, 2 the folder
    holds no book.
    """
    from msstab import books, rebuilt, terminal

    try:
        book = books.open_book(folder)
        other = books.open_book(same_as) if same_as else None
    except books.BookError as error:
        shared.fail(str(error), 2)
    found = books.problems(book)
    if other is not None:
        found += rebuilt.differences(book.folder, other.folder)
    terminal.tolerate_encoding()
    if as_json:
        key = book.manifest["study_key"]
        shared.print_json({"folder": str(folder), "study_key": key, "problems": found})
    else:
        for problem in found:
            print(terminal.printable(problem, 400))
        print(f"{folder}: {_counted(len(found))}")
    if found:
        raise typer.Exit(1)


def _counted(problems: int) -> str:
    return "1 problem" if problems == 1 else f"{problems or 'no'} problems"
