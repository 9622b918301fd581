"""Tables of one comparison's whole evidence."""

import math

import pandas as pd

from msstab.evidence import Interval, PairedEvidence
from msstab.tables.shown import number
from msstab.verdict import p_text


def evidence(e: PairedEvidence) -> pd.DataFrame:
    """All that paired errors say, on raw differences and on their ratios, a method a row.

    Effects are changes of the error in percent of the baseline's: of its mean error on the scale
    of differences, of its geometric mean on that of ratios.
    """
    r = e.ratios
    practical = r.practical
    level = f"{100 * (1 - e.alpha):g}%"

    def difference(value: float) -> str:
        return f"{e.percent(value):+.1f}%"

    def range_of_differences(interval: Interval) -> str:
        return f"{difference(interval.low)} to {difference(interval.high)}"

    exact = "exact" if e.p_exact else f"Monte Carlo error {number(e.p_standard_error, 1)}"
    rows = [
        ("Mean change", difference(e.mean_difference), _ratio(r.ratio)),
        (f"t interval, {level}", range_of_differences(e.interval), _ratios(r.interval)),
        (
            f"Sign-flip interval, {level}",
            range_of_differences(e.interval_sign_flip),
            _ratios(r.interval_sign_flip),
        ),
        (f"BCa bootstrap interval, {level}", "", _ratios(r.interval_bootstrap)),
        (
            f"Hodges-Lehmann estimate and interval, {level}",
            "",
            f"{_ratio(r.hodges_lehmann)}, {_ratios(r.interval_hodges_lehmann)}",
        ),
        (f"Sign-flip test ({exact})", p_text(e.p_value), p_text(r.p_value)),
        ("Paired t test", p_text(e.p_t), p_text(r.p_t)),
        (
            "Equivalence within the margin (two one-sided tests)",
            p_text(e.p_equivalence),
            p_text(r.p_equivalence),
        ),
        (
            "Improvement by the margin or more, excluded with",
            p_text(e.p_improvement),
            p_text(r.p_improvement),
        ),
        (
            "Better by more than the margin, within it, worse by more (posterior)",
            "",
            f"{practical.better:.0%}, {practical.within:.0%}, {practical.worse:.0%}",
        ),
        ("Bayes factor for any effect", "", number(r.bayes_factor, 2)),
        ("Sequential test, valid at any time", "", p_text(min(1.0, r.p_anytime))),
        (f"Interval valid at any time, {level}", "", _ratios(r.interval_anytime)),
        (
            "Effect found with 80% power",
            f"{e.percent(e.mde_power80):.1f}%",
            f"{r.mde_power80:.1f}%",
        ),
        (
            "Effect found with 90% power",
            f"{e.percent(e.mde_power90):.1f}%",
            f"{r.mde_power90:.1f}%",
        ),
        ("Power at the margin", f"{e.power_at_margin:.0%}", f"{r.power_at_margin:.0%}"),
        (
            f"Pairs in which the idea is better, and {level} interval",
            f"{e.improvement:.0%}, {e.improvement_interval.low:.0%} to "
            f"{e.improvement_interval.high:.0%}",
            "",
        ),
    ]
    return pd.DataFrame(rows, columns=["Method", "On differences", "On ratios"])


def _ratio(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}%"


def _ratios(interval: Interval) -> str:
    if interval.low <= 0 and math.isinf(interval.high):
        return "no bound yet"
    return f"{_ratio(interval.low)} to {_ratio(interval.high)}"
