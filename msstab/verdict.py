"""The decision tree: from paired evidence and the mechanism test to a verdict in fields and prose.

Sentences and fields both come from one `Outcome`, so prose cannot contradict its own table.
"""

import math
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, Protocol

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


class Deciding(Protocol):
    """What of the evidence decides; `PairedEvidence` is one such thing."""

    @property
    def n(self) -> int:
        """Pairs."""

    @property
    def alpha(self) -> float:
        """Level of every test."""

    @property
    def mean_difference(self) -> float:
        """Mean of idea minus baseline."""

    @property
    def p_value(self) -> float:
        """Sign-flip test."""

    @property
    def p_equivalence(self) -> float:
        """Two one-sided tests."""


class Branch(NamedTuple):
    """A question of the decision tree and, where its answer is yes, the end of it.

    `reading` gives the figures that answer the question, `reason` the sentence on the outcome.
    """

    question: str
    holds: Callable[[Deciding], bool]
    outcome: Outcome
    reading: Callable[[PairedEvidence], str]
    reason: Callable[[PairedEvidence], str]


def decide(evidence: PairedEvidence) -> Decision:
    """Apply the decision tree at the evidence's own level and margin; see `TREE`."""
    branch = TREE[branch_taken(evidence)]
    return Decision(branch.outcome, branch.reason(evidence))


def branch_taken(evidence: Deciding) -> int:
    """Return the place in `TREE` of the first branch whose question is answered with yes."""
    return next(place for place, branch in enumerate(TREE) if branch.holds(evidence))


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


def _too_few(e: PairedEvidence) -> str:
    return (
        f"{e.n} pairs cannot give p <= {e.alpha:g} whatever their differences "
        f"(the smallest p is {e.p_floor:.3g}): at least {pairs_for_level(e.alpha)} are needed."
    )


def _small(e: PairedEvidence) -> str:
    differs = "also differs" if e.p_value <= e.alpha else "does not differ"
    return (
        f"The mean difference, {_found(e)}, is within {_amount(e, e.margin)} either way "
        f"(two one-sided tests, {p_text(e.p_equivalence)}); it {differs} from zero "
        f"(sign-flip {p_text(e.p_value)})."
    )


def _chance(e: PairedEvidence) -> str:
    return (
        f"The mean difference, {_found(e)}, could be chance (sign-flip {p_text(e.p_value)}); {e.n} "
        f"pairs detect an effect of {_amount(e, e.mde_power80)} with 80% power, while the "
        f"smallest effect of interest is {_amount(e, e.margin)}."
    )


def _differs(e: PairedEvidence) -> str:
    return (
        f"The mean difference is {_found(e)}, {_interval(e)}, and differs from zero "
        f"(sign-flip {p_text(e.p_value)}, {e.n} pairs)."
    )


def _found(e: PairedEvidence) -> str:
    return _amount(e, e.mean_difference, "+")


TREE = (
    Branch(
        "Too few pairs for any result to reach the level?",
        lambda e: e.n < pairs_for_level(e.alpha),
        Outcome.INCONCLUSIVE,
        lambda e: f"{e.n} pairs, {pairs_for_level(e.alpha)} needed",
        _too_few,
    ),
    Branch(
        "Is the difference shown to be smaller than the margin?",
        lambda e: e.p_equivalence <= e.alpha,
        Outcome.EQUIVALENT,
        lambda e: f"two one-sided tests, {p_text(e.p_equivalence)}",
        _small,
    ),
    Branch(
        "Could the difference be chance?",
        lambda e: not e.p_value <= e.alpha,
        Outcome.INCONCLUSIVE,
        lambda e: f"sign-flip test, {p_text(e.p_value)}",
        _chance,
    ),
    Branch(
        "Is the mean error lower than the baseline's?",
        lambda e: e.mean_difference < 0,
        Outcome.BETTER,
        lambda e: f"mean {_relative(e, e.mean_difference, '+')}",
        _differs,
    ),
    Branch("Else", lambda _: True, Outcome.WORSE, lambda _: "", _differs),
)
"""The decision tree: the first branch that holds ends it, and the last one always holds."""
