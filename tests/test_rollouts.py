from collections.abc import Iterator

import numpy as np
import plain
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from msstab import cells
from msstab.cells import Parameters
from msstab.noise import NOISES
from msstab.rollouts import climates, deviations, growing
from msstab.rollouts.running import (
    closed_linearisations,
    continued,
    free_run,
    free_states,
)

KINDS = [("gru", 1), ("lstm", 1), ("rnn", 1), ("gru", 2), ("lstm", 2)]


def one_by_one(parameters: Parameters, model: int, inputs: Tensor, steps: int) -> Tensor:
    """Forecasts (F, B, D) of a free run in torch's own modules, from inputs (T, B, D)."""
    recurrent, linear = plain.modules(parameters, model)
    found = []
    with torch.no_grad():
        outputs, state = recurrent(inputs)
        for _ in range(steps):
            found.append(linear(outputs[-1]))
            outputs, state = recurrent(found[-1][None], state)
    return torch.stack(found)


@pytest.mark.parametrize(("cell", "layers"), KINDS)
def test_a_free_run_feeds_each_forecast_back(cell: str, layers: int) -> None:
    parameters = plain.networks(2, 6, 2, 2, cell=cell, layers=layers, gain=2.0)
    inputs = plain.normal(5, 2, 2, 3)
    outputs = free_run(parameters, inputs, 20)
    for model in range(2):
        expected = one_by_one(parameters, model, inputs[:, model].transpose(1, 2), 20)
        assert torch.allclose(outputs[:, model].transpose(1, 2), expected, atol=1e-12)


def test_the_first_forecast_is_that_of_the_window() -> None:
    parameters, inputs = plain.networks(2, 6, 2, 2), plain.normal(5, 2, 2, 3)
    window = cells.forecast(parameters, inputs)
    assert torch.allclose(free_run(parameters, inputs, 1)[0], window, atol=1e-14)


def test_a_network_runs_freely_the_same_in_any_company() -> None:
    parameters = plain.networks(3, 7, 1, 1, gain=2.0, dtype=torch.float32)
    inputs = plain.normal(5, 3, 1, 4, dtype=torch.float32)
    together = free_run(parameters, inputs, 30, (NOISES["unit"], 0.2, np.random.default_rng(0)))
    alone = free_run(
        parameters.select([1]), inputs[:, [1]], 30,
        (NOISES["unit"], 0.2, np.random.default_rng(0)),
    )  # fmt: skip
    assert torch.equal(together[:, [1]], alone)


def test_outputs_that_are_not_the_inputs_are_refused() -> None:
    parameters = plain.networks(1, 4, 2, 1)
    with pytest.raises(ValueError, match="1 outputs cannot be fed back as 2 inputs"):
        free_run(parameters, plain.normal(5, 1, 2, 3), 2)


def test_noise_multiplies_the_state_before_every_step_of_window_and_free_run() -> None:
    parameters, sigma = plain.networks(1, 4, 1, 1, gain=2.0), 0.3
    inputs = plain.normal(3, 1, 1, 16)
    outputs = free_run(
        parameters, inputs, 4, (NOISES["unit"], sigma, np.random.default_rng(5))
    )[:, 0, 0]  # fmt: skip
    rng, column = np.random.default_rng(5), 2
    state = torch.zeros(4, dtype=torch.float64)
    found: list[Tensor] = []
    readout, bias = parameters.weight_out[0], parameters.bias_out[0]
    for t in range(6):
        given = inputs[t, 0, :, column] if t < 3 else found[-1]
        eps = torch.as_tensor(rng.standard_normal((4, 16)))[:, column]
        state = plain.step(parameters, 0, state * (1 + sigma * eps), given)
        if t >= 2:
            found.append(readout @ state + bias)
    assert torch.allclose(outputs[:, column], torch.cat(found), atol=1e-12)


def test_without_noise_a_disturbance_changes_nothing() -> None:
    parameters, inputs = plain.networks(2, 6, 1, 1), plain.normal(5, 2, 1, 3)
    still = (NOISES["unit"], 0.0, np.random.default_rng(0))
    assert torch.allclose(free_run(parameters, inputs, 9), free_run(parameters, inputs, 9, still))


