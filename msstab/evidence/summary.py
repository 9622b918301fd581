"""All that paired errors say about one idea, in one frozen record."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from msstab.evidence.equivalence import equivalence_p, improvement_p
from msstab.evidence.judged import Judged, Scale
from msstab.evidence.pairs import Interval, both, require_margin, require_share, standard_deviation
from msstab.evidence.power import detectable_effect, power
from msstab.evidence.ratios import RatioEvidence, no_ratios, summarise_ratios
from msstab.evidence.sign_flip import sign_flip_interval, sign_flip_test
from msstab.evidence.t_test import half_width, mean_interval, t_test_p
from msstab.evidence.wins import improvement_interval, probability_of_improvement


@dataclass(frozen=True)
class PairedEvidence:
    """What paired errors say; `judged` is the part that decides.

    `percent` gives any difference in percent of the baseline's mean. `ratios` is the same on the
    scale of log ratios, where an effect has no unit. Not a number: the correlation where one arm
    never varies, the variance ratio where neither does, and the geometric mean ratio and all of
    `ratios` where an error is not positive.
    """

    n: int
    alpha: float
    margin: float
    mean_baseline: float
    mean_idea: float
    mean_difference: float
    sd_difference: float
    interval: Interval
    interval_sign_flip: Interval
    wins: int
    improvement: float
    improvement_interval: Interval
    p_value: float
    p_exact: bool
    p_standard_error: float
    p_floor: float
    p_t: float
    p_equivalence: float
    p_improvement: float
    mde_half_width: float
    mde_power80: float
    mde_power90: float
    power_at_margin: float
    correlation: float
    variance_ratio: float
    ratio: float
    ratio_interval: Interval
    ratios: RatioEvidence

    @property
    def pairing_helped(self) -> bool:
        """Whether differences vary less than they would between independent runs."""
        return self.variance_ratio < 1

    @property
    def judged(self) -> Judged:
        """What decides: log ratios, or differences where an error has no logarithm.

        Errors have heavy tails, which cost differences much of their power (chapter 05).
        """
        return self.on(Scale.DIFFERENCES if math.isnan(self.ratio) else Scale.RATIOS)

    def on(self, scale: Scale) -> Judged:
        """Return what would decide on a given scale."""
        if scale is Scale.RATIOS:
            return self._on_ratios()
        relative = self.mean_baseline > 0
        unit = self.mean_baseline if relative else 1.0
        return Judged(
            scale=scale,
            relative=relative,
            n=self.n,
            alpha=self.alpha,
            mean=self.mean_difference,
            effect=self.mean_difference / unit,
            interval=Interval(self.interval.low / unit, self.interval.high / unit),
            margin=self.margin / unit,
            p_value=self.p_value,
            p_exact=self.p_exact,
            p_standard_error=self.p_standard_error,
            p_floor=self.p_floor,
            p_equivalence=self.p_equivalence,
            p_improvement=self.p_improvement,
            mde_power80=self.mde_power80 / unit,
            mde_power90=self.mde_power90 / unit,
            power_at_margin=self.power_at_margin,
        )

    def _on_ratios(self) -> Judged:
        r = self.ratios
        return Judged(
            scale=Scale.RATIOS,
            relative=True,
            n=self.n,
            alpha=self.alpha,
            mean=r.mean,
            effect=r.ratio - 1,
            interval=Interval(r.interval.low - 1, r.interval.high - 1),
            margin=math.expm1(r.margin),
            p_value=r.p_value,
            p_exact=self.p_exact,
            p_standard_error=r.p_standard_error,
            p_floor=self.p_floor,
            p_equivalence=r.p_equivalence,
            p_improvement=r.p_improvement,
            mde_power80=r.mde_power80 / 100,
            mde_power90=r.mde_power90 / 100,
            power_at_margin=r.power_at_margin,
        )

    def percent(self, effect: float) -> float:
        """Return an effect in percent of the baseline's mean error."""
        return 100 * effect / self.mean_baseline if self.mean_baseline > 0 else math.nan


def summarise(
    baseline: ArrayLike, idea: ArrayLike, *, margin: float, alpha: float = 0.05, seed: int = 0
) -> PairedEvidence:
    """Return all paired evidence on two arms whose runs share their seeds.

    baseline, idea: (n,) errors, n >= 2, in the order of the seeds; margin: the smallest effect of
    interest, in the units of the error, which ratios take as a share of the baseline's mean;
    alpha: two-sided level, also that of each one-sided test. Raises ValueError for unequal
    lengths, values that are not finite, and a margin no error can improve by: it would be a share
    passed for an amount.
    """
    a, b = both(baseline, idea)
    require_share("alpha", alpha)
    if 0 < a.mean() <= require_margin(margin):
        raise ValueError(f"margin = {margin} is the baseline's whole error, {a.mean():.3g}")
    d, level = b - a, 1 - alpha
    flips, sd = sign_flip_test(d, seed=seed), standard_deviation(d)
    spread_a, spread_b = standard_deviation(a), standard_deviation(b)
    spread, total = spread_a * spread_b, spread_a**2 + spread_b**2
    if min(a.min(), b.min()) > 0:
        share = margin / float(a.mean())
        ratios = summarise_ratios(a, b, share=share, alpha=alpha, seed=seed)
    else:
        ratios = no_ratios()
    return PairedEvidence(
        n=a.size,
        alpha=alpha,
        margin=float(margin),
        mean_baseline=float(a.mean()),
        mean_idea=float(b.mean()),
        mean_difference=float(d.mean()),
        sd_difference=sd,
        interval=mean_interval(d, level),
        interval_sign_flip=sign_flip_interval(d, level, seed=seed),
        wins=int(np.count_nonzero(b < a)),
        improvement=probability_of_improvement(d),
        improvement_interval=improvement_interval(d, level),
        p_value=flips.p,
        p_exact=flips.exact,
        p_standard_error=flips.standard_error,
        p_floor=flips.floor,
        p_t=t_test_p(d),
        p_equivalence=equivalence_p(d, margin),
        p_improvement=improvement_p(d, margin),
        mde_half_width=half_width(d, level),
        mde_power80=detectable_effect(sd, a.size, 0.8, alpha),
        mde_power90=detectable_effect(sd, a.size, 0.9, alpha),
        power_at_margin=power(margin, sd, a.size, alpha),
        correlation=float(np.cov(a, b)[0, 1] / spread) if spread > 0 else math.nan,
        variance_ratio=sd**2 / total if total > 0 else math.nan,
        ratio=ratios.ratio,
        ratio_interval=ratios.interval,
        ratios=ratios,
    )
