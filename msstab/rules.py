"""The rules of the mechanism test: whether second-moment theory describes the trained networks.

Every limit stands here as a constant; all were fixed before the runs that they judge. A rule that
could not have failed, because a placebo passes it too or because too little was measured, is
neither confirmed nor refuted.
"""

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msstab.agreements import Agreement, change_agreement, excess_ratio, floats

SLOPE_TOLERANCE, LARGEST_LOG_RMSE, SMALLEST_CORRELATION, PLACEBO_FACTOR = 0.1, 0.10, 0.95, 5.0
"""Rule R1, the prediction, fixed before the runs it judges."""

FEWEST_VARIANTS, FEWEST_SEEDS = 9, 4
"""The least that rules R1 to R3 rest on, fixed before the runs they judge."""

CHANGE_SLOPES, SMALLEST_SIGN_AGREEMENT = (0.8, 1.25), 0.90
"""Rule R2, the change, fixed before the runs it judges."""

EXCESS_RATIOS = (0.85, 1.15)
"""Rule R3, the mediation, fixed before the runs it judges."""

LARGEST_GROWTH_ERROR = 0.005
"""Rule R4, the operator, in log growth a step, fixed before the runs it judges."""

LARGEST_STANDARD_ERROR = LARGEST_GROWTH_ERROR / 2
"""A simulation with a larger standard error can neither confirm nor refute rule R4."""


QUESTIONS = {
    "R1": "Does the theory predict the variance that noise causes?",
    "R2": "Does it predict how training changes that variance?",
    "R3": "Is that variance what noise costs?",
    "R4": "Is the operator's radius the growth of deviations?",
}
"""What each rule asks."""


class Rule(StrEnum):
    """How a rule of the mechanism test came out."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    NOT_DISCRIMINATING = "not discriminating"


class Finding(NamedTuple):
    """A rule's outcome and its figures in words."""

    rule: Rule
    figures: str


def judge_prediction(real: Agreement, placebo: Agreement, n_variants: int, n_seeds: int) -> Finding:
    """Apply rule R1, on whether the theory predicts the output variance that noise causes.

    Confirmed only if slope, correlation and log-rmse are within their limits and the placebo
    with another network's Jacobians errs at least five times as much; a rule that its placebo
    passes, or that rests on too few variants or seeds, does not discriminate.
    """
    if real.n < 3:
        return Finding(
            Rule.NOT_DISCRIMINATING, f"only {real.n} networks have learnt enough to be compared"
        )
    figures = (
        f"slope {real.slope:.2f}, r {real.correlation:.3f}, log-rmse {real.log_rmse:.3f} over "
        f"{real.n} networks; placebo log-rmse {placebo.log_rmse:.2f}"
    )
    unusable = _left_out(real.n_unusable)
    if n_variants < FEWEST_VARIANTS or n_seeds < FEWEST_SEEDS:
        return Finding(
            Rule.NOT_DISCRIMINATING,
            f"{n_variants} variants and {n_seeds} seeds are fewer than the {FEWEST_VARIANTS} and "
            f"{FEWEST_SEEDS} the rule asks for ({figures}{unusable})",
        )
    if not fits(real):
        return Finding(Rule.REFUTED, f"{figures}{unusable}")
    if not fails(placebo, real):
        return Finding(Rule.NOT_DISCRIMINATING, f"the placebo fits too: {figures}{unusable}")
    return Finding(Rule.CONFIRMED, f"{figures}{unusable}")


def fits(real: Agreement) -> bool:
    """Say whether slope, correlation and log-rmse are within rule R1's limits."""
    return (
        abs(real.slope - 1) <= SLOPE_TOLERANCE
        and real.correlation >= SMALLEST_CORRELATION
        and real.log_rmse <= LARGEST_LOG_RMSE
    )


def fails(placebo: Agreement, real: Agreement) -> bool:
    """Say whether a placebo errs so many times as much as the prediction as rule R1 asks."""
    return placebo.log_rmse >= PLACEBO_FACTOR * real.log_rmse


def judge_change(
    predicted_change: ArrayLike, observed_change: ArrayLike, placebo_change: ArrayLike
) -> Finding:
    """Apply rule R2, on whether the theory predicts how an arm changes the output variance.

    Arrays (variants, seeds) of the log output variance less that of the baseline of the same seed;
    the placebo's is predicted with another network's Jacobians. Confirmed only if slope and share
    of equal signs (`change_agreement`) are within their limits. Too few variants or seeds, changes
    that are all the same, or a placebo that is within the limits or cannot be compared do not
    discriminate. Raises ValueError for other shapes.
    """
    predicted, observed, placebo_predicted = _tables(
        predicted_change, observed_change, placebo_change
    )
    real = change_agreement(predicted, observed)
    placebo = change_agreement(placebo_predicted, observed)
    figures = (
        f"slope {real.slope:.2f}, signs agree in {_percent(real.sign_agreement)} of {real.n} "
        f"pairs; placebo slope {placebo.slope:.2f}, signs agree in "
        f"{_percent(placebo.sign_agreement)}{_left_out(real.n_unusable)}"
    )
    changed = np.isfinite(predicted) & np.isfinite(observed) & ((predicted != 0) | (observed != 0))
    if few := _too_few(changed):
        return Finding(Rule.NOT_DISCRIMINATING, f"{few} ({figures})")
    if np.isnan(real.slope):
        return Finding(Rule.NOT_DISCRIMINATING, f"all changes are the same: {figures}")
    if not (_within(real.slope, CHANGE_SLOPES) and real.sign_agreement >= SMALLEST_SIGN_AGREEMENT):
        return Finding(Rule.REFUTED, figures)
    if _too_few(np.isfinite(placebo_predicted) & changed):
        return Finding(Rule.NOT_DISCRIMINATING, f"the placebo cannot be compared: {figures}")
    low, high = CHANGE_SLOPES
    # A placebo that predicts one and the same change has no slope, but may still fail in sign.
    fails = (
        placebo.slope < low
        or placebo.slope > high
        or placebo.sign_agreement < SMALLEST_SIGN_AGREEMENT
    )
    if not fails:
        return Finding(Rule.NOT_DISCRIMINATING, f"the placebo fits too: {figures}")
    return Finding(Rule.CONFIRMED, figures)


