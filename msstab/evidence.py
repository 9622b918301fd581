"""Paired statistics on plain arrays: is the idea better than the baseline, and how surely.

Lower is better, and every difference is idea minus baseline, one per seed. Effects, margins and
standard deviations are in the units of the error.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

EXACT_PAIRS = 20
"""Up to this many pairs the sign-flip test counts every arrangement of signs: 5 ms at 20."""


class SignFlip(NamedTuple):
    """The outcome of a sign-flip test; `resamples` counts the arrangements of signs looked at."""

    p: float
    exact: bool
    resamples: int
    standard_error: float
    floor: float


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def sign_flip_test(differences: ArrayLike, *, seed: int = 0, resamples: int = 99_999) -> SignFlip:
    """Test whether paired differences are symmetric about zero, by flipping their signs.

    differences: (n,), n >= 2. Two-sided: p is the share of arrangements of signs whose |sum| is
    at least the observed |sum|, ties included. All 2^n arrangements count up to EXACT_PAIRS
    pairs; beyond, `resamples` random ones with the observed one added (Phipson & Smyth 2010), so
    p is never 0 and depends on `seed` alone; `standard_error` is then the Monte Carlo error of p.
    `floor` is the smallest p that n pairs can give, 2/2^n when exact.
    Raises ValueError for values that are not finite or fewer than 2 pairs. Fisher (1935), sec. 21.
    """
    d = _pairs(differences)
    # Sums that are equal on paper differ by rounding in the values and in the order of summation.
    threshold = abs(d.sum()) - 1e-10 * np.abs(d).sum()
    if d.size <= EXACT_PAIRS:
        # |sum| is the same with all signs reversed, so the first sign may stay.
        sums = d[:1]
        for value in d[1:]:
            sums = np.concatenate([sums + value, sums - value])
        extreme = int(np.count_nonzero(np.abs(sums) >= threshold))
        return SignFlip(extreme / sums.size, True, 2**d.size, 0.0, 2.0 ** (1 - d.size))
    if resamples < 1:
        raise ValueError(f"resamples = {resamples}: at least 1 is needed")
    generator = np.random.default_rng(seed)
    rows = max(1, 2**22 // d.size)
    extreme = 0
    for start in range(0, resamples, rows):
        flips = generator.integers(0, 2, (min(rows, resamples - start), d.size), dtype=np.int8)
        extreme += int(np.count_nonzero(np.abs((2 * flips - 1) @ d) >= threshold))
    p = (extreme + 1) / (resamples + 1)
    floor = max(2.0 ** (1 - d.size), 1 / (resamples + 1))
    return SignFlip(p, False, resamples, math.sqrt(p * (1 - p) / resamples), floor)


def pairs_for_level(alpha: float) -> int:
    """Return the fewest pairs at which an exact two-sided sign-flip test can reach p <= alpha."""
    _require_share("alpha", alpha)
    return max(2, math.ceil(1 - math.log2(alpha)))


def half_width(differences: ArrayLike, level: float = 0.95) -> float:
    """Return half the width of the t interval for the mean difference.

    differences: (n,), n >= 2. Some reports call this the minimum detectable effect; an effect of
    this size is detected only about every second time, see `detectable_effect`.
    """
    d = _pairs(differences)
    _require_share("level", level)
    return float(stats.t.isf((1 - level) / 2, d.size - 1) * _standard_error(d))


def mean_interval(differences: ArrayLike, level: float = 0.95) -> Interval:
    """Return the t interval for the mean of differences (n,), n >= 2 (Student 1908)."""
    center, half = float(np.mean(_pairs(differences))), half_width(differences, level)
    return Interval(center - half, center + half)


def t_test_p(differences: ArrayLike) -> float:
    """Return the two-sided p of the paired t test; at zero variance its limit, 0 or 1."""
    return min(1.0, 2 * min(_t_tails(_pairs(differences), 0.0)))


def improvement_p(differences: ArrayLike, margin: float) -> float:
    """Return the one-sided p of 'the idea lowers the error by at least margin'.

    A small p excludes so large an improvement, whatever the two-sided test says.
    """
    return _t_tails(_pairs(differences), -_require_margin(margin))[0]


def equivalence_p(differences: ArrayLike, margin: float) -> float:
    """Return the p of two one-sided t tests: small where |mean difference| < margin is shown.

    differences: (n,), n >= 2; margin > 0, else ValueError. Schuirmann (1987).
    """
    d = _pairs(differences)
    return max(improvement_p(d, margin), improvement_p(-d, margin))


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


@dataclass(frozen=True)
class PairedEvidence:
    """What paired errors say; `percent` gives any effect in percent of the baseline's mean.

    Not a number: the correlation where one arm never varies, the variance ratio where neither
    does, and the geometric mean ratio where an error is not positive.
    """

    n: int
    alpha: float
    margin: float
    mean_baseline: float
    mean_idea: float
    mean_difference: float
    sd_difference: float
    interval: Interval
    wins: int
    p_value: float
    p_exact: bool
    p_standard_error: float
    p_floor: float
    p_t: float
    p_equivalence: float
    p_improvement: float
    mde_half_width: float
    mde_power80: float
    power_at_margin: float
    correlation: float
    variance_ratio: float
    ratio: float
    ratio_interval: Interval

    @property
    def pairing_helped(self) -> bool:
        """Whether differences vary less than they would between independent runs."""
        return self.variance_ratio < 1

    def percent(self, effect: float) -> float:
        """Return an effect in percent of the baseline's mean error."""
        return 100 * effect / self.mean_baseline if self.mean_baseline > 0 else math.nan


