"""The original's signature of its mechanism: growth as it predicted it and as it observed it."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from msstab import cells
from msstab.arms import squared_spectral_norm
from msstab.cells import Parameters

SIGNATURE_TOLERANCE = 0.10
"""Relative error up to which the original's signature counts as confirmed."""


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
