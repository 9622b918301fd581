"""The probability of improvement: how often the idea's error is the lower one of a pair."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from msstab.evidence.pairs import Interval, paired, require_share


def probability_of_improvement(differences: ArrayLike) -> float:
    """Return the share of differences (n,), n >= 2, below zero, ties counting half."""
    d = paired(differences)
    return float(np.count_nonzero(d < 0) + np.count_nonzero(d == 0) / 2) / d.size


def improvement_interval(differences: ArrayLike, level: float = 0.95) -> Interval:
    """Return the Clopper-Pearson interval of the probability of improvement, within 0 and 1.

    differences: (n,), n >= 2, one independent pair each. Coverage is at least `level` at any n, so
    the interval is wide when pairs are few. Ties count half, so that the beta quantiles may be
    taken between whole counts: half counts vary less than whole ones. Clopper & Pearson (1934).
    """
    d = paired(differences)
    require_share("level", level)
    won = probability_of_improvement(d) * d.size
    lost, tail = d.size - won, (1 - level) / 2
    low = float(stats.beta.ppf(tail, won, lost + 1)) if won > 0 else 0.0
    high = float(stats.beta.isf(tail, won + 1, lost)) if lost > 0 else 1.0
    return Interval(low, high)
