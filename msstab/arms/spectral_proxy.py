"""The original's penalty: a hinge on a spectral-norm bound of the second moment's growth."""

from typing import Any

import torch
from torch import Tensor

from msstab import cells
from msstab.arms.registry import Penalty, Step, arm


@arm(strengths=(0.0, 0.1, 1.0))
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
