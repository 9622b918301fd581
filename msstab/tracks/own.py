"""A series of the reader's own: `csv:PATH` or `npz:PATH`, refused where it cannot be used."""

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from msstab import files
from msstab.study import Study, declare_check, declare_opener, nearest
from msstab.tracks.reading import read_csv, read_npz, regular_times
from msstab.tracks.registry import OPENERS, Array, Track, track
from msstab.tracks.series import RESAMPLED, TooShortError, of_series, parts

READERS = {"csv": read_csv, "npz": read_npz}

TIMES = ("time", "date", "datetime", "timestamp")
"""Columns of these names say when a row was measured, and are no data."""

MOST_MISSING = 0.2
"""Largest share of rows that may lack a value."""

FIELDS = ("window", "horizon", "input_columns", "target_columns")
"""Parameters of a Study that only a series of the reader's own has a use for."""


def is_own(name: str) -> bool:
    """Say whether a track's name is of the form `csv:PATH` or `npz:PATH`."""
    return name.partition(":")[0] in READERS


def name_of(study: Study) -> str:
    """Return the full name of a Study's track, which for a series also says how it is used."""
    if not is_own(study.track):
        return study.track
    options = {field: getattr(study, field) for field in FIELDS}
    return f"{study.track} {json.dumps(options, sort_keys=True)}"


def of(study: Study) -> Track:
    """Return a Study's track."""
    return track(name_of(study))


def _named(name: str) -> str | None:
    """Return the name under which a file is known: without the folder of an absolute path.

    What is published shows the name, and no page should say where a reader keeps things.
    """
    if not is_own(name):
        return None
    kind, _, path = name.partition(":")
    if not path:
        raise ValueError(f"name a file, for instance {kind}:measured.{kind}")
    given = Path(path).expanduser()
    if given.is_absolute():
        if not given.is_file():
            raise ValueError(f"there is no file {path}")
        files.remember(given.parent)
        path = given.name
    files.find(path)
    return f"{kind}:{path}"


declare_opener("track", _named)


def _open(full_name: str) -> Track | None:
    if not is_own(full_name):
        return None
    name, mark, options = full_name.rpartition(' {"')
    if not mark:
        raise ValueError(f"{full_name} needs a window and columns: see name_of")
    file = files.find(name.partition(":")[2])
    state = file.stat()
    return _read(name, mark.strip() + options, file, state.st_mtime_ns, state.st_size)


OPENERS.append(_open)


@functools.lru_cache(maxsize=16)
def _read(name: str, options: str, file: Path, changed: int, size: int) -> Track:
    """Read a file once for each state in which it is found."""
    chosen = json.loads(options)
    try:
        content = file.read_bytes()
        columns = READERS[name.partition(":")[0]](content)
        return _track(name, hashlib.sha256(content).hexdigest(), columns, **chosen)
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _track(
    name: str,
    digest: str,
    columns: Mapping[str, Sequence[object]],
    *,
    window: int,
    horizon: int,
    input_columns: Sequence[str],
    target_columns: Sequence[str],
) -> Track:
    times = [column for column in columns if column.lower() in TIMES]
    step = regular_times(times[0], columns[times[0]]) if times else "row"
    data = {column: values for column, values in columns.items() if column not in times}
    every = list(data)
    inputs = list(input_columns) or list(target_columns) or every
    targets = list(target_columns) or list(input_columns) or every
    for column in (*inputs, *targets):
        if column not in data:
            raise ValueError(f"there is no column {column}; {nearest(column, every)}")
    if not every:
        raise ValueError("there is no column of values")
    if horizon == 0 and (known := set(inputs) & set(targets)):
        raise ValueError(f"with horizon = 0, {min(known)} would be known and is not to be forecast")
    used = list(dict.fromkeys([*inputs, *targets]))
    values = {column: _numbers(column, data[column]) for column in used}
    _require_usable(values, window + horizon)
    first, second = (
        np.column_stack([values[column] for column in own]) for own in (inputs, targets)
    )
    rows = len(first)
    try:
        generate = of_series(first, second, window, horizon)
    except TooShortError as error:
        raise ValueError(
            f"{rows} rows are too few for window = {window} and horizon = {horizon}"
            + (
                f", which take {error.needed}; give a longer series or a shorter window"
                if rows < error.needed
                else ": too few windows are without a missing value"
            )
        ) from None
    seen, wanted = ", ".join(inputs), "the same" if inputs == targets else ", ".join(targets)
    ahead = "1 step" if horizon == 1 else f"{horizon} steps"
    return Track(
        title=f"A series of one's own, {name.partition(':')[2]}",
        description=(
            f"{rows} rows. {window} rows of {seen} go in; {wanted}, {ahead} after the last of "
            f"them, is to be predicted. {RESAMPLED}"
        ),
        source="the reader's own file",
        licence="not known",
        length=window,
        horizon=horizon,
        step=step,
        generate=generate,
        module=__name__,
        autonomous=inputs == targets,
        source_digest=digest,
        measured=True,
    )


def _numbers(column: str, values: Sequence[object]) -> Array:
    """Return a column as numbers (L,), a missing value being not a number."""
    found = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            found[row] = float(str(value)) if value not in ("", None) else np.nan
        except ValueError:
            raise ValueError(
                f"column {column} holds text, {str(value)[:40]!r} in row {row + 1}; name the "
                "columns to be used with input_columns and target_columns"
            ) from None
    if np.isinf(found).any():
        row = int(np.argmax(np.isinf(found)))
        raise ValueError(f"column {column} is infinite in row {row + 1}")
    return found


def _require_usable(values: Mapping[str, Array], span: int) -> None:
    """Raise ValueError for columns that lack too much, or that do not vary where training looks."""
    table = np.column_stack(list(values.values()))
    if not len(table):
        raise ValueError("there are no rows")
    lacking = np.isnan(table).any(axis=1)
    if lacking.mean() > MOST_MISSING:
        raise ValueError(
            f"{lacking.sum()} of {len(table)} rows lack a value, more than {MOST_MISSING:.0%}"
        )
    training = parts(len(table), span)[0]
    for column, own in values.items():
        known = own[training.start : training.stop]
        known = known[~np.isnan(known)]
        if known.size and np.ptp(known) == 0:
            raise ValueError(f"column {column} is constant in the part for training")


def _require_series(study: Study) -> None:
    """Refuse a series that cannot be used, and parameters that only a series has a use for."""
    if is_own(study.track):
        of(study)
        return
    if study.track == "laser":
        track(study.track)
    for field in FIELDS:
        if getattr(study, field) != Study.model_fields[field].default:
            raise ValueError(
                f"{field} is for a series of your own; track {study.track} has one of its own"
            )


declare_check(_require_series)
