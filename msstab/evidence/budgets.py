"""What tuning buys: the best error to expect of a smaller search than the one that was made."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def expected_best(errors: ArrayLike, draws: ArrayLike) -> NDArray[np.float64]:
    """Return the lowest error to expect of `draws` configurations out of those that were tried.

    errors: (N,) finite, one a configuration, in any order; draws: (k,) whole numbers n from 1 to
    N. -> (k,). The mean of the minimum over all subsets of n, hence unbiased for a search that
    draws n configurations as these were drawn: sum_i x_(i) C(N - i, n - 1) / C(N, n) over the
    sorted errors (Tang et al. 2020); the estimate that draws with replacement (Dodge et al. 2019)
    is not. Raises ValueError for no errors, errors that are not finite, and draws out of range.
    """
    x, n = np.sort(np.asarray(errors, dtype=np.float64)), np.asarray(draws)
    if x.ndim != 1 or x.size == 0 or not np.isfinite(x).all():
        raise ValueError(f"finite errors in one row are needed; got shape {x.shape}")
    if n.ndim != 1 or not np.issubdtype(n.dtype, np.integer) or ((n < 1) | (n > x.size)).any():
        raise ValueError(f"draws = {n.tolist()}: whole numbers from 1 to {x.size} are needed")
    # Each weight is the one before times the chance that the next draw misses it, so that no
    # binomial coefficient, which would overflow, is ever formed.
    size, place = x.size, np.arange(1, x.size)
    missed = np.clip((size - place - n[:, None] + 1) / (size - place), 0, None)
    weights = np.cumprod(np.hstack([n[:, None] / size, missed]), axis=1)
    return np.asarray(weights @ x)
