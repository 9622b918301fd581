import numpy as np
import pytest
from scipy import stats

from msstab.agreements import agreement, breakdown, change_agreement, excess_ratio

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


def test_the_breakdown_shows_the_level_at_which_small_noise_theory_fails() -> None:
    predicted = np.geomspace(0.01, 1, 12)
    observed = [predicted, predicted * np.where(predicted > 0.1, 1.6, 1.0)]
    low, high = breakdown([predicted, predicted], observed)
    assert low == agreement(predicted, predicted)
    assert high == agreement(predicted, observed[1])
    assert low.log_rmse == 0
    assert high.log_rmse == pytest.approx(np.log(1.6) / np.sqrt(2), rel=0.02)
    assert high.slope > 1.1


def test_the_breakdown_refuses_levels_without_a_counterpart() -> None:
    with pytest.raises(ValueError, match="zip"):
        breakdown([[0.1, 0.2, 0.3]], [])


# ---- changes


def test_changes_agree_as_their_regression_and_the_signs_they_share() -> None:
    rng = np.random.default_rng(0)
    predicted = rng.normal(size=(10, 5))
    observed = 0.9 * predicted + 0.3 + 0.5 * rng.normal(size=(10, 5))
    found = change_agreement(predicted, observed)
    assert found.slope == pytest.approx(
        stats.linregress(predicted.ravel(), observed.ravel()).slope, rel=1e-12
    )
    assert found.sign_agreement == pytest.approx(np.mean(predicted * observed > 0))
    assert 0.5 < found.sign_agreement < 1
    assert (found.n, found.unchanged, found.n_unusable) == (50, 0, 0)


def test_networks_that_nothing_changed_do_not_raise_the_agreement() -> None:
    predicted = [0.0, 0.0, 0.0, -1.0, -2.0, 1.0, 0.0, np.nan, -np.inf, 1.0]
    observed = [0.0, 0.0, 0.0, -1.0, -2.0, -1.0, 0.5, 1.0, 1.0, np.nan]
    found = change_agreement(predicted, observed)
    assert (found.n, found.unchanged, found.n_unusable) == (4, 3, 3)
    assert found.sign_agreement == 0.5


@pytest.mark.parametrize("changes", [[], [0.0] * 9, [np.nan] * 9])
def test_without_changes_there_is_no_agreement(changes: list[float]) -> None:
    found = change_agreement(changes, changes)
    assert np.isnan([found.slope, found.sign_agreement]).all()
    assert found.n == 0


# ---- excess error


def test_excess_ratios_are_summed_up_by_quartiles() -> None:
    variance = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    found = excess_ratio([1.0, 1.0, 6.0, 12.0, 20.0], variance)
    assert found == (1.0, 2.0, 3.0, 5, 0)


def test_networks_without_a_variance_have_no_ratio() -> None:
    found = excess_ratio(
        [[1.0, 1.0, np.nan], [1.0, -2.0, 3.0]], [[0.0, np.inf, 1.0], [-1.0, 1.0, 1.0]]
    )
    assert found == (-0.75, 0.5, 1.75, 2, 4)
    nothing = excess_ratio([1.0], [0.0])
    assert np.isnan(nothing[:3]).all()
    assert nothing[3:] == (0, 1)
