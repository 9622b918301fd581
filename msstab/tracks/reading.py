"""Read the columns of a file that a person gives, and say plainly what is wrong with it."""

import csv
import io
import zipfile
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

UNEVEN = 0.01
"""Share by which steps in time may differ."""

MISSING = {"", "na", "nan", "n/a", "null", "none", "-", "?"}
"""How people write that a value is missing."""

Columns = dict[str, Sequence[object]]


def read_csv(content: bytes) -> Columns:
    """Return the columns of comma-separated text by name, as text, missing values empty.

    Raises ValueError for what is no such table.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is not text in UTF-8") from None
    if "\0" in text:
        raise ValueError("it is not text in UTF-8")
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error as error:
        raise ValueError(f"it is not comma-separated text: {error}") from None
    if not rows:
        raise ValueError("it is empty")
    header, *body = [[cell.strip() for cell in row] for row in rows]
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise ValueError("separate the columns by commas")
    if any(_is_number(cell) for cell in header):
        raise ValueError("the first line holds numbers; it must hold the columns' names")
    _require_different(header)
    for number, row in enumerate(body, 1):
        if len(row) != len(header):
            raise ValueError(f"row {number} has {len(row)} values for {len(header)} columns")
    if not body:
        raise ValueError("there are no rows")
    cells = [["" if cell.lower() in MISSING else cell for cell in row] for row in body]
    return dict(zip(header, map(list, zip(*cells, strict=True)), strict=True))


def read_npz(content: bytes) -> Columns:
    """Return the arrays of an .npz file by name, missing values empty.

    Raises ValueError for what holds no arrays of one dimension and equal length.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, AttributeError, KeyError, zipfile.BadZipFile):
        raise ValueError("it is not an .npz file of plain arrays") from None
    if not arrays:
        raise ValueError("it is empty")
    for name, array in arrays.items():
        if array.ndim != 1:
            raise ValueError(f"array {name} has {array.ndim} dimensions; give one for each column")
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"arrays differ in length: {lengths}")
    return {
        name: ["" if value != value else value for value in array.tolist()]
        for name, array in arrays.items()
    }


def regular_times(column: str, values: Sequence[object]) -> str:
    """Return what one step in time is; raise ValueError unless all are alike and forwards."""
    texts = [str(value) for value in values]
    if "" in texts:
        raise ValueError(f"column {column} lacks a time in row {texts.index('') + 1}")
    dates = None
    if all(map(_is_number, texts)):
        times = np.array([float(text) for text in texts])
    else:
        try:
            dates = pd.DatetimeIndex(pd.to_datetime(texts))
        except (ValueError, TypeError):
            raise ValueError(f"column {column} holds what is no time") from None
        times = (dates - dates[0]).total_seconds().to_numpy()
    steps = np.diff(times)
    for wrong, what in ((~(steps >= 0), "goes back to"), (steps == 0, "repeats")):
        if wrong.any():
            row = int(wrong.argmax()) + 1
            raise ValueError(f"column {column} {what} {texts[row]} in row {row + 1}")
    monthly = dates is not None and _monthly(dates)
    usual = float(np.median(steps)) if steps.size else 0.0
    uneven = np.abs(steps - usual) > UNEVEN * usual
    if uneven.any() and not monthly:
        row = int(uneven.argmax()) + 1
        raise ValueError(
            f"column {column} steps unevenly, from {texts[row - 1]} to {texts[row]} in row "
            f"{row + 1}; give every time, and leave empty what was not measured"
        )
    unit = "" if dates is None else " s"
    return "month" if monthly and uneven.any() else f"step of {usual:g}{unit}"


def _monthly(dates: pd.DatetimeIndex) -> bool:
    """Say whether calendar months pass evenly, which differ in length."""
    months = np.diff(12 * dates.year.to_numpy() + dates.month.to_numpy())
    alike = dates.day.nunique() == 1 or bool(dates.is_month_end.all())
    return alike and months.size > 0 and months[0] >= 1 and bool((months == months[0]).all())


def _require_different(names: Sequence[str]) -> None:
    if not all(names):
        raise ValueError("a column has no name")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise ValueError(f"{count} columns are named {name}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