def judge_mediation(
    excess: ArrayLike, predicted_variance: ArrayLike, placebo_variance: ArrayLike
) -> Finding:
    """Apply rule R3, on whether the predicted output variance is what noise costs in error.

    Arrays (variants, seeds) as in `excess_ratio`; the placebo's variance is predicted with another
    network's Jacobians. Confirmed only if the median ratio is within its limits. Too few variants
    or seeds, or a placebo whose median is within the limits or cannot be compared, do not
    discriminate. Raises ValueError for other shapes.
    """
    cost, variance, placebo_predicted = _tables(excess, predicted_variance, placebo_variance)
    real, placebo = excess_ratio(cost, variance), excess_ratio(cost, placebo_predicted)
    figures = (
        f"excess over predicted variance {real.median:.2f}, quartiles {real.lower_quartile:.2f} "
        f"and {real.upper_quartile:.2f}, over {real.n} networks; placebo {placebo.median:.2f}"
        f"{_left_out(real.n_unusable)}"
    )
    usable = np.isfinite(cost) & np.isfinite(variance) & (variance > 0)
    if few := _too_few(usable):
        return Finding(Rule.NOT_DISCRIMINATING, f"{few} ({figures})")
    if not _within(real.median, EXCESS_RATIOS):
        return Finding(Rule.REFUTED, figures)
    if _too_few(usable & np.isfinite(placebo_predicted) & (placebo_predicted > 0)):
        return Finding(Rule.NOT_DISCRIMINATING, f"the placebo cannot be compared: {figures}")
    if _within(placebo.median, EXCESS_RATIOS):
        return Finding(Rule.NOT_DISCRIMINATING, f"the placebo fits too: {figures}")
    return Finding(Rule.CONFIRMED, figures)


def judge_operator(
    predicted: ArrayLike, simulated: ArrayLike, standard_error: ArrayLike, without_noise: ArrayLike
) -> Finding:
    """Apply rule R4, on whether the operator's radius is the growth that noise causes by itself.

    Log growth a step at a fixed point (G,), as `control.operator_control` returns it. Confirmed
    only if no prediction errs by more than `LARGEST_GROWTH_ERROR`. A control on one side of the
    stability boundary, too coarse a simulation, or predictions without noise that err no more
    do not discriminate.
    """
    p, s, placebo = floats(predicted), floats(simulated), floats(without_noise)
    if p.min(initial=0) >= -LARGEST_GROWTH_ERROR or p.max(initial=0) <= LARGEST_GROWTH_ERROR:
        return Finding(
            Rule.NOT_DISCRIMINATING,
            f"the {p.size} controls do not lie on both sides of the stability boundary",
        )
    coarsest, worst = np.max(floats(standard_error)), np.max(np.abs(p - s))
    missed = np.max(np.abs(placebo - s))
    figures = (
        f"largest error {worst:.4f} in log growth a step over {p.size} controls from "
        f"{p.min():+.2f} to {p.max():+.2f}, standard error at most {coarsest:.4f}; without noise "
        f"{missed:.4f}"
    )
    if not coarsest <= LARGEST_STANDARD_ERROR:
        return Finding(Rule.NOT_DISCRIMINATING, f"the simulation is too coarse: {figures}")
    if not worst <= LARGEST_GROWTH_ERROR:
        return Finding(Rule.REFUTED, figures)
    if not missed > LARGEST_GROWTH_ERROR:
        return Finding(Rule.NOT_DISCRIMINATING, f"the placebo fits too: {figures}")
    return Finding(Rule.CONFIRMED, figures)


def _tables(*given: ArrayLike) -> list[NDArray[np.float64]]:
    """Return arrays (variants, seeds) of one shape."""
    found = [floats(table) for table in given]
    shapes = {table.shape for table in found}
    if len(shapes) > 1 or found[0].ndim != 2:
        raise ValueError(f"shapes {sorted(shapes)} are not one of (variants, seeds)")
    return found


def _too_few(usable: NDArray[np.bool_]) -> str:
    """Say that a table (variants, seeds) rests on too few of either, or nothing."""
    variants = int((usable.sum(1) >= FEWEST_SEEDS).sum())
    if variants >= FEWEST_VARIANTS:
        return ""
    return (
        f"{variants} variants with {FEWEST_SEEDS} seeds to compare are fewer than the "
        f"{FEWEST_VARIANTS} the rule asks for"
    )


def _within(value: float, limits: tuple[float, float]) -> bool:
    return limits[0] <= value <= limits[1]


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def _left_out(count: int) -> str:
    return f"; {count} networks not comparable" if count else ""
