"""Spectral radii of second-moment operators: stability in the mean square, with gradients.

A step whose operator L has spectral radius below 1 forgets deviations in the mean square. L maps
positive semidefinite matrices to such, so that its radius is an eigenvalue with positive
semidefinite right and left eigenmatrices (Krein & Rutman 1948; Evans & Hoegh-Krohn 1978).
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
import torch
from numpy.typing import NDArray
from torch import Tensor

from msstab import operators, reduced
from msstab.operators import Operator

Array = NDArray[np.float64]
Method = Literal["auto", "dense", "reduced", "arnoldi"]

LARGEST_REDUCED = 128
"""States up to which `auto` solves the reduced problem; its cost grows as N^4, an Arnoldi
iteration's as N^3 (benchmarks/spectral_radius.py)."""

LARGEST_DENSE = 6
"""States up to which `auto` takes the dense solver where the reduced problem does not apply."""

LARGEST_ORACLE = 32
"""States up to which `auto` takes the dense solver as a last resort; it takes seconds there."""

LARGEST_LIFT = 64
"""States up to which the dense solver runs at all: minutes, and gigabytes beyond."""

RESIDUAL = 1e-8
"""Largest relative residual of an eigenmatrix; the radius errs by about the square of that."""


MOST_RESTARTS = 500
"""Restarts of the Arnoldi iteration after which it gives up: ARPACK itself would go on for as many
as ten times the number of unknowns, which takes half an hour for a network of 128 states."""


class Eigen(NamedTuple):
    """The radius (...) and its right and left eigenmatrices (..., N, N), of trace 1."""

    radius: Tensor
    right: Tensor
    left: Tensor


def spectral_radius(operator: Operator, method: Method = "auto") -> Tensor:
    """Return the spectral radius of L, differentiable in the operator's tensors: (...).

    Methods: `dense`, the eigenvalues of the Kronecker lift, O(N^6), the oracle; `reduced`, the
    small Perron problem of `msstab.reduced`, for noise without shared maps; `arnoldi`, on L
    itself, without a matrix; `auto` picks by size, and solves again by another method where the
    reduced problem is inaccurate, as when J is nearly defective. Computes in double precision.
    Raises ValueError as `eigenmatrices` does, and where a gradient is asked for that does not
    exist, because the radius is a defective eigenvalue.
    Source: d rho = <S, dL(P)> / <S, P> (theory page, equation (30); Magnus 1985).
    """
    eigen = eigenmatrices(operator, method)
    if not any(isinstance(tensor, Tensor) and tensor.requires_grad for tensor in operator):
        return eigen.radius
    if not is_simple(eigen).all():
        raise ValueError("the spectral radius is a defective eigenvalue and has no gradient")
    return with_gradient(operator, eigen)


def is_simple(eigen: Eigen) -> Tensor:
    """Return where the radius is known and no defective eigenvalue, so that it has a gradient."""
    size = torch.linalg.matrix_norm(eigen.left) * torch.linalg.matrix_norm(eigen.right)
    simple: Tensor = _inner(eigen.left, eigen.right).abs() > 1e-10 * size
    return simple


def with_gradient(operator: Operator, eigen: Eigen) -> Tensor:
    """Return the radius (...), differentiable in the operator's tensors.

    Source: d rho = <S, dL(P)> / <S, P> (theory page, equation (30); Magnus 1985).
    """
    image = operators.apply(operator, eigen.right)
    quotient = _inner(eigen.left, image) / _inner(eigen.left, eigen.right)
    return eigen.radius + (quotient - quotient.detach())


def _inner(first: Tensor, second: Tensor) -> Tensor:
    return (first * second).sum((-2, -1))


