"""`msstab audit`: what a bench report says, recomputed from its own values."""

from pathlib import Path
from typing import Annotated

import typer

from msstab import terminal
from msstab.cli import shared


def audit(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A bench_report.json, of this project or another."),
    ],
    as_json: shared.AsJson = False,
    alpha: Annotated[
        float, typer.Option(help="Two-sided level, where the file states none.")
    ] = 0.05,
    sesoi: Annotated[
        float,
        typer.Option(help="Smallest effect of interest, as a share; where the file states none."),
    ] = 0.05,
) -> None:
    """Recompute what a bench report says from its own values by seed, and question its design.

    Exit codes: 0 nothing is flagged, 1 something is, 2 the file or an option cannot be used.
    """
    for name, value, most in (("alpha", alpha, 0.5), ("sesoi", sesoi, 1.0)):
        if not 0 < value < most:
            shared.fail(f"--{name} {value}: it must lie between 0 and {most:g}", 2)
    from msstab import audit as audits

    try:
        rows = audits.audit(audits.read(file), alpha=alpha, sesoi=sesoi)
    except audits.AuditError as error:
        shared.fail(str(error), 2)
    terminal.tolerate_encoding()
    if as_json:
        shared.print_json({"file": str(file), **audits.to_json(rows)})
    else:
        audits.print_table(rows)
        print(audits.summary(rows))
    if any(row.flagged for row in rows):
        raise typer.Exit(1)
