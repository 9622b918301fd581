"""Networks whose recurrent weights are wrong for a whole run: simulated, and predicted."""

import dataclasses

import numpy as np
import torch
from torch import Tensor

from msstab import cells, moments
from msstab.cells import Parameters
from msstab.noise import Frozen, require_strength


def frozen_run(
    parameters: Parameters,
    inputs: Tensor,
    targets: Tensor,
    errors: Frozen,
    strength: float,
    draws: int,
    rng: np.random.Generator,
) -> tuple[Tensor, Tensor]:
    """Run one network with `draws` sets of weight errors for each sequence, all independent.

    M = 1: inputs (T, 1, D, B), targets (1, KO, B) -> (1,), (1,): the mean squared error, and the
    mean squared deviation of the outputs that count from the clean ones, summed over steps and
    components, as in `evaluation.noisy_run`.
    Raises ValueError for a strength that is negative or no number.
    """
    require_strength(strength)
    steps = cells.output_steps(parameters, targets)
    clean = cells.forecast(parameters, inputs, steps=steps)
    # A network for each sequence, for each has weights of its own.
    count = inputs.shape[-1]
    each = parameters.select([0] * count)
    alone = inputs.permute(0, 3, 2, 1).contiguous()
    error, deviation = [], []
    for _ in range(draws):
        outputs = cells.forecast(disturbed(each, errors, strength, rng), alone, steps=steps)
        outputs = outputs.permute(2, 1, 0)
        error.append((outputs - targets).double().square().mean(dim=(1, 2)))
        deviation.append((outputs - clean).double().square().sum(1).mean(1))
    return sum(error[1:], error[0]) / draws, sum(deviation[1:], deviation[0]) / draws


def frozen_variance(
    parameters: Parameters,
    inputs: Tensor,
    states: Tensor,
    errors: Frozen,
    strength: float,
    last: int = 1,
) -> Tensor:
    """Return the predicted variance of the outputs after the last K steps, summed: (M, B).

    Inputs (T, M, D, B) and the clean states after each step (T, M, S, B). The sum over the
    recurrent weights and the outputs of var_w |d y / d w|^2, exact to second order, by one pass
    backwards for all outputs: for the last one alone, what `moments.frozen_output_variance`
    returns. Source: theory page, equation (23).
    """
    steps = list(moments.linearisations(parameters, inputs, states))
    unread = parameters.state_size - parameters.hidden
    readout = torch.nn.functional.pad(parameters.weight_out, (0, unread))[:, None]
    models, outputs, _ = parameters.weight_out.shape
    swing = readout.new_zeros(models, inputs.shape[3], last, outputs, parameters.state_size)
    by_row = []
    for back, step in enumerate(reversed(steps), 1):
        if back <= last:
            swing[:, :, last - back] += readout
        by_row.append(swing.flatten(2, 3) @ step.recurrent)
        swing = (swing.flatten(2, 3) @ step.jacobian).view_as(swing)
    before = torch.cat([torch.zeros_like(states[:1]), states[:-1]])[:, :, : parameters.units]
    # Every layer's weights stand between its own pre-activations and its own hidden units.
    rows = torch.stack(by_row[::-1]).chunk(parameters.layers, dim=-1)
    units = before.chunk(parameters.layers, dim=2)
    found = []
    for row, own, weight in zip(rows, units, parameters.recurrent, strict=True):
        sensitivity = torch.einsum("tmbor,tmhb->mborh", row, own)
        variance = errors.variance(weight, strength)
        found.append(torch.einsum("mborh,mrh->mb", sensitivity.square(), variance))
    return torch.stack(found).sum(0)


def disturbed(
    parameters: Parameters, errors: Frozen, strength: float, rng: np.random.Generator
) -> Parameters:
    """Return networks with errors of their own in the recurrent weights of every layer."""
    upper = tuple(
        tensor + errors.draw(tensor, strength, rng) if k % 4 == 1 else tensor
        for k, tensor in enumerate(parameters.upper)
    )
    weight = parameters.weight_hh
    return dataclasses.replace(
        parameters, weight_hh=weight + errors.draw(weight, strength, rng), upper=upper
    )
