"""The linear operator by which noise carries a deviation's second moment through one step.

With P = E[d d^T], white noise of any structure gives P' = L(P) + Q with

    L(P) = a J P J^T + sum_m B_m P B_m^T + sum_c k_c k_c^T sum_q w_cq (f_q^T P f_q)

and Q the noise's part of L, with the clean state's h h^T in place of P (theory page,
equation (14)). The channels c are noises independent of each other, each of which enters along a
direction k_c with a variance that is read from P; the maps B_m are noises that many units share.
"""

import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Operator(NamedTuple):
    """One step's L, with leading dimensions (...) that broadcast.

    `jacobian` J (..., N, N); `scale` a >= 1; `directions` k (..., N, C); `weights` w (..., C, Q),
    not negative; `readers` f (..., N, Q), or None for the unit vectors, which read the diagonal of
    P; `maps` B (..., K, N, N). C, Q and K may be 0.
    """

    jacobian: Tensor
    scale: float
    directions: Tensor
    weights: Tensor
    readers: Tensor | None
    maps: Tensor


CORE = {"jacobian": 2, "directions": 2, "weights": 2, "readers": 2, "maps": 3}
"""An operator's tensors, and how many dimensions each has besides the leading ones."""


def noiseless(jacobian: Tensor) -> Operator:
    """Return the operator P -> J P J^T of a step without noise: J (..., N, N)."""
    n = jacobian.shape[-1]
    return Operator(
        jacobian,
        1.0,
        jacobian.new_zeros(n, 0),
        jacobian.new_zeros(0, n),
        None,
        jacobian.new_zeros(0, n, n),
    )


def combine(first: Operator, second: Operator) -> Operator:
    """Return the operator of two independent noises in the same step.

    Both must be of one linearised step; its Jacobian is taken from the first.
    Source: theory page, equation (21).
    """
    if first.readers is None and second.readers is None:
        weights, readers = _cat([first.weights, second.weights], -2), None
    else:
        weights = _block_diagonal(first.weights, second.weights)
        readers = _cat([reading_vectors(first), reading_vectors(second)], -1)
    return Operator(
        first.jacobian,
        first.scale + second.scale - 1,
        _cat([first.directions, second.directions], -1),
        weights,
        readers,
        _cat([first.maps, second.maps], -3),
    )


def apply(operator: Operator, moment: Tensor) -> Tensor:
    """Return L(P): second moments (..., N, N) -> (..., N, N).

    Source: theory page, equation (14).
    """
    return _carried(operator, moment, moment, _read(moment, operator.readers))


def added(operator: Operator, moment: Tensor) -> Tensor:
    """Return what the noise adds to the clean J P J^T: P (..., N, N) -> L(P) - J P J^T."""
    return _carried(operator, None, moment, _read(moment, operator.readers))


def propagate(operator: Operator, moment: Tensor, state: Tensor) -> Tensor:
    """Return P' = L(P) + Q: P (..., N, N) and the clean states before the step (..., N).

    Source: theory page, equation (2).
    """
    f = operator.readers
    seen = state if f is None else (f * state[..., :, None]).sum(-2)
    forced = moment
    if operator.scale != 1 or operator.maps.shape[-3]:
        forced = moment + state[..., :, None] * state[..., None, :]
    return _carried(operator, moment, forced, _read(moment, f) + seen.square())


def _carried(operator: Operator, clean: Tensor | None, noisy: Tensor, read: Tensor) -> Tensor:
    """Return J P J^T of a clean P, if any, and what noise adds to it that finds another P.

    Both (..., N, N); `read` (..., Q) is what the readers find.
    """
    j, k, maps = operator.jacobian, operator.directions, operator.maps
    variance = (operator.weights @ read[..., None])[..., 0]
    parts = [] if clean is None else [clean]
    if operator.scale != 1:
        parts.append((operator.scale - 1) * noisy)
    # Noise that enters through the state itself takes the same way as the rest.
    through_state = k is j
    if through_state:
        parts.append(torch.diag_embed(variance))
    found = []
    if parts:
        found.append(j @ functools.reduce(torch.add, parts) @ j.mT)
    if not through_state and k.shape[-1]:
        found.append((k * variance[..., None, :]) @ k.mT)
    if maps.shape[-3]:
        found.append((maps @ noisy[..., None, :, :] @ maps.mT).sum(-3))
    return functools.reduce(torch.add, found) if found else torch.zeros_like(noisy)


