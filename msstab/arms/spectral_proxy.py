"""The original's penalty: a hinge on a spectral-norm bound of the second moment's growth."""

from typing import Any

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from torch import Tensor

from msstab import cells
from msstab.arms.registry import Penalty, Step, arm

LARGEST_SQUARED = 1e15
"""Entries from which on, far beyond any network that learns, a product of matrices might overflow:
they are scaled first, which no singular vector depends on."""


@arm(strengths=(0.0, 0.1, 1.0))
def spectral_proxy(step: Step) -> Penalty:
    """Hinge on the logarithm of a spectral-norm bound at the mean state, as in the original report.

    The bound is (1 + sigma^2) ||J||_2^2. The spectral norm stands in for the spectral radius of
    the second-moment operator, which it bounds from above. The mean runs over the sequences and
    steps of the batch. Source: theory page, equation (38).
    """
    state, inputs = _mean(step.states), _mean(step.inputs)
    jacobian = cells.jacobian(step.parameters, state, inputs)[:, 0]
    growth = (1 + step.sigma**2) * squared_spectral_norm(jacobian) / step.target
    # A diverged model's NaN stays one; a saturated model, whose Jacobian vanishes, has no gradient
    # instead of the logarithm's NaN.
    excess = torch.log(torch.where(growth <= 1, torch.ones_like(growth), growth))
    return Penalty(excess, (excess > 0).float())


def _mean(run: Tensor) -> Tensor:
    """Return the mean over steps and sequences of (T, M, N, B): (M, N, 1)."""
    mean: Tensor = _Mean.apply(run)  # type: ignore[no-untyped-call]
    return mean[:, :, None]


class _Mean(torch.autograd.Function):
    # Entry by entry, halving what is left: the order in which torch sums over dimensions, and so
    # the last bits, can depend on the size of the stack.

    @staticmethod
    def forward(ctx: Any, run: Tensor) -> Tensor:
        ctx.shape = run.shape
        length, _, _, batch = run.shape
        total = _halved(run, 0)[0]
        return _halved(total, -1)[..., 0] / (length * batch)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        length, _, _, batch = ctx.shape
        each: Tensor = gradient / (length * batch)
        return each[None, :, :, None].expand(length, -1, -1, batch)


def _halved(terms: Tensor, dim: int) -> Tensor:
    """Sum over a dimension by adding its halves until one entry is left."""
    while (size := terms.shape[dim]) > 1:
        half = size // 2
        first, second = terms.narrow(dim, 0, half), terms.narrow(dim, half, half)
        rest = terms.narrow(dim, 2 * half, size - 2 * half)
        terms = torch.cat([first + second, rest], dim) if size % 2 else first + second
    return terms


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
        images, leading, squares = [], [], []
        for matrix in matrices.detach().cpu().numpy():
            own = matrix.copy()
            finite = np.nan_to_num(own, nan=0.0, posinf=0.0, neginf=0.0)
            if (largest := np.abs(finite).max()) > LARGEST_SQUARED:
                finite = finite / largest
            leading.append(_leading_eigenvector(finite.T @ finite))
            with np.errstate(over="ignore", invalid="ignore"):
                images.append(own @ leading[-1])
                squares.append(images[-1] @ images[-1])
        found = (torch.as_tensor(np.stack(v)).to(matrices) for v in (squares, images, leading))
        norms, *saved = found
        ctx.save_for_backward(*saved)
        return norms

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        images, leading = ctx.saved_tensors
        product: Tensor = images[:, :, None] * leading[:, None, :]
        return product * (2 * gradient)[:, None, None]


def _leading_eigenvector(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return an eigenvector of the largest eigenvalue of a symmetric, finite matrix (n, n)."""
    last = len(matrix) - 1
    _, vectors = scipy.linalg.eigh(matrix, subset_by_index=[last, last], check_finite=False)
    if vectors.shape[1] == 0:
        # Among many equal eigenvalues, as of a saturated network, LAPACK may find none by index.
        _, vectors = scipy.linalg.eigh(matrix, driver="ev", check_finite=False)
    found: NDArray[Any] = vectors[:, -1]
    return found