def test_a_run_is_continued_from_its_states() -> None:
    parameters, inputs = plain.networks(2, 6, 1, 1, gain=2.0), plain.normal(5, 2, 1, 3)
    states = list(free_states(parameters, inputs, 10))
    later = list(continued(parameters, states[3], 6))
    assert torch.allclose(torch.stack(later), torch.stack(states[4:]), atol=1e-12)


def test_copies_meet_the_same_noise_and_sequences_their_own() -> None:
    parameters = plain.networks(1, 6, 1, 1, gain=2.0)
    state = plain.normal(1, 6, 1).repeat(1, 1, 4)
    noise = (NOISES["unit"], 0.2, np.random.default_rng(0))
    *_, last = continued(parameters, state, 5, noise, copies=2)
    assert torch.equal(last[..., :2], last[..., 2:])
    assert not torch.allclose(last[..., 0], last[..., 1])


@pytest.mark.parametrize(("cell", "layers"), KINDS)
def test_the_closed_loops_jacobian_is_that_of_the_whole_step(cell: str, layers: int) -> None:
    parameters = plain.networks(2, 4, 2, 2, cell=cell, layers=layers, gain=2.0)
    state = plain.normal(2, parameters.state_size, 3)
    (made,) = closed_linearisations(parameters, [state])

    def closed(model: int, h: Tensor) -> Tensor:
        forecast = parameters.weight_out[model] @ h[:4] + parameters.bias_out[model]
        return plain.step(parameters, model, h, forecast)

    for model in range(2):
        expected = torch.func.jacrev(lambda h, m=model: closed(m, h))(state[model, :, 1])
        assert torch.allclose(made.jacobian[model, 1], expected, atol=1e-12)


def linear_network(seed: int = 0) -> tuple[Parameters, NDArray[np.float64]]:
    """A plain network so near to zero that it is linear, and the matrix of its free run."""
    drawn = plain.networks(1, 5, 2, 2, cell="rnn", seed=seed, gain=2.0)
    tensors = [t if t.dim() == 3 else torch.zeros_like(t) for t in drawn]
    parameters = drawn.like(tensors)
    w_in, w, w_out = (tensors[k][0].numpy() for k in (0, 1, 4))
    return parameters, np.asarray(w + w_in @ w_out)


def test_growth_in_a_linear_network_is_the_log_of_its_spectral_radius() -> None:
    parameters, matrix = linear_network(3)
    eigenvalues = np.linalg.eigvals(matrix)
    expected = np.log(np.abs(eigenvalues).max())
    # A complex pair would turn and stretch from step to step, so that the mean takes longer.
    steps = 1500
    start = torch.full((1, 5, 1), 1e-30, dtype=torch.float64)
    states = [start] * steps
    jacobians = (step.jacobian for step in closed_linearisations(parameters, states))
    first = plain.normal(1, 1, 5)
    assert growing.exponent(jacobians, first, 100).item() == pytest.approx(expected, abs=4e-3)


def henon_jacobians(steps: int, x: float = 0.1, y: float = 0.1) -> Iterator[Tensor]:
    for _ in range(steps):
        yield torch.tensor([[-2.8 * x, 1.0], [0.3, 0.0]], dtype=torch.float64)
        x, y = 1 - 1.4 * x * x + y, 0.3 * x


def test_the_exponent_of_the_henon_map_is_the_published_one() -> None:
    first = torch.tensor([1.0, 0.0], dtype=torch.float64)
    found = growing.exponent(henon_jacobians(20_000), first, settle=100)
    assert found.item() == pytest.approx(0.4192, abs=0.006)  # Sprott (2003)


def test_an_exponent_needs_steps_after_those_that_settle() -> None:
    with pytest.raises(ValueError, match="5 steps leave none after 5 to settle"):
        growing.exponent(henon_jacobians(5), torch.ones(2, dtype=torch.float64), settle=5)


def trained_like(cell: str = "gru") -> tuple[Parameters, Tensor]:
    """Networks whose free runs keep going, and states on them."""
    parameters = plain.networks(2, 8, 1, 1, cell=cell, gain=5.0)
    *_, state = free_states(parameters, plain.normal(5, 2, 1, 4), 50)
    return parameters, state


