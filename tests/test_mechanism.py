from pathlib import Path

import numpy as np
import pytest
import torch
from plain import jacobian, networks, normal
from scipy import stats

from msstab import cells, mechanism
from msstab.mechanism import Agreement, Rule, agreement, judge_prediction
from msstab.report import read_report

GOOD = Agreement(1.0, 0.99, 0.05, 40, 0)
PLACEBO = Agreement(0.3, 0.2, 1.3, 40, 0)


# ---- agreement


def test_agreement_is_the_regression_of_log_observed_on_log_predicted() -> None:
    rng = np.random.default_rng(0)
    predicted = np.exp(rng.normal(size=30))
    observed = 1.5 * predicted**0.7 * np.exp(0.2 * rng.normal(size=30))
    found = agreement(predicted, observed)
    line = stats.linregress(np.log(predicted), np.log(observed))
    assert found.slope == pytest.approx(line.slope, rel=1e-12)
    assert found.correlation == pytest.approx(line.rvalue, rel=1e-12)
    assert found.log_rmse == pytest.approx(np.sqrt(np.mean(np.log(predicted / observed) ** 2)))
    assert (found.n, found.n_unusable) == (30, 0)


def test_a_constant_factor_is_an_error_though_slope_and_correlation_are_perfect() -> None:
    predicted = np.array([0.1, 0.2, 0.4, 0.8])
    found = agreement(predicted, 2 * predicted)
    assert found.slope == pytest.approx(1)
    assert found.correlation == pytest.approx(1)
    assert found.log_rmse == pytest.approx(np.log(2))


def test_pairs_that_cannot_be_compared_are_counted_and_left_out() -> None:
    predicted = [0.1, 0.2, 0.4, np.nan, 0.3, 0.0, np.inf, 0.5, 0.6]
    observed = [0.1, 0.2, 0.4, 0.3, np.inf, 0.4, 0.5, -0.1, np.nan]
    found = agreement(predicted, observed)
    assert (found.n, found.n_unusable) == (3, 6)
    assert found.slope == pytest.approx(1)
    assert found.log_rmse == 0


@pytest.mark.parametrize("predicted", [[0.1, 0.2], [], [np.nan] * 5])
def test_too_few_pairs_agree_on_nothing(predicted: list[float]) -> None:
    found = agreement(predicted, predicted)
    assert np.isnan([found.slope, found.correlation, found.log_rmse]).all()
    assert found.n + found.n_unusable == len(predicted)


@pytest.mark.parametrize("n", [3, 7, 10, 50])
def test_equal_predictions_have_no_slope_but_an_error(n: int) -> None:
    spread = np.linspace(-1, 1, n)
    found = agreement(np.full(n, 0.5075), 0.5075 * np.exp(spread))
    assert np.isnan([found.slope, found.correlation]).all()
    assert found.log_rmse == pytest.approx(np.sqrt(np.mean(spread**2)))


# ---- rule R1


@pytest.mark.parametrize(
    ("real", "placebo", "expected"),
    [
        (GOOD, PLACEBO, Rule.CONFIRMED),
        (GOOD._replace(slope=1.09, correlation=0.95, log_rmse=0.1), PLACEBO, Rule.CONFIRMED),
        (GOOD, PLACEBO._replace(log_rmse=0.25), Rule.CONFIRMED),
        (GOOD._replace(slope=0.89), PLACEBO, Rule.REFUTED),
        (GOOD._replace(slope=1.11), PLACEBO, Rule.REFUTED),
        (GOOD._replace(slope=-1.0), PLACEBO, Rule.REFUTED),
        (GOOD._replace(correlation=0.94), PLACEBO, Rule.REFUTED),
        (GOOD._replace(log_rmse=0.11), PLACEBO, Rule.REFUTED),
        (GOOD._replace(slope=np.nan), PLACEBO, Rule.REFUTED),
        (GOOD._replace(correlation=np.nan), PLACEBO, Rule.REFUTED),
        (GOOD._replace(log_rmse=np.nan), PLACEBO, Rule.REFUTED),
        (GOOD, PLACEBO._replace(log_rmse=0.24), Rule.NOT_DISCRIMINATING),
        (GOOD, PLACEBO._replace(log_rmse=np.nan), Rule.NOT_DISCRIMINATING),
        (GOOD._replace(slope=0.5), PLACEBO._replace(log_rmse=0.1), Rule.REFUTED),
    ],
)
def test_a_prediction_is_judged(real: Agreement, placebo: Agreement, expected: Rule) -> None:
    found = judge_prediction(real, placebo, 9, 4)
    assert found.rule is expected
    assert f"slope {real.slope:.2f}" in found.figures
    assert f"placebo log-rmse {placebo.log_rmse:.2f}" in found.figures


@pytest.mark.parametrize(("variants", "seeds"), [(8, 4), (9, 3), (0, 0)])
def test_too_few_networks_do_not_discriminate(variants: int, seeds: int) -> None:
    for real in (GOOD, GOOD._replace(slope=0.0)):
        found = judge_prediction(real, PLACEBO, variants, seeds)
        assert found.rule is Rule.NOT_DISCRIMINATING
        assert f"{variants} variants and {seeds} seeds are fewer than the 9 and 4" in found.figures


def test_networks_left_out_are_mentioned_in_every_outcome() -> None:
    for slope, variants, log_rmse in ((1.0, 9, 1.3), (0.0, 9, 1.3), (1.0, 8, 1.3), (1.0, 9, 0.1)):
        real = GOOD._replace(slope=slope, n_unusable=3)
        found = judge_prediction(real, PLACEBO._replace(log_rmse=log_rmse), variants, 4)
        assert "3 networks not comparable" in found.figures
    assert "not comparable" not in judge_prediction(GOOD, PLACEBO, 9, 4).figures


# ---- the original's signature


def test_relative_errors_are_measured_as_the_original_measured_its_own() -> None:
    report = read_report(Path(__file__).parents[1] / "book" / "data" / "stage2_report.json")
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
