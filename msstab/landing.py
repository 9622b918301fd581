"""What the first page says of a run: what was found, why, how surely, and what it means."""

from collections.abc import Iterable

from msstab import judgement, outlook
from msstab.results import ArmComparison, Comparison, Results
from msstab.rules import QUESTIONS, Rule
from msstab.tables import spoken
from msstab.verdict import Outcome, combine, p_text

FreeRun = tuple[str, Comparison]
"""A track and the comparison of free runs on it."""


def texts(found: Results, free_run: FreeRun | None = None) -> dict[str, str]:
    """Return the texts that the first page fills in, by name; `free_run` answers Q3."""
    asked = questions(found, free_run)
    networks, seconds = trained(found)
    said = [*map(changed, asked), others(found)]
    return {
        "verdict_sentence": found.verdict,
        "answer_text": answer(found),
        "found_text": "\n".join(f"- {sentence}" for sentence in said if sentence),
        "reason_text": reason(found),
        "certainty_text": certainty(found),
        "meaning_text": meaning(found),
        "pairs": str(found.clean.evidence.n),
        "seeds_line": seeds(found),
        "networks_text": f"{networks:,}",
        "training_text": outlook.duration(seconds),
    }


def questions(found: Results, free_run: FreeRun | None = None) -> list[Comparison]:
    """Return the comparisons that answer the study's questions, in their order."""
    free = [] if free_run is None else [free_run[1]]
    return [found.clean, *([found.noisy] if _noise(found) else []), *free]


def answer(found: Results) -> str:
    """Say in one plain sentence what the judged penalty does to both errors, and whether by theory.

    The effects themselves are in `changed`.
    """
    test = found.mechanism
    passed = sum(finding.rule is Rule.CONFIRMED for finding in test.findings.values())
    count = f"all {passed}" if test.confirmed else f"{passed} of {len(test.findings)}"
    noisy = f"; under noise, {_clause(found.noisy, 'it')}" if _noise(found) else ""
    return (
        f"Without noise, {_clause(found.clean, 'the penalty')}{noisy}. The theory behind it passes "
        f"{count} rules of its test."
    )


def changed(compared: Comparison) -> str:
    """Say by how much the penalty changes an error, with its interval and its test."""
    e = compared.evidence.judged
    low, high = (e.written(bound, "+") for bound in e.interval)
    what = compared.title.partition(": ")[2] or compared.title
    return (
        f"{what[0].upper()}{what[1:]}: {e.written(e.effect, '+')} with the penalty "
        f"({100 * (1 - e.alpha):g}% interval {low} to {high}, {p_text(e.p_value)}), "
        f"*{compared.decision.outcome.value}*."
    )


def others(found: Results) -> str:
    """Say how many of the other arms lower the error under noise; nothing where there are none."""
    rest = _others(found)
    if not rest:
        return ""
    better = _better_under_noise(rest)
    if not better:
        return f"None of the {len(rest)} other arms lowers the error under noise."
    lowest = min(better, key=lambda arm: _effect(better[arm].noisy))
    e = better[lowest].noisy.evidence.judged
    return (
        f"Of the {len(rest)} other arms {len(better)} lower the error under noise, "
        f"{spoken(lowest)} most ({e.written(e.effect, '+')})."
    )


def reason(found: Results) -> str:
    """Say which rules of the mechanism test hold, and what a benefit under noise goes with."""
    outcomes = {
        outcome: [name for name, one in found.mechanism.findings.items() if one.rule is outcome]
        for outcome in Rule
    }
    said = []
    if confirmed := outcomes[Rule.CONFIRMED]:
        every = " (all of them)" if found.mechanism.confirmed else ""
        said.append(f"Of the rules that test the theory, {_listed(confirmed)} hold{every}.")
    else:
        said.append("None of the rules that test the theory holds.")
    for outcome in (Rule.REFUTED, Rule.NOT_DISCRIMINATING):
        said += [f"“{QUESTIONS[name]}” ({name}) is {outcome.value}." for name in outcomes[outcome]]
    made = judgement.mediators(found.experiment)
    # A candidate that is not a number could not be compared with any other.
    known = {name: m for name, m in made.items() if m.explained == m.explained}
    if len(known) > 1:
        first = max(known, key=lambda name: known[name].explained)
        bound = "the original's spectral-norm bound"
        against = f", {bound} {known[bound].explained:.0%}" if bound in {*known} - {first} else ""
        said.append(
            f"Changes of the error under noise go with the {first.removeprefix('the ')}, which "
            f"explains {known[first].explained:.0%} of their variance{against}."
        )
    return " ".join(said)


def certainty(found: Results) -> str:
    """Say how many pairs there are and how small a change they detect, on both questions."""
    clean, noisy = found.clean.evidence.judged, found.noisy.evidence.judged
    also = f" and of {noisy.written(noisy.mde_power80)} under noise" if _noise(found) else ""
    return (
        f"{clean.n} pairs of networks, one seed each, none of them used in tuning, detect a change "
        f"of {clean.written(clean.mde_power80)} in the clean error{also} with 80% power; the "
        f"smallest change of interest is {clean.written(clean.margin)}."
    )


