"""An audit as a table of the book, as one in the terminal, and as JSON for programs."""

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msstab.audit.rows import Kind, Row, Value
from msstab.terminal import printable

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

_AGREES = {
    Kind.AGREES: "yes",
    Kind.DIFFERS: "no",
    Kind.FINDING: "finding",
    Kind.NOT_RECORDED: "not recorded",
}
RESULTS = {
    Kind.AGREES: "ok",
    Kind.DIFFERS: "flag",
    Kind.FINDING: "flag",
    Kind.NOT_RECORDED: "not recorded",
}
_STYLES = {"ok": "green", "flag": "bold red", "not recorded": "dim"}
_MISSING = "\N{EM DASH}"
_LONGEST = 60
_WIDTH_OF_A_FILE = 160
_NARROW = 120


def to_frame(rows: Sequence[Row]) -> "pd.DataFrame":
    """Return rows as a table to show, numbers with as many digits as tell them apart."""
    import pandas as pd

    texts = [_texts(row) for row in rows]
    return pd.DataFrame(
        {
            "Quantity": [row.quantity for row in rows],
            "Stated": [stated for stated, _ in texts],
            "Recomputed": [recomputed for _, recomputed in texts],
            "Agrees": [_AGREES[row.kind] for row in rows],
            "Why": [row.why for row in rows],
        }
    )


def summary(rows: Sequence[Row]) -> str:
    """Return one line: how many checks there were, and how they ended."""
    results = [RESULTS[row.kind] for row in rows]
    flags = results.count("flag")
    return (
        f"{len(rows)} checks: {results.count('ok')} ok, {flags} flag{'' if flags == 1 else 's'}, "
        f"{results.count('not recorded')} not recorded"
    )


def to_json(rows: Sequence[Row]) -> dict[str, Any]:
    """Return what the terminal shows, for programs; numbers that are not finite become null."""
    results = [RESULTS[row.kind] for row in rows]
    return {
        "checks": [
            {
                "check": row.quantity,
                "stated": _plain(row.stated),
                "follows": _plain(row.recomputed),
                "result": result,
                "why": row.why,
            }
            for row, result in zip(rows, results, strict=True)
        ],
        "summary": {name: results.count(name) for name in _STYLES},
    }


def print_table(rows: Sequence[Row], console: "Console | None" = None) -> None:
    """Print rows as a table as wide as the terminal, and wide enough to read in a file.

    In a narrow terminal each reason is below the name of its check, not beside the result.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = console or Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDTH_OF_A_FILE
    narrow = console.width < _NARROW
    table = Table()
    for heading in ("Check", "File states", "Follows", "Result", "Why")[: 4 if narrow else 5]:
        table.add_column(
            heading, overflow="fold", max_width=12 if narrow and table.columns else None
        )
    for row in rows:
        result = Text(RESULTS[row.kind], style=_STYLES[RESULTS[row.kind]])
        name, *values = (Text(printable(text, _LONGEST)) for text in (row.quantity, *_texts(row)))
        why = Text(printable(row.why, 400), style="dim" if narrow else "")
        if narrow:
            table.add_row(Text.assemble(name, "\n  ", why), *values, result)
        else:
            table.add_row(name, *values, result, why)
    console.print(table)


def _texts(row: Row) -> tuple[str, str]:
    for digits in (6, 9, 17):
        stated, recomputed = (_text(value, digits) for value in (row.stated, row.recomputed))
        if row.kind is not Kind.DIFFERS or stated != recomputed:
            break
    return stated, recomputed


def _text(value: Value, digits: int) -> str:
    if value is None:
        return _MISSING
    return value if isinstance(value, str) else f"{value:.{digits}g}"


def _plain(value: Value) -> Value:
    return None if isinstance(value, float) and not math.isfinite(value) else value
