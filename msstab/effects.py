"""Effects in factors: the mean log ratio of paired errors, with its interval and its test."""

from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from msstab import evidence
from msstab.evidence import Interval

Key = TypeVar("Key", bound=Hashable)


class Effect(NamedTuple):
    """A geometric mean ratio with its interval, the sign-flip p that it is 1, and the pairs."""

    ratio: float
    interval: Interval
    p: float
    n: int

    @property
    def percent(self) -> tuple[float, float, float]:
        """The change and the ends of its interval, in percent."""
        change, low, high = (100 * (r - 1) for r in (self.ratio, *self.interval))
        return change, low, high


def effect(baseline: ArrayLike, idea: ArrayLike, alpha: float) -> Effect:
    """Return by which factor the idea's errors (n,) exceed the baseline's (n,), paired by seed.

    n >= 2 positive errors; `alpha` as for `of_logs`. Raises ValueError as `evidence.log_ratios`.
    """
    return of_logs(evidence.log_ratios(baseline, idea), alpha)


def of_logs(logs: ArrayLike, alpha: float) -> Effect:
    """Return the effect that logarithms of ratios say, one a pair (n,), n >= 2.

    The interval is the t interval at the level 1 - alpha, the p two-sided. Raises ValueError for
    values that are not finite.
    """
    values = np.asarray(logs, dtype=np.float64)
    low, high = np.exp(evidence.mean_interval(values, 1 - alpha))
    return Effect(
        float(np.exp(values.mean())),
        Interval(float(low), float(high)),
        evidence.sign_flip_test(values).p,
        values.size,
    )


def holm(effects: Mapping[Key, Effect]) -> dict[Key, float]:
    """Return each effect's p, adjusted by Holm's rule over all of them; none for none."""
    if not effects:
        return {}
    adjusted = evidence.holm([found.p for found in effects.values()])
    return dict(zip(effects, adjusted.tolist(), strict=True))
