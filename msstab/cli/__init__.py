"""The command line: one file for each command, which checks what is given and calls a room."""

import signal
import sys
from typing import Annotated

import typer

from msstab import __version__
from msstab.cli import (
    audit,
    build,
    check,
    compare,
    inspect,
    plan,
    publish,
    run,
    sites,
    verify,
)
from msstab.cli.usage import Commands

app = typer.Typer(
    name="msstab",
    cls=Commands,
    help="A reproducible report: does a mean-square stability penalty make recurrent networks "
    "better?",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (
    *(build.build, run.run, plan.plan, publish.publish, verify.verify),
    *(check.check, compare.compare, sites.site, audit.audit, inspect.inspect),
)
for command in COMMANDS:
    app.command()(command)


def main() -> None:
    """Run the command line: what the `msstab` script calls."""
    # A cancelled job is told to end this way; without it, its workers would go on alone.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    app()


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"msstab {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Take the options that come before any command."""
