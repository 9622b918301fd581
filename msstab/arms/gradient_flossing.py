"""Hold the leading Lyapunov exponents of the clean run near zero, so that gradients carry far."""

from collections.abc import Sequence

import torch
from torch import Tensor

from msstab import cells
from msstab.arms.lazily import lazily
from msstab.arms.registry import Penalty, Step, arm
from msstab.arms.sampling import sample_sequences
from msstab.arms.trajectory import jacobians_along

N_EXPONENTS, N_SEQUENCES = 4, 1
"""Leading exponents held, along so many sequences of each model."""
EVERY = 8
"""Steps of training for each evaluation: a whole sequence's Jacobians take long."""
ORTHONORMALISE_EVERY = 4
"""Steps between two decompositions, few enough that the directions do not fall into one."""


@arm(strengths=(0.0, 0.02, 0.2))
@lazily(EVERY)
def gradient_flossing(step: Step) -> Penalty:
    """Mean of the squared leading finite-time Lyapunov exponents along sequences of the batch.

    Along whole sequences, from directions drawn at random, at every eighth step of training (see
    `lazily`). Source: Engelken, "Gradient flossing: improving gradient descent through dynamic
    control of Jacobians" (2023), who flosses now and then, too.
    """
    sequences = sample_sequences(step, N_SEQUENCES)
    _, _, size, count = sequences.before.shape
    shape = (count, size, min(N_EXPONENTS, size))
    drawn = [torch.as_tensor(rng.standard_normal(shape)) for rng in step.streams]
    directions = torch.stack(drawn).to(step.states)
    exponents = lyapunov_exponents(jacobians_along(step, sequences), directions)
    value = exponents.square().mean(dim=(1, 2))
    return Penalty(value, torch.ones_like(value))


def lyapunov_exponents(jacobians: Sequence[Tensor], directions: Tensor) -> Tensor:
    """Return the growth rates per step of k directions, each orthogonal to those before it.

    Jacobians, T times (M, K, S, S) in the order of time, and directions (M, K, S, k), made
    orthonormal first -> (M, K, k). Differentiable in the Jacobians. By modified Gram-Schmidt,
    which is a QR decomposition, after every few steps: the logarithms of the norms add up to
    those of one decomposition of the whole product. Directions that vanish within rounding, as
    in a saturated model, count as that small, and have no gradient.
    """
    length, width = len(jacobians), directions.shape[-1]
    columns, _ = _orthonormal(directions)
    total = torch.zeros_like(columns[..., 0, :])
    for first in range(0, length, ORTHONORMALISE_EVERY):
        # Whole vectors, as `cells.padded` explains.
        full = cells.pad(columns, columns.shape[-2]).flatten(0, 1)
        for jacobian in jacobians[first : first + ORTHONORMALISE_EVERY]:
            full = torch.bmm(jacobian.flatten(0, 1), full)
        columns, logarithms = _orthonormal(full[..., :width].view(columns.shape))
        total = total + logarithms
    return total / length


def _orthonormal(columns: Tensor) -> tuple[Tensor, Tensor]:
    """Return an orthonormal basis (..., S, k), and the logarithms (..., k) of R's diagonal."""
    limits = torch.finfo(columns.dtype)
    basis: list[Tensor] = []
    squares: list[Tensor] = []
    for column in columns.unbind(-1):
        rest = column
        for unit in basis:
            rest = rest - (unit * rest).sum(-1, keepdim=True) * unit
        square = rest.square().sum(-1, keepdim=True)
        rounding = (8 * limits.eps) ** 2 * column.detach().square().sum(-1, keepdim=True)
        floor = rounding.clamp_min(limits.tiny)
        vanished = square <= floor
        square = torch.where(vanished, floor, square)
        basis.append(rest.masked_fill(vanished, 0) / square.sqrt())
        squares.append(square)
    return torch.stack(basis, dim=-1), torch.cat(squares, dim=-1).log() / 2