@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
def test_a_neighbour_grows_as_the_jacobians_say(cell: str) -> None:
    parameters, start = trained_like(cell)
    states = [start, *continued(parameters, start, 199)]
    jacobians = [step.jacobian for step in closed_linearisations(parameters, states)]
    first = plain.normal(2, 4, parameters.state_size)
    predicted = growing.exponent(jacobians, first, settle=20)
    observed = growing.observed_exponent(parameters, start, first, steps=200, settle=20)
    assert torch.allclose(predicted, observed, atol=1e-5)
    # Another network's are not those of this one.
    assert not torch.allclose(predicted.flip(0), observed, atol=1e-3)


def test_growth_under_gain_noise_of_one_linear_unit_is_known() -> None:
    w, w_in, w_out, sigma = 0.9, 0.5, -0.3, 0.4
    one = plain.networks(1, 1, 1, 1, cell="rnn")
    parameters = one.like(
        torch.full_like(t, value)
        for t, value in zip(one, (w_in, w, 0.0, 0.0, w_out, 0.0), strict=True)
    )
    # The noise meets what is stored, not the forecast of the state that is fed back.
    expected = np.log((w + w_in * w_out) ** 2 + sigma**2 * w**2) / 2
    states = [torch.zeros(1, 1, 2, dtype=torch.float64)] * 12
    steps = list(closed_linearisations(parameters, states))
    predicted = growing.moment_growth(steps, NOISES["gain"], sigma, settle=3)
    assert predicted.numpy() == pytest.approx(expected, abs=1e-12)
    draws = 20_000
    observed = growing.observed_moment_growth(
        parameters, states[0], (NOISES["gain"], sigma, np.random.default_rng(0)),
        growing.directions(np.random.default_rng(1), parameters, 2 * draws), steps=4, settle=1,
    )  # fmt: skip
    assert observed.numpy() == pytest.approx(expected, abs=0.03)


def test_growth_under_little_noise_in_a_network_is_that_of_its_own_jacobians() -> None:
    parameters, start = trained_like()
    sigma, steps, settle = 0.02, 12, 2
    states = [start, *continued(parameters, start, steps - 1)]
    linearised = list(closed_linearisations(parameters, states))
    predicted = growing.moment_growth(linearised, NOISES["unit"], sigma, settle)
    away = growing.directions(np.random.default_rng(1), parameters, 4 * 2048)
    observed = growing.observed_moment_growth(
        parameters, start, (NOISES["unit"], sigma, np.random.default_rng(0)), away,
        steps=steps, settle=settle,
    )  # fmt: skip
    error, placebo = (
        (made - observed).square().mean().sqrt() for made in (predicted, predicted.flip(0))
    )
    assert error < 0.002
    assert placebo > 10 * error


