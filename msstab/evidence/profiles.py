"""Performance profiles: how often each arm is within a factor of the best one."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def performance_profile(errors: ArrayLike, factors: ArrayLike) -> NDArray[np.float64]:
    """Return the share of problems on which each arm's error is within a factor of the best's.

    errors: (arms, problems), positive, a problem being a seed or a track and a seed; an error that
    is infinite or not a number is a failure, within no factor. factors: (k,), at least 1. ->
    (arms, k), not decreasing; at factor 1 the share of problems on which the arm is best, ties
    counting for all. Dolan & Moré (2002); over runs, Agarwal et al. (2021). The best is taken
    among the arms given, so that another arm may change every profile. Raises ValueError for other
    shapes, errors that are not positive and factors below 1.
    """
    e, tau = np.asarray(errors, dtype=np.float64), np.asarray(factors, dtype=np.float64)
    if e.ndim != 2 or e.size == 0:
        raise ValueError(f"errors (arms, problems) are needed; got shape {e.shape}")
    if (e <= 0).any():
        raise ValueError(f"{(e <= 0).sum()} errors are not positive: ratios need positive errors")
    if tau.ndim != 1 or not (tau >= 1).all():
        raise ValueError(f"factors = {tau.tolist()}: numbers of at least 1 are needed")
    e = np.where(np.isnan(e), np.inf, e)
    within = e[:, None, :] <= tau[:, None] * e.min(axis=0)
    return np.asarray((within & np.isfinite(e[:, None, :])).mean(axis=2))
