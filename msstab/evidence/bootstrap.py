"""The bootstrap interval of a statistic of paired differences."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from msstab.evidence.pairs import Interval, paired, require_resamples, require_share


def bootstrap_interval(
    differences: ArrayLike,
    level: float = 0.95,
    *,
    seed: int = 0,
    resamples: int = 9_999,
    statistic: Callable[..., Any] = np.mean,
) -> Interval:
    """Return the bias-corrected and accelerated bootstrap interval, by scipy.stats.bootstrap.

    differences: (n,), n >= 2; statistic: takes an array and an `axis`, as numpy.mean does. The
    interval depends on `seed` alone. It follows skewed differences, but covers
    too rarely when pairs are few: at n = 8 and a level of 95%, 88% for normal differences and
    79% for lognormal ones; lead with `mean_interval` or `sign_flip_interval` there. Values
    that are all equal have an interval without width.
    Raises ValueError where the method has no answer: a statistic that does not vary in most
    resamples, such as a median of many ties. Efron (1987).
    """
    d = paired(differences)
    require_share("level", level)
    require_resamples(resamples)
    if np.ptp(d) == 0:
        value = float(statistic(d, axis=-1))
        return Interval(value, value)
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        result = stats.bootstrap(
            (d,),
            statistic,
            n_resamples=resamples,
            batch=1_000,
            confidence_level=level,
            method="BCa",
            rng=np.random.default_rng(seed),
        )
    low, high = (float(end) for end in result.confidence_interval)
    if np.isnan(low) or np.isnan(high):
        raise ValueError(
            f"the bootstrap has no answer for {d.size} values, {np.unique(d).size} of them "
            "distinct: the statistic hardly varies; take sign_flip_interval instead"
        )
    return Interval(low, high)
