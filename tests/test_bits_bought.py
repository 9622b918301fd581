import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.interpolate import interp1d

from msstab.bits_bought import Bought, bits_bought

BITS = [3, 4, 6, 8]


def line(bits: NDArray[np.float64], shift: float = 0) -> NDArray[np.float64]:
    """Logarithms of errors that fall by the same factor for every bit, some bits earlier."""
    return -(bits + shift)


def pairs(
    n: int, shift: float, spread: float, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng, bits = np.random.default_rng(seed), np.array(BITS, dtype=float)
    seeds = rng.normal(0, 1, (n, 1))
    own = rng.normal(0, spread, (n, 1))
    return line(bits) + seeds, line(bits, shift) + seeds + own


def test_an_arm_that_is_a_bit_ahead_buys_one_wherever_the_bits_reach() -> None:
    found = bits_bought(BITS, *pairs(10, 1.0, 0.0))
    assert found[0] == Bought(np.inf, np.inf, np.inf)
    for one in found[1:]:
        assert one == pytest.approx((1, 1, 1))
        assert one.word == "buys"


def test_an_arm_that_is_behind_costs_bits() -> None:
    found = bits_bought(BITS, *pairs(10, -0.5, 0.0))
    assert found[-1] == Bought(-np.inf, -np.inf, -np.inf)
    assert found[0] == pytest.approx((-0.5, -0.5, -0.5))
    assert {one.word for one in found} == {"costs"}


def test_the_same_errors_buy_nothing_even_where_the_curve_rises_again() -> None:
    errors = np.random.default_rng(0).normal(size=(8, 4))
    for one in bits_bought(BITS, errors, errors):
        assert one == Bought(0, 0, 0)
        assert one.word == "undecided"


def test_whether_bits_are_bought_may_stay_open() -> None:
    found = bits_bought(BITS, *pairs(6, 0.05, 1.0))
    assert found[1].low < 0 < found[1].high
    assert found[1].word == "undecided"


def test_bits_are_those_of_linear_interpolation() -> None:
    rng = np.random.default_rng(1)
    baseline, arm = (np.sort(rng.normal(size=(5, 4)), axis=1)[:, ::-1] for _ in range(2))
    found = bits_bought(BITS, baseline, arm, resamples=10)
    a, b = baseline.mean(0), arm.mean(0)
    inverse = interp1d(b[::-1], BITS[::-1])
    for k, one in enumerate(found):
        if b[-1] <= a[k] <= b[0]:
            assert one.bits == pytest.approx(BITS[k] - float(inverse(a[k])))
        else:
            assert one.bits == (np.inf if a[k] > b[0] else -np.inf)


def test_the_interval_covers_what_is_true_about_as_often_as_it_says() -> None:
    hits = []
    for seed in range(300):
        one = bits_bought(BITS, *pairs(32, 0.7, 0.8, seed), level=0.9, resamples=400)[2]
        hits.append(one.low <= 0.7 <= one.high)
    assert 0.84 <= np.mean(hits) <= 0.95


def test_a_single_number_of_bits_says_only_which_arm_is_lower() -> None:
    assert bits_bought([8], [[0.0], [0.1]], [[-1.0], [-0.9]])[0].word == "buys"
    assert bits_bought([8], [[-1.0], [-0.9]], [[0.0], [0.1]])[0].word == "costs"


@pytest.mark.parametrize(
    ("bits", "shapes", "message"),
    [
        ([8, 4], ((3, 2), (3, 2)), r"bits = \[8, 4\]: they must increase"),
        ([4, 8], ((3, 2), (4, 2)), r"\(3, 2\) and \(4, 2\) for 2 numbers"),
        ([4, 8], ((3, 3), (3, 3)), "for 2 numbers of bits"),
    ],
)
def test_errors_that_do_not_fit_are_refused(
    bits: list[int], shapes: tuple[tuple[int, int], tuple[int, int]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        bits_bought(bits, *map(np.zeros, shapes))
