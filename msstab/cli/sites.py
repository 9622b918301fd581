"""`msstab site`: one page over several built studies."""

from pathlib import Path
from typing import Annotated

import typer

from msstab.cli import shared


def site(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Built books, such as _build/html.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the site.")],
) -> None:
    """Put several built studies under one page that shows their verdicts.

    Exit codes: 0 the site is ready, 2 a folder holds no sound book, or `--out` something else.
    Unless it is 0, a former site stays as it is.
    """
    from msstab import book, books, sites

    try:
        index = sites.build(folders, out, book.find_root())
    except books.BookError as error:
        shared.fail(str(error), 2)
    except book.BuildError as error:
        shared.fail(str(error), error.exit_code)
    except OSError as error:
        shared.fail(f"{error.filename}: {error.strerror}", 2)
    print(shared.shown(index))
