import numpy as np
import pytest
import torch
from plain import networks, normal
from torch import Tensor

from msstab import cells, evaluation, noise, operators
from msstab.cells import Linearisation
from msstab.noise import NOISES, Noise
from msstab.noisy import noisy_step, normal_numbers

N, ROWS = 4, 12
HALVES = torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]], dtype=torch.float64)
UNEQUAL = torch.tensor([1.0, 1.0, 0.5, 0.0], dtype=torch.float64)
STRUCTURES: dict[str, Noise] = {
    **NOISES,
    "unit groups of their own strengths": noise.unit(UNEQUAL),
    "unit groups that share their noise": noise.gain(HALVES),
    "weights of one gate": noise.weight(noise.rows_of_gates([2], N)),
    "weights from one group": noise.weight(UNEQUAL),
    "rounding of two gates": noise.quantisation(noise.rows_of_gates([0, 1], N)),
    "low rank": noise.low_rank(normal(ROWS, seed=5), normal(N, seed=6)),
    "two state noises": noise.total([(NOISES["unit"], 0.5), (NOISES["gain"], 0.7)]),
    "noise of every kind": noise.total(
        [
            (noise.gain(HALVES), 0.4),
            (NOISES["weight"], 0.3),
            (noise.low_rank(normal(ROWS, seed=7), normal(N, seed=8)), 0.2),
            (NOISES["unit"], 0.5),
            (NOISES["quantisation"], 0.6),
        ]
    ),
}
# The same for the weights of layers of half as many units; the state has as many rows as before.
SMALL = noise.low_rank(normal(6, seed=5), normal(2, seed=6))
HALVED: dict[str, Noise] = {
    "weights of one gate": noise.weight(noise.rows_of_gates([2], 2)),
    "weights from one group": noise.weight(UNEQUAL[1:3]),
    "rounding of two gates": noise.quantisation(noise.rows_of_gates([0, 1], 2)),
    "low rank": SMALL,
    "noise of every kind": noise.total(
        [(noise.gain(HALVES), 0.4), (NOISES["weight"], 0.3), (SMALL, 0.2), (NOISES["unit"], 0.5)]
    ),
}
every_structure = pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)


def linear_step(*leading: int, seed: int = 0, closed_loop: bool = False) -> Linearisation:
    """A step h' = J h + K (W h - W h_0), in which noise enters as in a network."""
    jacobian = normal(*leading, N, N, seed=seed)
    entry = normal(*leading, N, N, seed=seed + 1) if closed_loop else jacobian
    recurrent, weight = normal(*leading, N, ROWS, seed=seed + 2), normal(ROWS, N, seed=seed + 3)
    return Linearisation(jacobian, recurrent, normal(*leading, N, 1), weight[None], entry)


def numbers(structure: Noise, draws: int, seed: int) -> tuple[Tensor, Tensor]:
    """Standard normal numbers for the state and for the weights."""
    return (
        normal(structure.state_numbers(N), draws, seed=seed),
        normal(structure.weight_numbers(ROWS), draws, seed=seed + 1),
    )


# ---- prediction beside simulation


@every_structure
@pytest.mark.parametrize("closed_loop", [False, True])
def test_what_is_simulated_is_what_is_predicted(structure: Noise, closed_loop: bool) -> None:
    """One linear step from a random deviation, by the samplers and by L + Q."""
    draws, strength = 400_000, 0.8
    step = linear_step(closed_loop=closed_loop)
    factor, state = normal(N, N, seed=1), normal(N, seed=2)
    deviation = factor @ normal(N, draws, seed=3)
    start = state[:, None] + deviation
    of_state, of_weights = numbers(structure, draws, seed=4)
    after = step.jacobian @ deviation
    after += step.entry @ (structure.perturb(start, of_state, strength) - start)
    disturbance = structure.disturb(start, step.weight, of_weights, strength)
    if disturbance is not None:
        after += step.recurrent @ disturbance
    operator = structure.operator(step, strength)
    expected = operators.propagate(operator, factor @ factor.T, state)
    # An entry of a covariance from 400 000 draws errs by less than 1% of the largest.
    assert (after @ after.T / draws - expected).abs().max() < 0.015 * expected.abs().max()
    # The noise must matter for the comparison to say anything about it.
    clean = step.jacobian @ factor @ factor.T @ step.jacobian.T
    assert (expected - clean).abs().max() > 0.05 * expected.abs().max()


@every_structure
def test_no_noise_perturbs_nothing(structure: Noise) -> None:
    state, weight = normal(2, N, 5), normal(2, ROWS, N)
    of_state, of_weights = numbers(structure, 5, seed=1)
    assert torch.equal(structure.perturb(state, of_state, 0.0), state)
    disturbance = structure.disturb(state, weight, of_weights, 0.0)
    assert disturbance is None or not disturbance.any()
    step, moment = linear_step(), normal(N, N) @ normal(N, N).T
    found = operators.propagate(structure.operator(step, 0.0), moment, normal(N))
    torch.testing.assert_close(found, step.jacobian @ moment @ step.jacobian.T)


