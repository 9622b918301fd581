"""Free runs: networks whose forecast is their own next input."""

import itertools
from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

from msstab import cells, moments
from msstab.cells import Linearisation, Parameters
from msstab.noise import Noise, require_strength
from msstab.noisy import noisy_step, normal_numbers

Disturbance = tuple[Noise, float, np.random.Generator]
"""A structure of noise, its level, and the stream that it is drawn from."""


def free_run(
    parameters: Parameters, inputs: Tensor, steps: int, disturbance: Disturbance | None = None
) -> Tensor:
    """Return the forecasts of a free run after a window: inputs (T, M, D, B) -> (F, M, D, B).

    The first of the F forecasts is that from the window, each later one that from the forecast
    before it. Under a disturbance the noise acts throughout, in the window too; all models of a
    call meet the same noise. Raises ValueError for outputs that are not the inputs.
    """
    states = free_states(parameters, inputs, steps, disturbance)
    return torch.stack([cells.readout(parameters, state) for state in states])


def free_states(
    parameters: Parameters, inputs: Tensor, steps: int, disturbance: Disturbance | None = None
) -> Iterator[Tensor]:
    """Yield the F states (M, S, B) of which `free_run` returns the forecasts."""
    require_closed(parameters)
    length, models, _, batch = inputs.shape
    inputs = cells.pad(inputs, parameters.hidden)
    state = inputs.new_zeros(models, parameters.state_size, inputs.shape[-1])
    fresh = _numbers(parameters, inputs, disturbance)
    for t in range(length + steps - 1):
        if t >= length:
            yield state[..., :batch]
        given = inputs[t] if t < length else cells.readout(parameters, state)
        if disturbance is None:
            state = cells.step(parameters, state, given)
        else:
            noise, strength, _ = disturbance
            state = noisy_step(parameters, state, given, noise, strength, next(fresh))
    yield state[..., :batch]


def continued(
    parameters: Parameters,
    states: Tensor,
    steps: int,
    disturbance: Disturbance | None = None,
    *,
    copies: int = 1,
) -> Iterator[Tensor]:
    """Yield the states after each of so many steps of a free run from states (M, S, B).

    Under a disturbance the `copies` equal parts of the batch meet the same noise.
    """
    require_closed(parameters)
    batch = states.shape[-1]
    share = states[..., : batch // copies]
    fresh = _numbers(parameters, share, disturbance)
    state = cells.pad(states, parameters.hidden)
    for _ in range(steps):
        given = cells.readout(parameters, state)
        if disturbance is None:
            state = cells.step(parameters, state, given)
        else:
            noise, strength, _ = disturbance
            normal = cells.pad(next(fresh).repeat(1, copies), parameters.hidden)
            state = noisy_step(parameters, state, given, noise, strength, normal)
        yield state[..., :batch]


def closed_linearisations(
    parameters: Parameters, states: Iterable[Tensor]
) -> Iterator[Linearisation]:
    """Yield the derivatives of the free run's step from each of these states (M, S, B).

    What a deviation of the state becomes, forecasts included: J_cl = J + J_x W_o.
    """
    for state in states:
        step = cells.linearise(parameters, state, cells.readout(parameters, state))
        yield moments.feed_back(parameters, step)


def require_closed(parameters: Parameters) -> None:
    """Raise ValueError unless the outputs can be the next inputs."""
    outputs, n_inputs = parameters.weight_out.shape[1], parameters.weight_ih.shape[2]
    if outputs != n_inputs:
        raise ValueError(f"{outputs} outputs cannot be fed back as {n_inputs} inputs")


def _numbers(
    parameters: Parameters, like: Tensor, disturbance: Disturbance | None
) -> Iterator[Tensor]:
    """Yield each step's standard normal numbers, one column for each of the batch of `like`."""
    if disturbance is None:
        return
    noise, strength, rng = disturbance
    require_strength(strength)
    size = (normal_numbers(parameters, noise), like.shape[-1])
    dtype = np.float32 if like.dtype == torch.float32 else np.float64
    for _ in itertools.repeat(None):
        yield torch.as_tensor(rng.standard_normal(size, dtype=dtype), device=like.device)
