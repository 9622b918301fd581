"""What a figure shows, read from its lines and points, for tests of the numbers beside it."""

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from msstab.svg import Picture


def coordinates(picture: Picture) -> NDArray[np.float64]:
    """Return every x and y of the figure's lines, points, bars and bands, sorted."""
    found = [part for axes in picture.figure.axes for part in _of(axes)]
    numbers = np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in found])
    return np.unique(numbers[np.isfinite(numbers)])


def assert_drawn(picture: Picture, *columns: str) -> None:
    """Fail unless the data have these columns and each of their numbers is in the figure."""
    shown = coordinates(picture)
    for column in columns:
        values = np.asarray(picture.data[column].dropna(), dtype=np.float64)
        values = values[np.isfinite(values)]
        assert values.size, f"{column} holds no number"
        nearest = shown[np.abs(shown[:, None] - values).argmin(axis=0)]
        np.testing.assert_allclose(values, nearest, rtol=1e-9, atol=1e-12, err_msg=column)


def _of(axes: Axes) -> list[object]:
    parts: list[object] = []
    for line in axes.lines:
        parts += [line.get_xdata(orig=False), line.get_ydata(orig=False)]
    for collection in axes.collections:
        parts.append(collection.get_offsets())
        parts += [path.vertices for path in collection.get_paths()]
    return parts
