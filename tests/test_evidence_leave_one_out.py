import math
import time

import numpy as np
import pytest

from msstab.evidence import sign_flip_leave_one_out, sign_flip_test


@pytest.mark.parametrize("n", [3, 8, 33])
def test_few_pairs_are_left_out_exactly(n: int) -> None:
    d = np.random.default_rng(n).normal(0.3, 1, n)
    oracle = [sign_flip_test(np.delete(d, i)).p for i in range(n)]
    assert sign_flip_leave_one_out(d).tolist() == oracle


@pytest.mark.parametrize("mean", [0.3, -0.3, 0.0])
def test_many_pairs_agree_with_the_test_without_the_pair_up_to_its_error(mean: float) -> None:
    d = np.random.default_rng(0).normal(mean, 1, 50)
    # Without this pair the sum has the other sign.
    d[7] = -2 * np.delete(d, 7).sum()
    found = sign_flip_leave_one_out(d)
    for i in (0, 7, 16, 49):
        alone = sign_flip_test(np.delete(d, i), seed=1)
        assert abs(found[i] - alone.p) <= 6 * math.sqrt(2) * max(alone.standard_error, 1e-5)


def test_leaving_out_a_pair_without_a_difference_changes_nothing() -> None:
    d = np.random.default_rng(1).normal(0.2, 1, 60)
    d[[3, 20, 59]] = 0
    found = sign_flip_leave_one_out(d, seed=5)
    assert found[[3, 20, 59]].tolist() == 3 * [sign_flip_test(d, seed=5).p]


def test_ties_count_whatever_the_rounding() -> None:
    d = np.tile([0.1, -0.1], 20)
    # An odd number of equal differences is left: every arrangement has a sum at least as large.
    assert (sign_flip_leave_one_out(d) == 1).all()


def test_a_thousand_pairs_take_about_a_second() -> None:
    began = time.process_time()
    sign_flip_leave_one_out(np.random.default_rng(0).normal(size=1000))
    assert time.process_time() - began < 5


def test_two_pairs_are_too_few() -> None:
    with pytest.raises(ValueError, match="at least 3"):
        sign_flip_leave_one_out([1.0, 2.0])