def henon(n: int, steps: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """True trajectories (N, F, 1) of the Henon map's first coordinate."""
    return follow(rng.uniform(-0.1, 0.1, (2, n)), 100 + steps)[:, 100:]


def follow(state: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    path = []
    for _ in range(steps):
        state = np.array([1 - 1.4 * state[0] ** 2 + state[1], 0.3 * state[0]])
        path.append(state[0])
    return np.array(path).T[..., None]


def test_the_exact_map_never_errs() -> None:
    truth = henon(8, 50, np.random.default_rng(0))
    squared = deviations.squared_errors(truth, truth, deviations.signal(truth))
    assert (squared == 0).all()
    assert (deviations.valid_times(squared) == 51).all()


def test_valid_time_of_a_chaotic_map_follows_from_its_exponent() -> None:
    rng = np.random.default_rng(0)
    start = rng.uniform(-0.1, 0.1, (2, 400))
    truth, near = (follow(start + d, 150)[:, 20:] for d in (0.0, 1e-12))
    true = deviations.signal(truth)
    size = np.abs(near[:, 0, 0] - truth[:, 0, 0]) / true.deviation
    valid = deviations.valid_times(deviations.squared_errors(near, truth, true))
    expected = np.log(deviations.THRESHOLD / size) / 0.4192
    assert valid.mean() == pytest.approx(expected.mean(), rel=0.05)


def test_independent_trajectories_err_by_the_saturation_level() -> None:
    one, other = (henon(2000, 20, np.random.default_rng(seed)) for seed in (0, 1))
    squared = deviations.squared_errors(one, other, deviations.signal(other))
    assert np.sqrt(squared.mean()) == pytest.approx(deviations.SATURATION, rel=0.02)


def test_components_count_alike_in_their_own_deviations() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(50, 20, 2)) * [1, 100]
    true = deviations.signal(truth)
    outputs = truth + true.deviation * [0.5, 2]
    assert deviations.squared_errors(outputs, truth, true) == pytest.approx((0.25 + 4) / 2)


def test_the_valid_time_is_the_first_step_beyond_the_threshold_even_if_it_comes_back() -> None:
    squared = np.array([[0.0, 0.3, 0.0], [0.0, 0.16, 0.1], [0.2, 0.0, 0.0]])
    assert deviations.valid_times(squared).tolist() == [2, 4, 1]


def test_a_run_without_numbers_counts_with_the_largest_error() -> None:
    truth = henon(4, 20, np.random.default_rng(0))
    true = deviations.signal(truth)
    outputs = truth.copy()
    outputs[0, 5:], outputs[1, 5:], outputs[2, 5:] = np.nan, np.inf, 1e30
    squared = deviations.squared_errors(outputs, truth, true)
    assert np.isfinite(squared).all()
    assert (squared[:3, 5:] > (deviations.FARTHEST - 3) ** 2).all()
    assert deviations.valid_times(squared).tolist() == [6, 6, 6, 21]
    assert deviations.not_finite(outputs).tolist() == [True, True, False, False]
    assert deviations.leaves_range(outputs, true).tolist() == [True, True, True, False]


def test_a_run_leaves_the_range_half_its_length_beyond_an_end() -> None:
    truth = henon(4, 200, np.random.default_rng(0))
    true = deviations.signal(truth)
    length, runs = true.high - true.low, np.repeat(truth[:1], 3, axis=0)
    runs[0, 7], runs[1, 7], runs[2, 7] = (
        true.high + 0.49 * length, true.high + 0.51 * length, true.low - 0.51 * length,
    )  # fmt: skip
    assert deviations.leaves_range(runs, true).tolist() == [False, True, True]


def test_a_run_stands_still_if_nothing_moves_in_its_second_half() -> None:
    truth = np.random.default_rng(0).normal(size=(4, 40, 2))
    runs = truth.copy()
    runs[0, 18:] = runs[0, 18]
    runs[1, :20] = runs[1, 0]
    runs[2, 18:, 0] = runs[2, 18, 0]
    found = deviations.stands_still(runs, deviations.signal(truth))
    assert found.tolist() == [True, False, False, False]


def test_the_distance_of_shifted_values_is_the_shift() -> None:
    truth = np.random.default_rng(0).normal(size=(8, 30, 2)) * [1, 50]
    true = deviations.signal(truth)
    shifted = truth + 0.3 * true.deviation
    assert climates.histogram_distance(shifted, truth, true) == pytest.approx(0.3)
    assert climates.histogram_distance(truth[:, ::-1], truth, true) == pytest.approx(0, abs=1e-12)


def waves(frequency: float, rng: np.random.Generator) -> NDArray[np.float64]:
    phases = rng.uniform(0, 2 * np.pi, (16, 1, 1))
    return np.asarray(np.sin(2 * np.pi * frequency * np.arange(256)[None, :, None] + phases))


def test_spectra_tell_frequencies_apart_and_neither_phase_nor_size() -> None:
    rng = np.random.default_rng(0)
    truth = waves(0.1, rng)
    true = deviations.signal(truth)
    same, other = waves(0.1, rng), waves(0.2, rng)
    assert climates.spectrum_distance(3 * same, truth, true) < 0.02
    assert climates.spectrum_distance(other, truth, true) > 0.95


def test_a_run_that_stands_still_has_no_spectrum_in_common() -> None:
    truth = waves(0.1, np.random.default_rng(0))
    true = deviations.signal(truth)
    assert climates.spectrum_distance(np.full_like(truth, 0.7), truth, true) == 1


def test_a_climate_of_runs_without_numbers_is_far_away() -> None:
    truth = waves(0.1, np.random.default_rng(0))
    true = deviations.signal(truth)
    nothing = np.full_like(truth, np.nan)
    assert climates.histogram_distance(nothing, truth, true) == pytest.approx(10, abs=0.1)
    assert climates.spectrum_distance(nothing, truth, true) == 1
