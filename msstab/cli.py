"""The command line: build the report of a study, or audit a report that there is already."""

import os
import signal
import sys
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from msstab import __version__

# Both libraries read these once, on import: a worker for each core must not start its own threads.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

app = typer.Typer(
    name="msstab",
    help="A reproducible report: does a mean-square stability penalty make recurrent networks "
    "better?",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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


@app.command()
def build(
    profile: Annotated[
        str, typer.Option(help="Scale of the run: quick, stage2 (the original's) or full.")
    ] = "full",
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter", "-p", metavar="NAME=VALUE", help="Change a parameter; may be repeated."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the book; by default _build/html.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes to use; by default one for each core.")
    ] = None,
) -> None:
    """Train what is missing, run the chapters and build the book.

    Exit codes: 0 the book is ready, 1 a chapter or a check failed, 2 a parameter or an option
    is wrong, 130 interrupted. Unless it is 0, a former book stays as it is.
    """
    for name in THREADS:
        os.environ.setdefault(name, "1")
    try:
        _build(profile, parameter or [], out, jobs)
    except KeyboardInterrupt:
        _fail("interrupted; a former book is unchanged, and finished trials are kept", 130)


def _build(profile_name: str, pairs: list[str], out: Path | None, jobs: int | None) -> None:
    """Import what is heavy only now, so that --help and a malformed option answer at once."""
    from msstab import files
    from msstab import study as studies

    files.remember(Path.cwd())
    try:
        given = dict(_split(pair) for pair in pairs)
        # Importing the experiment declares the tracks, cells, noises and arms a study may name.
        import_module("msstab.experiment")
        base = studies.profile(profile_name)
        from msstab import book

        study = studies.parse(given, base)
    except studies.StudyError as error:
        _fail(str(error), 2)
    try:
        result = book.build(study, out=out, jobs=jobs or _cores(), profile_name=profile_name)
    except studies.StudyError as error:
        _fail(str(error), 2)
    except book.BuildError as error:
        _fail(str(error), error.exit_code)
    except PermissionError as error:
        _fail(f"no permission to write {error.filename}", 2)
    print(f"\n{result.verdict}\n{_shown(result.path)}")


@app.command()
def audit(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A bench_report.json, of this project or another."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
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
            _fail(f"--{name} {value}: it must lie between 0 and {most:g}", 2)
    from msstab import audit as audits

    try:
        rows = audits.audit(audits.read(file), alpha=alpha, sesoi=sesoi)
    except audits.AuditError as error:
        _fail(str(error), 2)
    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal of another encoding than UTF-8 can still show all that matters.
        sys.stdout.reconfigure(errors="replace")
    if as_json:
        import json

        print(json.dumps({"file": str(file), **audits.to_json(rows)}, indent=2, allow_nan=False))
    else:
        audits.print_table(rows)
        print(audits.summary(rows))
    if any(row.flagged for row in rows):
        raise typer.Exit(1)


def _split(pair: str) -> tuple[str, str]:
    from msstab.study import StudyError

    name, equals, value = pair.partition("=")
    if not equals or not name.strip():
        raise StudyError(f"-p {pair} is not of the form NAME=VALUE, for instance -p seeds=32")
    return name.strip(), value


def _cores() -> int:
    """Return the number of cores this process may use, as joblib sees it inside containers too."""
    import joblib

    return int(joblib.cpu_count())


def _shown(path: Path) -> str:
    """Return a path as short as it can be written from here."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _fail(message: str, code: int) -> None:
    print(f"error: {message}", file=sys.stderr)
    raise typer.Exit(code)
