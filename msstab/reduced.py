"""The reduced problem behind the spectral radius of a second-moment operator.

The noise of channels reads Q numbers y_q = f_q^T P f_q from P and feeds them back along the
directions k_c. In the eigenbasis of J the clean part is diagonal, so that rho P = L(P) reduces to
y = M(rho) y with a nonnegative Q x Q matrix M, and the radius is where M's own Perron root is 1:
a stochastic small-gain condition (theory page, equation (26); Willems & Blankenship 1971).

Matrices are solved one by one: a batch would wait for its slowest member, and the last bits of
batched products can depend on a matrix's place.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from msstab import operators
from msstab.operators import Operator

Real = NDArray[np.float64]
Complex = NDArray[np.complex128]

MOST_STEPS, MOST_ROUNDS = 60, 20
TOLERANCE = 1e-8
"""Last Newton step, relative to the distance from the pole; the method squares the error, so that
the root is far closer."""


class _Problem(NamedTuple):
    """An operator in the eigenbasis of J, and what of M(rho) does not depend on rho.

    `driven` (N, C) and `read` (Q, N) are the directions and readers; `products` (N, N) are
    a lambda_a conj(lambda_b). The rest is over Z pairs of modes that stand for all (see `_pairs`):
    `paired` (Z,) their products, `sources` (C or Q, Z) and, as interleaved real numbers, `reads`
    (Q, 2 Z). `before` says that the weights are in the sources already.
    """

    weights: Real
    before: bool
    driven: Complex
    read: Complex
    products: Complex
    paired: Complex
    sources: Complex
    reads: Real


def at(operator: Operator, where: slice | Tensor) -> Operator:
    """Return some elements of an operator with one leading dimension."""
    return Operator(*(t[where] if isinstance(t, Tensor) else t for t in operator))  # type: ignore[arg-type]


def solve(operator: Operator) -> tuple[Tensor, Tensor, Tensor]:
    """Return radius (B,), right and left eigenmatrices (B, N, N) of trace 1.

    For operators with one leading dimension, in double precision, without maps. Where J is
    defective the numbers are wrong or not finite: the caller checks the residuals.
    Source: theory page, equation (26).
    """
    j = operator.jacobian
    readers = operators.reading_vectors(operator).expand(*j.shape[:-1], -1)
    given = (j, operator.directions, operator.weights, readers)
    each = zip(*(tensor.cpu().numpy() for tensor in given), strict=True)
    with np.errstate(all="ignore"):
        found = [_solve(operator.scale, *matrices) for matrices in each]
    if not found:
        return j.new_zeros(0), j, j
    radius, right, left = (
        torch.as_tensor(np.stack(arrays)).to(j) for arrays in zip(*found, strict=True)
    )
    return radius, right, left


def _solve(
    scale: float, jacobian: Real, directions: Real, weights: Real, readers: Real
) -> tuple[float, Real, Real]:
    n = len(jacobian)
    try:
        values, modes = np.linalg.eig(jacobian)
        inverse = np.linalg.inv(modes)
    except np.linalg.LinAlgError:
        nothing = np.full((n, n), np.nan)
        return np.nan, nothing, nothing
    # Without a complex pair they come as real numbers.
    values, modes, inverse = values.astype(complex), modes.astype(complex), inverse.astype(complex)
    driven: Complex = np.matmul(inverse, directions, dtype=complex)
    read: Complex = np.matmul(readers.T, modes, dtype=complex)
    leading = int(np.abs(values).argmax())
    clean = scale * float(np.abs(values[leading]) ** 2)
    # The noise's part of the mean eigenvalue of L(I).
    strength = np.square(directions).sum(0) @ weights @ np.square(readers).sum(0) / n
    radius = clean
    if strength > 0:
        problem = _problem(scale, values, driven, weights, read)
        first = _first_order(problem, values, leading)
        start = first if first > 1e-9 * strength else 0.01 * strength
        radius, right, left = _root(problem, clean, clean + start)
    if radius == clean:
        # Noise adds nothing to the radius: the eigenmatrices are those of J's leading mode.
        column, row = modes[:, leading], inverse[leading]
        return (
            radius,
            _normalised(np.outer(column, column.conj()).real),
            _normalised(np.outer(row.conj(), row).real),
        )
    source = (driven * (weights @ right)) @ driven.conj().T
    target = read.conj().T @ (left[:, None] * read)
    resolvent = 1 / (radius - problem.products)
    return (
        radius,
        _normalised((modes @ (resolvent * source) @ modes.conj().T).real),
        _normalised((inverse.conj().T @ (resolvent.conj() * target) @ inverse).real),
    )


def _problem(
    scale: float, values: Complex, driven: Complex, weights: Real, read: Complex
) -> _Problem:
    # Of two conjugate modes one will do, and a real one counts as half a pair.
    chosen = np.flatnonzero(values.imag >= 0)
    share = np.where(values.imag[chosen] == 0, 0.5, 1.0)
    a, b, multiplicity = _pairs(len(chosen))
    multiplicity = multiplicity * share[a] * share[b]

    def products(rows: Complex) -> Complex:
        first, second = np.take(rows, a, axis=-1), np.take(rows, b, axis=-1)
        return np.concatenate([first * second.conj(), first * second], axis=-1)

    sources = products(driven[chosen].T) * np.tile(multiplicity, 2)
    before = len(weights) > weights.shape[1]
    if before:
        sources = _product(weights.T, sources.view(float)).view(complex)
    return _Problem(
        weights,
        before,
        driven,
        read,
        scale * values[:, None] * values.conj(),
        scale * products(values[chosen]),
        sources,
        products(read[:, chosen]).conj().view(float),
    )


@lru_cache(maxsize=64)
def _pairs(count: int) -> tuple[Any, Any, Real]:
    """Return unordered pairs a <= b of modes, and how often 2 Re of a term for each is due.

    J is real and the form is Hermitian: the terms of (a, b), (b, a) and of the conjugate modes of
    both have one real part; those of (a, conj b) another, so that two terms stand for eight.
    """
    a, b = np.triu_indices(count)
    return a, b, np.where(a == b, 2.0, 4.0)


def _first_order(problem: _Problem, values: Complex, leading: int) -> float:
    """Return what noise adds to the radius through J's leading mode alone."""
    drive = np.abs(problem.driven[leading]) ** 2
    added = float(drive @ problem.weights @ np.abs(problem.read[:, leading]) ** 2)
    # A complex mode comes with its conjugate, and each drives both.
    return added if values[leading].imag == 0 else 2 * added


