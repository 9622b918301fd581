"""Networks whose recurrent weights are wrong for a whole run, simulated by drawing the errors."""

import dataclasses

import numpy as np
from torch import Tensor

from msstab import cells
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

    M = 1: inputs (T, 1, D, B), targets (1, O, B) -> (1,), (1,): the mean squared error, and the
    mean squared deviation of the last output from the clean one, summed over its components.
    Raises ValueError for a strength that is negative or no number.
    """
    require_strength(strength)
    clean = cells.forecast(parameters, inputs)
    # A network for each sequence, for each has weights of its own.
    count = inputs.shape[-1]
    each = parameters.select([0] * count)
    alone = inputs.permute(0, 3, 2, 1).contiguous()
    error, deviation = [], []
    for _ in range(draws):
        outputs = cells.forecast(disturbed(each, errors, strength, rng), alone)
        outputs = outputs.permute(2, 1, 0)
        error.append((outputs - targets).double().square().mean(dim=(1, 2)))
        deviation.append((outputs - clean).double().square().sum(1).mean(1))
    return sum(error[1:], error[0]) / draws, sum(deviation[1:], deviation[0]) / draws


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
