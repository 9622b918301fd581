"""Student's t for paired differences: the interval of the mean, and tests of and about it."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from msstab.evidence.pairs import Interval, paired, require_share, standard_error


def half_width(differences: ArrayLike, level: float = 0.95) -> float:
    """Return half the width of the t interval for the mean difference.

    differences: (n,), n >= 2. Some reports call this the minimum detectable effect; an effect of
    this size is detected only about every second time, see `detectable_effect`.
    """
    d = paired(differences)
    require_share("level", level)
    return float(stats.t.isf((1 - level) / 2, d.size - 1) * standard_error(d))


def mean_interval(differences: ArrayLike, level: float = 0.95) -> Interval:
    """Return the t interval for the mean of differences (n,), n >= 2 (Student 1908).

    At a level of 95% it covers 95% or more at n = 8 for symmetric differences, normal or not, but
    81% for strongly skewed ones (lognormal), 89% at n = 32 and 92% at 200.
    """
    center, half = float(np.mean(paired(differences))), half_width(differences, level)
    return Interval(center - half, center + half)


def t_test_p(differences: ArrayLike) -> float:
    """Return the two-sided p of the paired t test; at zero variance its limit, 0 or 1."""
    return min(1.0, 2 * min(t_tails(paired(differences), 0.0)))


def t_tails(d: NDArray[np.float64], null: float) -> tuple[float, float]:
    """Return the p of a mean above `null` and that of a mean below it, for differences (n,).

    Not by scipy.stats.ttest_1samp, which warns and gives NaN where the values hardly vary.
    """
    distance, error = float(d.mean()) - null, standard_error(d)
    if error == 0:
        upper = 0.5 - 0.5 * float(np.sign(distance))
        return upper, 1 - upper
    # What scipy.stats.t computes, to the last bit, at a hundredth of its cost.
    degrees, t = d.size - 1, distance / error
    return float(special.stdtr(degrees, -t)), float(special.stdtr(degrees, t))
