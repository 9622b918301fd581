"""The reduced problem behind the spectral radius of a second-moment operator.

The noise of channels reads Q numbers y_q = f_q^T P f_q from P and feeds them back along the
directions k_c. In the eigenbasis of J the clean part is diagonal, so that rho P = L(P) reduces to
y = M(rho) y with a nonnegative Q x Q matrix M, and the radius is where M's own Perron root is 1:
a stochastic small-gain condition (Willems & Blankenship 1971; the theory, section 4).
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from msstab import operators
from msstab.operators import Operator

MOST_STEPS, MOST_ROUNDS = 60, 20
TOLERANCE = 1e-8
"""Last Newton step, relative to the distance from the pole; the method squares the error, so that
the root is far closer."""

CHUNK = 1 << 18
"""Complex numbers of the problem at once, so that a large batch stays in the cache."""

VECTOR = 8
"""Matrices are filled up with zeros to a multiple of this, so that their numbers do not depend on
their place in a batch; eigenvalues are taken one matrix at a time for the same reason."""


class _Problem(NamedTuple):
    """An operator in the eigenbasis of J, and what of M(rho) does not depend on rho.

    `driven` (B, N, C) and `read` (B, Q, N) are the directions and readers; `products` (B, N, N)
    are a lambda_a conj(lambda_b), `paired` (B, Z) those of the pairs of modes in `_pairs`, over
    which `sources` (B, C or Q, Z) and `reads` (B, Q, 2 Z, real) run too. `before` says that the
    weights are in the sources already.
    """

    weights: Tensor
    before: bool
    driven: Tensor
    read: Tensor
    products: Tensor
    paired: Tensor
    sources: Tensor
    reads: Tensor


def at(operator: Operator, where: slice | Tensor) -> Operator:
    """Return some elements of an operator with one leading dimension."""
    return Operator(*(t[where] if isinstance(t, Tensor) else t for t in operator))  # type: ignore[arg-type]


def solve(operator: Operator) -> tuple[Tensor, Tensor, Tensor]:
    """Return radius (B,), right and left eigenmatrices (B, N, N) of trace 1.

    For operators with one leading dimension, in double precision, without maps. Where J is
    defective the numbers are wrong or not finite: the caller checks the residuals.
    """
    n = operator.jacobian.shape[-1]
    count = max(1, CHUNK // (n * n * max(1, operator.weights.shape[-1])))
    parts = [
        _solve(at(operator, slice(k, k + count))) for k in range(0, len(operator.jacobian), count)
    ]
    if not parts:
        return operator.jacobian.new_zeros(0), operator.jacobian, operator.jacobian
    radius, right, left = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    return radius, right, left


def _solve(operator: Operator) -> tuple[Tensor, Tensor, Tensor]:
    n = operator.jacobian.shape[-1]
    values, modes, inverse = _eigenbasis(operator.jacobian)
    operator = operators.whole_vectors(operator, VECTOR)
    driven = inverse @ operator.directions.to(modes)
    read = operators.reading_vectors(operator).mT.to(modes) @ modes
    clean = operator.scale * values.abs().amax(-1).square()
    problem = _problem(operator, values, driven, read)
    leading = values.abs().argmax(-1)
    if operator.directions.shape[-1]:
        radius, right, left = _root(operator, problem, clean, _guess(problem, values, leading))
    else:
        radius = clean
        right = left = clean.new_zeros(len(clean), operator.weights.shape[-1])

    source, target = _sources(problem, right, left)
    resolvent = 1 / (radius[:, None, None] - problem.products)
    # Where noise adds nothing to the radius, the eigenmatrices are those of J's leading mode.
    alone = torch.zeros_like(resolvent)
    alone[torch.arange(len(alone)), leading, leading] = 1
    noisy = (radius > clean)[:, None, None]
    right_modes = torch.where(noisy, resolvent * source, alone)
    left_modes = torch.where(noisy, resolvent.conj() * target, alone)
    return (
        radius,
        _normalised((modes @ right_modes @ modes.mH).real[:, :n, :n]),
        _normalised((inverse.mH @ left_modes @ inverse).real[:, :n, :n]),
    )


def _eigenbasis(jacobian: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return eigenvalues (B, N'), modes and their inverse (B, N', N'), N filled up to `VECTOR`."""
    room = -jacobian.shape[-1] % VECTOR
    each = []
    for matrix in jacobian:
        values, modes = torch.linalg.eig(matrix.clone())
        each.append((values, modes, torch.linalg.inv_ex(modes)[0]))
    values, modes, inverse = (torch.stack(tensors) for tensors in zip(*each, strict=True))
    pad = torch.nn.functional.pad
    return pad(values, (0, room)), *(pad(m, (0, room, 0, room)) for m in (modes, inverse))  # type: ignore[return-value]


