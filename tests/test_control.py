from typing import Any

import numpy as np
import pytest
import torch
from plain import jacobian, networks

from msstab import cells, control
from msstab.control import operator_control
from msstab.noise import NOISES
from msstab.noisy import noisy_step
from msstab.rules import Rule, judge_operator

UNIT = NOISES["unit"]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coarser simulation, quick enough for many cases."""
    monkeypatch.setattr(control, "POPULATIONS", 8)
    monkeypatch.setattr(control, "PARTICLES", 128)
    monkeypatch.setattr(control, "BURN_IN", 20)


@pytest.mark.parametrize("sigma", [0.2, 0.5])
def test_a_single_unit_grows_as_the_closed_form_says(sigma: float) -> None:
    """h' = tanh(w h (1 + sigma eps)) is w h (1 + sigma eps) near 0: log w^2 (1 + sigma^2)."""
    found = operator_control(networks(1, 1, cell="rnn"), UNIT, sigma, rng())
    weight = float(networks(1, 1, cell="rnn").weight_hh)
    closed = np.log((found.gains * weight) ** 2 * (1 + sigma**2))
    np.testing.assert_allclose(found.predicted, closed, atol=1e-9)
    np.testing.assert_allclose(found.without_noise, np.log((found.gains * weight) ** 2), atol=1e-9)
    np.testing.assert_array_less(np.abs(found.simulated - closed), 5 * found.standard_error)
    # The typical draw grows less than the mean square does, which rare draws make up.
    typical = np.log((found.gains * weight) ** 2) + np.mean(
        np.log((1 + sigma * rng(1).normal(size=100_000)) ** 2)
    )
    assert (found.simulated - typical > 20 * found.standard_error).all()
    assert judge_operator(*found[1:]).rule is Rule.CONFIRMED


def test_a_gated_network_confirms_the_operator_and_refutes_one_without_noise() -> None:
    found = operator_control(networks(1, 8), UNIT, 0.5, rng())
    assert found.predicted[0] < -0.1
    assert found.predicted[2] == pytest.approx(0, abs=1e-8)
    assert found.predicted[-1] > 0.1
    assert judge_operator(*found[1:]).rule is Rule.CONFIRMED
    wrong = found._replace(predicted=found.without_noise)
    assert judge_operator(*wrong[1:]).rule is Rule.REFUTED


def test_noise_too_weak_to_matter_does_not_discriminate() -> None:
    found = operator_control(networks(1, 4), UNIT, 0.02, rng(), steps=30)
    assert judge_operator(*found[1:]).rule is Rule.NOT_DISCRIMINATING


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("cell", cells.CELLS)
@pytest.mark.parametrize("name", NOISES)
def test_every_cell_and_noise_grows_as_predicted(cell: str, name: str) -> None:
    found = operator_control(networks(1, 5, cell=cell), NOISES[name], 0.4, rng(), (0.9, 1.1))
    error = np.abs(found.simulated - found.predicted)
    # Resampling among P particles is biased by the order of 1 / P.
    np.testing.assert_array_less(error, 5 * found.standard_error + 2 / control.PARTICLES)
    assert (found.standard_error < 0.01).all()
    assert found.predicted[0] < 0 < found.predicted[1]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("cell", cells.CELLS)
def test_predictions_are_those_of_the_dense_lift_of_torchs_jacobian(cell: str) -> None:
    parameters = networks(1, 3, 2, cell=cell)
    found = operator_control(parameters, UNIT, 0.3, rng(), (0.7, 1.4), steps=2)
    for k, gain in enumerate(found.gains):
        at_rest = parameters.like(
            t if k in (0, 4, 5) else gain * t if k == 1 else 0 * t for k, t in enumerate(parameters)
        )
        size = parameters.state_size
        zero = torch.zeros(size, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
        j = jacobian(at_rest, 0, *zero).numpy()
        reads = np.diag(np.eye(size).reshape(-1))  # diag P among the entries of P
        lift = np.kron(j, j) @ (np.eye(size**2) + 0.09 * reads)
        radius = np.abs(np.linalg.eigvals(lift)).max()
        assert found.predicted[k] == pytest.approx(np.log(radius), abs=1e-9)
        clean = np.abs(np.linalg.eigvals(j)).max()
        assert found.without_noise[k] == pytest.approx(2 * np.log(clean), abs=1e-9)


@pytest.mark.parametrize("cell", cells.CELLS)
@pytest.mark.parametrize("name", NOISES)
def test_nothing_moves_a_network_at_rest(cell: str, name: str) -> None:
    noise, at_rest = NOISES[name], control.at_rest(networks(1, 5, cell=cell), np.array([3.0]))
    numbers = noise.state_numbers(at_rest.state_size) + noise.weight_numbers(
        at_rest.weight_hh.shape[1]
    )
    state = torch.zeros(1, at_rest.state_size, 32, dtype=torch.float64)
    normal = torch.as_tensor(rng().standard_normal((numbers, 32)))
    moved = noisy_step(at_rest, state, state[:, :1], noise, 0.5, normal)
    assert not moved.any()


@pytest.mark.usefixtures("small")
def test_a_gains_numbers_depend_on_no_other_gain() -> None:
    options: dict[str, Any] = {"steps": 10}
    whole = operator_control(networks(1, 6), UNIT, 0.5, rng(), **options)
    again = operator_control(networks(1, 6), UNIT, 0.5, rng(), **options)
    one = operator_control(networks(1, 6), UNIT, 0.5, rng(), (1.1,), **options)
    for a, b, c in zip(whole, again, one, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a[3:4], c)
    other = operator_control(networks(1, 6), UNIT, 0.5, rng(1), (1.1,), **options)
    assert other.simulated != one.simulated


@pytest.mark.usefixtures("small")
def test_the_network_that_is_given_stays_as_it_was() -> None:
    parameters = networks(1, 3, dtype=torch.float32)
    before = [tensor.clone() for tensor in parameters]
    operator_control(parameters, UNIT, 0.5, rng(), steps=1)
    assert all(torch.equal(a, b) for a, b in zip(parameters, before, strict=True))


def test_a_network_without_a_boundary_is_refused() -> None:
    with pytest.raises(ValueError, match="noise of 3 makes deviations grow without recurrent"):
        operator_control(networks(1, 3), UNIT, 3.0, rng())
    still = networks(1, 3, cell="rnn")
    still.weight_hh.zero_()
    with pytest.raises(ValueError, match="deviations decay at every gain up to 1024"):
        operator_control(still, UNIT, 0.2, rng())
    with pytest.raises(ValueError, match="takes one network, not 2"):
        operator_control(networks(2, 3), UNIT, 0.2, rng())