def eigenmatrices(operator: Operator, method: Method = "auto") -> Eigen:
    """Return the radius of L and its positive semidefinite eigenmatrices, without gradients.

    L(P) = rho P and L*(S) = rho S; they are unique where rho is a simple eigenvalue. Raises
    ValueError if the Jacobian is not square, if the operator is not finite or overflows, if the
    method is unknown or does not apply, or if it finds no eigenmatrices with residuals below
    `RESIDUAL`.
    Source: theory page, equation (5).
    """
    if method not in ("auto", "dense", "reduced", "arnoldi"):
        raise ValueError(f"no method {method!r}; known: auto, dense, reduced, arnoldi")
    shared = operator.maps.shape[-3] > 0
    if method == "reduced" and shared:
        raise ValueError("the reduced problem does not cover noise that many units share")
    with torch.no_grad():
        flat, leading = _flatten(operator)
        n = operator.jacobian.shape[-1]
        if method == "auto":
            usual = n <= LARGEST_REDUCED and not shared
            second = _dense if n <= LARGEST_DENSE else _arnoldi
            found = reduced.solve(flat) if usual else _each(second, flat)
            found = _replace(found, ~_accurate(flat, found), second, flat)
            if n <= LARGEST_ORACLE:
                found = _replace(found, ~_accurate(flat, found), _dense, flat)
        elif method == "reduced":
            found = reduced.solve(flat)
        else:
            found = _each(_dense if method == "dense" else _arnoldi, flat)
        if not (method == "dense" or _accurate(flat, found).all()):
            raise ValueError(
                f"the {method} solver found no accurate eigenmatrices; a nearly defective "
                "Jacobian or a cluster of eigenvalues at the radius asks for another method"
            )
        radius, right, left = found
        return Eigen(
            radius.reshape(leading).to(operator.jacobian),
            right.reshape(*leading, n, n).to(operator.jacobian),
            left.reshape(*leading, n, n).to(operator.jacobian),
        )


def quick_eigenmatrices(operator: Operator) -> Eigen:
    """Return what `eigenmatrices` does for (B,), or not a number where that would take long.

    For training, which must neither wait for the dense solver nor stop: the reduced problem, or
    Arnoldi iteration where that does not apply or is inaccurate, in double precision. Not a number
    where that is inaccurate too, or the operator is not finite or overflows.
    """
    with torch.no_grad():
        flat = _double(operator, torch.Size([len(operator.jacobian)]))
        usable = _squared(flat).isfinite().all(-1).all(-1)
        n = flat.jacobian.shape[-1]
        some = reduced.at(flat, usable)
        if n <= LARGEST_REDUCED and flat.maps.shape[-3] == 0:
            found = reduced.solve(some)
            found = _replace(found, ~_accurate(some, found), _arnoldi, some)
        else:
            found = _each(_arnoldi, some)
        accurate = _accurate(some, found)
        radius, right, left = (
            torch.full((len(usable), *tensor.shape[1:]), torch.nan).to(tensor) for tensor in found
        )
        for whole, tensor in zip((radius, right, left), found, strict=True):
            tensor[~accurate] = torch.nan
            whole[usable] = tensor
        return Eigen(radius, right, left)


def _flatten(operator: Operator) -> tuple[Operator, torch.Size]:
    """Return the operator in double precision with one leading dimension, and the original's."""
    given = {name: t for name in operators.CORE if (t := getattr(operator, name)) is not None}
    shapes = [tensor.shape[: -operators.CORE[name]] for name, tensor in given.items()]
    leading = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    rows, columns = operator.jacobian.shape[-2:]
    if rows != columns:
        raise ValueError(f"a Jacobian of {rows} x {columns}: it must be square")
    flat = _double(operator, leading)
    if not all(bool(getattr(flat, name).isfinite().all()) for name in given):
        raise ValueError("the operator holds numbers that are not finite")
    if not _squared(flat).isfinite().all():
        raise ValueError("the operator overflows double precision")
    return flat, leading


def _double(operator: Operator, leading: torch.Size) -> Operator:
    """Return the operator in double precision with its leading dimensions as one."""
    return operator._replace(
        **{
            name: tensor.detach()
            .double()
            .expand(*leading, *tensor.shape[-core:])
            .reshape(leading.numel(), *tensor.shape[-core:])
            for name, core in operators.CORE.items()
            if (tensor := getattr(operator, name)) is not None
        }
    )


def _squared(operator: Operator) -> Tensor:
    """Return L(L(I)): (B, N, N)."""
    j = operator.jacobian
    identity = torch.eye(j.shape[-1]).to(j).expand(j.shape).contiguous()
    return operators.apply(operator, operators.apply(operator, identity))


