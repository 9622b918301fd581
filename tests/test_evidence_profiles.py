import math

import numpy as np
import pytest

from msstab.evidence import performance_profile


def test_a_small_example_by_hand() -> None:
    errors = [[1.0, 2.0, 4.0, 3.0], [2.0, 1.0, 4.0, math.inf]]
    profile = performance_profile(errors, [1, 1.9, 2, 100])
    np.testing.assert_array_equal(profile, [[0.75, 0.75, 1, 1], [0.5, 0.5, 0.75, 0.75]])


def test_profiles_are_counted_problem_by_problem() -> None:
    errors = np.random.default_rng(0).lognormal(size=(4, 30))
    factors = np.array([1.0, 1.2, 2.0, 5.0])
    profile = performance_profile(errors, factors)
    for arm in range(4):
        for at, factor in enumerate(factors):
            won = [errors[arm, j] <= factor * min(errors[:, j]) for j in range(30)]
            assert profile[arm, at] == sum(won) / 30
    assert (np.diff(profile) >= 0).all()
    assert profile[:, 0].sum() == 1


def test_problems_may_have_any_scale_of_their_own() -> None:
    errors = np.random.default_rng(1).lognormal(size=(3, 20))
    scales = np.random.default_rng(2).lognormal(sigma=5, size=20)
    factors = np.linspace(1.01, 3, 7)
    np.testing.assert_array_equal(
        performance_profile(errors, factors), performance_profile(errors * scales, factors)
    )


def test_a_problem_on_which_all_arms_fail_is_within_no_factor() -> None:
    profile = performance_profile([[math.nan, 1.0], [math.inf, 2.0]], [1, 1e9])
    np.testing.assert_array_equal(profile, [[0.5, 0.5], [0, 0.5]])


@pytest.mark.parametrize(
    ("errors", "factors"), [([1.0, 2.0], [1]), ([[1.0], [0.0]], [1]), ([[1.0], [2.0]], [0.9])]
)
def test_what_has_no_profile_is_refused(errors: list[float], factors: list[float]) -> None:
    with pytest.raises(ValueError, match="need"):
        performance_profile(errors, factors)
