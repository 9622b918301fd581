"""Prediction against observation: whether second-moment theory describes the trained networks."""

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from msstab import cells
from msstab.arms import squared_spectral_norm
from msstab.cells import Parameters

SIGNATURE_TOLERANCE = 0.10
"""Relative error up to which the original's signature counts as confirmed."""

SLOPE_TOLERANCE, LARGEST_LOG_RMSE, SMALLEST_CORRELATION, PLACEBO_FACTOR = 0.1, 0.10, 0.95, 5.0
FEWEST_VARIANTS, FEWEST_SEEDS = 9, 4
"""Rule R1, fixed before the runs it judges."""


class Rule(StrEnum):
    """How a rule of the mechanism test came out."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    NOT_DISCRIMINATING = "not discriminating"


class Agreement(NamedTuple):
    """How well predictions match observations, on the scale of natural logarithms."""

    slope: float
    correlation: float
    log_rmse: float
    n: int
    n_unusable: int


class Finding(NamedTuple):
    """A rule's outcome and its figures in words."""

    rule: Rule
    figures: str


def proxy_radius(parameters: Parameters, inputs: Tensor, states: Tensor, sigma: float) -> Tensor:
    """Return the original's predicted growth, (1 + sigma^2) ||J||_2^2 at the mean state: (M,).

    Inputs and states (T, M, ., B) of a clean run; the mean runs over steps and sequences.
    Source: theory page, equation (31).
    """
    jacobian = cells.jacobian(
        parameters, states.mean(dim=(0, 3))[..., None], inputs.mean(dim=(0, 3))[..., None]
    )
    return (1 + sigma**2) * squared_spectral_norm(jacobian[:, 0])


def power_ratio(power: Tensor) -> Tensor:
    """Return the original's observed growth: mean of E|h_{t+1}|^2 / E|h_t|^2 over settled steps.

    `power` (T, M) of a noisy run's hidden units -> (M,). The first half of the sequence is left
    out, where the state still grows from zero. The product of these ratios telescopes, so they
    average to about 1 in any network whose state has settled, whatever its dynamics.
    Source: theory page, equation (37).
    """
    settled = power[power.shape[0] // 2 :]
    return (settled[1:] / settled[:-1]).mean(0)


def agreement(predicted: ArrayLike, observed: ArrayLike) -> Agreement:
    """Compare positive predictions and observations, one pair for each network.

    `slope` is that of log observed on log predicted by least squares. Pairs that are not finite
    and positive cannot be compared and are counted as unusable.
    """
    p, o = np.asarray(predicted, dtype=float), np.asarray(observed, dtype=float)
    usable = np.isfinite(p) & np.isfinite(o) & (p > 0) & (o > 0)
    n = int(usable.sum())
    if n < 3:
        return Agreement(np.nan, np.nan, np.nan, n, int(p.size - n))
    x, y = np.log(p[usable]), np.log(o[usable])
    slope, correlation = np.nan, np.nan
    if np.ptp(x) > 0 and np.ptp(y) > 0:
        correlation = float(np.corrcoef(x, y)[0, 1])
        slope = correlation * float(y.std() / x.std())
    return Agreement(slope, correlation, float(np.sqrt(np.mean((x - y) ** 2))), n, int(p.size - n))


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
    unusable = f"; {real.n_unusable} networks not comparable" if real.n_unusable else ""
    if n_variants < FEWEST_VARIANTS or n_seeds < FEWEST_SEEDS:
        return Finding(
            Rule.NOT_DISCRIMINATING,
            f"{n_variants} variants and {n_seeds} seeds are fewer than the {FEWEST_VARIANTS} and "
            f"{FEWEST_SEEDS} the rule asks for ({figures}{unusable})",
        )
    fits = (
        abs(real.slope - 1) <= SLOPE_TOLERANCE
        and real.correlation >= SMALLEST_CORRELATION
        and real.log_rmse <= LARGEST_LOG_RMSE
    )
    if not fits:
        return Finding(Rule.REFUTED, f"{figures}{unusable}")
    if not placebo.log_rmse >= PLACEBO_FACTOR * real.log_rmse:
        return Finding(Rule.NOT_DISCRIMINATING, f"the placebo fits too: {figures}{unusable}")
    return Finding(Rule.CONFIRMED, f"{figures}{unusable}")


def relative_error(predicted: ArrayLike, observed: ArrayLike) -> NDArray[np.float64]:
    """Return |predicted - observed| / |predicted|, the measure of the original's check."""
    p, o = np.asarray(predicted, dtype=float), np.asarray(observed, dtype=float)
    return np.asarray(np.abs(p - o) / np.abs(p))


def log_growth_error(predicted: ArrayLike, observed: ArrayLike) -> NDArray[np.float64]:
    """Return the relative error in log growth a step, |log p - log o| / |log p|.

    The measure that matters for stability, in which factors of 1.02 and 1.00 a step are far
    apart: one doubles every 35 steps, the other never.
    """
    p, o = np.log(np.asarray(predicted, dtype=float)), np.log(np.asarray(observed, dtype=float))
    return np.asarray(np.abs(p - o) / np.abs(p))
