"""How a trained network's outputs answer to small changes of its weights and of its states."""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from msstab import cells, moments
from msstab.cells import Parameters

MOST_OUTPUTS = 8
"""Outputs up to which sensitivities are exact; for more, so many random sums stand for them."""


class Sensitivity(NamedTuple):
    """Squared derivatives of one network's outputs, mean over outputs and sequences.

    `weights`: by each weight and bias, in the shapes of the network's own tensors. `states`
    (T, 1, S, B): by what is added to a unit after a step, of which a sequence has its share, so
    that their sum is over steps and units, and the mean over sequences.
    """

    weights: Parameters
    states: Tensor


def sensitivity(
    parameters: Parameters, inputs: Tensor, rng: np.random.Generator, count: int = 1
) -> Sensitivity:
    """Return one network's sensitivity along its own runs: inputs (T, 1, D, B).

    The outputs are the readouts after the last `count` steps. Exact for up to `MOST_OUTPUTS`
    numbers; where there are more, random sums of them with independent signs stand for them, whose
    squares have the right mean. Source: theory page, equation (57) for weights, and theory page,
    equation (58) for states.
    """
    outputs = count * parameters.weight_out.shape[1]
    directions = _directions(outputs, rng).to(inputs) / math.sqrt(outputs)
    return Sensitivity(
        _by_weights(parameters, inputs, directions, count),
        _by_states(parameters, inputs, directions, count),
    )


def _directions(outputs: int, rng: np.random.Generator) -> Tensor:
    """Return sums of the outputs (P, KO) that keep the sum of their squares, at least in mean."""
    if outputs <= MOST_OUTPUTS:
        return torch.eye(outputs)
    signs = rng.choice([-1.0, 1.0], size=(MOST_OUTPUTS, outputs))
    return torch.as_tensor(signs) / math.sqrt(MOST_OUTPUTS)


def _by_weights(
    parameters: Parameters, inputs: Tensor, directions: Tensor, count: int
) -> Parameters:
    sums, batch = len(directions), inputs.shape[3]
    with torch.enable_grad():
        # Each sequence and sum has a copy of the network to itself, so that one backward pass
        # gives all their gradients apart.
        copies = parameters.select([0] * (sums * batch)).require_grad()
        alone = inputs.permute(0, 3, 2, 1).repeat(1, sums, 1, 1)
        outputs = cells.forecast(copies, alone, steps=count)
        total = (outputs[..., 0] * directions.repeat_interleave(batch, dim=0)).sum()
        gradients = torch.autograd.grad(total, list(copies))
    return parameters.like(g.double().square().sum(0, keepdim=True) / batch for g in gradients)


def _by_states(parameters: Parameters, inputs: Tensor, directions: Tensor, count: int) -> Tensor:
    with torch.no_grad():
        states, _ = cells.run(parameters, inputs)
        unread = parameters.state_size - parameters.hidden
        readout = torch.nn.functional.pad(parameters.weight_out[0], (0, unread))
        read = directions.view(len(directions), count, -1) @ readout
        swing = read.new_zeros(inputs.shape[3], len(directions), parameters.state_size)
        found = []
        steps = list(moments.linearisations(parameters, inputs, states))
        for back, step in enumerate(reversed(steps), 1):
            if back <= count:
                swing = swing + read[:, count - back]
            found.append(swing.double().square().sum(1).T / inputs.shape[3])
            swing = swing @ step.jacobian[0]
        return torch.stack(found[::-1])[:, None]