@pytest.mark.parametrize("name", ["weight", "quantisation"])
def test_redrawn_weights_and_disturbed_pre_activations_are_one_process(name: str) -> None:
    structure, draws, strength = NOISES[name], 100_000, 0.7
    assert structure.frozen is not None
    weight, state = normal(ROWS, N), normal(N, seed=1)
    errors = structure.frozen.draw(
        weight.expand(draws, ROWS, N), strength, np.random.default_rng(2)
    )
    redrawn = errors @ state
    disturbance = structure.disturb(
        state[:, None].expand(N, draws), weight, normal(ROWS, draws, seed=3), strength
    )
    assert disturbance is not None
    for order, limit in ((2, 0.03), (4, 0.1 if name == "weight" else 0.5)):
        ratio = (redrawn**order).mean(0) / (disturbance**order).mean(1)
        assert (ratio - 1).abs().max() < limit
    covariance = redrawn.T @ redrawn / draws
    off = covariance - torch.diag(torch.diag(covariance))
    assert off.abs().max() < 0.02 * covariance.max()


@pytest.mark.parametrize("structure", [NOISES["weight"], NOISES["quantisation"]])
def test_frozen_errors_have_the_variance_they_claim(structure: Noise) -> None:
    both = noise.total([(structure, 0.5), (noise.weight(noise.rows_of_gates([1], N)), 0.4)])
    for given in (structure, both):
        assert given.frozen is not None
        weight = normal(ROWS, N)
        draws = given.frozen.draw(weight.expand(100_000, ROWS, N), 0.3, np.random.default_rng(0))
        expected = given.frozen.variance(weight, 0.3)
        assert (draws.square().mean(0) / expected - 1).abs().max() < 0.04
        assert (draws.mean(0) / expected.sqrt()).abs().max() < 0.02


def test_rounding_to_a_grid_errs_as_quantisation_says() -> None:
    """Widrow's model: rounding 200 000 real numbers to multiples of the step."""
    weight, delta = normal(20_000, 10), 0.05
    errors = torch.round(weight / delta) * delta - weight
    assert NOISES["quantisation"].frozen is not None
    variance = NOISES["quantisation"].frozen.variance(weight, delta)[0, 0]
    assert float(errors.square().mean() / variance) == pytest.approx(1, abs=0.01)
    drawn = NOISES["quantisation"].frozen.draw(weight, delta, np.random.default_rng(0))
    assert float(drawn.abs().max()) <= delta / 2


# ---- structures that are special cases of others


def operator_matrix(structure: Noise, strength: float = 0.6) -> Tensor:
    return operators.matrix(structure.operator(linear_step(2), strength))


@pytest.mark.parametrize(
    ("general", "special"),
    [
        (noise.gain(torch.ones(1, N)), NOISES["gain"]),
        (noise.gain(torch.eye(N)), NOISES["unit"]),
        (noise.unit(torch.ones(N)), NOISES["unit"]),
        (noise.weight(noise.rows_of_gates([0, 1, 2], N)), NOISES["weight"]),
        (noise.total([(NOISES["weight"], 0.6), (NOISES["weight"], 0.8)]), NOISES["weight"]),
        (
            noise.total([(noise.weight(noise.rows_of_gates([gate], N)), 1.0) for gate in range(3)]),
            NOISES["weight"],
        ),
    ],
)
def test_a_structure_contains_its_special_cases(general: Noise, special: Noise) -> None:
    torch.testing.assert_close(operator_matrix(general), operator_matrix(special))


def test_unit_samples_are_those_of_the_plain_formula_to_the_bit() -> None:
    state, normals = normal(2, N, 5).float(), normal(N, 5, seed=1).float()
    found = NOISES["unit"].perturb(state, normals, 0.2)
    assert torch.equal(found, state * (1 + 0.2 * normals))


def test_the_parts_of_a_sum_have_numbers_of_their_own() -> None:
    """Equal numbers for both parts would add amplitudes, where variances must add."""
    twice = noise.total([(NOISES["unit"], 1.0), (NOISES["unit"], 1.0)])
    assert twice.state_numbers(N) == 2 * N
    moved = twice.perturb(torch.ones(N, 1), torch.cat([torch.ones(N, 1), -torch.ones(N, 1)]), 0.5)
    assert torch.equal(moved, torch.ones(N, 1))


def test_a_sum_needs_parts() -> None:
    with pytest.raises(ValueError, match="at least one part"):
        noise.total([])


def test_a_sum_with_state_noise_cannot_be_frozen() -> None:
    assert noise.total([(NOISES["weight"], 1.0), (NOISES["unit"], 1.0)]).frozen is None


# ---- in a network


