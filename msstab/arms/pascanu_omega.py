"""Keep the error's gradient from vanishing or exploding on its way back in time."""

import functools

import torch
from torch import Tensor

from msstab import cells
from msstab.arms.lazily import lazily
from msstab.arms.registry import Penalty, Step, arm
from msstab.arms.sampling import Sequences, sample_sequences
from msstab.arms.trajectory import jacobians_along

N_SEQUENCES = 1
"""Sequences of each model that an evaluation looks at."""

EVERY = 8
"""Steps of training for each evaluation: a whole sequence's Jacobians take long."""


SMALLEST = 1e-30
"""Least factor by which the error's gradient is seen to shrink on its way back."""


@arm(strengths=(0.0, 0.0005, 0.005))
@lazily(EVERY)
def pascanu_omega(step: Step) -> Penalty:
    """Squared relative change of the error's gradient on its way back through each step.

    The sum over time of (||g J|| / ||g|| - 1)^2 with g = dE/dh_{t+1} and J = dh_{t+1}/dh_t. The
    mean over whole sequences drawn from the batch, at every eighth step of training (see `lazily`).
    Where several outputs count, g gathers the error of each on its way. The gradients g are held
    constant, so that only J depends on parameters and states; where g is
    zero there is nothing to keep. Source: Pascanu, Mikolov & Bengio, "On the difficulty of training
    recurrent neural networks" (2013), section 3.3; their code squares both norms first, which the
    paper does not.
    """
    sequences = sample_sequences(step, N_SEQUENCES)
    *earlier, gradient = _injected_gradients(step, sequences)
    scale = torch.ones_like(gradient[..., :1])
    terms = []
    for jacobian in reversed(jacobians_along(step, sequences)):
        # The direction alone counts, and a norm kept near one can neither vanish nor overflow.
        size = _norm(gradient)
        gradient = gradient / size.masked_fill(size == 0, 1)
        pulled = (gradient[..., None] * jacobian).sum(-2)
        change = (_norm(pulled) - 1).square().masked_fill(size == 0, 0)
        terms.append(change.flatten(1))
        gradient = pulled.detach()
        if earlier:
            # What else the error adds here, in units of the size that was taken out so far.
            scale = (scale * size.masked_fill(size == 0, 1)).clamp_min(SMALLEST)
            gradient = gradient + earlier.pop() / scale
    value = torch.cat(terms, dim=-1).sum(-1) / sequences.drawn.shape[1]
    return Penalty(value, torch.ones_like(value))


def _injected_gradients(step: Step, sequences: Sequences) -> list[Tensor]:
    """Return what each output that counts adds to dE/dh, up to one positive factor.

    In the order of time, (M, K, S) for each, with K sequences.
    """
    parameters = step.parameters
    every = torch.arange(len(step.outputs), device=sequences.drawn.device)[:, None]
    error = (step.outputs - step.targets)[every, :, sequences.drawn]
    steps = cells.output_steps(parameters, step.targets)
    found = [
        (own[..., None] * parameters.weight_out[:, None]).sum(-2).detach()
        for own in error.chunk(steps, dim=-1)
    ]
    # The size goes here already, lest squares underflow or overflow.
    sizes = [shown.abs().amax(-1, keepdim=True) for shown in found]
    largest = functools.reduce(torch.maximum, sizes)
    largest = largest.masked_fill(largest == 0, 1)
    room = parameters.state_size - parameters.hidden
    return [torch.nn.functional.pad(shown / largest, (0, room)) for shown in found]


def _norm(vectors: Tensor) -> Tensor:
    """Return Euclidean norms (..., S) -> (..., 1), without a slope at zero."""
    square = vectors.square().sum(-1, keepdim=True)
    nothing = square == 0
    return square.masked_fill(nothing, 1).sqrt().masked_fill(nothing, 0)
