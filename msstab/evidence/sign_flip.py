"""The sign-flip test of paired differences, and the interval of all shifts that it accepts."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msstab.evidence.pairs import Interval, paired, require_resamples, require_share
from msstab.evidence.subsets import count_up_to, random_subsets, subset_sizes, subset_sums

EXACT_PAIRS = 32
"""Up to this many pairs the test counts every arrangement of signs: 2 ms and 2 MB at 32."""

EXACT_INTERVAL_PAIRS = 20
"""Up to this many pairs the interval looks at every subset: 20 ms and 30 MB at 20."""

TIES = 1e-10
"""Share of the absolute sum within which sums are taken for equal: on paper they often are, while
rounding in the errors, in their difference and in the order of summation sets them apart."""


class SignFlip(NamedTuple):
    """The outcome of a sign-flip test; `resamples` counts the arrangements of signs looked at."""

    p: float
    exact: bool
    resamples: int
    standard_error: float
    floor: float


def sign_flip_test(differences: ArrayLike, *, seed: int = 0, resamples: int = 99_999) -> SignFlip:
    """Test whether paired differences are symmetric about zero, by flipping their signs.

    differences: (n,), n >= 2. Two-sided: p is the share of arrangements of signs whose |sum| is
    at least the observed |sum|, ties included. All 2^n arrangements count up to EXACT_PAIRS
    pairs; beyond, `resamples` random ones with the observed one added (Phipson & Smyth 2010), so
    p is never 0 and depends on `seed` alone; `standard_error` is then the Monte Carlo error of p.
    `floor` is the smallest p that n pairs can give, 2/2^n when exact.
    Raises ValueError for values that are not finite or fewer than 2 pairs. Fisher (1935), sec. 21.
    """
    d = paired(differences)
    d = -d if d.sum() < 0 else d
    total, slack = float(d.sum()), TIES * float(np.abs(d).sum())
    # Flipping a subset keeps the sum as large if the subset's own sum is at most 0, and gives as
    # large a sum of the other sign if the subset's is at least the total.
    if d.size <= EXACT_PAIRS:
        # Both happen equally often: a subset's complement has the rest of the total.
        share = 2 * count_up_to(d, slack / 2) / 2**d.size if total > slack else 1.0
        return SignFlip(share, True, 2**d.size, 0.0, 2.0 ** (1 - d.size))
    require_resamples(resamples)
    sums, _ = random_subsets(d, resamples, seed)
    extreme = int(np.count_nonzero((sums <= slack / 2) | (sums >= total - slack / 2)))
    p = (extreme + 1) / (resamples + 1)
    floor = max(2.0 ** (1 - d.size), 1 / (resamples + 1))
    return SignFlip(p, False, resamples, math.sqrt(p * (1 - p) / resamples), floor)


def sign_flip_interval(
    differences: ArrayLike, level: float = 0.95, *, seed: int = 0, resamples: int = 99_999
) -> Interval:
    """Return the interval of all centres of symmetry that the sign-flip test does not reject.

    differences: (n,), n >= 2. Coverage is at least `level` for symmetric differences, at any n and
    without normality: the interval to lead with when pairs are few. A centre passes the test, at
    p > 1 - level, if at least k = floor((1 - level) 2^n / 2) means over non-empty subsets of the
    differences lie on either side of it, so the ends are the k-th smallest and largest of these
    means (Hartigan 1969, typical values). All of them are looked at up to EXACT_INTERVAL_PAIRS
    pairs; beyond, `resamples` random subsets, with the same guarantee. Both ends are infinite
    where k = 0: so few pairs reject no centre (see `pairs_for_level`).
    """
    d = paired(differences)
    require_share("level", level)
    # 1 - 0.9 is a hair below 0.1, and k must not jump by that.
    share = round((1 - level) / 2, 12)
    if d.size <= EXACT_INTERVAL_PAIRS:
        sums, sizes = subset_sums(d)[1:], subset_sizes(d.size)[1:]
    else:
        require_resamples(resamples)
        sums, sizes = random_subsets(d, resamples, seed)
        sums, sizes = sums[sizes > 0], sizes[sizes > 0]
    return _order_statistics(sums / sizes, math.floor(share * (sums.size + 1)))


def pairs_for_level(alpha: float) -> int:
    """Return the fewest pairs at which an exact two-sided sign-flip test can reach p <= alpha."""
    require_share("alpha", alpha)
    return max(2, math.ceil(1 - math.log2(alpha)))


def _order_statistics(values: NDArray[np.float64], k: int) -> Interval:
    """Return the k-th smallest and the k-th largest value."""
    if k == 0:
        return Interval(-math.inf, math.inf)
    ends = np.partition(values, (k - 1, values.size - k))
    return Interval(float(ends[k - 1]), float(ends[values.size - k]))