def summarise(
    baseline: ArrayLike, idea: ArrayLike, *, margin: float, alpha: float = 0.05, seed: int = 0
) -> PairedEvidence:
    """Return all paired evidence on two arms whose runs share their seeds.

    baseline, idea: (n,) errors, n >= 2; margin: the smallest effect of interest, in the units of
    the error; alpha: two-sided level, also that of each one-sided test. Raises ValueError for
    unequal lengths, values that are not finite, and a margin no error can improve by: it would
    be a share passed for an amount.
    """
    a, b = _pairs(baseline), _pairs(idea)
    if a.size != b.size:
        raise ValueError(f"{a.size} baseline values and {b.size} of the idea do not pair up")
    if 0 < a.mean() <= _require_margin(margin):
        raise ValueError(f"margin = {margin} is the baseline's whole error, {a.mean():.3g}")
    d = b - a
    flips, sd = sign_flip_test(d, seed=seed), _sd(d)
    spread, total = _sd(a) * _sd(b), _sd(a) ** 2 + _sd(b) ** 2
    ratio, ratio_interval = _geometric_ratio(a, b, alpha)
    return PairedEvidence(
        n=a.size,
        alpha=alpha,
        margin=float(margin),
        mean_baseline=float(a.mean()),
        mean_idea=float(b.mean()),
        mean_difference=float(d.mean()),
        sd_difference=sd,
        interval=mean_interval(d, 1 - alpha),
        wins=int(np.count_nonzero(b < a)),
        p_value=flips.p,
        p_exact=flips.exact,
        p_standard_error=flips.standard_error,
        p_floor=flips.floor,
        p_t=t_test_p(d),
        p_equivalence=equivalence_p(d, margin),
        p_improvement=improvement_p(d, margin),
        mde_half_width=half_width(d, 1 - alpha),
        mde_power80=detectable_effect(sd, a.size, 0.8, alpha),
        power_at_margin=power(margin, sd, a.size, alpha),
        correlation=float(np.cov(a, b)[0, 1] / spread) if spread > 0 else math.nan,
        variance_ratio=sd**2 / total if total > 0 else math.nan,
        ratio=ratio,
        ratio_interval=ratio_interval,
    )


def _power(standardised: float, n: int, alpha: float) -> float:
    degrees, critical = n - 1, float(stats.t.isf(alpha / 2, n - 1))
    # scipy gives NaN far out, and at 40 times the critical value the power is exactly 1.
    noncentrality = min(standardised * math.sqrt(n), 40 * (critical + 1))
    # scipy 1.17 gives NaN for some lower tails, all of them below 1e-10.
    lower = np.nan_to_num(stats.nct.cdf(-critical, degrees, noncentrality), nan=0.0)
    return float(stats.nct.sf(critical, degrees, noncentrality) + lower)


def _t_tails(d: NDArray[np.float64], null: float) -> tuple[float, float]:
    """P of a t statistic above and below that of `d` under a mean of `null`.

    Not by scipy.stats.ttest_1samp, which warns and gives NaN where the values hardly vary.
    """
    distance, error = float(d.mean()) - null, _standard_error(d)
    if error == 0:
        upper = 0.5 - 0.5 * float(np.sign(distance))
        return upper, 1 - upper
    t = stats.t(d.size - 1)
    return float(t.sf(distance / error)), float(t.cdf(distance / error))


def _geometric_ratio(
    a: NDArray[np.float64], b: NDArray[np.float64], alpha: float
) -> tuple[float, Interval]:
    if min(a.min(), b.min()) <= 0:
        return math.nan, Interval(math.nan, math.nan)
    logs = np.log(b) - np.log(a)
    low, high = mean_interval(logs, 1 - alpha)
    with np.errstate(over="ignore"):
        return float(np.exp(logs.mean())), Interval(float(np.exp(low)), float(np.exp(high)))


def _sd(values: NDArray[np.float64]) -> float:
    # The mean of equal values may differ from them by rounding.
    return 0.0 if np.ptp(values) == 0 else float(np.std(values, ddof=1))


def _standard_error(values: NDArray[np.float64]) -> float:
    return _sd(values) / math.sqrt(values.size)


def _pairs(values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size < 2:
        raise ValueError(f"at least 2 pairs are needed, in one row; got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("every value must be finite: score diverged runs by a stated rule first")
    return array


def _require_margin(margin: float) -> float:
    if not (math.isfinite(margin) and margin > 0):
        raise ValueError(f"margin = {margin}: it must be positive")
    return float(margin)


def _require_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name} = {value}: it must lie between 0 and 1")


def _require_design(sd: float, n: int, alpha: float, power: float | None = None) -> None:
    _require_share("alpha", alpha)
    if n < 2:
        raise ValueError(f"n = {n}: at least 2 pairs are needed")
    if not (math.isfinite(sd) and sd >= 0):
        raise ValueError(f"sd = {sd}: a standard deviation is finite and not negative")
    if power is not None and not alpha < power < 1:
        raise ValueError(f"power = {power}: it must lie between alpha = {alpha} and 1")
