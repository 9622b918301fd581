"""Train with the multiplicative noise itself instead of a penalty."""

import torch
from torch import Tensor

from msstab import cells
from msstab.arms.registry import Arm, Forward, add
from msstab.noisy import noisy_step, normal_numbers


def noisy_run(given: Forward) -> Tensor:
    """No penalty, but a training run under the noise itself, at strength times the assumed level.

    Returns outputs (M, KO, B), differentiable in the parameters. The noise is fresh at every call,
    from each model's own stream. Source: Lim et al., "Noisy recurrent neural networks" (2021),
    where the noise has the structure that the Study assumes.
    """
    noise, parameters = given.noise, given.parameters
    size, numbers = parameters.state_size, normal_numbers(parameters, noise)
    level = (given.sigma * given.strengths).to(given.inputs)[:, None, None]
    normal = _standard_normal(given, numbers)
    if numbers > noise.state_numbers(size):
        return _stepwise(given, level, normal)
    factors = noise.factor(normal, level, size)
    if factors is not None:
        factors = factors.expand(*factors.shape[:2], size, -1)
    return cells.forecast(parameters, given.inputs, given.space, factors, given.steps)


def _stepwise(given: Forward, level: Tensor, normal: Tensor) -> Tensor:
    """Run step by step, for disturbances of the weights, which depend on the state."""
    parameters, batch = given.parameters, given.inputs.shape[-1]
    inputs, normal = (cells.pad(part, parameters.hidden) for part in (given.inputs, normal))
    state = inputs.new_zeros(inputs.shape[1], parameters.state_size, inputs.shape[-1])
    states = []
    for x, own in zip(inputs, normal, strict=True):
        state = noisy_step(parameters, state, x, given.noise, level, own)
        states.append(state)
    outputs = [cells.readout(parameters, state) for state in states[-given.steps :]]
    return torch.cat(outputs, dim=1)[..., :batch]


def _standard_normal(given: Forward, numbers: int) -> Tensor:
    """Return independent numbers for each step, model and sequence: (T, M, numbers, B).

    They come from torch's generator, seeded anew from each model's stream, because it fills an
    array three times as fast as numpy's; its Box-Muller transform ends at 5.8 deviations.
    """
    length, models, _, batch = given.inputs.shape
    drawn = given.inputs.new_empty(models, length, numbers, batch, device="cpu")
    generator = torch.Generator()
    for own, stream in zip(drawn, given.streams, strict=True):
        generator.manual_seed(int(stream.integers(2**32)))
        own.normal_(generator=generator)
    return drawn.transpose(0, 1).to(given.inputs.device)


noise_injection = add(Arm("noise_injection", (0.0, 0.5, 1.0), run=noisy_run))
