"""Power of the paired t test: what an experiment of n pairs can detect, and the pairs it takes."""

import math
from bisect import bisect_left

import numpy as np
from scipy import optimize, stats

from msstab.evidence.pairs import require_share
from msstab.evidence.sign_flip import pairs_for_level


def power(effect: float, sd: float, n: int, alpha: float = 0.05) -> float:
    """Return the power of the two-sided paired t test for a mean difference of `effect`.

    sd >= 0 is the standard deviation of the differences, n >= 2 the pairs, 0 < alpha < 1; else
    ValueError. By the noncentral t distribution; Cohen (1988).
    """
    _require_design(sd, n, alpha)
    if sd == 0:
        return 1.0 if effect else alpha
    return _power(abs(effect) / sd, n, alpha)


def detectable_effect(sd: float, n: int, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the effect that the paired t test detects with the given power.

    Arguments as for the function `power`. Raises ValueError where no such effect exists: fewer
    than 2 pairs, or a power outside (alpha, 1), alpha being what no effect at all attains.
    """
    _require_design(sd, n, alpha, power)
    upper = 1.0
    while _power(upper, n, alpha) < power:
        upper *= 2
    root = optimize.brentq(lambda d: _power(d, n, alpha) - power, 0, upper, xtol=1e-13)
    return sd * float(root)


def pairs_needed(effect: float, sd: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """Return the fewest pairs that detect `effect` with the given power.

    Arguments as for the function `power`, which decides, but never fewer than a sign-flip test
    needs at this level. Raises ValueError where no number of pairs suffices (no effect, a power
    outside (alpha, 1)) or only a billion.
    """
    fewest = pairs_for_level(alpha)
    _require_design(sd, fewest, alpha, power)
    if not math.isfinite(effect) or effect == 0:
        raise ValueError(f"effect = {effect}: no number of pairs detects it")
    if sd == 0:
        return fewest
    candidates = range(fewest, 10**9)
    place = bisect_left(candidates, power, key=lambda n: _power(abs(effect) / sd, n, alpha))
    if place == len(candidates):
        raise ValueError(f"an effect of {effect} takes a billion pairs")
    return candidates[place]


def _power(standardised: float, n: int, alpha: float) -> float:
    degrees, critical = n - 1, float(stats.t.isf(alpha / 2, n - 1))
    # scipy gives NaN far out, and at 40 times the critical value the power is exactly 1.
    noncentrality = min(standardised * math.sqrt(n), 40 * (critical + 1))
    # scipy 1.17 gives NaN for some lower tails, all of them below 1e-10.
    lower = np.nan_to_num(stats.nct.cdf(-critical, degrees, noncentrality), nan=0.0)
    return float(stats.nct.sf(critical, degrees, noncentrality) + lower)


def _require_design(sd: float, n: int, alpha: float, power: float | None = None) -> None:
    require_share("alpha", alpha)
    if n < 2:
        raise ValueError(f"n = {n}: at least 2 pairs are needed")
    if not (math.isfinite(sd) and sd >= 0):
        raise ValueError(f"sd = {sd}: a standard deviation is finite and not negative")
    if power is not None and not alpha < power < 1:
        raise ValueError(f"power = {power}: it must lie between alpha = {alpha} and 1")
