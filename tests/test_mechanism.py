from pathlib import Path

import numpy as np
import pytest
import torch
from plain import jacobian, networks, normal

from msstab import cells, mechanism
from msstab.report import read_report


def test_relative_errors_are_measured_as_the_original_measured_its_own() -> None:
    report = read_report(Path(__file__).parents[1] / "msstab" / "data" / "stage2_report.json")
    signature = report.bench_report.mechanism_signature
    predicted = signature.predicted_lifted_rho_mean
    observed = signature.observed_hidden_second_moment_ratio_mean
    found = float(mechanism.relative_error(predicted, observed))
    assert found == pytest.approx(signature.relative_error, rel=1e-3)
    # In log growth a step the two have little in common.
    error = float(mechanism.log_growth_error(predicted, observed))
    assert error == pytest.approx(0.99, abs=0.01)


@pytest.mark.parametrize(("predicted", "observed"), [(2.0, 8.0), (0.5, 0.125)])
def test_log_growth_errors_are_relative_to_the_predicted_growth(
    predicted: float, observed: float
) -> None:
    assert mechanism.log_growth_error([predicted], [observed]) == pytest.approx([2.0])
    assert mechanism.relative_error([predicted], [observed]) == pytest.approx(
        [abs(predicted - observed) / predicted]
    )


@pytest.mark.parametrize("growth", [0.5, 1.0, 1.02])
def test_the_observed_ratio_is_the_growth_of_the_settled_half(growth: float) -> None:
    start = torch.tensor([100.0, 3.0, 2.0, 1.0, 1.0], dtype=torch.float64)
    power = torch.cat([start, growth ** torch.arange(5, dtype=torch.float64)])[:, None]
    other = torch.ones(10, 1, dtype=torch.float64)
    found = mechanism.power_ratio(torch.cat([power, other], 1))
    assert found.tolist() == pytest.approx([growth, 1.0], rel=1e-12)


def test_the_observed_ratio_telescopes() -> None:
    """A state that comes back to where it was has ratio 1 to first order, whatever it did."""
    power = torch.as_tensor(1 + 0.01 * np.random.default_rng(0).normal(size=(40, 1)))
    power[20] = power[39] = 1
    assert float(mechanism.power_ratio(power)) == pytest.approx(1, abs=3e-4)
    ratios = power[21:] / power[20:-1]
    assert float(ratios.prod()) == pytest.approx(1, rel=1e-12)
    assert float(mechanism.power_ratio(power)) == pytest.approx(float(ratios.mean()), rel=1e-12)


@pytest.mark.parametrize("cell", cells.CELLS)
def test_the_predicted_ratio_is_the_squared_norm_at_the_mean_state(cell: str) -> None:
    parameters = networks(2, 6, 2, cell=cell, gain=2.0)
    inputs = normal(5, 2, 2, 4)
    states, _ = cells.run(parameters, inputs)
    found = mechanism.proxy_radius(parameters, inputs, states, 0.3)
    for model in range(2):
        at = states[:, model].mean((0, 2)), inputs[:, model].mean((0, 2))
        norm = torch.linalg.matrix_norm(jacobian(parameters, model, *at), ord=2)
        assert float(found[model]) == pytest.approx(1.09 * float(norm) ** 2, rel=1e-12)
