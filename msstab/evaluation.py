"""Scores of trained models on held-out sequences, beside forecasters that learn nothing deep."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from msstab import cells
from msstab.cells import Parameters
from msstab.noise import Noise, require_strength
from msstab.noisy import noisy_step, normal_numbers
from msstab.tracks import Array, Data, Split

_PENALTIES = tuple(10.0**k for k in range(-6, 3))


class NoisyRun(NamedTuple):
    """What noise does to M models, from the same sequences with and without it.

    `squared_error` (M,): noisy mean squared error. `output_variance` (M,): mean squared deviation
    of the last output from the clean one, summed over its components. `power` (T, M): E|h_t|^2 of
    the noisy hidden units, of all layers.
    """

    squared_error: Tensor
    output_variance: Tensor
    power: Tensor


def stack(split: Split, like: Tensor) -> tuple[Tensor, Tensor]:
    """Bring a split into the layout of `cells`, for one model: (T, 1, D, N) and (1, O, N)."""
    inputs = torch.as_tensor(split.inputs, dtype=like.dtype, device=like.device)
    targets = torch.as_tensor(split.targets, dtype=like.dtype, device=like.device)
    return inputs.permute(1, 2, 0)[:, None].contiguous(), targets.T[None].contiguous()


def squared_error(parameters: Parameters, inputs: Tensor, targets: Tensor) -> Tensor:
    """Return each model's mean squared error (M,): inputs (T, M, D, B), targets (M, O, B)."""
    outputs = cells.forecast(parameters, inputs)
    return (outputs - targets).double().square().mean(dim=(1, 2))


def noisy_run(
    parameters: Parameters,
    inputs: Tensor,
    targets: Tensor,
    noise: Noise,
    sigma: float,
    draws: int,
    rng: np.random.Generator,
) -> NoisyRun:
    """Simulate `draws` noisy copies of every sequence, the noise fresh at every step.

    Inputs (T, M, D, B), targets (M, O, B). All models of a call meet the same noise, and equal
    streams give equal noise, so that arms are compared under the same disturbances.
    """
    require_strength(sigma)
    clean = cells.forecast(parameters, inputs)
    _, models, _, _ = inputs.shape
    units, numbers = parameters.units, normal_numbers(parameters, noise)
    inputs = inputs.repeat_interleave(draws, dim=3)
    columns = inputs.shape[3]
    inputs = cells.pad(inputs, parameters.hidden)
    state = inputs.new_zeros(models, parameters.state_size, inputs.shape[3])
    power = []
    dtype = np.dtype(str(inputs.dtype).removeprefix("torch."))
    for x in inputs:
        normal = rng.standard_normal((numbers, inputs.shape[3]), dtype=dtype.type)
        eps = torch.as_tensor(normal, device=inputs.device)
        state = noisy_step(parameters, state, x, noise, sigma, eps)
        power.append(state[:, :units, :columns].double().square().sum(1).mean(1))
    outputs = cells.readout(parameters, state)[..., :columns]
    repeated = targets.repeat_interleave(draws, dim=2)
    deviation = outputs - clean.repeat_interleave(draws, dim=2)
    return NoisyRun(
        (outputs - repeated).double().square().mean(dim=(1, 2)),
        deviation.double().square().sum(1).mean(1),
        torch.stack(power),
    )


def constant_error(data: Data, split: Split) -> float:
    """Return the mean squared error of forecasting the training targets' mean, always."""
    return float(np.mean((split.targets - data.train.targets.mean(axis=0)) ** 2))


def persistence_error(split: Split) -> float:
    """Return the mean squared error of forecasting the last observed value.

    Not a number where inputs and targets are different quantities.
    """
    if split.inputs.shape[2] != split.targets.shape[1]:
        return float("nan")
    return float(np.mean((split.targets - split.inputs[:, -1]) ** 2))


def ridge_error(data: Data, split: Split, penalties: tuple[float, ...] = _PENALTIES) -> float:
    """Return the mean squared error of a linear autoregression on the whole input window.

    Ridge regression with an unpenalised constant; the penalty is chosen on validation data.
    """
    fits = [_ridge(data.train, penalty) for penalty in penalties]
    errors = [_linear_error(data.validation, fit) for fit in fits]
    return _linear_error(split, fits[int(np.argmin(errors))])


def _ridge(split: Split, penalty: float) -> Array:
    design = _design(split)
    weight = penalty * np.eye(design.shape[1])
    weight[-1, -1] = 0
    solution = np.linalg.solve(design.T @ design + weight, design.T @ split.targets)
    return np.asarray(solution, dtype=np.float64)


def _linear_error(split: Split, coefficients: Array) -> float:
    return float(np.mean((split.targets - _design(split) @ coefficients) ** 2))


def _design(split: Split) -> Array:
    flat = split.inputs.reshape(len(split.inputs), -1)
    return np.hstack([flat, np.ones((len(flat), 1))])
