"""Several tests at once: p values adjusted so that any false rejection stays rare."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p values adjusted by Holm's step-down rule, in the order given.

    p_values: (k,), k >= 1, within 0 and 1, of tests that may depend on each other in any way. ->
    (k,): rejecting those at most alpha makes any false rejection at most as probable as alpha.
    Raises ValueError for values that are no probabilities. Holm (1979).
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or p.size == 0:
        raise ValueError(f"p values in one row are needed; got shape {p.shape}")
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p values lie between 0 and 1; got {p.tolist()}")
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, steps)
    return adjusted
