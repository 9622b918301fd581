"""What several commands share: options with their completion, the study asked for, errors."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

# Whatever takes long to import is imported where it is used, so that --help, a malformed option
# and the completion of a word answer at once.
if TYPE_CHECKING:
    from msstab.study import Study

# Both libraries read these once, on import: a worker for each core must not start its own threads.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def complete_profile(incomplete: str) -> list[str]:
    """Return the profiles that begin so."""
    from msstab.study import PROFILES

    return [name for name in PROFILES if name.startswith(incomplete)]


def complete_parameter(incomplete: str) -> list[tuple[str, str]]:
    """Return the parameters that begin so, with their defaults to be edited and their meaning."""
    from msstab.study import Study

    found = []
    for name, field in Study.model_fields.items():
        default = field.default
        value = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
        if f"{name}={value}".startswith(incomplete):
            found.append((f"{name}={value}", field.description or ""))
    return found


def complete_chapter(incomplete: str) -> list[str]:
    """Return the chapters that begin so."""
    from msstab import rerun
    from msstab.publishing import BuildError

    try:
        return [name for name in rerun.chapters() if name.startswith(incomplete)]
    except BuildError:
        return []


Profile = Annotated[
    str,
    typer.Option(
        help="Scale of the run: quick, stage2 (the original's) or full.",
        autocompletion=complete_profile,
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        "-p",
        metavar="NAME=VALUE",
        help="Change a parameter; may be repeated.",
        autocompletion=complete_parameter,
    ),
]
ParameterFile = Annotated[
    Path | None,
    typer.Option(
        "--params",
        metavar="FILE.yml",
        help="Change the parameters that a YAML file maps to values; `-p` goes before it.",
    ),
]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Processes to use; by default one for each core.")
]
Reuse = Annotated[
    Path | None,
    typer.Option(
        "--reuse",
        metavar="DIR",
        help="Read what published results hold, `results` for instance, instead of running it.",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run trials on the Dask cluster of this scheduler, such as tcp://host:8786; `--jobs` "
        "is then by default one for each of its workers.",
    ),
]
Asked = tuple[str, list[str] | None, Path | None]
"""A profile, NAME=VALUE pairs, and a file of parameters, as they were given."""
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def asked_study(profile_name: str, pairs: list[str] | None, file: Path | None) -> "Study":
    """Return the Study of a profile, changed by a file and then by NAME=VALUE pairs.

    Ends the command with exit code 2 and a line for each mistake. Also sees to it that what
    computes from here on uses one thread a process.
    """
    for name in THREADS:
        os.environ.setdefault(name, "1")
    from msstab import files
    from msstab import study as studies

    files.remember(Path.cwd())
    try:
        given = dict(_split(pair) for pair in pairs or [])
        if file is not None:
            from msstab import parameter_files

            given = {**parameter_files.read(file), **given}
        # Importing the experiment declares the tracks, cells, noises and arms a study may name.
        experiment = import_module("msstab.experiment")
        study = studies.parse(given, studies.profile(profile_name))
        experiment.require_device(study)
        return study
    except studies.StudyError as error:
        fail(str(error), 2)


def cores() -> int:
    """Return the number of cores this process may use, as joblib sees it inside containers too."""
    import joblib

    return int(joblib.cpu_count())


@contextmanager
def workers(dask: str | None) -> Iterator[int]:
    """Spread trials in the block over a Dask cluster if one is named; yield how many processes.

    Ends the command with exit code 2 where what a cluster takes is not installed.
    """
    if dask is None:
        yield cores()
        return
    try:
        from msstab import cluster
    except ImportError as error:
        fail(f'--dask needs {error.name}: pip install "msstab[cluster]"', 2)
    with cluster.joined(dask) as found:
        yield found


def shown(path: Path) -> str:
    """Return a path as short as it can be written from here."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


@contextmanager
def reusing(folder: Path | None) -> Iterator[None]:
    """Let the published results in a folder, if one is named, stand in for what is not kept.

    Ends the command with exit code 2 for a folder that holds none.
    """
    if folder is None:
        yield
        return
    from msstab import published

    try:
        found = published.open_results(folder)
    except published.PublishedError as error:
        fail(str(error), 2)
    with published.reusing(found):
        yield


@contextmanager
def explained() -> Iterator[None]:
    """End the command with a line and an exit code where something in the block is the matter."""
    from msstab.publishing import BuildError
    from msstab.study import StudyError

    try:
        yield
    except StudyError as error:
        fail(str(error), 2)
    except BuildError as error:
        fail(str(error), error.exit_code)
    except OSError as error:
        fail(refused(error), 2)


@contextmanager
def usable(option: str) -> Iterator[None]:
    """End the command with a line where an option of it has a value that cannot be used."""
    try:
        yield
    except ValueError as error:
        fail(f"{option} {error}", 2)


def refused(error: OSError) -> str:
    """Say what the file system would not do, and that nothing is lost."""
    if isinstance(error, PermissionError) and error.filename:
        return f"no permission to write {error.filename}"
    where = f" ({error.filename})" if error.filename else ""
    what = (error.strerror or str(error) or type(error).__name__).lower()
    return f"{what}{where}; a former book is unchanged, and finished trials are kept"


def print_json(content: Any) -> None:
    """Print for programs."""
    print(json.dumps(content, indent=2, allow_nan=False))


def fail(message: str, code: int) -> NoReturn:
    """Say what is wrong and end the command."""
    print(f"error: {message}", file=sys.stderr)
    raise typer.Exit(code)


def _split(pair: str) -> tuple[str, object]:
    from msstab.study import StudyError

    name, equals, value = pair.partition("=")
    if not equals or not name.strip():
        raise StudyError(f"-p {pair} is not of the form NAME=VALUE, for instance -p seeds=32")
    return name.strip(), value
