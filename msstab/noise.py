"""Noise structures: each one's sampler beside its operator on second moments.

Prediction and simulation of a structure stand together so that they cannot drift apart. A
structure acts on the state before a step or on the recurrent weights during it, anew at every
step; `operator` says what that does to second moments once the step is linearised. Weight noise
that is drawn once for a whole run, as in quantised weights, is no such recursion: see `Frozen`.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from msstab import operators
from msstab.cells import Linearisation
from msstab.operators import Operator
from msstab.study import declare

Strength = float | Tensor
"""One strength, or one for each model, (M, 1, 1), of states (M, N, B)."""


class Frozen(NamedTuple):
    """Independent errors of the recurrent weights, drawn once for a whole run.

    `variance(weight, strength)`: weights (..., R, N) -> each error's variance, same shape.
    `draw(weight, strength, rng)`: one draw of the errors, same shape.
    """

    variance: Callable[[Tensor, Strength], Tensor]
    draw: Callable[[Tensor, float, np.random.Generator], Tensor]


def _unperturbed(standard_normal: Tensor, strength: Strength, size: int) -> Tensor | None:
    return None


def _undisturbed(
    state: Tensor, weight: Tensor, standard_normal: Tensor, strength: Strength
) -> Tensor | None:
    return None


def _none(size: int) -> int:
    return 0


def _all(size: int) -> int:
    return size


class Noise(NamedTuple):
    """One white structure: samplers for simulation, operator for prediction.

    `operator(linearisation, strength)`: L of the linearised step. `factor(standard_normal,
    strength, N)`: what multiplies the states that a step starts from, (..., N, B) or one row for
    all units, or None; `disturb(state, weight, standard_normal, strength)`, for each layer alike:
    its unperturbed hidden units (..., N, B) and recurrent weights (..., R, N) -> what is added to
    its recurrent pre-activations (..., R, B), or None. The standard normal numbers are
    independent, one column for each sequence; `state_numbers(N)` and `weight_numbers(R)` say how
    many rows the two take. `frozen`: the same errors drawn once, where the structure has such a
    form. A strength is relative (sigma), except that of `quantisation`, which is the rounding step.
    The operator raises ValueError for a strength that is negative or no number, and for a pattern
    that does not fit the network.
    """

    operator: Callable[[Linearisation, float], Operator]
    factor: Callable[[Tensor, Strength, int], Tensor | None] = _unperturbed
    disturb: Callable[[Tensor, Tensor, Tensor, Strength], Tensor | None] = _undisturbed
    state_numbers: Callable[[int], int] = _none
    weight_numbers: Callable[[int], int] = _none
    frozen: Frozen | None = None

    def perturb(self, state: Tensor, standard_normal: Tensor, strength: Strength) -> Tensor:
        """Return the states (..., N, B) that a step starts from."""
        factor = self.factor(standard_normal, strength, state.shape[-2])
        return state if factor is None else state * factor


def unit(pattern: Tensor | None = None) -> Noise:
    """Return h o (1 + sigma p o eps): one eps for each unit and step.

    `pattern` p (N,) gives each unit its own relative strength; None means 1. Units of a group
    have one strength where p is constant on it. Source: theory page, equation (16).
    """

    def factor(standard_normal: Tensor, sigma: Strength, size: int) -> Tensor:
        if pattern is not None:
            standard_normal = pattern.to(standard_normal)[:, None] * standard_normal
        return (sigma * standard_normal).add_(1)

    def operator(step: Linearisation, sigma: float) -> Operator:
        n = step.entry.shape[-1]
        require_strength(sigma)
        _require_shape("pattern of unit noise", pattern, (n,))
        strengths = step.entry.new_ones(n) if pattern is None else pattern.to(step.entry)
        return operators.noiseless(step.jacobian)._replace(
            directions=step.entry, weights=torch.diag((sigma * strengths).square())
        )

    return Noise(operator, factor=factor, state_numbers=_all)


def gain(groups: Tensor | None = None) -> Noise:
    """Return h (1 + sigma xi): one xi for a whole group of units and step.

    `groups` (K, N) gives each group's units, 1 inside and 0 outside, or relative strengths; None
    means one group of all units, for which L(P) = (1 + sigma^2) J P J^T.
    Source: theory page, equation (17).
    """

    def factor(standard_normal: Tensor, sigma: Strength, size: int) -> Tensor:
        if groups is not None:
            standard_normal = groups.to(standard_normal).mT @ standard_normal
        return (sigma * standard_normal).add_(1)

    def operator(step: Linearisation, sigma: float) -> Operator:
        require_strength(sigma)
        _require_shape("groups of gain noise", groups, (None, step.entry.shape[-1]))
        clean = operators.noiseless(step.jacobian)
        if groups is not None:
            shared = groups.to(step.entry)
            return clean._replace(maps=sigma * step.entry[..., None, :, :] * shared[:, None, :])
        if step.entry is step.jacobian or torch.equal(step.entry, step.jacobian):
            return clean._replace(scale=1 + sigma**2)
        return clean._replace(maps=sigma * step.entry[..., None, :, :])

    count = 1 if groups is None else len(groups)
    return Noise(operator, factor=factor, state_numbers=lambda n_units: count)


def weight(pattern: Tensor | None = None) -> Noise:
    """Return W o (1 + sigma p o E), E of independent standard normal numbers.

    `pattern` p, broadcast against the recurrent weights (R, N) of every layer, gives relative
    strengths: rows of one gate only (`rows_of_gates`), columns of a group of units; None means 1.
    Source: theory page, equation (18).
    """

    def variance(weights: Tensor, sigma: Strength) -> Tensor:
        return (sigma * _patterned(weights, pattern)).square()

    def draw(weights: Tensor, sigma: float, rng: np.random.Generator) -> Tensor:
        normal = torch.as_tensor(rng.standard_normal(weights.shape)).to(weights)
        return sigma * _patterned(weights, pattern) * normal

    return _weight_errors(Frozen(variance, draw))


def quantisation(pattern: Tensor | None = None) -> Noise:
    """Return W + Delta p o U, U uniform on (-1/2, 1/2): the errors of rounding to a grid.

    The strength is the grid's step Delta, in the units of the weights; `pattern` as in `weight`.
    White, the disturbance is normal with the exact mean and covariance that redrawn rounding
    errors have given the state; a sum of N of them is nearly normal, and second moments see no
    more. Source: theory page, equation (19); Widrow & Kollar, Quantization Noise (2008), for
    Delta^2/12.
    """

    def variance(weights: Tensor, delta: Strength) -> Tensor:
        return (delta**2 / 12) * _patterned(torch.ones_like(weights), pattern).square()

    def draw(weights: Tensor, delta: float, rng: np.random.Generator) -> Tensor:
        uniform = torch.as_tensor(rng.uniform(-0.5, 0.5, weights.shape)).to(weights)
        return delta * _patterned(uniform, pattern)

    return _weight_errors(Frozen(variance, draw))


def low_rank(left: Tensor, right: Tensor) -> Noise:
    """Return W + sigma u xi v^T, one xi each step and layer: `left` u (R,), `right` v (N,).

    Several ranks are a sum of such terms (`total`). Source: theory page, equation (20).
    """

    def disturb(state: Tensor, weights: Tensor, normal: Tensor, sigma: Strength) -> Tensor:
        return sigma * left.to(state)[:, None] * (right.to(state) @ state)[..., None, :] * normal

    def operator(step: Linearisation, sigma: float) -> Operator:
        require_strength(sigma)
        *_, rows, units = step.weights.shape
        _require_shape("left vector of low-rank noise", left, (rows,))
        _require_shape("right vector of low-rank noise", right, (units,))
        u, v = left.to(step.jacobian)[:, None], right.to(step.jacobian)[None]
        layers = step.weights.shape[-3]
        each = torch.eye(layers).to(u)
        return operators.noiseless(step.jacobian)._replace(
            directions=step.recurrent @ torch.kron(each, u),
            weights=sigma**2 * each,
            readers=step.reading(v.expand(layers, *v.shape)).mT,
        )

    return Noise(operator, disturb=disturb, weight_numbers=lambda n_rows: 1)


def total(parts: Sequence[tuple[Noise, float]]) -> Noise:
    """Return the sum of independent structures, each with its own strength.

    The sum's own strength multiplies those: 1 leaves them as given. All parts act on the same
    clean state, so that second moments add without cross terms. Source: theory page, equation (21).
    Raises ValueError without parts.
    """
    if not parts:
        raise ValueError("a sum of noise structures needs at least one part")

    noises, strengths = [noise for noise, _ in parts], [own for _, own in parts]

    def factor(standard_normal: Tensor, strength: Strength, size: int) -> Tensor | None:
        own = torch.split(standard_normal, [n.state_numbers(size) for n in noises], dim=-2)
        found = [
            noise.factor(normal, strength * s, size)
            for noise, s, normal in zip(noises, strengths, own, strict=True)
        ]
        moves = [factor - 1 for factor in found if factor is not None]
        return functools.reduce(torch.add, moves) + 1 if moves else None

    def disturb(
        state: Tensor, weights: Tensor, standard_normal: Tensor, strength: Strength
    ) -> Tensor | None:
        sizes = [noise.weight_numbers(weights.shape[-2]) for noise in noises]
        own = torch.split(standard_normal, sizes, dim=-2)
        found = [
            noise.disturb(state, weights, normal, strength * s)
            for noise, s, normal in zip(noises, strengths, own, strict=True)
        ]
        present = [disturbance for disturbance in found if disturbance is not None]
        return torch.stack(present).sum(0) if present else None

    def operator(step: Linearisation, strength: float) -> Operator:
        return functools.reduce(
            operators.combine, (noise.operator(step, strength * own) for noise, own in parts)
        )

    return Noise(
        operator,
        factor,
        disturb,
        lambda n_units: sum(noise.state_numbers(n_units) for noise in noises),
        lambda n_rows: sum(noise.weight_numbers(n_rows) for noise in noises),
        _total_frozen(parts),
    )


def rows_of_gates(gates: Sequence[int], hidden: int, n_gates: int = 3) -> Tensor:
    """Return a pattern (R, 1) that is 1 on the rows of the chosen gates and 0 elsewhere.

    In a GRU the gates 0, 1, 2 are reset, update and candidate. Raises IndexError for others.
    """
    pattern = torch.zeros(n_gates, hidden, dtype=torch.float64)
    pattern[list(gates)] = 1
    return pattern.reshape(-1, 1)


def _weight_errors(frozen: Frozen) -> Noise:
    """Return the white structure that redraws independent weight errors at every step."""

    def disturb(state: Tensor, weights: Tensor, normal: Tensor, strength: Strength) -> Tensor:
        # Given the state, row i receives sum_j E_ij h_j; rows and steps have errors of their own,
        # so the sums are independent, and normal where the errors are: exactly the same process
        # as with errors drawn weight by weight, for R numbers instead of R N.
        variance = frozen.variance(weights, strength) @ state.square()
        # Where nothing is disturbed the root has no slope, and training needs none.
        nothing = variance == 0
        return variance.masked_fill(nothing, 1).sqrt().masked_fill(nothing, 0) * normal

    def operator(step: Linearisation, strength: float) -> Operator:
        require_strength(strength)
        # A variance for each weight that there is, and zeros where no weight connects.
        weights = step.reading(frozen.variance(step.weights, strength))
        return operators.noiseless(step.jacobian)._replace(
            directions=step.recurrent, weights=weights
        )

    return Noise(operator, disturb=disturb, weight_numbers=_all, frozen=frozen)


def _total_frozen(parts: Sequence[tuple[Noise, float]]) -> Frozen | None:
    frozen = [(noise.frozen, own) for noise, own in parts if noise.frozen is not None]
    if len(frozen) < len(parts):
        return None

    def variance(weights: Tensor, strength: Strength) -> Tensor:
        return torch.stack([f.variance(weights, strength * own) for f, own in frozen]).sum(0)

    def draw(weights: Tensor, strength: float, rng: np.random.Generator) -> Tensor:
        return torch.stack([f.draw(weights, strength * own, rng) for f, own in frozen]).sum(0)

    return Frozen(variance, draw)


def _patterned(weights: Tensor, pattern: Tensor | None) -> Tensor:
    if pattern is None:
        return weights
    rows, units = weights.shape[-2:]
    fits = pattern.dim() <= 2 and all(
        own in (1, size) for own, size in zip(reversed(pattern.shape), (units, rows), strict=False)
    )
    if not fits:
        raise ValueError(
            f"pattern of weight noise of shape {tuple(pattern.shape)}: it must broadcast against "
            f"the recurrent weights, {rows} x {units}"
        )
    return weights * pattern.to(weights)


def require_strength(strength: float) -> None:
    """Raise ValueError unless a noise level is a number that is not negative."""
    if not (math.isfinite(strength) and strength >= 0):
        raise ValueError(f"noise level {strength}: it must be a number, and not negative")


def _require_shape(name: str, given: Tensor | None, expected: tuple[int | None, ...]) -> None:
    """Raise ValueError for another shape; None stands for any size."""
    if given is None:
        return
    fits = given.dim() == len(expected) and all(
        size in (None, own) for own, size in zip(given.shape, expected, strict=True)
    )
    if not fits:
        wanted = " x ".join("any" if size is None else str(size) for size in expected)
        raise ValueError(f"{name} of shape {tuple(given.shape)}: it must be {wanted}")


NOISES: dict[str, Noise] = {
    "unit": unit(),
    "gain": gain(),
    "weight": weight(),
    "quantisation": quantisation(),
}
"""The structures that a Study may name; patterns and sums are made by the functions above."""

for _name in NOISES:
    declare("noise", _name)
