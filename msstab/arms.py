"""What an arm adds to training: a penalty for every model, registered under its function's name."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from msstab import cells
from msstab.cells import Parameters
from msstab.study import declare


class Step(NamedTuple):
    """What an arm sees at one optimiser step of M models.

    `inputs` (T, M, D, B) and the `states` they led to (T, M, S, B), both differentiable in
    `parameters`; `sigma` the noise level the arm assumes; `target` where its hinge opens.
    """

    parameters: Parameters
    inputs: Tensor
    states: Tensor
    sigma: float
    target: float


class Penalty(NamedTuple):
    """A penalty (M,) at strength 1, and the share (M,) of its samples on which it is active."""

    value: Tensor
    active: Tensor


Arm = Callable[[Step], Penalty]

ARMS: dict[str, Arm | None] = {"baseline": None}
"""Arms by name; the baseline adds nothing."""

declare("arm", "baseline")


def arm(function: Arm) -> Arm:
    """Register a function from a Step to a Penalty as an arm of the same name (a decorator)."""
    ARMS[function.__name__] = function
    declare("arm", function.__name__)
    return function


@arm
def spectral_proxy(step: Step) -> Penalty:
    """Hinge on log of (1 + sigma^2) ||J||_2^2 at the mean state, as in the original report.

    The spectral norm stands in for the spectral radius of the second-moment operator, which it
    bounds from above. The mean runs over the sequences and steps of the batch.
    Source: theory page, equation (38).
    """
    state = step.states.mean(dim=(0, 3))[:, :, None]
    inputs = step.inputs.mean(dim=(0, 3))[:, :, None]
    jacobian = cells.jacobian(step.parameters, state, inputs)[:, 0]
    growth = (1 + step.sigma**2) * squared_spectral_norm(jacobian) / step.target
    # A diverged model's NaN stays one; a saturated model, whose Jacobian vanishes, has no gradient
    # instead of the logarithm's NaN.
    excess = torch.log(torch.where(growth <= 1, torch.ones_like(growth), growth))
    return Penalty(excess, (excess > 0).float())


def squared_spectral_norm(matrices: Tensor) -> Tensor:
    """Return the squared largest singular values of (M, n, n) matrices, differentiably.

    The gradient is exact, 2 u v^T with v the leading right singular vector and u = A v. A matrix
    that is not finite has no finite norm, and leaves the others alone.
    """
    norms: Tensor = _SquaredSpectralNorm.apply(matrices)  # type: ignore[no-untyped-call]
    return norms


class _SquaredSpectralNorm(torch.autograd.Function):
    # Matrices go one at a time, in memory of their own: the last bits of batched products and
    # decompositions can depend on a matrix's place in the batch.

    @staticmethod
    def forward(ctx: Any, matrices: Tensor) -> Tensor:
        images, leading = [], []
        for matrix in matrices:
            own = matrix.clone()
            finite = torch.nan_to_num(own, nan=0.0, posinf=0.0, neginf=0.0)
            leading.append(torch.linalg.eigh(finite.T @ finite)[1][:, -1].clone())
            images.append(own @ leading[-1])
        ctx.save_for_backward(torch.stack(images), torch.stack(leading))
        return torch.stack([image @ image for image in images])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        images, leading = ctx.saved_tensors
        product: Tensor = images[:, :, None] * leading[:, None, :]
        return product * (2 * gradient)[:, None, None]
