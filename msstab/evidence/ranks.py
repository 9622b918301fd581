"""The Hodges-Lehmann estimate of a typical difference, with the interval of its signed ranks."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from msstab.evidence.pairs import Interval, paired, require_share

EXACT_RANKS = 200
"""Up to this many pairs the distribution of the signed-rank statistic is exact: 2 ms at 200."""


def hodges_lehmann(differences: ArrayLike) -> float:
    """Return the median of the means of all pairs of differences, each with itself included.

    differences: (n,), n >= 2. Estimates the centre of symmetry; a few wild pairs hardly move it.
    Hodges & Lehmann (1963).
    """
    return float(np.median(_walsh_averages(paired(differences))))


def signed_rank_interval(differences: ArrayLike, level: float = 0.95) -> Interval:
    """Return the interval of all centres of symmetry that Wilcoxon's signed-rank test accepts.

    differences: (n,), n >= 2. Its ends are the k-th smallest and largest mean of two differences, k
    the (1 - level) / 2 quantile of the signed-rank statistic: exact up to EXACT_RANKS pairs, by the
    normal approximation beyond. Coverage is at least `level` for symmetric differences. Both ends
    are infinite where no n pairs could be significant. Hollander & Wolfe (1973), sec. 3.3.
    """
    d = paired(differences)
    require_share("level", level)
    averages = _walsh_averages(d)
    k = _lower_quantile(d.size, round((1 - level) / 2, 12))
    if k == 0:
        return Interval(-math.inf, math.inf)
    ends = np.partition(averages, (k - 1, averages.size - k))
    return Interval(float(ends[k - 1]), float(ends[averages.size - k]))


def signed_rank_distribution(n: int) -> NDArray[np.float64]:
    """Return the null probabilities of the signed-rank sums 0 .. n (n + 1) / 2.

    Each rank counts or not with probability 1/2: one shifted sum a rank, n^3 / 6 steps.
    """
    probabilities = np.ones(1)
    for rank in range(1, n + 1):
        with_rank = np.pad(probabilities, (rank, 0))
        with_rank[: probabilities.size] += probabilities
        probabilities = with_rank / 2
    return probabilities


def _lower_quantile(n: int, share: float) -> int:
    """Return how many of the smallest signed-rank sums together have at most this probability."""
    if n <= EXACT_RANKS:
        cumulative = np.cumsum(signed_rank_distribution(n))
        return int(np.searchsorted(cumulative, share * (1 + 1e-12), side="right"))
    mean, sd = n * (n + 1) / 4, math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    # Sums up to k - 1 have at most this probability; half a step corrects for continuity.
    return max(0, math.floor(mean + sd * float(stats.norm.ppf(share)) + 0.5))


def _walsh_averages(d: NDArray[np.float64]) -> NDArray[np.float64]:
    first, second = np.triu_indices(d.size)
    return np.asarray(d[first] / 2 + d[second] / 2)
