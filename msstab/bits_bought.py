"""At how many fewer bits one arm's error is as low as another's, with an interval over seeds."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class Bought(NamedTuple):
    """Bits bought, and an interval; infinite where the measured numbers of bits end before.

    Plus infinity: even at the fewest bits the error is lower still. Minus infinity: it is reached
    at no number of bits.
    """

    bits: float
    low: float
    high: float

    @property
    def word(self) -> str:
        """What the interval says: the arm "buys" bits, "costs" bits, or neither is shown."""
        return "buys" if self.low > 0 else "costs" if self.high < 0 else "undecided"


def bits_bought(
    bits: Sequence[int],
    baseline: ArrayLike,
    arm: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> list[Bought]:
    """Return how many fewer bits give the arm the baseline's error, at each number of bits.

    bits: (K,) in increasing order; baseline, arm: (n, K) logarithms of errors, paired by seed. A
    curve is the lowest mean logarithm with at most so many bits, linear in between. The interval
    is that of the percentiles over seeds drawn with replacement, the same for both arms. Raises
    ValueError for bits that do not increase, and for logarithms that do not fit them.
    """
    at = np.asarray(bits, dtype=np.float64)
    a, b = np.asarray(baseline, dtype=np.float64), np.asarray(arm, dtype=np.float64)
    if (np.diff(at) <= 0).any():
        raise ValueError(f"bits = {list(bits)}: they must increase")
    if a.shape != b.shape or a.ndim != 2 or a.shape[1] != at.size:
        raise ValueError(f"errors of shapes {a.shape} and {b.shape} for {at.size} numbers of bits")
    draws = np.random.default_rng(seed).integers(len(a), size=(resamples, len(a)))
    counts = np.apply_along_axis(np.bincount, 1, draws, minlength=len(a)) / len(a)
    whole = _bought(at, a.mean(axis=0)[None], b.mean(axis=0)[None])[0]
    resampled = _bought(at, counts @ a, counts @ b)
    # Infinite values have no interpolation.
    low, high = np.quantile(
        resampled, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf"
    )
    return [Bought(*map(float, one)) for one in zip(whole, low, high, strict=True)]


def _bought(bits: Array, baseline: Array, arm: Array) -> Array:
    """Return bits bought (R, K) for R pairs of curves (R, K)."""
    a, b = (np.minimum.accumulate(curve, axis=1) for curve in (baseline, arm))
    return _fewest(bits, a, a) - _fewest(bits, b, a)


def _fewest(bits: Array, curves: Array, targets: Array) -> Array:
    """Return the fewest bits (R, K) at which falling curves (R, K) reach targets (R, K).

    Minus infinity where a curve begins below, plus infinity where it ends above.
    """
    above = curves[:, None, :] > targets[:, :, None]
    # The curve falls, so it is above its target up to some number of bits, and not from there on.
    after = above.sum(axis=2)
    rows = np.arange(len(curves))[:, None]
    right = np.clip(after, 1, len(bits) - 1)
    high, low = curves[rows, right - 1], curves[rows, right]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (high - targets) / (high - low)
        inside = bits[right - 1] + share * (bits[right] - bits[right - 1])
    begins_below = curves[:, :1] < targets
    found = np.where(after == 0, np.where(begins_below, -np.inf, bits[0]), inside)
    return np.where(after == len(bits), np.inf, found)
