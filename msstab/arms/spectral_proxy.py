"""The original's penalty: a hinge on a spectral-norm bound of the second moment's growth."""

from typing import Any

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from msstab import cells
from msstab.arms.registry import Penalty, Step, arm


@arm(strengths=(0.0, 0.1, 1.0))
def spectral_proxy(step: Step) -> Penalty:
    """Hinge on the logarithm of a spectral-norm bound at the mean state, as in the original report.

    The bound is (1 + sigma^2) ||J||_2^2. The spectral norm stands in for the spectral radius of
    the second-moment operator, which it bounds from above. The mean runs over the sequences and
    steps of the batch. Source: theory page, equation (38).
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
        n = matrices.shape[-1]
        images, leading = [], []
        for matrix in matrices.detach().cpu().numpy():
            own = matrix.copy()
            finite = np.nan_to_num(own, nan=0.0, posinf=0.0, neginf=0.0)
            _, vectors = scipy.linalg.eigh(
                finite.T @ finite, subset_by_index=[n - 1, n - 1], check_finite=False
            )
            leading.append(vectors[:, 0])
            images.append(own @ leading[-1])
        image, vector = (torch.as_tensor(np.stack(v)).to(matrices) for v in (images, leading))
        ctx.save_for_backward(image, vector)
        return torch.stack([own @ own for own in image])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        images, leading = ctx.saved_tensors
        product: Tensor = images[:, :, None] * leading[:, None, :]
        return product * (2 * gradient)[:, None, None]
