"""Sentences of chapter 9 whose words, and not only numbers, depend on the results."""

from collections.abc import Mapping

from msstab import quantised
from msstab.bits_bought import Bought
from msstab.quantised import Case, Fit, Key, Quantised
from msstab.results import Comparison
from msstab.tables import spoken
from msstab.under_rounding import PARTS


def rounding_predicted(found: Quantised) -> str:
    """Say in how many cases the theory predicts what rounding at random does, and where not."""
    fits = quantised.fits(found, "random")
    judged = {case: f for case, f in fits.items() if case[2] >= quantised.FEWEST_JUDGED}
    others = {case: f for case, f in fits.items() if case not in judged}
    parts = []
    if judged:
        parts.append(
            f"At {quantised.FEWEST_JUDGED} bits or more, the mean squared deviation that rounding "
            f"at random causes is, as a mean over networks, within {quantised.TOLERANCE:.0%} of "
            f"the predicted one in {_held(judged)}."
        )
    if others:
        bits = " and ".join(str(b) for b in sorted({case[2] for case in others}))
        parts.append(
            f"At {bits} bits, where errors are too large to expect a linear theory to hold, it is "
            f"in {_held(others)}."
        )
    return " ".join(parts)


def _held(fits: Mapping[Case, Fit]) -> str:
    failed = {case: fit for case, fit in fits.items() if not fit.holds}
    lead = f"{len(fits) - len(failed)} of {len(fits)} cases"
    if not failed:
        return lead
    each = ", ".join(f"{_case(case)} (factor {fit.ratio:.2f})" for case, fit in failed.items())
    return f"{lead}; outside are {each}"


def one_rounding(found: Quantised) -> str:
    """Say how a single rounding to nearest compares with what is expected, weights and states."""
    fits = quantised.fits(found, "nearest")
    parts = []
    for part in PARTS:
        own = {case: fit for case, fit in fits.items() if case[0] == part}
        held = sum(fit.holds for fit in own.values())
        low, high = (end(fit.ratio for fit in own.values()) for end in (min, max))
        parts.append(
            f"{part} {low:.2f} to {high:.2f} times the predicted deviation (within "
            f"{quantised.TOLERANCE:.0%} in {held} of {len(own)} cases)"
        )
    return f"Rounding to nearest, once, gives as a mean over networks {'; '.join(parts)}."


def bits_bought(bought: Mapping[Key, Bought], tuned_for: str) -> str:
    """Say for each arm in how many cases it buys bits, costs bits, or neither is shown."""
    parts = []
    for arm in dict.fromkeys(key[1] for key in bought):
        own = [one for key, one in bought.items() if key[:2] == (tuned_for, arm)]
        words = [one.word for one in own]
        buys, costs = words.count("buys"), words.count("costs")
        lead = (
            "buys bits"
            if buys and not costs
            else "costs bits"
            if costs and not buys
            else "buys bits in some cases and costs bits in others"
            if buys
            else "is not shown to buy or to cost bits"
        )
        parts.append(
            f"Tuned for {tuned_for}, {spoken(arm)} {lead}: of {len(own)} cases it reaches the "
            f"baseline's error at fewer bits in {buys} and needs more in {costs}; in "
            f"{len(own) - buys - costs} the interval leaves it open."
        )
    return " ".join(parts)


def errors_at_bits(compared: Mapping[Key, Comparison], tuned_for: str) -> str:
    """Say for each arm in how many cases its rounded networks err less, and more."""
    marked = quantised.differing(compared, tuned_for)
    parts = []
    for arm in dict.fromkeys(key[1] for key in compared):
        own = [c for key, c in marked.items() if key[1] == arm]
        lower = sum(c.evidence.ratios.ratio < 1 for c in own)
        total = sum(key[:2] == (tuned_for, arm) for key in compared)
        parts.append(
            f"{spoken(arm)} errs less than the baseline at the same bits in {lower} of {total} "
            f"cases and more in {len(own) - lower}"
        )
    return f"Tuned for {tuned_for}, after Holm's adjustment: {'; '.join(parts)}."


def _case(case: Case) -> str:
    part, per, bits = case
    return f"{part} at {bits} bits per {per}"
