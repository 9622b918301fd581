from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from msstab import rules
from msstab.agreements import Agreement
from msstab.rules import (
    Finding,
    Rule,
    judge_change,
    judge_mediation,
    judge_operator,
    judge_prediction,
)

Table = NDArray[np.float64]

GOOD = Agreement(1.0, 0.99, 0.05, 40, 0)
PLACEBO = Agreement(0.3, 0.2, 1.3, 40, 0)


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


def test_the_limits_are_those_of_the_theory() -> None:
    assert (rules.SLOPE_TOLERANCE, rules.LARGEST_LOG_RMSE) == (0.1, 0.1)
    assert (rules.SMALLEST_CORRELATION, rules.PLACEBO_FACTOR) == (0.95, 5)
    assert (rules.FEWEST_VARIANTS, rules.FEWEST_SEEDS) == (9, 4)
    assert (rules.CHANGE_SLOPES, rules.SMALLEST_SIGN_AGREEMENT) == ((0.8, 1.25), 0.9)
    assert rules.EXCESS_RATIOS == (0.85, 1.15)
    assert rules.LARGEST_GROWTH_ERROR == 0.005


# ---- rule R2


def changes(variants: int = 9, seeds: int = 4, seed: int = 0) -> Table:
    """Changes of size 1 to 3, of both signs."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(1, 3, (variants, seeds))
    return np.asarray(size * rng.choice([-1, 1], (variants, seeds)))


def wrong_signs(change: Table, count: int) -> Table:
    """The same with the smallest of them turned round."""
    turned = change.ravel().copy()
    turned[np.argsort(np.abs(turned))[:count]] *= -1
    return turned.reshape(change.shape)


@pytest.mark.parametrize(
    ("observe", "expected"),
    [
        (lambda p: p, Rule.CONFIRMED),
        (lambda p: 0.81 * p, Rule.CONFIRMED),
        (lambda p: 1.24 * p, Rule.CONFIRMED),
        (lambda p: wrong_signs(p, 2), Rule.CONFIRMED),
        (lambda p: 0.79 * p, Rule.REFUTED),
        (lambda p: 1.26 * p, Rule.REFUTED),
        (lambda p: -p, Rule.REFUTED),
        (lambda p: wrong_signs(1.15 * p, 4), Rule.REFUTED),
        (lambda p: p + 3, Rule.REFUTED),
        (lambda p: changes(seed=2), Rule.REFUTED),
    ],
)
def test_a_change_is_judged(observe: Callable[[Table], Table], expected: Rule) -> None:
    predicted = changes()
    assert judge_change(predicted, observe(predicted), changes(seed=1)).rule is expected


def test_a_change_is_refuted_for_its_signs_alone() -> None:
    predicted = changes()
    observed = wrong_signs(1.15 * predicted, 4)
    found = judge_change(predicted, observed, changes(seed=1))
    slope = np.polyfit(predicted.ravel(), observed.ravel(), 1)[0]
    assert 0.8 < slope < 1.25
    assert f"slope {slope:.2f}, signs agree in 89% of 36 pairs" in found.figures


@pytest.mark.parametrize(
    ("placebo", "expected"),
    [
        (lambda p: p, Rule.NOT_DISCRIMINATING),
        (lambda p: 0.82 * p, Rule.NOT_DISCRIMINATING),
        (lambda p: np.full_like(p, np.nan), Rule.NOT_DISCRIMINATING),
        (lambda p: np.where(np.arange(p.size).reshape(p.shape) > 20, np.nan, -p),
         Rule.NOT_DISCRIMINATING),
        (lambda p: 0.5 * p, Rule.CONFIRMED),
        (lambda p: 2 * p, Rule.CONFIRMED),
        (lambda p: wrong_signs(p, 5), Rule.CONFIRMED),
        (lambda p: np.full_like(p, 1.0), Rule.CONFIRMED),
        (lambda p: np.zeros_like(p), Rule.CONFIRMED),
    ],
)  # fmt: skip
def test_a_change_that_a_placebo_predicts_too_tells_nothing(
    placebo: Callable[[Table], Table], expected: Rule
) -> None:
    change = changes()
    assert judge_change(change, change, placebo(change)).rule is expected


@pytest.mark.parametrize("shape", [(8, 40), (40, 3), (0, 0)])
def test_few_variants_or_seeds_tell_nothing_of_changes(shape: tuple[int, int]) -> None:
    predicted = changes(*shape)
    for observed in (predicted, -predicted):
        found = judge_change(predicted, observed, changes(*shape, seed=1))
        assert found.rule is Rule.NOT_DISCRIMINATING
        assert "variants with 4 seeds to compare are fewer than the 9" in found.figures


def test_variants_that_changed_nothing_or_failed_do_not_count() -> None:
    whole = changes(10, 4)
    for spoilt in (0.0, np.nan):
        predicted, placebo = whole.copy(), changes(10, 4, seed=1)
        predicted[0, 0] = spoilt
        assert judge_change(predicted, predicted, placebo).rule is Rule.CONFIRMED
        predicted[1, 0] = spoilt
        assert judge_change(predicted, predicted, placebo).rule is Rule.NOT_DISCRIMINATING


def test_changes_without_spread_tell_nothing() -> None:
    same = np.full((9, 4), -0.5)
    for predicted, observed in ((same, changes()), (changes(), same), (same, same)):
        found = judge_change(predicted, observed, changes(seed=1))
        assert found.rule is Rule.NOT_DISCRIMINATING
        assert "all changes are the same" in found.figures


# ---- rule R3


@pytest.mark.parametrize(
    ("ratio", "placebo", "expected"),
    [
        (1.0, 3.0, Rule.CONFIRMED),
        (0.86, 0.84, Rule.CONFIRMED),
        (1.14, 1.16, Rule.CONFIRMED),
        (0.84, 3.0, Rule.REFUTED),
        (1.16, 3.0, Rule.REFUTED),
        (-1.0, 3.0, Rule.REFUTED),
        (0.0, 3.0, Rule.REFUTED),
        (1.0, 0.86, Rule.NOT_DISCRIMINATING),
        (1.0, 1.14, Rule.NOT_DISCRIMINATING),
        (0.5, 1.0, Rule.REFUTED),
    ],
)
def test_a_mediation_is_judged(ratio: float, placebo: float, expected: Rule) -> None:
    variance = np.abs(changes())
    # Spread that leaves the median where it is.
    spread = np.where(np.arange(36).reshape(9, 4) % 2, 0.9, 1.1)
    spread[:, :2] = 1.0
    cost = ratio * variance * spread
    found = judge_mediation(cost, variance, ratio / placebo * variance)
    assert found.rule is expected
    assert f"predicted variance {ratio:.2f}" in found.figures
    assert "over 36 networks" in found.figures


@pytest.mark.parametrize("shape", [(8, 40), (40, 3), (0, 0)])
def test_few_variants_or_seeds_tell_nothing_of_mediation(shape: tuple[int, int]) -> None:
    variance = np.abs(changes(*shape))
    for cost in (variance, 9 * variance):
        found = judge_mediation(cost, variance, 5 * variance)
        assert found.rule is Rule.NOT_DISCRIMINATING
        assert "fewer than the 9" in found.figures


@pytest.mark.parametrize("placebo", [0.0, np.nan, np.inf, -1.0])
def test_a_mediation_without_a_placebo_tells_nothing(placebo: float) -> None:
    variance = np.abs(changes())
    found = judge_mediation(variance, variance, np.full_like(variance, placebo))
    assert found.rule is Rule.NOT_DISCRIMINATING


@pytest.mark.parametrize("judge", [judge_change, judge_mediation])
@pytest.mark.parametrize("shapes", [((36,), (36,), (36,)), ((9, 4), (9, 4), (4, 9))])
def test_tables_of_other_shapes_are_refused(
    judge: Callable[..., Finding], shapes: tuple[tuple[int, ...], ...]
) -> None:
    with pytest.raises(ValueError, match=r"are not one of \(variants, seeds\)"):
        judge(*(np.ones(shape) for shape in shapes))


def test_random_numbers_are_never_confirmed() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        a, b, c = rng.normal(size=(3, 9, 4))
        assert judge_change(a, b, c).rule is not Rule.CONFIRMED
        # A placebo's own prediction is no better than the placebo.
        assert judge_change(c, b, c).rule is not Rule.CONFIRMED
        cost, variance = np.exp(a), np.exp(2 * b + 1)
        assert judge_mediation(cost, variance, variance).rule is not Rule.CONFIRMED


# ---- rule R4


PREDICTED = np.array([-0.2, -0.1, 0.0, 0.1, 0.2])


@pytest.mark.parametrize(
    ("error", "standard_error", "missed", "expected"),
    [
        (0.0, 0.001, -0.1, Rule.CONFIRMED),
        (0.0049, 0.0024, 0.0051, Rule.CONFIRMED),
        (-0.0049, 0.001, -0.1, Rule.CONFIRMED),
        (0.0051, 0.001, -0.1, Rule.REFUTED),
        (-0.0051, 0.001, -0.1, Rule.REFUTED),
        (np.nan, 0.001, -0.1, Rule.REFUTED),
        (0.0, 0.001, 0.0049, Rule.NOT_DISCRIMINATING),
        (0.0, 0.001, np.nan, Rule.NOT_DISCRIMINATING),
        (0.0, 0.0026, -0.1, Rule.NOT_DISCRIMINATING),
        (0.1, 0.0026, -0.1, Rule.NOT_DISCRIMINATING),
        (0.0, np.nan, -0.1, Rule.NOT_DISCRIMINATING),
        (0.1, 0.001, 0.0, Rule.REFUTED),
    ],
)
@pytest.mark.parametrize("at", [0, 3])
def test_an_operator_is_judged_by_its_worst_error(
    at: int, error: float, standard_error: float, missed: float, expected: Rule
) -> None:
    def only(value: float) -> Table:
        return np.where(np.arange(5) == at, value, 0.0)

    simulated = PREDICTED + only(error)
    found = judge_operator(PREDICTED, simulated, only(standard_error), simulated + only(missed))
    assert found.rule is expected


@pytest.mark.parametrize("predicted", [[0.1, 0.2], [-0.1, -0.2], [-0.1, 0.004], [0.1, -0.004], []])
def test_an_operator_on_one_side_of_the_boundary_is_not_tested(predicted: list[float]) -> None:
    growth = np.array(predicted)
    for simulated in (growth, growth + 1):
        found = judge_operator(growth, simulated, 0 * growth, growth - 0.1)
        assert found.rule is Rule.NOT_DISCRIMINATING
        assert "both sides of the stability boundary" in found.figures
