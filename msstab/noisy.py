"""A network's step under noise, for training and evaluation alike."""

import torch
from torch import Tensor

from msstab import cells
from msstab.cells import Parameters
from msstab.noise import Noise, Strength


def noisy_step(
    parameters: Parameters,
    state: Tensor,
    inputs: Tensor,
    noise: Noise,
    strength: Strength,
    standard_normal: Tensor,
) -> Tensor:
    """Advance every model by one step under noise: (M, S, B), (M, D, B) -> (M, S, B).

    `standard_normal` (numbers, B), the same for all models, or (M, numbers, B): first the numbers
    that perturb the state, then those that disturb the weights of each layer from the top, as many
    as `normal_numbers` says, one column for each sequence. The strength may be one for each model,
    (M, 1, 1).
    """
    of_state = noise.state_numbers(parameters.state_size)
    start = noise.perturb(state, standard_normal[..., :of_state, :], strength)
    units = state[:, : parameters.units].chunk(parameters.layers, dim=1)
    numbers = standard_normal[..., of_state:, :].tensor_split(parameters.layers, dim=-2)
    found = [
        noise.disturb(own, weight, normal, strength)
        for own, weight, normal in zip(units, parameters.recurrent, numbers, strict=True)
    ]
    # A structure disturbs either every layer's weights or none's.
    present = [disturbance for disturbance in found if disturbance is not None]
    return cells.step(parameters, start, inputs, torch.cat(present, dim=1) if present else None)


def normal_numbers(parameters: Parameters, noise: Noise) -> int:
    """Return how many standard normal numbers a step under noise takes, for each sequence."""
    rows = parameters.weight_hh.shape[1]
    of_weights = parameters.layers * noise.weight_numbers(rows)
    return noise.state_numbers(parameters.state_size) + of_weights
