"""Paired values: what every statistic accepts and refuses, on errors or on their logarithms."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Interval(NamedTuple):
    """A confidence interval; an end is infinite where the pairs cannot bound it at its level."""

    low: float
    high: float


def paired(values: ArrayLike) -> NDArray[np.float64]:
    """Return the values, one a pair, as an array (n,).

    Raises ValueError for fewer than 2, for more than one axis, and for values that are not finite.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size < 2:
        raise ValueError(f"at least 2 pairs are needed, in one row; got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("every value must be finite: score diverged runs by a stated rule first")
    return array


def both(baseline: ArrayLike, idea: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the errors of two arms (n,), (n,); ValueError as in `paired` or for unequal n."""
    a, b = paired(baseline), paired(idea)
    if a.size != b.size:
        raise ValueError(f"{a.size} baseline values and {b.size} of the idea do not pair up")
    return a, b


def log_ratios(baseline: ArrayLike, idea: ArrayLike) -> NDArray[np.float64]:
    """Return log(idea / baseline) for each pair: differences that have no unit.

    baseline, idea: (n,) positive errors, n >= 2. -> (n,), negative where the idea is better. Raises
    ValueError for unequal lengths and for errors that are zero, negative or not finite.
    """
    a, b = both(baseline, idea)
    for name, errors in (("baseline", a), ("idea", b)):
        wrong = np.flatnonzero(errors <= 0)
        if wrong.size:
            raise ValueError(
                f"{wrong.size} errors of the {name} have no logarithm, first pair {wrong[0] + 1} "
                f"with {errors[wrong[0]]:g}: ratios need positive errors"
            )
    return np.asarray(np.log(b) - np.log(a))


def standard_deviation(values: NDArray[np.float64]) -> float:
    """Return the standard deviation (n - 1) of values (n,), exactly 0 where all are equal."""
    # The mean of equal values may differ from them by rounding.
    return 0.0 if np.ptp(values) == 0 else float(np.std(values, ddof=1))


def standard_error(values: NDArray[np.float64]) -> float:
    """Return the standard error of the mean of values (n,)."""
    return standard_deviation(values) / math.sqrt(values.size)


def require_margin(margin: float) -> float:
    """Return a margin; ValueError unless it is positive and finite."""
    if not (math.isfinite(margin) and margin > 0):
        raise ValueError(f"margin = {margin}: it must be positive")
    return float(margin)


def require_share(name: str, value: float) -> None:
    """Raise ValueError unless the value lies strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} = {value}: it must lie between 0 and 1")


def require_resamples(resamples: int) -> None:
    """Raise ValueError unless at least one resample is asked for."""
    if resamples < 1:
        raise ValueError(f"resamples = {resamples}: at least 1 is needed")