def _root(problem: _Problem, clean: float, radius: float) -> tuple[float, Real, Real]:
    """Return the root of r(M(rho)) = 1 by Newton's method, with M's right and left vectors there.

    In 1 / r(M(rho)), which increases with rho and is 0 at the clean radius, where M has its pole;
    for a single mode it is a straight line. Without a root, the clean radius.
    Source: theory page, equation (28).
    """
    below, above = clean, float("inf")
    # Noise that the leading mode does not meet may leave no root.
    floor = clean * (1 + 1e-12)
    for _ in range(MOST_STEPS):
        resolvent = 1 / (radius - problem.paired)
        root, right, left = _perron(_small(problem, resolvent))
        fall = _ratio(_slope(problem, resolvent, right, left), left @ right)
        guess = radius + _ratio(root * (root - 1), fall)
        # M changes on the scale of the distance from its pole.
        finished = abs(guess - radius) <= max(TOLERANCE * (radius - clean), 1e-14 * radius)
        if root > 1:
            below = radius
        else:
            above = radius
        if not (finished or below < guess < above):
            guess = (below + above) / 2 if np.isfinite(above) else 2 * radius
        radius = guess
        if finished or radius <= floor or not np.isfinite(radius):
            break
    return clean if radius <= floor else float(radius), right, left


def _small(problem: _Problem, resolvent: Complex) -> Real:
    """Return M(rho): (Q, Q). Source: theory page, equation (27)."""
    found = _product(problem.reads, (problem.sources * resolvent).view(float).T)
    if not problem.before:
        found = found @ problem.weights
    return np.fmax(found, 0)


def _slope(problem: _Problem, resolvent: Complex, right: Real, left: Real) -> float:
    """Return x^T (-dM / d rho) y for the left x and the right y (Q,)."""
    variance = right if problem.before else problem.weights @ right
    moved = (variance @ problem.sources.view(float)).view(complex) * resolvent**2
    return float((left @ problem.reads) @ moved.view(float))


def _perron(matrix: Real) -> tuple[float, Real, Real]:
    """Return the Perron root and right and left vectors of a nonnegative matrix (Q, Q).

    By squaring: M^(2^k) approaches the product of the two vectors, without cancellation. A tenth
    of the identity breaks ties of moduli in a periodic matrix.
    """
    power = matrix / max(matrix.sum(1).max(), 1e-300)
    power.flat[:: len(power) + 1] += 0.1
    for _ in range(MOST_ROUNDS):
        before = power
        for _ in range(3):
            power = power @ power
        power /= power.max()
        # The distance from the limit has been squared three times since.
        if np.abs(power - before).max() < 1e-4:
            break
    right, left = power.sum(1), power.sum(0)
    return _ratio(left @ (matrix @ right), left @ right), right, left


def _ratio(first: float | Real, second: float | Real) -> float:
    """Divide, without an error where the second number is zero."""
    return float(np.divide(first, second))


def _product(first: Real, second: Real) -> Real:
    """Multiply large matrices by torch, on as many threads as it is given."""
    product: Real = (torch.from_numpy(first) @ torch.from_numpy(second)).numpy()
    return product


def _normalised(matrix: Real) -> Real:
    matrix = (matrix + matrix.T) / 2
    normalised: Real = matrix / np.trace(matrix)
    return normalised