@pytest.mark.parametrize(("name", "structure"), STRUCTURES.items(), ids=STRUCTURES)
@pytest.mark.parametrize("layers", [1, 2])
def test_a_networks_noisy_step_has_the_predicted_second_moment(
    name: str, structure: Noise, layers: int
) -> None:
    """A whole state in either case: one layer of N units, or two of half as many."""
    if layers == 2:
        structure = HALVED.get(name, structure)
    parameters, draws, strength = (
        networks(1, N // layers, 2, layers=layers, gain=2.0),
        200_000,
        0.05,
    )
    state, inputs = normal(1, N, 1), normal(1, 2, 1, seed=1)
    count = normal_numbers(parameters, structure)
    after = noisy_step(
        parameters,
        state.expand(1, N, draws),
        inputs.expand(1, 2, draws),
        structure,
        strength,
        normal(count, draws, seed=2),
    )
    deviation = (after - cells.step(parameters, state, inputs))[0]
    observed = deviation @ deviation.T / draws
    operator = structure.operator(cells.linearise(parameters, state, inputs), strength)
    expected = operators.propagate(
        operator, torch.zeros(1, 1, N, N, dtype=torch.float64), state.transpose(1, 2)
    )[0, 0]
    assert (observed - expected).abs().max() < 0.03 * expected.abs().max()


@pytest.mark.parametrize("cell", cells.CELLS)
@pytest.mark.parametrize("layers", [1, 2])
def test_rounding_errors_are_those_of_the_weights_that_exist(cell: str, layers: int) -> None:
    parameters = networks(1, 3, cell=cell, layers=layers)
    size = parameters.state_size
    state, inputs = normal(1, size, 1), normal(1, 1, 1, seed=1)
    step = cells.linearise(parameters, state, inputs)
    found = NOISES["quantisation"].operator(step, 0.5).weights[0, 0]
    expected = torch.zeros_like(found)
    for k, weight in enumerate(parameters.recurrent):
        rows = slice(k * weight.shape[1], (k + 1) * weight.shape[1])
        expected[rows, 3 * k : 3 * k + 3] = 0.5**2 / 12
    torch.testing.assert_close(found, expected, rtol=1e-14, atol=0)


# ---- the operator's algebra


@every_structure
def test_apply_adjoint_and_matrix_are_one_operator(structure: Noise) -> None:
    step = linear_step(3, closed_loop=True)
    operator = structure.operator(step, 0.7)
    moment, other = normal(3, N, N, seed=8), normal(3, N, N, seed=9)
    image, back = operators.apply(operator, moment), operators.adjoint(operator, other)
    torch.testing.assert_close((other * image).sum((1, 2)), (back * moment).sum((1, 2)))
    vector = operators.matrix(operator) @ moment.flatten(1)[..., None]
    torch.testing.assert_close(vector.view(3, N, N), image)


@every_structure
def test_second_moments_stay_positive(structure: Noise) -> None:
    operator = structure.operator(linear_step(3), 0.7)
    factor = normal(3, N, 1)
    image = operators.apply(operator, factor @ factor.mT)
    assert torch.linalg.eigvalsh(image).min() > -1e-12


# ---- what cannot be used


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("level", [-0.1, float("nan"), float("inf")])
def test_a_level_that_is_no_level_is_refused(name: str, level: float) -> None:
    parameters = networks(1, 3)
    state, inputs = normal(1, 3, 2), normal(1, 1, 2)
    with pytest.raises(ValueError, match=f"noise level {level}: it must be a number"):
        NOISES[name].operator(cells.linearise(parameters, state, inputs), level)
    with pytest.raises(ValueError, match=f"noise level {level}"):
        evaluation.noisy_run(
            parameters, inputs[None], normal(1, 1, 2), NOISES[name], level, 2,
            np.random.default_rng(0),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("structure", "said"),
    [
        (noise.unit(torch.ones(2)), r"pattern of unit noise of shape \(2,\): it must be 3"),
        (noise.unit(torch.ones(3, 1)), r"pattern of unit noise of shape \(3, 1\)"),
        (noise.gain(torch.ones(2, 4)), r"groups of gain noise of shape \(2, 4\): .* any x 3"),
        (noise.gain(torch.ones(3)), "groups of gain noise"),
        (noise.weight(torch.ones(3, 3)), r"weight noise of shape \(3, 3\): .* 9 x 3"),
        (noise.quantisation(torch.ones(9, 2)), "9 x 3"),
        (noise.quantisation(torch.ones(1, 9, 3)), "9 x 3"),
        (noise.low_rank(torch.ones(8), torch.ones(3)), r"left vector .* it must be 9"),
        (noise.low_rank(torch.ones(9), torch.ones(4)), r"right vector .* it must be 3"),
        (noise.total([(noise.unit(), 1.0), (noise.unit(torch.ones(5)), 1.0)]), "it must be 3"),
    ],
)
def test_a_pattern_that_does_not_fit_is_refused(structure: Noise, said: str) -> None:
    step = cells.linearise(networks(1, 3), normal(1, 3, 2), normal(1, 1, 2))
    with pytest.raises(ValueError, match=said):
        structure.operator(step, 0.2)


@pytest.mark.parametrize("shape", [(3,), (9, 1), (1, 3), (9, 3), (1, 1), ()])
def test_every_pattern_that_broadcasts_against_the_weights_fits(shape: tuple[int, ...]) -> None:
    step = cells.linearise(networks(1, 3), normal(1, 3, 2), normal(1, 1, 2))
    pattern = torch.ones(shape)
    with_pattern, without = (noise.weight(p).operator(step, 0.2) for p in (pattern, None))
    assert torch.equal(with_pattern.weights, without.weights)
