"""A control at a fixed point: second-moment growth predicted by the operator and simulated.

In a network without biases and inputs the zero state is a fixed point, and noise that multiplies
the state or its weights leaves it there: nothing forces a deviation, which then grows or decays
by the operator L alone, by log rho(L) a step in the mean square in the long run.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.optimize
import torch
from numpy.typing import NDArray
from torch import Tensor

from msstab import cells, spectral
from msstab.cells import Parameters
from msstab.noise import Noise
from msstab.noisy import noisy_step, normal_numbers
from msstab.operators import Operator, noiseless

RELATIVE_GAINS = (0.8, 0.9, 1.0, 1.1, 1.2)
"""Gains of the recurrent weights, as shares of the one at which rho(L) = 1."""

POPULATIONS, PARTICLES, STEPS, BURN_IN = 8, 512, 150, 50
"""Size of the simulation: the standard error of a growth rate is about .001 a step."""

DEVIATION = 1e-6
"""Size of a deviation: what is beyond linear is a millionth, and rounding errors less."""

LARGEST_GAIN = 1024.0


class Control(NamedTuple):
    """Mean-square growth at the fixed point, log of a factor a step, one number a gain: (G,).

    `predicted` is log rho(L), `simulated` the nonlinear network's growth under noise with its
    `standard_error`, and `without_noise` the placebo 2 log rho(J), in which the noise is missing.
    """

    gains: NDArray[np.float64]
    predicted: NDArray[np.float64]
    simulated: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    without_noise: NDArray[np.float64]


def operator_control(
    parameters: Parameters,
    noise: Noise,
    sigma: float,
    rng: np.random.Generator,
    relative_gains: Sequence[float] = RELATIVE_GAINS,
    *,
    steps: int = STEPS,
) -> Control:
    """Compare the growth of deviations from the zero state across the stability boundary.

    One network (M = 1), whose biases are set to zero and whose recurrent weights are multiplied
    by gains relative to the critical one. All gains meet the same noise. Raises ValueError as
    `critical_gain` does.
    """
    gains = critical_gain(parameters, noise, sigma) * np.asarray(relative_gains, dtype=np.float64)
    networks = at_rest(parameters, gains)
    operator = _operator(networks, noise, sigma)
    simulated, error = simulated_growth(networks, noise, sigma, rng, steps=steps)
    return Control(
        gains,
        _log_radius(operator),
        simulated,
        error,
        _log_radius(noiseless(operator.jacobian)),
    )


def at_rest(parameters: Parameters, gains: NDArray[np.float64]) -> Parameters:
    """Return a network without biases at several gains of its recurrent weights, in float64."""
    tensors = dict(zip(cells.TENSORS, (t.detach().double() for t in parameters), strict=True))
    if len(tensors["weight_hh"]) != 1:
        raise ValueError(f"a control takes one network, not {len(tensors['weight_hh'])}")
    count = len(gains)
    stacked = {name: t.expand(count, *t.shape[1:]).clone() for name, t in tensors.items()}
    for name in ("bias_ih", "bias_hh"):
        stacked[name].zero_()
    stacked["weight_hh"] *= torch.as_tensor(gains).to(stacked["weight_hh"])[:, None, None]
    return parameters.like(stacked.values())


def critical_gain(parameters: Parameters, noise: Noise, sigma: float) -> float:
    """Return the gain of the recurrent weights at which rho(L) = 1 at the zero state.

    Raises ValueError where the noise makes deviations grow without any recurrence, or where no
    gain up to `LARGEST_GAIN` does.
    """

    def excess(gain: float) -> float:
        networks = at_rest(parameters, np.array([gain]))
        return float(spectral.spectral_radius(_operator(networks, noise, sigma))) - 1

    if excess(0.0) >= 0:
        raise ValueError(f"noise of {sigma:g} makes deviations grow without recurrent weights")
    upper = 1.0
    while excess(upper) <= 0:
        upper *= 2
        if upper > LARGEST_GAIN:
            raise ValueError(f"deviations decay at every gain up to {LARGEST_GAIN:g}")
    return float(scipy.optimize.brentq(excess, 0.0, upper, xtol=1e-10))


@torch.no_grad()
def simulated_growth(
    networks: Parameters,
    noise: Noise,
    sigma: float,
    rng: np.random.Generator,
    *,
    steps: int = STEPS,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean-square growth of tiny deviations from the zero state, and standard errors.

    Log growth a step (M,), by noisy.noisy_step on the networks themselves. E|d_t|^2 is
    dominated by rare draws, which a plain average over t steps misses: so deviations are
    resampled after every step in proportion to the growth of their square, and set back to their
    first size. The growth of the mean square is then the mean growth of the population. Standard
    errors are from independent populations; the bias is of the order of the inverse of their size.
    Source: Vanneste, Estimating generalized Lyapunov exponents for products of random matrices,
    Phys. Rev. E 81, 036701 (2010).
    """
    models = len(networks.weight_hh)
    to = networks.weight_hh
    shape = (models, networks.state_size, POPULATIONS, PARTICLES)
    columns = POPULATIONS * PARTICLES
    numbers = normal_numbers(networks, noise)
    inputs = to.new_zeros(models, networks.weight_ih.shape[2], columns)
    first = torch.as_tensor(rng.standard_normal(shape[1:])).to(to).expand(shape)
    state = DEVIATION * first / first.norm(dim=1, keepdim=True)
    growth = []
    for _ in range(BURN_IN + steps):
        normal = torch.as_tensor(rng.standard_normal((numbers, columns))).to(to)
        state = noisy_step(networks, state.flatten(2), inputs, noise, sigma, normal)
        state = state.reshape(shape)
        size = state.norm(dim=1)
        power = (size / DEVIATION).square()
        growth.append(power.mean(-1).log())
        chosen = _resample(power, torch.as_tensor(rng.uniform(size=(POPULATIONS, 1))).to(to))
        state = DEVIATION * state / size[:, None]
        state = state.gather(3, chosen[:, None].expand(shape))
    logs = torch.stack(growth[BURN_IN:]).cpu().numpy()
    # Model by model: sums over a stack can differ in the last bits with a model's place in it.
    rates = [np.ascontiguousarray(logs[:, model]).mean(axis=0) for model in range(models)]
    errors = [rate.std(ddof=1) / np.sqrt(POPULATIONS) for rate in rates]
    return np.array([rate.mean() for rate in rates]), np.array(errors)


def _resample(weight: Tensor, offset: Tensor) -> Tensor:
    """Return particles drawn in proportion to weights (..., N), systematically: (..., N)."""
    count = weight.shape[-1]
    cumulative = weight.cumsum(-1)
    places = (torch.arange(count).to(weight) + offset) / count * cumulative[..., -1:]
    return torch.searchsorted(cumulative, places).clamp_max(count - 1)


def _operator(networks: Parameters, noise: Noise, sigma: float) -> Operator:
    """Return L at the zero state without inputs, leading dimension M."""
    models, _, n_inputs = networks.weight_ih.shape
    state = networks.weight_hh.new_zeros(models, networks.state_size, 1)
    inputs = networks.weight_hh.new_zeros(models, n_inputs, 1)
    return noise.operator(cells.linearise(networks, state, inputs), sigma)


def _log_radius(operator: Operator) -> NDArray[np.float64]:
    return np.asarray(spectral.spectral_radius(operator)[:, 0].log().cpu().numpy())
