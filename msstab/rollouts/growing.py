"""Growth of small deviations in a free run: from Jacobians, and as it happens."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from msstab import moments
from msstab.cells import Linearisation, Parameters
from msstab.noise import Noise
from msstab.rollouts.running import Disturbance, continued

DISTANCE = 1e-7
"""Distance of neighbours, small enough to be linear and far above rounding."""


def exponent(jacobians: Iterable[Tensor], direction: Tensor, settle: int) -> Tensor:
    """Return the growth a step, in nats, of a deviation that the Jacobians carry on: (...).

    Jacobians (..., S, S) of successive steps and a first direction (..., S), which the first
    `settle` steps turn into the one that grows most: over many steps, the largest Lyapunov
    exponent. Raises ValueError if no step is left.
    """
    total, count = torch.zeros_like(direction[..., 0]), 0
    for count, jacobian in enumerate(jacobians, 1):
        direction = (jacobian @ direction[..., None])[..., 0]
        size = direction.norm(dim=-1)
        direction = direction / size[..., None]
        if count > settle:
            total = total + size.log()
    if count <= settle:
        raise ValueError(f"{count} steps leave none after {settle} to settle")
    return total / (count - settle)


def observed_exponent(
    parameters: Parameters, states: Tensor, direction: Tensor, *, steps: int, settle: int
) -> Tensor:
    """Return the same growth as it happens to a neighbour in the network's free runs: (M, B).

    From states (M, S, B), in a first direction (M, B, S). The distance is set back to its first
    size after each step (Benettin, Galgani, Giorgilli & Strelcyn 1980, Meccanica 15).
    """
    away = DISTANCE * (direction / direction.norm(dim=-1, keepdim=True)).mT
    state, total = states, torch.zeros_like(states[:, 0])
    for step in range(steps):
        (both,) = continued(parameters, torch.cat([state, state + away], dim=2), 1)
        state, neighbour = both.chunk(2, dim=2)
        away = neighbour - state
        size = away.norm(dim=1)
        away = away * (DISTANCE / size)[:, None]
        if step >= settle:
            total = total + (size / DISTANCE).log()
    return total / (steps - settle)


def moment_growth(
    steps: Sequence[Linearisation], noise: Noise, sigma: float, settle: int
) -> Tensor:
    """Return the growth a step of a deviation's root mean square, in nats: (M, B).

    Half the growth rate of its second moment under P' = L_t(P), from deviations alike in all
    directions. Not a number where it is not finite.
    """
    sizes = moments.log_traces(noise.operator(step, sigma) for step in steps)
    rate = (sizes[-1] - sizes[settle - 1]) / (len(sizes) - settle) / 2
    return torch.where(rate.isfinite(), rate, torch.nan)


def observed_moment_growth(
    parameters: Parameters,
    states: Tensor,
    disturbance: Disturbance,
    directions: Tensor,
    *,
    steps: int,
    settle: int,
) -> Tensor:
    """Return that growth between neighbours that meet the same noise in their free runs: (M, B).

    States (M, S, B), and `directions` (M, S, R B) of the neighbours' first distances in R draws of
    the noise for each of the B sequences, the sequences of one draw side by side.
    """
    models, _, batch = states.shape
    draws = directions.shape[-1] // batch
    start = states.repeat(1, 1, draws)
    away = DISTANCE * directions / directions.norm(dim=1, keepdim=True)
    both = torch.cat([start, start + away], dim=2)
    logs = []
    for pair in continued(parameters, both, steps, disturbance, copies=2):
        one, other = pair.chunk(2, dim=2)
        squares = (other - one).square().sum(1).view(models, draws, batch)
        logs.append(squares.mean(1).log())
    rate = (logs[-1] - logs[settle - 1]) / (steps - settle) / 2
    return torch.where(rate.isfinite(), rate, torch.nan)


def directions(rng: np.random.Generator, parameters: Parameters, columns: int) -> Tensor:
    """Draw directions (M, S, columns) of no preference, the same for all models."""
    drawn = torch.as_tensor(rng.normal(size=(parameters.state_size, columns)))
    return drawn.expand(len(parameters.weight_ih), -1, -1)


def double(parameters: Parameters) -> Parameters:
    """Return the same networks in double precision on the processor."""
    return parameters.like(tensor.detach().double().cpu() for tensor in parameters)