def _accurate(operator: Operator, found: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Return where both eigenmatrices have small residuals."""
    radius, right, left = found
    errors = [
        torch.linalg.matrix_norm(image - radius[:, None, None] * matrix)
        / torch.linalg.matrix_norm(matrix)
        for image, matrix in (
            (operators.apply(operator, right), right),
            (operators.adjoint(operator, left), left),
        )
    ]
    scale = torch.linalg.matrix_norm(operator.jacobian).square()
    # An operator without any growth has radius 0, of which no residual is a small fraction.
    limit = RESIDUAL * torch.maximum(radius, 1e-7 * scale)
    worst = torch.maximum(*errors)
    return worst <= limit


Solver = Callable[[Operator], tuple[float, Tensor, Tensor]]


def _each(solver: Solver, operator: Operator) -> tuple[Tensor, Tensor, Tensor]:
    count = len(operator.jacobian)
    found = [solver(reduced.at(operator, slice(k, k + 1))) for k in range(count)]
    n = operator.jacobian.shape[-1]
    if not found:
        return operator.jacobian.new_zeros(0), operator.jacobian, operator.jacobian
    radii, right, left = zip(*found, strict=True)
    to = operator.jacobian
    matrices = (torch.stack(m).reshape(-1, n, n).to(to) for m in (right, left))
    return (torch.tensor(radii, dtype=to.dtype, device=to.device), *matrices)  # type: ignore[return-value]


def _replace(
    found: tuple[Tensor, Tensor, Tensor], where: Tensor, solver: Solver, operator: Operator
) -> tuple[Tensor, Tensor, Tensor]:
    """Solve the chosen elements again."""
    if not where.any():
        return found
    again = _each(solver, reduced.at(operator, where))
    for old, new in zip(found, again, strict=True):
        old[where] = new
    return found


def _dense(operator: Operator) -> tuple[float, Tensor, Tensor]:
    n = operator.jacobian.shape[-1]
    if n > LARGEST_LIFT:
        raise ValueError(
            f"n = {n} states are too many for the dense solver, whose matrix would take "
            f"{8 * n**4 / 2**30:.1f} GiB; up to {LARGEST_LIFT} are allowed: use auto, reduced or "
            "arnoldi"
        )
    lifted = operators.matrix(operator)[0].cpu().numpy()
    values, left, right = scipy.linalg.eig(lifted, left=True, right=True)
    largest = values.real.max()
    # Antisymmetric matrices may share the eigenvalue: of those tied, take what has most trace.
    tied = np.flatnonzero(np.abs(values - largest) <= 1e-9 * np.abs(values).max())
    n = operator.jacobian.shape[-1]
    matrices = []
    for vectors in (right, left):
        candidates = vectors[:, tied].T.reshape(-1, n, n)
        traces = np.trace(candidates, axis1=1, axis2=2)
        best = int(np.argmax(np.abs(traces)))
        matrices.append(torch.as_tensor(candidates[best] / traces[best]).real)
    return float(largest), *(_symmetric(m) for m in matrices)  # type: ignore[return-value]


def _arnoldi(operator: Operator) -> tuple[float, Tensor, Tensor]:
    n = operator.jacobian.shape[-1]
    identity = torch.eye(n).to(operator.jacobian)
    if n == 1:
        return _dense(operator)
    if not operators.apply(operator, identity).any():
        # L is positive, and nothing where it is nothing at the identity.
        return 0.0, identity / n, identity / n
    # On the symmetric matrices alone: antisymmetric ones may share the eigenvalue.
    rows, columns = np.triu_indices(n)

    def unpacked(vector: Array) -> Tensor:
        matrix = np.zeros((n, n))
        matrix[rows, columns] = matrix[columns, rows] = vector
        return torch.as_tensor(matrix).to(operator.jacobian)

    found = []
    for act in (operators.apply, operators.adjoint):

        def times(vector: Array, act: Callable[[Operator, Tensor], Tensor] = act) -> Array:
            image = act(operator, unpacked(vector.ravel()))[0].cpu().numpy()
            return np.asarray(image[rows, columns])

        size = len(rows)
        linear = scipy.sparse.linalg.LinearOperator((size, size), times, dtype=np.float64)
        start = np.eye(n)[rows, columns]
        # The largest real part, not modulus: complex eigenvalues may tie with the radius.
        try:
            values, vectors = scipy.sparse.linalg.eigs(
                linear, k=1, which="LR", v0=start, maxiter=MOST_RESTARTS
            )
        except scipy.sparse.linalg.ArpackError:
            # The residuals, which are checked, will say so.
            values, vectors = np.full(1, np.nan), np.full((size, 1), np.nan)
        matrix = unpacked(vectors[:, 0].real)
        found.append((float(values[0].real), matrix / matrix.trace()))
    return found[0][0], found[0][1], found[1][1]


def _symmetric(matrix: Tensor) -> Tensor:
    return (matrix + matrix.mT) / 2
