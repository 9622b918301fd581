"""Sentences of chapter 8 whose words, and not only numbers, depend on the results."""

from collections.abc import Iterable, Mapping

from msstab import effects, rules, structured, structures
from msstab.effects import Effect
from msstab.structured import Structured
from msstab.tables import spoken
from msstab.verdict import p_text


def most_harmful(found: Structured) -> str:
    """Say which structure costs the baseline most and which least, and how many differ."""
    cost = structured.harm(found)
    ranked = sorted(cost, key=lambda name: -cost[name].ratio)
    first, last = ranked[0], ranked[-1]
    against = structured.against_own(found)
    adjusted, alpha = effects.holm(against), found.study.alpha
    more, less = _apart(against, adjusted, alpha)
    return (
        f"At matched strength {_named(first)} costs the baseline most: its error is "
        f"{_factor(cost[first])} times the clean one; {_named(last)} costs least, with "
        f"{_factor(cost[last])} times. Of {len(against)} structures, {len(more)} cost more than "
        f"{_named(found.study.noise)}, {len(less)} less, after Holm's adjustment."
    )


def predicted_structures(found: Structured) -> str:
    """Say for how many structures the theory predicts the variance within rule R1's limits."""
    agreed = {name: own["predicted"] for name, own in structured.predictions(found).items()}
    outside = [name for name, real in agreed.items() if not rules.fits(real)]
    lead = (
        f"For {len(agreed) - len(outside)} of {len(agreed)} structures the predicted variance is "
        "within the limits that rule R1 sets for slope, correlation and log-rmse"
    )
    if not outside:
        return f"{lead}."
    worst = max(outside, key=lambda name: agreed[name].log_rmse)
    return (
        f"{lead}; outside are {_listed(outside)}. The largest log-rmse among these is that of "
        f"{_named(worst)}, {agreed[worst].log_rmse:.2f}."
    )


def who_bears_it(found: Structured) -> str:
    """Say, for each arm, under how many structures it lowers and raises the error."""
    compared = structured.benefits(found)
    adjusted, alpha = effects.holm(compared), found.study.alpha
    parts = []
    for arm in found.arms:
        own = {name: e for (a, name), e in compared.items() if a == arm}
        worse, better = _apart(own, {name: adjusted[arm, name] for name in own}, alpha)
        raised = f"raises it under {len(worse)}" if worse else "raises it under none"
        parts.append(
            f"{spoken(arm).capitalize()} lowers the error under {len(better)} of {len(own)} "
            f"structures and {raised}."
        )
    return f"{' '.join(parts)} All of it after Holm's adjustment over arms and structures."


def trained_for_it(found: Structured) -> str:
    """Say, for each arm, whether training for the tested structure beats training for another."""
    made = structured.matching(found)
    if not made:
        return "Networks were trained for one structure alone, so that nothing can be transferred."
    adjusted, alpha = effects.holm(made), found.study.alpha
    parts = []
    for arm, e in made.items():
        change, low, high = e.percent
        figures = f"({low:+.1f}% to {high:+.1f}%, {p_text(adjusted[arm])})"
        if adjusted[arm] > alpha:
            said = f"no difference is detected: {change:+.1f}% {figures}"
        else:
            word = "less" if change < 0 else "more"
            said = f"they err {abs(change):.1f}% {word} {figures}"
        parts.append(f"for {spoken(arm)} {said}")
    return (
        "Networks trained for the structure under which they are tested, against those trained for "
        f"another: {'; '.join(parts)}."
    )


def frozen_and_fresh(found: Structured) -> str:
    """Say whether frozen errors cost more than fresh ones, and which theory holds."""
    cost, agreed = structured.freezing(found), structured.predictions(found)
    if not cost:
        return "None of the compared structures has errors that could be frozen."
    adjusted = effects.holm(cost)
    parts = []
    for name, e in cost.items():
        own = agreed[f"{name}{structures.FROZEN}"]
        if adjusted[name] > found.study.alpha:
            word = "as much as far as can be told"
        else:
            word = "less" if e.ratio < 1 else "more"
        right, wrong = own["predicted"].log_rmse, own["white"].log_rmse
        better = "the theory of frozen errors" if right < wrong else "the theory of fresh noise"
        parts.append(
            f"{_named(name)} costs {word} when frozen (error {_factor(e)} times that under fresh "
            f"errors), and {better} errs less (log-rmse {min(right, wrong):.2f} against "
            f"{max(right, wrong):.2f})"
        )
    return f"At the same strength {'; '.join(parts)}."


def diverged(found: Structured) -> str:
    """Say how many of the measured networks diverged."""
    tables = (found.table, found.crossed)
    lost = sum(int(table.diverged.sum()) for table in tables)
    total = sum(len(table) for table in tables)
    if not lost:
        return f"None of the {total} measurements is of a network that diverged."
    return (
        f"{lost} of the {total} measurements are of networks that diverged; they count with the "
        "constant forecast's error."
    )


def _apart(
    against: Mapping[str, Effect], adjusted: Mapping[str, float], alpha: float
) -> tuple[list[str], list[str]]:
    """Return the structures above and below 1 after adjustment."""
    differing = [name for name in against if adjusted[name] <= alpha]
    return (
        [name for name in differing if against[name].ratio > 1],
        [name for name in differing if against[name].ratio < 1],
    )


def _factor(e: Effect) -> str:
    return f"{e.ratio:.2f} ({e.interval.low:.2f} to {e.interval.high:.2f})"


def _named(name: str) -> str:
    return f"“{name}”"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(_named, names))