def meaning(found: Results) -> str:
    """Say what follows for the claim as a whole and for somebody who wants to use the penalty."""
    system = combine(
        found.clean.decision, found.clean.evidence.judged, found.mechanism.confirmed
    ).system_verdict
    own = found.arms[found.idea]
    said = [_CLAIM[system], _WITHOUT_NOISE[own.clean.decision.outcome]]
    if _noise(found):
        said.append(_UNDER_NOISE[own.noisy.decision.outcome])
        if own.noisy.decision.outcome is Outcome.BETTER:
            said.append(_price(own.price))
        said.append(_simpler(found))
    return " ".join(part for part in said if part)


def seeds(found: Results) -> str:
    """Say how many seeds tune and how many confirm, and where they come from."""
    study = found.study
    return (
        f"{study.tuning_seeds} tune, {found.clean.evidence.n} confirm the judged arm; in part II "
        f"{study.survey_tuning_seeds} and up to {study.survey_seeds}; all of them follow from "
        f"`study_seed = {study.study_seed}`"
    )


def trained(found: Results) -> tuple[int, float]:
    """Return how many networks the main study trained, and the seconds of one process they took.

    Networks that several comparisons share count once; untrained ones do not.
    """
    runs = found.table[found.table.role != "untrained"]
    # At strength 0 an arm's networks are the baseline's own.
    named = runs.assign(
        purpose=runs.role == "tuning",
        own=runs.arm.where(runs.strength > 0, "baseline"),
    )
    once = named.drop_duplicates(["purpose", "own", "learning_rate", "strength", "seed"])
    return len(once), float(once.seconds.sum())


_CLAUSES = {
    Outcome.BETTER: "{who} lowers the test error by {size}",
    Outcome.WORSE: "{who} raises the test error by {size}",
    Outcome.EQUIVALENT: "{who} changes the test error by less than {margin}",
    Outcome.INCONCLUSIVE: "these runs cannot tell whether {who} changes the test error",
}

_CLAIM = {
    "supported": "The claim holds here: better, and for the reason given.",
    "refuted": "The claim does not hold here: not better, and not for the reason given.",
    "partial": "The claim as a whole is neither upheld nor refuted.",
}

_WITHOUT_NOISE = {
    Outcome.BETTER: "The penalty pays even where there is no noise.",
    Outcome.WORSE: "Where there is no noise it does harm.",
    Outcome.EQUIVALENT: "Where there is no noise it makes no difference that matters.",
    Outcome.INCONCLUSIVE: "What it does where there is no noise is open.",
}

_UNDER_NOISE = {
    Outcome.BETTER: "Where noise is to be expected it helps.",
    Outcome.WORSE: "Where noise is to be expected it does harm.",
    Outcome.EQUIVALENT: "Where noise is to be expected it makes no difference that matters.",
    Outcome.INCONCLUSIVE: "What it does where noise is to be expected is open.",
}

_PRICES = {
    Outcome.BETTER: "The clean error of the same networks falls too, by {size}.",
    Outcome.WORSE: "The price is {size} of clean error in the same networks.",
    Outcome.EQUIVALENT: "The clean error of the same networks changes by less than {margin}.",
    Outcome.INCONCLUSIVE: "What that costs in clean error is open ({change}).",
}


def _clause(compared: Comparison, who: str) -> str:
    e = compared.evidence.judged
    return _CLAUSES[compared.decision.outcome].format(
        who=who, size=e.written(abs(e.effect)), margin=e.written(e.margin)
    )


def _price(price: Comparison) -> str:
    e = price.evidence.judged
    return _PRICES[price.decision.outcome].format(
        size=e.written(abs(e.effect)), margin=e.written(e.margin), change=e.written(e.effect, "+")
    )


def _simpler(found: Results) -> str:
    """Say whether another arm lowers the error under noise further than the judged one."""
    rest, own = _others(found), found.noisy
    further = [
        arm
        for arm, compared in _better_under_noise(rest).items()
        if own.decision.outcome is not Outcome.BETTER or _effect(compared.noisy) < _effect(own)
    ]
    if further:
        names = _listed(spoken(arm) for arm in further)
        return f"By their mean effects, these arms lower the error under noise further: {names}."
    return "By its mean effect, no other arm lowers the error under noise further." if rest else ""


def _noise(found: Results) -> bool:
    """Say whether the study's noisy test has any noise: without it there is one question."""
    return found.study.sigma_test > 0


def _others(found: Results) -> dict[str, ArmComparison]:
    """Return the arms beside the judged one where their errors under noise say anything."""
    if not _noise(found):
        return {}
    return {arm: own for arm, own in found.arms.items() if arm != found.idea}


def _better_under_noise(compared: dict[str, ArmComparison]) -> dict[str, ArmComparison]:
    return {
        arm: own for arm, own in compared.items() if own.noisy.decision.outcome is Outcome.BETTER
    }


def _effect(compared: Comparison) -> float:
    return compared.evidence.judged.effect


def _listed(names: Iterable[str]) -> str:
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last
