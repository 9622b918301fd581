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

LAGS = 32
"""Inputs, the latest ones, of the linear forecast after each of several steps."""

_PENALTIES = tuple(10.0**k for k in range(-6, 3))


class NoisyRun(NamedTuple):
    """What noise does to M models, from the same sequences with and without it.

    `squared_error` (M,): noisy mean squared error. `output_variance` (M,): mean squared deviation
    of the outputs that count from the clean ones, summed over steps and components. `power` (T, M):
    E|h_t|^2 of the noisy hidden units, of all layers.
    """

    squared_error: Tensor
    output_variance: Tensor
    power: Tensor


def stack(split: Split, like: Tensor) -> tuple[Tensor, Tensor]:
    """Bring a split into the layout of `cells`, for one model: (T, 1, D, N) and (1, KO, N)."""
    inputs = torch.as_tensor(split.inputs, dtype=like.dtype, device=like.device)
    targets = torch.as_tensor(split.targets, dtype=like.dtype, device=like.device)
    columns = targets.flatten(1).T[None]
    return inputs.permute(1, 2, 0)[:, None].contiguous(), columns.contiguous()


def squared_error(parameters: Parameters, inputs: Tensor, targets: Tensor) -> Tensor:
    """Return each model's mean squared error (M,): inputs (T, M, D, B), targets (M, KO, B)."""
    steps = cells.output_steps(parameters, targets)
    outputs = cells.forecast(parameters, inputs, steps=steps)
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

    Inputs (T, M, D, B), targets (M, KO, B). All models of a call meet the same noise, and equal
    streams give equal noise, so that arms are compared under the same disturbances.
    """
    require_strength(sigma)
    steps = cells.output_steps(parameters, targets)
    clean = cells.forecast(parameters, inputs, steps=steps)
    _, models, _, _ = inputs.shape
    units, numbers = parameters.units, normal_numbers(parameters, noise)
    inputs = inputs.repeat_interleave(draws, dim=3)
    columns = inputs.shape[3]
    inputs = cells.pad(inputs, parameters.hidden)
    state = inputs.new_zeros(models, parameters.state_size, inputs.shape[3])
    power: list[Tensor] = []
    shown: list[Tensor] = []
    dtype = np.dtype(str(inputs.dtype).removeprefix("torch."))
    for x in inputs:
        normal = rng.standard_normal((numbers, inputs.shape[3]), dtype=dtype.type)
        eps = torch.as_tensor(normal, device=inputs.device)
        state = noisy_step(parameters, state, x, noise, sigma, eps)
        power.append(state[:, :units, :columns].double().square().sum(1).mean(1))
        if len(power) > len(inputs) - steps:
            shown.append(cells.readout(parameters, state)[..., :columns])
    outputs = torch.cat(shown, dim=1)
    repeated = targets.repeat_interleave(draws, dim=2)
    deviation = outputs - clean.repeat_interleave(draws, dim=2)
    return NoisyRun(
        (outputs - repeated).double().square().mean(dim=(1, 2)),
        deviation.double().square().sum(1).mean(1),
        torch.stack(power),
    )


def constant_error(data: Data, split: Split) -> float:
    """Return the mean squared error of forecasting the training targets' mean, always."""
    outputs = data.train.targets.shape[2]
    mean = data.train.targets.reshape(-1, outputs).mean(axis=0)
    return float(np.mean((split.targets - mean) ** 2))


def persistence_error(split: Split) -> float:
    """Return the mean squared error of forecasting the last observed value.

    Not a number where inputs and targets differ in number.
    """
    if split.inputs.shape[2] != split.targets.shape[2]:
        return float("nan")
    observed = split.inputs[:, -split.targets.shape[1] :]
    return float(np.mean((split.targets - observed) ** 2))


def ridge_error(data: Data, split: Split, penalties: tuple[float, ...] = _PENALTIES) -> float:
    """Return the mean squared error of the best linear forecast from the inputs.

    Of the whole window where there is one target, an autoregression; of the last `LAGS` inputs
    where there is one after each of several steps. Ridge regression with an unpenalised constant;
    the penalty is chosen on validation data.
    """
    train, validation, test = (_regression(part) for part in (data.train, data.validation, split))
    fits = [_ridge(*train, penalty) for penalty in penalties]
    errors = [_linear_error(*validation, fit) for fit in fits]
    return _linear_error(*test, fits[int(np.argmin(errors))])


def _ridge(design: Array, targets: Array, penalty: float) -> Array:
    weight = penalty * np.eye(design.shape[1])
    weight[-1, -1] = 0
    solution = np.linalg.solve(design.T @ design + weight, design.T @ targets)
    return np.asarray(solution, dtype=np.float64)


def _linear_error(design: Array, targets: Array, coefficients: Array) -> float:
    return float(np.mean((targets - design @ coefficients) ** 2))


def _regression(split: Split) -> tuple[Array, Array]:
    """Return a row of what is known, and one of what is to be forecast, for each target."""
    n, length, width = split.inputs.shape
    _, steps, outputs = split.targets.shape
    lags = length if steps == 1 else min(LAGS, length)
    # Before its first step a sequence is taken to be at the mean, which is zero.
    before = np.zeros((n, lags - 1, width))
    padded = np.concatenate([before, split.inputs], axis=1)[:, -(steps + lags - 1) :]
    windows = np.lib.stride_tricks.sliding_window_view(padded, lags, axis=1)
    flat = windows.transpose(0, 1, 3, 2).reshape(n * steps, lags * width)
    return np.hstack([flat, np.ones((len(flat), 1))]), split.targets.reshape(-1, outputs)
