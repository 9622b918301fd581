"""The decision tree: from paired evidence and the mechanism test to a verdict in fields and prose.

Sentences and fields both come from one `Outcome`, so prose cannot contradict its own table.
"""

import math
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, Protocol

from msstab.evidence import Judged, Scale, pairs_for_level


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
    """The fields of a report that follow from the outcome and the mechanism test.

    `reasons` says in words why each of the others is what it is.
    """

    worked: bool
    confidence: int
    system_verdict: str
    practical_verdict: str
    mechanism_ok: int
    system_judged: bool
    reasons: dict[str, str]


_HEADLINES = {
    Outcome.BETTER: "The penalty lowers the test error",
    Outcome.WORSE: "The penalty raises the test error",
    Outcome.EQUIVALENT: "The penalty changes the test error by less than {margin}",
    Outcome.INCONCLUSIVE: "These runs cannot tell whether the penalty changes the test error",
}


class Deciding(Protocol):
    """What the decision tree looks at; `evidence.Judged` is one such thing."""

    @property
    def n(self) -> int:
        """Pairs."""

    @property
    def alpha(self) -> float:
        """Level of every test."""

    @property
    def mean(self) -> float:
        """Mean of what is compared, negative where the idea is better."""

    @property
    def p_value(self) -> float:
        """Sign-flip test."""

    @property
    def p_equivalence(self) -> float:
        """Two one-sided tests."""


class Facts(NamedTuple):
    """What the decision tree looks at, and no more; see `Deciding`. All evidence takes longer."""

    n: int
    alpha: float
    mean: float
    p_value: float
    p_equivalence: float


class Branch(NamedTuple):
    """A question of the decision tree and, where its answer is yes, the end of it.

    `reading` gives the figures that answer the question, `reason` the sentence on the outcome.
    """

    question: str
    holds: Callable[[Deciding], bool]
    outcome: Outcome
    reading: Callable[[Judged], str]
    reason: Callable[[Judged], str]


def decide(judged: Judged) -> Decision:
    """Apply the decision tree at the evidence's own level, margin and scale; see `TREE`."""
    branch = TREE[branch_taken(judged)]
    return Decision(branch.outcome, branch.reason(judged))


def branch_taken(evidence: Deciding) -> int:
    """Return the place in `TREE` of the first branch whose question is answered with yes."""
    return next(place for place, branch in enumerate(TREE) if branch.holds(evidence))


def p_text(p: float) -> str:
    """Write a p value for a reader: two digits, and a bound where it is too small to matter."""
    return f"p = {p:.2g}" if p >= 1e-4 else "p < 0.0001"


def combine(
    decision: Decision, judged: Judged, mechanism_ok: bool, mechanism: str = ""
) -> Judgement:
    """Join the outcome and the mechanism test into a report's verdict fields.

    `confidence`, 0 to 10 and rounded down, is ten times 1 - p: p of the sign-flip test where
    the idea worked, else p of an improvement by at least the margin, so that it says how surely
    such an improvement is excluded. `system_verdict`: supported if better by the claimed
    mechanism, refuted if shown worse or equivalent without it, else partial. `mechanism` is the
    clause on the mechanism test.
    """
    outcome = decision.outcome
    worked = outcome is Outcome.BETTER
    p = judged.p_value if worked else judged.p_improvement
    if worked and mechanism_ok:
        system = "supported"
    elif outcome in (Outcome.WORSE, Outcome.EQUIVALENT) and not mechanism_ok:
        system = "refuted"
    else:
        system = "partial"
    # 10 * (1 - 0.9) is a hair below 1.
    confidence = math.floor(round(10 * (1 - p), 9))
    margin = judged.written(judged.margin)
    sure = (
        f"that the error is lower at all (sign-flip {p_text(p)})"
        if worked
        else f"that the error is not lowered by {margin} or more ({p_text(p)})"
    )
    mechanism_word = "confirmed" if mechanism_ok else "not confirmed"
    reasons = {
        "worked": f"The outcome is {outcome.value}; only better counts as having worked.",
        "practical_verdict": decision.reason,
        "mechanism_ok": _sentence(mechanism) or f"The mechanism is {mechanism_word}.",
        "system_verdict": (
            f"The outcome is {outcome.value} and the mechanism {mechanism_word}. {_SYSTEM[system]}"
        ),
        "confidence": f"Ten times 1 - p, rounded down, for the claim {sure}.",
    }
    return Judgement(worked, confidence, system, outcome.value, int(mechanism_ok), True, reasons)


_SYSTEM = {
    "supported": "Better, by the claimed mechanism, supports the claim.",
    "refuted": "Shown not to be better, without the claimed mechanism, refutes the claim.",
    "partial": "Only part of the claim holds, or is decided.",
}


def headline(decision: Decision, judged: Judged, mechanism: str) -> str:
    """Return the verdict in one sentence; `mechanism` is a clause, such as 'rule R1 failed'."""
    low, high = (judged.written(bound, "+") for bound in judged.interval)
    lead = _HEADLINES[decision.outcome].format(margin=judged.written(judged.margin))
    return (
        f"{lead} ({_MEANS[judged.scale]} {judged.written(judged.effect, '+')}, "
        f"{100 * (1 - judged.alpha):.3g}% interval {low} to {high}, {p_text(judged.p_value)}, "
        f"{judged.n} pairs of networks); {mechanism.strip().rstrip('.')}."
    )


_MEANS = {Scale.RATIOS: "geometric mean ratio", Scale.DIFFERENCES: "mean difference"}


def _sentence(clause: str) -> str:
    clause = clause.strip().rstrip(".")
    return f"{clause[0].upper()}{clause[1:]}." if clause else ""


def _interval(e: Judged) -> str:
    low, high = (e.written(bound, "+") for bound in e.interval)
    return f"{100 * (1 - e.alpha):.3g}% interval {low} to {high}"


def _too_few(e: Judged) -> str:
    return (
        f"{e.n} pairs cannot give p <= {e.alpha:g} whatever their differences "
        f"(the smallest p is {e.p_floor:.3g}): at least {pairs_for_level(e.alpha)} are needed."
    )


def _small(e: Judged) -> str:
    differs = "also differs" if e.p_value <= e.alpha else "does not differ"
    return (
        f"The change of the error, {_found(e)}, is within {e.written(e.margin)} either way "
        f"(two one-sided tests, {p_text(e.p_equivalence)}); it {differs} from zero "
        f"(sign-flip {p_text(e.p_value)})."
    )


def _chance(e: Judged) -> str:
    return (
        f"The change of the error, {_found(e)}, could be chance (sign-flip {p_text(e.p_value)}); "
        f"{e.n} pairs detect a change of {e.written(e.mde_power80)} with 80% power, while the "
        f"smallest effect of interest is {e.written(e.margin)}."
    )


def _differs(e: Judged) -> str:
    return (
        f"The change of the error is {_found(e)}, {_interval(e)}, and differs from zero "
        f"(sign-flip {p_text(e.p_value)}, {e.n} pairs)."
    )


def _found(e: Judged) -> str:
    return f"{e.written(e.effect, '+')} ({_MEANS[e.scale]})"


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
        "Is the error lower than the baseline's?",
        lambda e: e.mean < 0,
        Outcome.BETTER,
        lambda e: f"{_MEANS[e.scale]} {e.written(e.effect, '+')}",
        _differs,
    ),
    Branch("Else", lambda _: True, Outcome.WORSE, lambda _: "", _differs),
)
"""The decision tree: the first branch that holds ends it, and the last one always holds."""
