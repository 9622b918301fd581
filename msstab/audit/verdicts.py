"""Whether the verdict, in fields and in words, is what the numbers say."""

import re
from collections.abc import Iterator

from msstab.audit.facts import ARMS, Facts
from msstab.audit.rows import Row, same, stated, unchecked
from msstab.verdict import Outcome, decide, p_text

_OPPOSITE = {Outcome.BETTER: Outcome.WORSE, Outcome.WORSE: Outcome.BETTER}
_WORDS = {True: "yes", False: "no"}
# In this order: a sentence that denies a win also has the words of one.
_CLAIMS = (
    (r"\bno(t| statistically)? significant|\bcannot tell\b|\binconclusive\b", False),
    (r"\braises the test error|\bby less than\b|\bno (improvement|effect)\b", False),
    (r"\bsignificant(ly)?\b|\blowers the test error\b|\boutperforms\b", True),
)
_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3})?)"


def check(facts: Facts) -> Iterator[Row]:
    """Yield the rows on every field and sentence that says how the comparison ended."""
    document, comparison = facts.document, facts.bench.comparison
    outcome, why = _outcome(facts)
    yield _practical(facts, outcome, why)
    better = outcome is Outcome.BETTER if outcome is not None else _from_stated(facts)
    yield _worked(facts, outcome, better)
    yield _system(facts, outcome, better)
    for name, text in (
        ("comparison's words", comparison.verdict),
        ("verdict's words", document.verdict),
    ):
        yield _words(name, text, better)
    yield _quoted_p(facts)
    for arm in ARMS:
        yield _quoted_scores(facts, arm)


def _outcome(facts: Facts) -> tuple[Outcome | None, str]:
    """Return what the differences decide; an assumed margin never turns a gain into none."""
    if facts.evidence is None:
        return None, "2 or more paired values are not recorded"
    if (e := facts.judged) is None:
        return None, "what it rests on is not said, or takes the errors of both arms, all positive"
    outcome, reason = decide(e)
    if facts.baseline_mean is None and not facts.margin_stated:
        reason = f"sign-flip {p_text(e.p_value)}; nothing is recorded to judge a difference's size"
    if not facts.margin_stated and outcome is Outcome.EQUIVALENT and e.p_value <= e.alpha:
        differs = Outcome.BETTER if e.mean < 0 else Outcome.WORSE
        outcome, reason = differs, "differs from zero; no margin is stated for it to be too small"
    if facts.sign < 0:
        outcome = _OPPOSITE.get(outcome, outcome)
    return outcome, reason


def _from_stated(facts: Facts) -> bool | None:
    """Return whether the stated figures show a gain, where there are no values by seed."""
    said = facts.bench.comparison
    interval = said.interval if said.decided_on is None else said.decided_on.interval
    if interval is not None:
        return max(facts.sign * end for end in interval) < 0
    if said.p_value is not None and said.delta_mean is not None:
        return said.p_value <= facts.alpha and facts.sign * said.delta_mean < 0
    return None


def _practical(facts: Facts, outcome: Outcome | None, why: str) -> Row:
    said = {facts.document.practical_verdict, facts.bench.comparison.outcome} - {None}
    text = " and ".join(sorted(map(str, said))) or None
    known = said <= {*Outcome}
    if outcome is None or not said or not known:
        if said and not known:
            why = f"not among the words {', '.join(Outcome)}"
        return unchecked("verdict", why if said else "none is stated", outcome, text)
    return stated("verdict", text, outcome.value, said == {outcome.value}, why)


def _worked(facts: Facts, outcome: Outcome | None, better: bool | None) -> Row:
    said = {facts.document.worked, facts.bench.comparison.system_worked} - {None}
    text = " and ".join(_WORDS[bool(flag)] for flag in sorted(map(bool, said))) or None
    if better is None or not said:
        return unchecked("worked", "neither this nor its grounds are recorded", None, text)
    why = "yes where better is shown"
    if outcome is None:
        why += ", as judged from the stated interval or p alone"
    return stated("worked", text, _WORDS[better], said == {better}, why)


def _system(facts: Facts, outcome: Outcome | None, better: bool | None) -> Row:
    said, name = facts.document.system_verdict, "system verdict"
    mechanism = facts.document.mechanism_ok
    if said not in ("supported", "refuted", "partial") or outcome is None or mechanism is None:
        return unchecked(name, "needs one of our words, paired values and mechanism_ok", said=said)
    lost = outcome in (Outcome.WORSE, Outcome.EQUIVALENT) and not mechanism
    own = "supported" if better and mechanism else "refuted" if lost else "partial"
    why = "supported: better by the claimed mechanism; refuted: worse or equivalent, and without it"
    return stated(name, said, own, said == own, why)


def _words(name: str, text: str | None, better: bool | None) -> Row:
    claims = [claim for pattern, claim in _CLAIMS if text and re.search(pattern, text, re.I)]
    if not claims or better is None:
        return unchecked(
            name, "no words that claim or deny a gain, or no grounds for it", said=text
        )
    own = "a gain" if better else "no gain"
    return stated(name, text, own, claims[0] is better, "what the words say of a gain")


def _quoted_p(facts: Facts) -> Row:
    said, name = facts.bench.comparison, "p in the verdict's words"
    match = re.search(rf"\bp = {_NUMBER}", facts.document.verdict or "")
    decided = said.decided_on
    stated_ps = [said.p_value, said.p_equivalence, decided.p_value if decided else None]
    known = [p for p in stated_ps if p is not None]
    if facts.judged is not None:
        known.append(facts.judged.p_value)
    if match is None or not known:
        return unchecked(name, "none is quoted, or there is none to compare it with")
    value = float(match[1])
    own = min(known, key=lambda p: abs(p - value))
    return stated(name, value, own, same(value, own), "the nearest p that the figures give")


def _quoted_scores(facts: Facts, arm: str) -> Row:
    text, name = (facts.document.metrics or {}).get(arm), f"{arm}: quoted mean"
    match = re.search(rf"\bmean={_NUMBER}", text) if isinstance(text, str) else None
    values, scores = facts.values[arm], facts.arm(arm).scores
    own = scores.mean if values is None else float(values.mean())
    if match is None or own is None:
        return unchecked(name, "none is quoted in the metrics, or there is none to compare it with")
    agrees = same(float(match[1]), own, facts.slack)
    return stated(name, float(match[1]), own, agrees, "mean of the seeds")
