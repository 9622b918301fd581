"""Whether an effect grows or shrinks along a scale: a line through paired values, by seed."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from msstab.evidence.pairs import Interval, paired, require_share


class Trend(NamedTuple):
    """A line through values against a scale: its slope with an interval and a two-sided p.

    `intercept` is the line's value at 0 of the scale, `n` the values and `seeds` the seeds it
    rests on.
    """

    slope: float
    interval: Interval
    p: float
    intercept: float
    n: int
    seeds: int


def trend(scale: ArrayLike, values: Sequence[ArrayLike], level: float = 0.95) -> Trend:
    """Return the least-squares line through all values against the scale.

    scale: (k,), k >= 2, not all equal; values: k rows (n_k,), n_k >= 2, such as log ratios, whose
    i-th entries all belong to the i-th seed. What shares a seed shares data and is not
    independent, but the slope is a sum over seeds, which are: of those with values at the same
    places each adds an amount of one distribution, whose variance is estimated from them. The
    interval is Student's, with Welch's degrees of freedom; at a nominal 95% it covers 94% to 95%
    with 8 seeds as with 32 of which 8 reach the farthest place. A seed that is alone in having
    values at its places is left out where others have none.
    Raises ValueError for other shapes, and for values that are not finite.
    Welch (1947); Liang & Zeger (1986) for the sum over seeds.
    """
    x = np.asarray(scale, dtype=np.float64)
    rows = [paired(row) for row in values]
    if x.ndim != 1 or x.size != len(rows) or np.ptp(x) == 0:
        raise ValueError(f"a scale of shape {x.shape}, not all equal, for {len(rows)} rows")
    require_share("level", level)
    rows = _without_lone_seeds(rows)
    sizes = np.array([row.size for row in rows])
    n = int(sizes.sum())
    center = float(sizes @ x) / n
    weights = (x - center) / float(sizes @ (x - center) ** 2)
    shares = np.zeros(sizes.max())
    for weight, row in zip(weights, rows, strict=True):
        shares[: row.size] += weight * row
    slope = float(shares.sum())
    variance, degrees = _variance(shares, sizes)
    mean = sum(float(row.sum()) for row in rows) / n
    error = math.sqrt(variance)
    half = float(stats.t.isf((1 - level) / 2, degrees)) * error if error else 0.0
    p = float(2 * stats.t.sf(abs(slope) / error, degrees)) if error else float(slope == 0)
    interval = Interval(slope - half, slope + half)
    return Trend(slope, interval, p, mean - slope * center, n, shares.size)


def _without_lone_seeds(rows: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Cut rows so that at least two seeds have values at the same places, for each such set."""
    kept = 0
    for size in sorted({row.size for row in rows}):
        if size - kept == 1:
            rows = [row[:kept] if row.size == size else row for row in rows]
        else:
            kept = size
    return rows


def _variance(shares: NDArray[np.float64], sizes: NDArray[np.int64]) -> tuple[float, float]:
    """Return the variance of the sum of the seeds' shares, and its degrees of freedom."""
    parts, squares = 0.0, 0.0
    first = 0
    for last in sorted(set(sizes.tolist())):
        own = shares[first:last]
        part = own.size * (0.0 if np.ptp(own) == 0 else float(own.var(ddof=1)))
        parts += part
        squares += part**2 / (own.size - 1)
        first = last
    return parts, parts**2 / squares if squares else float(shares.size - 1)
