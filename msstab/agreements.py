"""How well predictions match observations, one pair for each network."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Agreement(NamedTuple):
    """How well predictions match observations, on the scale of natural logarithms."""

    slope: float
    correlation: float
    log_rmse: float
    n: int
    n_unusable: int


class ChangeAgreement(NamedTuple):
    """How well predicted changes match observed ones, on the scale of natural logarithms.

    `n` pairs have changed; of `unchanged` ones, as the baseline itself, both changes are 0, and
    `n_unusable` are not finite.
    """

    slope: float
    sign_agreement: float
    n: int
    unchanged: int
    n_unusable: int


class ExcessRatio(NamedTuple):
    """Quartiles of the excess error over the variance that is to explain it."""

    lower_quartile: float
    median: float
    upper_quartile: float
    n: int
    n_unusable: int


def agreement(predicted: ArrayLike, observed: ArrayLike) -> Agreement:
    """Compare positive predictions and observations, one pair for each network.

    `slope` is that of log observed on log predicted by least squares. Pairs that are not finite
    and positive cannot be compared and are counted as unusable.
    """
    p, o = floats(predicted), floats(observed)
    usable = np.isfinite(p) & np.isfinite(o) & (p > 0) & (o > 0)
    n = int(usable.sum())
    if n < 3:
        return Agreement(np.nan, np.nan, np.nan, n, int(p.size - n))
    x, y = np.log(p[usable]), np.log(o[usable])
    slope, correlation = _line(x, y)
    return Agreement(slope, correlation, float(np.sqrt(np.mean((x - y) ** 2))), n, int(p.size - n))


def breakdown(predicted: Iterable[ArrayLike], observed: Iterable[ArrayLike]) -> list[Agreement]:
    """Return the agreement at each noise level, where the theory of small noise may fail.

    Predictions and observations, one array a level. Raises ValueError if their numbers differ.
    """
    return [agreement(p, o) for p, o in zip(predicted, observed, strict=True)]


def change_agreement(predicted: ArrayLike, observed: ArrayLike) -> ChangeAgreement:
    """Compare changes of the log output variance against the baseline of the same seed.

    One pair for each network, in any shape. `slope` is that of observed on predicted by least
    squares, `sign_agreement` the share of pairs whose changes have the same sign. Pairs without
    any change, predicted or observed, agree trivially and are left out.
    """
    p, o = floats(predicted), floats(observed)
    finite, moved = np.isfinite(p) & np.isfinite(o), (p != 0) | (o != 0)
    x, y = p[finite & moved], o[finite & moved]
    slope, _ = _line(x, y)
    same = float(np.mean(np.sign(x) == np.sign(y))) if x.size else np.nan
    unchanged = int((finite & ~moved).sum())
    return ChangeAgreement(slope, same, x.size, unchanged, int((~finite).sum()))


def excess_ratio(excess: ArrayLike, variance: ArrayLike) -> ExcessRatio:
    """Return the quartiles of excess error over output variance, one pair for each network.

    `excess` is the error under noise less the clean one; both are summed over the outputs, or
    both averaged. Pairs that are not finite, or whose variance is not positive, are unusable.
    """
    e, v = floats(excess), floats(variance)
    usable = np.isfinite(e) & np.isfinite(v) & (v > 0)
    n = int(usable.sum())
    if not n:
        return ExcessRatio(np.nan, np.nan, np.nan, 0, int(v.size))
    lower, median, upper = (float(q) for q in np.quantile(e[usable] / v[usable], (0.25, 0.5, 0.75)))
    return ExcessRatio(lower, median, upper, n, int(v.size - n))


def floats(values: ArrayLike) -> NDArray[np.float64]:
    """Return values as an array of floats."""
    return np.asarray(values, dtype=np.float64)


def _line(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Return slope, by least squares, and correlation of y on x; NaN where one has no spread."""
    if x.size < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan, np.nan
    correlation = float(np.corrcoef(x, y)[0, 1])
    return correlation * float(y.std() / x.std()), correlation
