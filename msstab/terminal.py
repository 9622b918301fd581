"""Tables in a terminal, or in the file that a command's output goes to."""

import os
import sys
from collections.abc import Iterable, Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_OF_A_FILE = 120


def make_console(width_of_a_file: int = WIDTH_OF_A_FILE) -> "Console":
    """Return where to print: as wide as the terminal, and wide enough to read in a file."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = width_of_a_file
    return console


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Sequence[int] = (),
    console: "Console | None" = None,
) -> None:
    """Print rows of texts (as many a row as headings); the columns `numbers` align to the right."""
    from rich.table import Table
    from rich.text import Text

    tolerate_encoding()
    table = Table()
    for place, heading in enumerate(headings):
        table.add_column(heading, overflow="fold", justify="right" if place in numbers else "left")
    for row in rows:
        table.add_row(*(Text(printable(text, 400)) for text in row))
    (console or make_console()).print(table)


def printable(text: str, longest: int) -> str:
    """Return a text without codes that would move a terminal's cursor, cut to a length."""
    clean = "".join(c if c.isprintable() else " " for c in text)
    return clean if len(clean) <= longest else clean[: longest - 3] + "..."


def tolerate_encoding() -> None:
    """Let a terminal of another encoding than UTF-8 still show all that matters."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
