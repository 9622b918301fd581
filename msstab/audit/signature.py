"""Whether the check of the mechanism follows from its numbers, and whether it could have failed."""

import math
from collections.abc import Iterator

from msstab.audit.facts import Facts
from msstab.audit.rows import Kind, Row, concern, same, stated, unchecked

MECHANISM_TOLERANCE = 0.1
"""The relative error within which the first such report called a mechanism confirmed."""


def check(facts: Facts) -> Iterator[Row]:
    """Yield the rows on the predicted and the observed growth."""
    signature = facts.bench.mechanism_signature
    predicted = signature.predicted_lifted_rho_mean
    observed = signature.observed_hidden_second_moment_ratio_mean
    error = signature.relative_error
    yield _confirmed(facts)
    if predicted is None or observed is None:
        why = "the predicted or the observed growth is not recorded"
        yield unchecked("mechanism: relative error", why, said=error)
        for name in ("trivial prediction", "error in log growth"):
            yield unchecked(f"mechanism: {name}", why)
        return
    errors = {
        "observed": abs(predicted - observed) / observed,
        "predicted": abs(predicted - observed) / predicted,
    }
    yield from _relative_error(facts, errors)
    for row in (
        _trivial(error, errors["observed"], observed),
        _log_growth(error, predicted, observed),
    ):
        # A check that is said to have failed claims nothing.
        denied = row.flagged and signature.confirmed is False
        why = f"{row.why}; the file does not call it confirmed"
        yield row._replace(kind=Kind.AGREES, why=why) if denied else row


def _confirmed(facts: Facts) -> Row:
    signature, name = facts.bench.mechanism_signature, "mechanism: confirmed"
    if signature.confirmed is None or signature.relative_error is None:
        return unchecked(name, "needs the check's outcome and its relative error")
    within = signature.relative_error <= MECHANISM_TOLERANCE
    why = (
        f"the stated error is {signature.relative_error:.3g}; the first such report took up to "
        f"{MECHANISM_TOLERANCE:g} for a confirmation"
    )
    words = {True: "yes", False: "no"}
    fine = within or not signature.confirmed
    return concern(name, words[signature.confirmed], words[within], fine, why)


def _relative_error(facts: Facts, errors: dict[str, float]) -> Iterator[Row]:
    signature, name = facts.bench.mechanism_signature, "mechanism: relative error"
    said = signature.relative_error
    if said is None:
        yield unchecked(name, "the file does not state it", errors["observed"])
        return
    used, other = "observed", "predicted"
    if same(said, errors[other]) and not same(said, errors[used]):
        used, other = other, used
    why = f"divided by the {used} value; by the {other} one it is {errors[other]:.3%}"
    agrees = same(said, errors[used]) and signature.relative_to in (used, None)
    if not agrees:
        why = f"divided by neither value gives this: by the {used} one, {errors[used]:.3%}"
        if same(said, errors[used]):
            why = f"divided by the {used} value, not by the {signature.relative_to} one"
    yield stated(name, said, errors[used], agrees, why)
    if agrees and not same(errors[used], errors[other]):
        fine = used == "observed" or signature.relative_to == used
        why = (
            "it is stated what the error is a share of"
            if signature.relative_to == used
            else "an error is a share of what was observed"
            if fine
            else "divided by the prediction, not by what was observed, and not said to be: so no "
            "prediction, however high, errs by more than 100%"
        )
        yield concern("mechanism: divisor", used, "observed", fine, why)


def _trivial(said: float | None, error: float, observed: float) -> Row:
    trivial = abs(1 - observed) / observed
    better = error < trivial
    why = f"a ratio of 1, predicted for any network whatever, errs by {100 * trivial:.3g}%: " + (
        "more than the prediction"
        if better
        else f"{error / trivial:.3g} times less than the prediction"
        if trivial
        else "nothing can do better"
    )
    return concern("mechanism: trivial prediction", said, trivial, better, why)


def _log_growth(said: float | None, predicted: float, observed: float) -> Row:
    growth, seen = math.log(predicted), math.log(observed)
    larger = max(abs(growth), abs(seen))
    error = abs(growth - seen) / larger if larger else 0.0
    why = (
        f"log growth a step is predicted as {growth:.3g} and observed as {seen:.3g}; "
        f"an error up to {MECHANISM_TOLERANCE:.0%} of the larger would pass"
    )
    passes = error <= MECHANISM_TOLERANCE
    return concern("mechanism: error in log growth", said, error, passes, why)
