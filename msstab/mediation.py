"""What mediates a benefit: which computed quantity moves with the error under noise.

Correlation over variants, not proof: a candidate that explains little of the benefit cannot be
what carries it, but one that explains much may only move along.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 1000


class Mediator(NamedTuple):
    """How one candidate's change goes with the change of the error, over paired networks.

    Spearman's rank correlation and the share of variance that a straight line explains, each with
    an interval. `n` pairs are compared and `n_unusable` are not finite.
    """

    correlation: float
    correlation_interval: tuple[float, float]
    explained: float
    explained_interval: tuple[float, float]
    n: int
    n_unusable: int


def mediators(
    benefit: ArrayLike,
    candidates: Mapping[str, ArrayLike],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> dict[str, Mediator]:
    """Compare candidates for what mediates a benefit, over the same networks for all.

    `benefit` (variants, seeds): log error under noise less that of the baseline of the same seed;
    candidates of the same shape: their changes against the same baseline. A seed's networks share
    their data, initial weights and baseline, and are not independent: intervals are percentiles of
    a bootstrap over seeds, the same resamples for all candidates; with a handful of seeds they are
    too narrow. Networks of which any number is not finite are left out; results are NaN where
    fewer than 3 remain or nothing varies. Raises ValueError for other shapes, or fewer than 2
    seeds.
    Source: Cameron, Gelbach & Miller, Bootstrap-based improvements for inference with clustered
    errors, Rev. Econ. Stat. 90 (2008), for resampling whole clusters.
    """
    gain = np.asarray(benefit, dtype=np.float64)
    changes = {name: np.asarray(c, dtype=np.float64) for name, c in candidates.items()}
    shapes = {gain.shape, *(change.shape for change in changes.values())}
    if len(shapes) > 1 or gain.ndim != 2 or gain.shape[1] < 2:
        raise ValueError(
            f"shapes {sorted(shapes)} are not one of (variants, seeds) with at least 2 seeds"
        )
    finite = np.isfinite(np.stack([gain, *changes.values()])).min(axis=0)
    n, seeds = int(finite.sum()), gain.shape[1]
    resampled = rng.integers(seeds, size=(resamples, seeds))
    tails = ((1 - level) / 2, (1 + level) / 2)

    def over(change: NDArray[np.float64], chosen: NDArray[np.int64]) -> tuple[float, float]:
        usable = finite[:, chosen]
        return _association(change[:, chosen][usable], gain[:, chosen][usable])

    found = {}
    for name, change in changes.items():
        correlation, explained = over(change, np.arange(seeds))
        draws = np.array([over(change, chosen) for chosen in resampled])
        # A resample in which nothing varies says nothing.
        draws = draws[np.isfinite(draws).all(axis=1)]
        of_correlation, of_explained = (
            (float(np.quantile(d, tails[0])), float(np.quantile(d, tails[1])))
            if d.size
            else (np.nan, np.nan)
            for d in draws.T
        )
        unusable = int(finite.size - n)
        found[name] = Mediator(correlation, of_correlation, explained, of_explained, n, unusable)
    return found


def _association(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Return Spearman's correlation and the R^2 of a straight line; NaN where one has no spread."""
    if x.size < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan, np.nan
    ranks = scipy.stats.rankdata(x), scipy.stats.rankdata(y)
    return float(np.corrcoef(*ranks)[0, 1]), float(np.corrcoef(x, y)[0, 1] ** 2)
