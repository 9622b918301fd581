"""The decision tree: from paired evidence and the mechanism test to a verdict in fields and prose.

Sentences and fields both come from one `Outcome`, so prose cannot contradict its own table.
"""

import math
from enum import StrEnum
from typing import NamedTuple

from msstab.evidence import PairedEvidence, pairs_for_level


class Outcome(StrEnum):
    """What the evidence says about the idea's error."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


class Decision(NamedTuple):
    """An outcome and the sentence that gives its numbers."""

    outcome: Outcome
    reason: str


class Judgement(NamedTuple):
    """The fields of a report that follow from the outcome and the mechanism test."""

    worked: bool
    confidence: int
    system_verdict: str
    practical_verdict: str
    mechanism_ok: int
    system_judged: bool


_HEADLINES = {
    Outcome.BETTER: "The penalty lowers the test error",
    Outcome.WORSE: "The penalty raises the test error",
    Outcome.EQUIVALENT: "The penalty changes the test error by less than {margin}",
    Outcome.INCONCLUSIVE: "These runs cannot tell whether the penalty changes the test error",
}


def decide(evidence: PairedEvidence) -> Decision:
    """Apply the decision tree at the evidence's own level and margin.

    First that holds: too few pairs for any sign-flip test to reach the level, inconclusive; both
    one-sided tests reject, equivalent; the sign-flip test rejects, better or worse by the sign
    of the mean difference; else inconclusive.
    """
    e = evidence
    needed, found = pairs_for_level(e.alpha), _amount(e, e.mean_difference, "+")
    if e.n < needed:
        return Decision(
            Outcome.INCONCLUSIVE,
            f"{e.n} pairs cannot give p <= {e.alpha:g} whatever their differences "
            f"(the smallest p is {e.p_floor:.3g}): at least {needed} are needed.",
        )
    if e.p_equivalence <= e.alpha:
        differs = "also differs" if e.p_value <= e.alpha else "does not differ"
        return Decision(
            Outcome.EQUIVALENT,
            f"The mean difference, {found}, is within {_amount(e, e.margin)} either way "
            f"(two one-sided tests, {p_text(e.p_equivalence)}); it {differs} from zero "
            f"(sign-flip {p_text(e.p_value)}).",
        )
    if e.p_value <= e.alpha:
        return Decision(
            Outcome.BETTER if e.mean_difference < 0 else Outcome.WORSE,
            f"The mean difference is {found}, {_interval(e)}, and differs from zero "
            f"(sign-flip {p_text(e.p_value)}, {e.n} pairs).",
        )
    return Decision(
        Outcome.INCONCLUSIVE,
        f"The mean difference, {found}, could be chance (sign-flip {p_text(e.p_value)}); {e.n} "
        f"pairs detect an effect of {_amount(e, e.mde_power80)} with 80% power, while the "
        f"smallest effect of interest is {_amount(e, e.margin)}.",
    )


def p_text(p: float) -> str:
    """Write a p value for a reader: two digits, and a bound where it is too small to matter."""
    return f"p = {p:.2g}" if p >= 1e-4 else "p < 0.0001"


def combine(decision: Decision, evidence: PairedEvidence, mechanism_ok: bool) -> Judgement:
    """Join the outcome and the mechanism test into a report's verdict fields.

    `confidence`, 0 to 10 and rounded down, is ten times 1 - p: p of the sign-flip test where
    the idea worked, else p of an improvement by at least the margin, so that it says how surely
    such an improvement is excluded. `system_verdict`: supported if better by the claimed
    mechanism, refuted if shown worse or equivalent without it, else partial.
    """
    outcome = decision.outcome
    worked = outcome is Outcome.BETTER
    p = evidence.p_value if worked else evidence.p_improvement
    if worked and mechanism_ok:
        system = "supported"
    elif outcome in (Outcome.WORSE, Outcome.EQUIVALENT) and not mechanism_ok:
        system = "refuted"
    else:
        system = "partial"
    # 10 * (1 - 0.9) is a hair below 1.
    confidence = math.floor(round(10 * (1 - p), 9))
    return Judgement(worked, confidence, system, outcome.value, int(mechanism_ok), True)


def headline(decision: Decision, evidence: PairedEvidence, mechanism: str) -> str:
    """Return the verdict in one sentence; `mechanism` is a clause, such as 'rule R1 failed'."""
    e = evidence
    low, high = (_relative(e, bound, "+") for bound in e.interval)
    lead = _HEADLINES[decision.outcome].format(margin=_relative(e, e.margin))
    return (
        f"{lead} (mean {_relative(e, e.mean_difference, '+')}, {100 * (1 - e.alpha):.3g}% interval "
        f"{low} to {high}, {p_text(e.p_value)}, {e.n} pairs of networks); "
        f"{mechanism.strip().rstrip('.')}."
    )


def _relative(evidence: PairedEvidence, effect: float, sign: str = "") -> str:
    """Write an effect in percent of the baseline's mean, or as it is where that has no meaning."""
    percent = evidence.percent(effect)
    if math.isnan(percent):
        return f"{effect:{sign}.3g}"
    return f"{percent:{sign}.{1 if abs(percent) < 10 else 0}f}%"


def _amount(evidence: PairedEvidence, effect: float, sign: str = "") -> str:
    percent = evidence.percent(effect)
    relative = "" if math.isnan(percent) else f" ({percent:{sign}.3g}% of the baseline)"
    return f"{effect:{sign}.3g}{relative}"


def _interval(evidence: PairedEvidence) -> str:
    low, high = evidence.interval
    return f"{100 * (1 - evidence.alpha):.3g}% interval [{low:+.3g}, {high:+.3g}]"