def adjoint(operator: Operator, moment: Tensor) -> Tensor:
    """Return L*(S), with <S, L(P)> = <L*(S), P>: (..., N, N) -> (..., N, N).

    Source: theory page, equation (15).
    """
    j, maps = operator.jacobian, operator.maps
    variance = _read(moment, operator.directions)[..., None, :] @ operator.weights
    if operator.readers is None:
        found = torch.diag_embed(variance[..., 0, :])
    else:
        found = (operator.readers * variance) @ operator.readers.mT
    found = found + operator.scale * (j.mT @ moment @ j)
    if maps.shape[-3]:
        found = found + (maps.mT @ moment[..., None, :, :] @ maps).sum(-3)
    return found


def matrix(operator: Operator) -> Tensor:
    """Return L as a matrix on row-major vec P: (..., N^2, N^2), the Kronecker lift.

    Source: theory page, equation (3).
    """
    k, f = operator.directions, reading_vectors(operator)
    lifted = operator.scale * _kron(operator.jacobian) + _kron(operator.maps).sum(-3)
    return lifted + _columns(k) @ operator.weights @ _columns(f).mT


def reading_vectors(operator: Operator) -> Tensor:
    """Return the readers f (..., N, Q), the unit vectors where the operator has None."""
    if operator.readers is not None:
        return operator.readers
    j = operator.jacobian
    return torch.eye(j.shape[-1], dtype=j.dtype, device=j.device)


def whole_vectors(operator: Operator, unit: int = 16) -> Operator:
    """Return the operator with every matrix filled up with zeros, so that it acts on larger P.

    Sizes become multiples of `unit`. Products of matrices that fill whole vectors do not depend
    on a matrix's place in a batch.
    """
    filled: dict[str, Any] = {
        name: _filled(tensor, unit)
        for name in CORE
        if (tensor := getattr(operator, name)) is not None
    }
    if operator.directions is operator.jacobian:
        filled["directions"] = filled["jacobian"]
    return operator._replace(**filled)


def _filled(matrices: Tensor, unit: int) -> Tensor:
    """Fill (..., A, B) up with zeros to multiples of a unit."""
    rows, columns = (-size % unit for size in matrices.shape[-2:])
    return torch.nn.functional.pad(matrices, (0, columns, 0, rows)) if rows or columns else matrices


def _read(moment: Tensor, vectors: Tensor | None) -> Tensor:
    """Return f_q^T P f_q for every column of the vectors: (..., Q)."""
    if vectors is None:
        return torch.diagonal(moment, dim1=-2, dim2=-1)
    return (vectors * (moment @ vectors)).sum(-2)


def _kron(matrices: Tensor) -> Tensor:
    n = matrices.shape[-1]
    product = torch.einsum("...ij,...kl->...ikjl", matrices, matrices)
    return product.reshape(*matrices.shape[:-2], n * n, n * n)


def _columns(vectors: Tensor) -> Tensor:
    """Return vec(v v^T) for every column v: (..., N, C) -> (..., N^2, C)."""
    return (vectors[..., :, None, :] * vectors[..., None, :, :]).flatten(-3, -2)


def _cat(tensors: list[Tensor], dim: int) -> Tensor:
    """Concatenate along a dimension counted from the end, broadcasting those before the last."""
    core = 3 if dim == -3 else 2
    shapes = [t.shape[:-core] for t in tensors]
    leading = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    return torch.cat([t.expand(*leading, *t.shape[-core:]) for t in tensors], dim)


def _block_diagonal(first: Tensor, second: Tensor) -> Tensor:
    (c, q), (d, r) = first.shape[-2:], second.shape[-2:]
    upper = _cat([first, first.new_zeros(c, r)], -1)
    return _cat([upper, _cat([second.new_zeros(d, q), second], -1)], -2)
