"""Rounding of a network's weights and states to few bits, and what it is predicted to do.

Weights are rounded once, the state after every step, to multiples of a step that the largest value
sets: that of a tensor, or of each channel. Biases keep their precision, as is usual in practice.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from msstab import cells
from msstab.cells import Parameters
from msstab.sensitivities import Sensitivity


class Grid(NamedTuple):
    """The numbers that so many bits stand for, symmetric about 0.

    `per_channel`: each row of a weight matrix, and each unit of a state, has a step of its own.
    """

    bits: int
    per_channel: bool

    @property
    def largest(self) -> int:
        """The largest multiple of the step, K: there are 2K + 1 numbers."""
        return int(2 ** (self.bits - 1)) - 1


# ---- rounding


def weight_step(weight: Tensor, grid: Grid) -> Tensor:
    """Return the step of weights (M, R, N): (M, R, 1) per channel, else (M, 1, 1).

    Source: theory page, equation (55).
    """
    return _step(_largest_of(weight, grid), grid)


def state_step(states: Tensor, hidden: int, grid: Grid) -> Tensor:
    """Return each unit's step (M, S, 1), from states (T, M, S, B) on which it is calibrated.

    A tensor is here the hidden units of a layer, or its memory: a block of `hidden` rows.
    Source: theory page, equation (55).
    """
    largest = states.abs().amax(dim=(0, 3))
    if not grid.per_channel:
        blocks = largest.view(len(largest), -1, hidden)
        largest = blocks.amax(dim=2, keepdim=True).expand_as(blocks).flatten(1)
    return _step(largest[..., None], grid)


def to_nearest(values: Tensor, step: Tensor, grid: Grid) -> Tensor:
    """Round values (M, R, N) to the nearest multiple of their step, or to the largest one.

    By torch's own fake quantisation, with all values of one step, (M, R, 1) or (M, 1, 1), as a
    channel.
    """
    channels = values.reshape(step.numel(), -1)
    zero = torch.zeros(step.numel(), dtype=torch.int32, device=values.device)
    rounded = torch.fake_quantize_per_channel_affine(
        channels, step.flatten(), zero, 0, -grid.largest, grid.largest
    )
    return rounded.view_as(values)


def at_random(values: Tensor, step: Tensor, grid: Grid, uniform: Tensor) -> Tensor:
    """Round values up or down at random, so that each one's mean is the value itself.

    `uniform`: numbers from [0, 1) for the values. Source: theory page, equation (56).
    """
    return (values / step + uniform).floor_().clamp_(-grid.largest, grid.largest).mul_(step)


def weights_to_nearest(parameters: Parameters, grid: Grid) -> Parameters:
    """Return networks whose weight matrices are rounded to nearest."""
    return _of_matrices(parameters, lambda w: to_nearest(w, weight_step(w, grid), grid))


def weights_at_random(
    parameters: Parameters, grid: Grid, roundings: int, rng: np.random.Generator
) -> Parameters:
    """Return one network (M = 1) so many times, each with roundings at random of its own.

    Equal streams give equal random numbers, whatever the grid.
    """
    return _of_matrices(
        parameters.select([0] * roundings),
        lambda w: at_random(w, weight_step(w, grid), grid, _uniform(w, rng)),
    )


# ---- states


def states_to_nearest(
    parameters: Parameters, inputs: Tensor, step: Tensor, grid: Grid, count: int = 1
) -> Tensor:
    """Return the outputs after the last `count` steps, the state rounded to nearest after each.

    Inputs (T, M, D, B), each unit's step (M, S, 1) -> (M, count x O, B), step by step. The readout
    takes the rounded state as well.
    """
    return _rounded_run(parameters, inputs, lambda state: to_nearest(state, step, grid), count)


def states_at_random(
    parameters: Parameters,
    inputs: Tensor,
    step: Tensor,
    grid: Grid,
    rng: np.random.Generator,
    count: int = 1,
) -> Tensor:
    """Return what `states_to_nearest` does, the state rounded at random.

    All models meet the same random numbers.
    """
    return _rounded_run(
        parameters,
        inputs,
        lambda state: at_random(state, step, grid, _uniform(state[:1], rng)),
        count,
    )


# ---- predictions


def weights_to_nearest_variance(
    sensitivity: Sensitivity, parameters: Parameters, grid: Grid
) -> float:
    """Return the mean squared deviation of an output expected of one network's rounded weights.

    Errors are taken for independent and uniform over a step, except those of the weights that set
    it, which are exact. Source: theory page, equation (57).
    """

    def variance(weight: Tensor) -> Tensor:
        spread = (weight_step(weight, grid).square() / 12).expand_as(weight)
        return spread.masked_fill(weight.abs() == _largest_of(weight, grid), 0)

    return _weighted(sensitivity, parameters, variance)


def weights_at_random_variance(
    sensitivity: Sensitivity, parameters: Parameters, grid: Grid
) -> float:
    """Return the mean squared deviation of an output expected of weights rounded at random.

    Each error has its exact variance. Source: theory page, equation (57).
    """
    return _weighted(sensitivity, parameters, lambda w: _variance(w, weight_step(w, grid)))


def states_to_nearest_variance(sensitivity: Sensitivity, step: Tensor) -> float:
    """Return the mean squared deviation of an output expected of one network's rounded states.

    Each unit's step (1, S, 1). Errors are taken for independent and white, and uniform over a step.
    Source: theory page, equation (58).
    """
    return float((sensitivity.states * step.double().square() / 12).sum())


def states_at_random_variance(sensitivity: Sensitivity, states: Tensor, step: Tensor) -> float:
    """Return the mean squared deviation of an output expected of states rounded at random.

    Each error has its exact variance at the unrounded run's own states (T, 1, S, B), with each
    unit's step (1, S, 1). Source: theory page, equation (58).
    """
    return float((sensitivity.states * _variance(states, step)).sum())


# ---- parts


def _largest_of(weight: Tensor, grid: Grid) -> Tensor:
    """Return the largest absolute value of each channel (M, R, 1), or tensor (M, 1, 1)."""
    return weight.abs().amax(dim=2 if grid.per_channel else (1, 2), keepdim=True)


def _step(largest: Tensor, grid: Grid) -> Tensor:
    # Where all values are zero, any step will do. torch takes steps in this precision only.
    return (largest / grid.largest).float().clamp_min(torch.finfo(torch.float32).tiny)


def _variance(values: Tensor, step: Tensor) -> Tensor:
    """Return the variance of rounding values at random: what is lost times what is gained."""
    above = (values / step).frac().abs()
    return step.square() * above * (1 - above)


def _of_matrices(parameters: Parameters, change: Callable[[Tensor], Tensor]) -> Parameters:
    """Change the weight matrices (M, R, N), and leave the biases (M, R)."""
    return parameters.like(change(t) if t.dim() == 3 else t for t in parameters)


def _uniform(like: Tensor, rng: np.random.Generator) -> Tensor:
    return torch.as_tensor(rng.random(tuple(like.shape), dtype=np.float32), device=like.device)


def _rounded_run(
    parameters: Parameters, inputs: Tensor, rounding: Callable[[Tensor], Tensor], count: int
) -> Tensor:
    states = list(_rounded_states(parameters, inputs, rounding))[-count:]
    outputs = torch.cat([cells.readout(parameters, state) for state in states], dim=1)
    return outputs[..., : inputs.shape[-1]]


def _rounded_states(
    parameters: Parameters, inputs: Tensor, rounding: Callable[[Tensor], Tensor]
) -> Iterator[Tensor]:
    inputs = cells.pad(inputs, parameters.hidden)
    state = inputs.new_zeros(inputs.shape[1], parameters.state_size, inputs.shape[3])
    for x in inputs:
        state = rounding(cells.step(parameters, state, x))
        yield state


def _weighted(
    sensitivity: Sensitivity, parameters: Parameters, variance: Callable[[Tensor], Tensor]
) -> float:
    """Sum the squared derivatives, each times the variance of its weight's error."""
    pairs = zip(sensitivity.weights, parameters, strict=True)
    return float(sum((s * variance(w)).sum() for s, w in pairs if w.dim() == 3))