def _pairs(first: Tensor, second: Tensor) -> Tensor:
    """Return first_a conj(second_b) for pairs of modes: (..., N) twice -> (..., Z).

    The pairs are a and a + k, counted round, for k from 0 to N / 2: each unordered pair once, and
    those half-way round twice. N is even.
    """
    n = first.shape[-1]
    second = second.conj().resolve_conj()
    round_again = torch.cat([second, second[..., : n // 2]], -1)
    return (first.resolve_conj()[..., None, :] * round_again.unfold(-1, n, 1)).flatten(-2)


def _problem(operator: Operator, values: Tensor, driven: Tensor, read: Tensor) -> _Problem:
    n = values.shape[-1]
    # A Hermitian form is its diagonal and twice the real part of the pairs above it.
    twice = torch.full((n // 2 + 1, n), 2.0).to(operator.jacobian)
    twice[0] = twice[-1] = 1
    sources = _pairs(driven.mT.contiguous(), driven.mT)
    sources *= twice.flatten()
    before = driven.shape[-1] > read.shape[-2]
    if before:
        sources = _complex(operator.weights.mT @ torch.view_as_real(sources).flatten(-2))
    return _Problem(
        operator.weights,
        before,
        driven,
        read,
        operator.scale * values[:, :, None] * values.conj()[:, None, :],
        operator.scale * _pairs(values, values),
        sources,
        torch.view_as_real(_pairs(read.conj(), read.conj())).flatten(-2),
    )


def _guess(problem: _Problem, values: Tensor, leading: Tensor) -> Tensor:
    """Return what noise adds to the radius in first order, through J's leading mode alone: (B,)."""
    every = torch.arange(len(values), device=values.device)
    drive = problem.driven[every, leading].abs().square()
    sight = problem.read[every, :, leading].abs().square()
    seen = (problem.weights @ sight[..., None])[..., 0]
    # A complex mode comes with its conjugate, and each drives both.
    both = torch.where(values[every, leading].imag == 0, 1.0, 2.0).to(seen)
    return both * (drive * seen).sum(-1)


def _sources(problem: _Problem, right: Tensor, left: Tensor) -> tuple[Tensor, Tensor]:
    """Return, in the eigenbasis, what noise adds to P and, adjoint, to S: (B, N, N) each."""
    variance = (problem.weights @ right[..., None]).mT
    source = (problem.driven * variance) @ problem.driven.mH
    return source, problem.read.mH @ (left[..., None] * problem.read)


def _root(
    operator: Operator, problem: _Problem, clean: Tensor, first: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the root of r(M(rho)) = 1 by Newton's method, with M's right and left vectors there.

    In 1 / r(M(rho)), which increases with rho and is 0 at the clean radius, where M has its pole;
    for a single mode it is a straight line. `first` is a guess of the root's distance from it.
    """
    n = operator.jacobian.shape[-1]
    channels = operator._replace(scale=1.0)
    identity = torch.eye(n).to(operator.jacobian)
    strength = torch.diagonal(operators.added(channels, identity), dim1=-2, dim2=-1).mean(-1)
    below, above = clean, torch.full_like(clean, torch.inf)
    radius = clean + torch.where(first > 1e-9 * strength, first, 0.01 * strength)
    # Without any noise, or noise that the leading mode does not meet, there may be no root.
    floor = clean * (1 + 1e-12)
    finished = torch.zeros_like(clean, dtype=torch.bool)
    right = left = clean.new_ones(len(clean), problem.weights.shape[-1])
    room = torch.empty_like(problem.sources)
    for _ in range(MOST_STEPS):
        small, slope = _small(problem, radius, room)
        root, *vectors = _perron(small)
        # What has converged stays as it is, however long the others of the batch take.
        right, left = (
            torch.where(finished[:, None], kept, new)
            for kept, new in zip((right, left), vectors, strict=True)
        )
        fall = slope(left, right) / (left * right).sum(-1)
        guess = radius + root * (root - 1) / fall
        # M changes on the scale of the distance from its pole.
        scale = torch.maximum(TOLERANCE * (radius - clean), 1e-14 * radius)
        close = (guess - radius).abs() <= scale
        below, above = (
            torch.where(root > 1, radius, below),
            torch.where(root <= 1, radius, above),
        )
        inside = (guess > below) & (guess < above)
        halved = torch.where(above.isfinite(), (below + above) / 2, 2 * radius)
        guess = torch.where(inside | close, guess, halved)
        close = close | (guess <= floor) | ~guess.isfinite()
        radius = torch.where(finished, radius, guess)
        finished = finished | close
        if finished.all():
            break
    return torch.where(radius <= floor, clean, radius), right, left


def _small(
    problem: _Problem, radius: Tensor, room: Tensor
) -> tuple[Tensor, Callable[[Tensor, Tensor], Tensor]]:
    """Return M(rho) (B, Q, Q), and x^T (-dM / d rho) y as a function of x and y (B, Q).

    `room` is memory in the shape of the sources.
    """
    resolvent = 1 / (radius[:, None] - problem.paired)
    weighted = torch.mul(problem.sources, resolvent[:, None, :], out=room)
    found = torch.bmm(problem.reads, torch.view_as_real(weighted).flatten(-2).mT)
    if not problem.before:
        found = torch.bmm(found, problem.weights)

    def slope(left: Tensor, right: Tensor) -> Tensor:
        entering = (
            right[..., None] if problem.before else torch.bmm(problem.weights, right[..., None])
        )
        seen = torch.bmm(left[:, None, :], problem.reads)
        moved = torch.bmm(entering.mT, torch.view_as_real(problem.sources).flatten(-2))
        moved = _complex(moved[:, 0]) * resolvent.square()
        return (seen[:, 0] * torch.view_as_real(moved).flatten(-2)).sum(-1)

    return found.nan_to_num().clamp_min(0), slope


def _perron(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the Perron root and right and left vectors of nonnegative matrices (B, Q, Q).

    By squaring: M^(2^k) approaches the product of the two vectors, in batched products alone,
    without cancellation. A tenth of the identity breaks ties of moduli in a periodic matrix.
    """
    size = matrix.sum(-1).amax(-1, keepdim=True)[..., None].clamp_min(1e-300)
    power = matrix / size + 0.1 * torch.eye(matrix.shape[-1]).to(matrix)
    finished = torch.zeros(len(matrix), dtype=torch.bool, device=matrix.device)
    for _ in range(MOST_ROUNDS):
        before = power
        # Three at a time, for a check costs more than a product of small matrices.
        for _ in range(3):
            power = torch.bmm(power, power)
        power = power / power.amax((-2, -1), keepdim=True)
        # The deviation from the limit has been squared three times since `before`.
        close = (power - before).abs().amax((-2, -1)) < 1e-4
        power = torch.where(finished[:, None, None], before, power)
        finished = finished | close
        if finished.all():
            break
    right, left = power.sum(-1), power.sum(-2)
    image = (matrix @ right[..., None])[..., 0]
    return (left * image).sum(-1) / (left * right).sum(-1), right, left


def _complex(interleaved: Tensor) -> Tensor:
    """Return complex numbers whose real and imaginary parts take turns: (..., 2 Z) -> (..., Z)."""
    return torch.view_as_complex(interleaved.reshape(*interleaved.shape[:-1], -1, 2))


def _normalised(matrix: Tensor) -> Tensor:
    matrix = (matrix + matrix.mT) / 2
    return matrix / torch.diagonal(matrix, dim1=-2, dim2=-1).sum(-1)[:, None, None]
