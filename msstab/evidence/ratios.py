"""What paired errors say on the scale of ratios: effects in percent, whatever the errors' unit."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from msstab.evidence.bayes import Practical, bayes_factor, practical_probabilities
from msstab.evidence.bootstrap import bootstrap_interval
from msstab.evidence.equivalence import equivalence_p, improvement_p, log_margin
from msstab.evidence.pairs import Interval, log_ratios, standard_deviation
from msstab.evidence.power import detectable_effect, power
from msstab.evidence.ranks import hodges_lehmann, signed_rank_interval
from msstab.evidence.sequential import sequential_interval, sequential_test
from msstab.evidence.sign_flip import sign_flip_interval, sign_flip_test
from msstab.evidence.t_test import mean_interval, t_test_p


@dataclass(frozen=True)
class RatioEvidence:
    """What the logarithms of idea / baseline say, n pairs at level alpha.

    `ratio` is the geometric mean, `hodges_lehmann` the typical ratio; intervals are of ratios too.
    `mean`, `margin` and `sd` are of the logarithms. Detectable effects are in percent: how far the
    idea must lower the error. The sign-flip test's `p_value` and `interval_sign_flip` agree with
    each other: 1 lies outside the interval where p <= alpha (up to Monte Carlo error beyond 20
    pairs).
    Not a number, all of it, where an error is not positive.
    """

    mean: float
    margin: float
    sd: float
    ratio: float
    interval: Interval
    interval_sign_flip: Interval
    interval_bootstrap: Interval
    hodges_lehmann: float
    interval_hodges_lehmann: Interval
    p_value: float
    p_standard_error: float
    p_t: float
    p_equivalence: float
    p_improvement: float
    mde_power80: float
    mde_power90: float
    power_at_margin: float
    practical: Practical
    bayes_factor: float
    e_value: float
    p_anytime: float
    interval_anytime: Interval


def summarise_ratios(
    baseline: ArrayLike, idea: ArrayLike, *, share: float, alpha: float = 0.05, seed: int = 0
) -> RatioEvidence:
    """Return all paired evidence on the ratios of two arms' errors, pairs in the order of seeds.

    baseline, idea: (n,) positive errors, n >= 2; share: the smallest effect of interest as a share
    of the error, such as 0.05; alpha as for `summarise`. Raises ValueError as `log_ratios` does.
    """
    logs, level = log_ratios(baseline, idea), 1 - alpha
    flips, anytime = sign_flip_test(logs, seed=seed), sequential_test(logs)
    sd, margin = standard_deviation(logs), log_margin(share)
    return RatioEvidence(
        mean=float(logs.mean()),
        margin=margin,
        sd=sd,
        ratio=_exp(float(logs.mean())),
        interval=_ratios(mean_interval(logs, level)),
        interval_sign_flip=_ratios(sign_flip_interval(logs, level, seed=seed)),
        interval_bootstrap=_ratios(bootstrap_interval(logs, level, seed=seed)),
        hodges_lehmann=_exp(hodges_lehmann(logs)),
        interval_hodges_lehmann=_ratios(signed_rank_interval(logs, level)),
        p_value=flips.p,
        p_standard_error=flips.standard_error,
        p_t=t_test_p(logs),
        p_equivalence=equivalence_p(logs, margin),
        p_improvement=improvement_p(logs, margin),
        mde_power80=_lowering(detectable_effect(sd, logs.size, 0.8, alpha)),
        mde_power90=_lowering(detectable_effect(sd, logs.size, 0.9, alpha)),
        power_at_margin=power(margin, sd, logs.size, alpha),
        practical=practical_probabilities(logs, margin),
        bayes_factor=bayes_factor(logs),
        e_value=float(anytime.e_values[-1]),
        p_anytime=float(anytime.p_values[-1]),
        interval_anytime=_ratios(sequential_interval(logs, level)),
    )


def no_ratios() -> RatioEvidence:
    """Return evidence without a number in it, for errors that have no logarithm."""
    nan, interval = math.nan, Interval(math.nan, math.nan)
    return RatioEvidence(
        mean=nan,
        margin=nan,
        sd=nan,
        ratio=nan,
        interval=interval,
        interval_sign_flip=interval,
        interval_bootstrap=interval,
        hodges_lehmann=nan,
        interval_hodges_lehmann=interval,
        p_value=nan,
        p_standard_error=nan,
        p_t=nan,
        p_equivalence=nan,
        p_improvement=nan,
        mde_power80=nan,
        mde_power90=nan,
        power_at_margin=nan,
        practical=Practical(nan, nan, nan),
        bayes_factor=nan,
        e_value=nan,
        p_anytime=nan,
        interval_anytime=interval,
    )


def _exp(log: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(log))


def _ratios(logs: Interval) -> Interval:
    return Interval(_exp(logs.low), _exp(logs.high))


def _lowering(effect: float) -> float:
    return -100 * math.expm1(-effect)
