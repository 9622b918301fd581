"""A network's step under noise, for training and evaluation alike."""

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
    that perturb the state, then those that disturb the weights, one column for each sequence. The
    strength may be one for each model, (M, 1, 1).
    """
    of_state = noise.state_numbers(parameters.state_size)
    start = noise.perturb(state, standard_normal[..., :of_state, :], strength)
    shown = state[:, : parameters.hidden]
    of_weights = standard_normal[..., of_state:, :]
    disturbance = noise.disturb(shown, parameters.weight_hh, of_weights, strength)
    return cells.step(parameters, start, inputs, disturbance)
