import numpy as np
import pytest
import torch
from plain import jacobian, modules, networks, normal, states
from torch import Tensor

from msstab import cells, evaluation
from msstab.cells import Parameters
from msstab.evaluation import NoisyRun
from msstab.noise import NOISES, Strength
from msstab.tracks import Array, Data, Split

UNIT = NOISES["unit"]

every_network = pytest.mark.parametrize(
    ("cell", "layers"), [(cell, layers) for cell in cells.CELLS for layers in (1, 2)]
)


def split(n: int, seed: int, *, length: int = 3, outputs: int = 1) -> Split:
    """Inputs (n, length, 2) and targets that follow from them linearly, with noise."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n, length, 2))
    mixing = np.random.default_rng(99).normal(size=(length * 2, outputs))
    targets = 0.7 + inputs.reshape(n, -1) @ mixing + 0.3 * rng.normal(size=(n, outputs))
    return Split(inputs, targets[:, None])


def data(n_train: int = 40) -> Data:
    return Data(split(n_train, 0), split(30, 1), split(50, 2))


def simulate(
    parameters: Parameters, inputs: Tensor, targets: Tensor, sigma: float, **changes: int
) -> NoisyRun:
    rng = np.random.default_rng(changes.get("seed", 0))
    draws = changes.get("draws", 5)
    return evaluation.noisy_run(parameters, inputs, targets, UNIT, sigma, draws, rng)


# ---- the clean error


@pytest.mark.parametrize(("n_outputs", "batch", "steps"), [(1, 16, 1), (2, 7, 1), (2, 7, 4)])
def test_the_error_is_that_of_torchs_forecasts(n_outputs: int, batch: int, steps: int) -> None:
    parameters = networks(3, 5, 2, n_outputs)
    inputs, targets = normal(6, 3, 2, batch), normal(3, steps * n_outputs, batch, seed=1)
    found = evaluation.squared_error(parameters, inputs, targets)
    for model in range(3):
        gru, linear = modules(parameters, model)
        forecasts = linear(gru(inputs[:, model].transpose(1, 2))[0][-steps:]).detach().numpy()
        own = targets[model].numpy().reshape(steps, n_outputs, batch).transpose(0, 2, 1)
        expected = np.mean((forecasts - own) ** 2)
        assert float(found[model]) == pytest.approx(expected, rel=1e-12)


def test_single_precision_errors_are_averaged_in_double() -> None:
    parameters = networks(1, 2, dtype=torch.float32)
    parameters = Parameters(*(torch.zeros_like(tensor) for tensor in parameters))
    targets = torch.full((1, 1, 3000), 0.1, dtype=torch.float32)
    error = evaluation.squared_error(parameters, torch.zeros(2, 1, 1, 3000), targets)
    assert float(error) == pytest.approx(float(np.float32(0.1)) ** 2, rel=1e-12)


def test_a_split_is_laid_out_for_one_model() -> None:
    given = split(4, 0, outputs=2)
    inputs, targets = evaluation.stack(given, torch.zeros(1, dtype=torch.float32))
    assert (inputs.shape, targets.shape) == ((3, 1, 2, 4), (1, 2, 4))
    assert inputs.dtype == targets.dtype == torch.float32
    assert inputs.is_contiguous()
    np.testing.assert_array_equal(inputs[2, 0, 1], given.inputs[:, 2, 1].astype(np.float32))
    np.testing.assert_array_equal(targets[0, 1], given.targets[:, 0, 1].astype(np.float32))
    several = Split(given.inputs, np.arange(24.0).reshape(4, 3, 2))
    _, targets = evaluation.stack(several, torch.zeros(1))
    np.testing.assert_array_equal(targets[0, :, 1], [6, 7, 8, 9, 10, 11])


# ---- with noise


@every_network
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_without_noise_the_noisy_run_is_the_clean_one(
    cell: str, layers: int, n_outputs: int
) -> None:
    parameters = networks(2, 5, 2, n_outputs, cell=cell, layers=layers)
    inputs, targets = normal(6, 2, 2, 7), normal(2, n_outputs, 7, seed=1)
    run = simulate(parameters, inputs, targets, 0.0)
    torch.testing.assert_close(run.output_variance, torch.zeros(2).double(), rtol=0, atol=1e-28)
    clean = evaluation.squared_error(parameters, inputs, targets)
    torch.testing.assert_close(run.squared_error, clean, rtol=1e-12, atol=0)
    for model in range(2):
        found = states(modules(parameters, model)[0], inputs[:, model].transpose(1, 2))
        power = found[:, :, : parameters.units].detach().square().sum(2).mean(1)
        torch.testing.assert_close(run.power[:, model], power, rtol=1e-12, atol=0)


def test_equal_streams_give_equal_noise_and_others_do_not() -> None:
    parameters = networks(1, 5, 2)
    inputs, targets = normal(6, 1, 2, 7), normal(1, 1, 7, seed=1)
    first, second = (simulate(parameters, inputs, targets, 0.3) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    other = simulate(parameters, inputs, targets, 0.3, seed=1)
    assert not torch.equal(first.output_variance, other.output_variance)


def test_all_models_of_a_call_meet_the_same_noise() -> None:
    one = networks(1, 5, 2)
    twins = one.select([0, 0])
    inputs, targets = normal(6, 1, 2, 7), normal(1, 1, 7, seed=1)
    alone = simulate(one, inputs, targets, 0.3)
    both = simulate(twins, inputs[:, [0, 0]], targets[[0, 0]], 0.3)
    torch.testing.assert_close(both.squared_error, alone.squared_error[[0, 0]])
    torch.testing.assert_close(both.output_variance, alone.output_variance[[0, 0]])
    torch.testing.assert_close(both.power, alone.power[:, [0, 0]])


@every_network
def test_noise_is_fresh_for_every_draw_sequence_unit_and_step(cell: str, layers: int) -> None:
    """A sampler that notes its noise instead of adding it."""
    seen = []

    def note(standard_normal: Tensor, sigma: Strength, size: int) -> None:
        assert len(standard_normal) == size
        seen.append(standard_normal)

    parameters = networks(1, 6, 2, cell=cell, layers=layers)
    inputs, targets = normal(4, 1, 2, 8), normal(1, 1, 8)
    noise = UNIT._replace(factor=note)
    evaluation.noisy_run(parameters, inputs, targets, noise, 0.3, 10, np.random.default_rng(0))
    numbers = torch.stack(seen).flatten().tolist()
    assert len(seen) == 4
    assert len(set(numbers)) == len(numbers) >= 4 * 6 * 80
    assert np.std(numbers) == pytest.approx(1, abs=0.05)


@every_network
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_one_step_of_noise_has_the_variance_of_its_linearisation(
    cell: str, layers: int, n_outputs: int
) -> None:
    # The state is zero before the first step, so that two steps carry noise once:
    # W J diag(sigma^2 h^2) J^T W^T, up to terms of fourth order in sigma.
    sigma = 0.02
    parameters = networks(1, 5, 2, n_outputs, cell=cell, layers=layers, gain=2.0)
    inputs, targets = normal(2, 1, 2, 3), normal(1, n_outputs, 3, seed=1)
    run = simulate(parameters, inputs, targets, sigma, draws=20_000)
    recurrent, linear = modules(parameters)
    expected, error = 0.0, 0.0
    for b in range(3):
        state = states(recurrent, inputs[:1, 0, None, :, b])[0, 0].detach()
        to_hidden = jacobian(parameters, 0, state, inputs[1, 0, :, b])[:5]
        swing = parameters.weight_out[0] @ to_hidden
        variance = float((swing * sigma * state).square().sum())
        expected += variance / 3
        clean = linear(recurrent(inputs[:, 0, :, b])[0][-1]).detach()
        error += float((clean - targets[0, :, b]).square().sum()) / 3
    assert float(run.output_variance) == pytest.approx(expected, rel=0.03)
    # Noise of mean zero adds its variance to the error, shared among the outputs.
    assert float(run.squared_error) == pytest.approx((error + expected) / n_outputs, rel=1e-3)


# ---- forecasters that learn nothing deep


def test_the_constant_forecast_is_the_training_mean() -> None:
    given = data()
    for part in given:
        expected = np.mean((part.targets - np.mean(given.train.targets)) ** 2)
        assert evaluation.constant_error(given, part) == pytest.approx(expected, rel=1e-12)


def test_persistence_forecasts_the_last_input() -> None:
    inputs = np.arange(12.0).reshape(2, 3, 2)
    targets = np.array([[4.0, 7.0], [10.0, 8.0]])
    assert evaluation.persistence_error(Split(inputs, targets[:, None])) == (0 + 4 + 0 + 9) / 4
    assert np.isnan(evaluation.persistence_error(split(5, 0)))


def least_squares(train: Split, test: Split) -> float:
    def design(part: Split) -> Array:
        rows: Array = np.c_[part.inputs.reshape(len(part.inputs), -1), np.ones(len(part.inputs))]
        return rows

    coefficients = np.linalg.lstsq(design(train), train.targets[:, 0], rcond=None)[0]
    return float(np.mean((design(test) @ coefficients - test.targets[:, 0]) ** 2))


def test_ridge_without_penalty_is_least_squares() -> None:
    given = data()
    found = evaluation.ridge_error(given, given.test, (1e-12,))
    assert found == pytest.approx(least_squares(given.train, given.test), rel=1e-8)
    assert found == pytest.approx(0.3**2, rel=0.5)


def test_ridge_with_endless_penalty_is_the_constant_forecast() -> None:
    given = data()
    found = evaluation.ridge_error(given, given.test, (1e12,))
    assert found == pytest.approx(evaluation.constant_error(given, given.test), rel=1e-8)


def test_ridge_chooses_its_penalty_on_validation_data() -> None:
    # Six coefficients from eight noisy sequences: some penalty is better than none or a huge one.
    given = data(n_train=8)
    penalties = (1e-9, 0.3, 1e9)
    validation = [evaluation.ridge_error(given, given.validation, (p,)) for p in penalties]
    best = int(np.argmin(validation))
    misleading = given._replace(test=Split(given.test.inputs, -given.test.targets))
    for where in (given, misleading):
        expected = evaluation.ridge_error(where, where.test, (penalties[best],))
        assert evaluation.ridge_error(where, where.test, penalties) == expected
    test = [evaluation.ridge_error(misleading, misleading.test, (p,)) for p in penalties]
    assert int(np.argmin(test)) != best


def test_with_targets_at_every_step_the_linear_forecast_is_a_finite_impulse_response() -> None:
    """What answers to the last few inputs is forecast exactly, what remembers longer is not."""
    rng = np.random.default_rng(0)
    response = rng.normal(size=(evaluation.LAGS + 8, 2))

    def answered(n: int, length: int) -> Split:
        inputs = rng.normal(size=(n, 50, 2))
        targets = np.zeros((n, 50, 1))
        for lag in range(length):
            targets[:, lag:, 0] += inputs[:, : 50 - lag] @ response[lag]
        return Split(inputs, 3 + targets)

    for length, exact in ((evaluation.LAGS, True), (evaluation.LAGS + 8, False)):
        given = Data(answered(60, length), answered(20, length), answered(20, length))
        error = evaluation.ridge_error(given, given.test, (1e-9,))
        assert (error < 1e-12) == exact
    late = [Split(part.inputs, part.targets[:, -4:]) for part in given]
    rows = [
        (np.r_[s.inputs[k, t - 31 : t + 1].ravel(), 1], s.targets[k, t - 46, 0])
        for s in late
        for k in range(len(s.inputs))
        for t in range(46, 50)
    ]
    design, wanted = (np.array(part) for part in zip(*rows, strict=True))
    fit = np.linalg.lstsq(design[:240], wanted[:240], rcond=None)[0]
    expected = np.mean((design[-80:] @ fit - wanted[-80:]) ** 2)
    found = evaluation.ridge_error(Data(*late), late[2], (1e-9,))
    assert found == pytest.approx(expected, rel=1e-6)


@every_network
def test_what_noise_does_to_several_outputs_adds_up_over_the_steps(cell: str, layers: int) -> None:
    """The same noise as in shorter runs, of which each ends with one of the steps."""
    parameters = networks(1, 5, 2, 2, cell=cell, layers=layers, gain=1.5)
    inputs, targets = normal(6, 1, 2, 7), normal(1, 3 * 2, 7, seed=1)
    together = simulate(parameters, inputs, targets, 0.3)
    apart = [
        simulate(parameters, inputs[: 4 + k], targets[:, 2 * k : 2 * k + 2], 0.3) for k in range(3)
    ]
    variance = sum(float(run.output_variance) for run in apart)
    assert float(together.output_variance) == pytest.approx(variance, rel=1e-10)
    error = np.mean([float(run.squared_error) for run in apart])
    assert float(together.squared_error) == pytest.approx(error, rel=1e-10)
