import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from msstab.evidence import expected_best


def by_enumeration(errors: NDArray[np.float64], n: int) -> float:
    return float(np.mean([min(subset) for subset in itertools.combinations(errors, n)]))


def test_the_expected_best_is_the_mean_minimum_over_all_subsets() -> None:
    errors = np.random.default_rng(0).lognormal(size=9)
    errors[3] = errors[5]
    draws = np.arange(1, 10)
    oracle = [by_enumeration(errors, n) for n in draws.tolist()]
    np.testing.assert_allclose(expected_best(errors, draws), oracle, rtol=1e-13)


def test_one_draw_expects_the_mean_and_all_of_them_the_minimum() -> None:
    errors = np.random.default_rng(1).uniform(1, 2, 3000)
    first, last = expected_best(errors, [1, 3000])
    assert first == pytest.approx(errors.mean(), rel=1e-12)
    assert last == errors.min()


def test_weights_are_those_of_exact_binomial_coefficients_where_floats_overflow() -> None:
    size, n = 2000, 700
    # All errors 0 but the k-th smallest upward: what is left is the weight of the places beyond.
    for k in (1, 2, 10, 40):
        errors = np.r_[np.zeros(k), np.ones(size - k)]
        oracle = math.comb(size - k, n) / math.comb(size, n)
        assert expected_best(errors, [n])[0] == pytest.approx(oracle, rel=1e-11)


def test_it_is_unbiased_for_a_smaller_search() -> None:
    generator = np.random.default_rng(2)
    searches = generator.uniform(size=(4000, 6))
    found = np.array([expected_best(errors, [3])[0] for errors in searches])
    # The minimum of 3 uniform draws has mean 1/4.
    assert abs(found.mean() - 0.25) < 4 * found.std() / math.sqrt(found.size)


@pytest.mark.parametrize(
    ("errors", "draws"),
    [([], [1]), ([1, math.nan], [1]), ([1, 2], [0]), ([1, 2], [3]), ([1, 2], [1.5])],
)
def test_what_cannot_be_drawn_is_refused(errors: list[float], draws: list[float]) -> None:
    with pytest.raises(ValueError, match="needed"):
        expected_best(errors, draws)
