import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from msstab import evidence
from msstab.evidence.sequential import LARGEST, STAKES

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
SYMMETRIC: dict[str, Draw] = {
    "normal": lambda generator, n: generator.normal(size=n),
    "t of 3": lambda generator, n: generator.standard_t(3, n),
    "cauchy": lambda generator, n: generator.standard_cauchy(n),
    "lognormal arms": lambda generator, n: np.subtract(*generator.lognormal(0, 1, (2, n))),
    "growing": lambda generator, n: generator.normal(size=n) * np.arange(1, n + 1),
}


def plain_e_values(d: NDArray[np.float64]) -> list[float]:
    """The same bets one at a time, in plain products."""
    wealth = {stake: 1.0 for stake in [*STAKES, *-STAKES]}
    found = [1.0, 1.0]
    for i in range(2, d.size):
        x = float(np.clip(d[i] / d[:i].std(ddof=1), -LARGEST, LARGEST))
        for stake in wealth:
            wealth[stake] *= math.exp(stake * x) / math.cosh(stake * x)
        found.append(sum(wealth.values()) / len(wealth))
    return found


def test_e_values_are_products_of_bets_on_the_sign() -> None:
    d = np.random.default_rng(0).normal(0.4, 1, 30)
    found = evidence.sequential_test(d)
    assert found.e_values == pytest.approx(plain_e_values(d), rel=1e-10)
    lowest = np.minimum.accumulate(1 / np.array(plain_e_values(d)))
    assert found.p_values == pytest.approx(np.minimum(1, lowest), rel=1e-10)


def test_expected_e_value_is_one_whatever_the_sizes() -> None:
    # A martingale: its mean over the signs of the bets, which the sizes leave fair, never moves.
    # The scale of each bet depends on earlier signs, so every tree of signs is walked.
    sizes = np.random.default_rng(3).exponential(size=9)
    runs = [
        evidence.sequential_test(sizes * signs).e_values
        for signs in itertools.product((-1.0, 1.0), repeat=9)
    ]
    assert np.mean(runs, axis=0) == pytest.approx(np.ones(9), rel=1e-12)


def test_each_bet_is_worth_at_least_de_la_penas() -> None:
    x = np.linspace(-LARGEST, LARGEST, 201)[:, None]
    assert np.all(2 / (1 + np.exp(-2 * STAKES * x)) >= np.exp(STAKES * x - (STAKES * x) ** 2 / 2))


@pytest.mark.parametrize("name", SYMMETRIC)
def test_looking_after_every_pair_rejects_a_true_null_at_most_at_the_level(name: str) -> None:
    generator = np.random.default_rng(5)
    rejected = np.zeros(2)
    for _ in range(400):
        p = evidence.sequential_test(SYMMETRIC[name](generator, 500)).p_values[-1]
        rejected += p <= np.array([0.05, 0.2])
    # Three standard errors above the level.
    assert rejected[0] <= 400 * 0.05 + 3 * math.sqrt(400 * 0.05 * 0.95)
    assert rejected[1] <= 400 * 0.2 + 3 * math.sqrt(400 * 0.2 * 0.8)


def test_a_t_test_at_every_pair_would_not() -> None:
    generator = np.random.default_rng(5)
    rejected = 0
    for _ in range(60):
        d = generator.normal(size=200)
        rejected += any(evidence.t_test_p(d[:n]) <= 0.05 for n in range(5, 201, 5))
    assert rejected > 12


def test_an_effect_is_found_in_time() -> None:
    generator = np.random.default_rng(6)
    stopped = []
    for _ in range(100):
        p = evidence.sequential_test(generator.normal(-0.5, 1, 150)).p_values
        stopped.append(int(np.argmax(p <= 0.05)) + 1 if p[-1] <= 0.05 else 150)
    # A t test planned for 90% power takes 44 pairs.
    assert np.mean(stopped) < 65
    assert sum(n < 150 for n in stopped) >= 98


def test_sequential_test_ignores_direction_and_unit_and_looks_only_back() -> None:
    d = np.random.default_rng(1).normal(0.5, 1, 40)
    found = evidence.sequential_test(d)
    for same in (-d, d * 1e-9, d * 1e150):
        assert evidence.sequential_test(same).p_values == pytest.approx(found.p_values, rel=1e-9)
    early = evidence.sequential_test(d[:25])
    assert early.e_values == pytest.approx(found.e_values[:25], rel=1e-12)
    assert np.all(np.diff(found.p_values) <= 0)


@pytest.mark.parametrize("n", [2, 3, 50])
def test_differences_that_do_not_vary_have_an_answer(n: int) -> None:
    same = evidence.sequential_test(np.zeros(n))
    assert np.all(same.e_values == 1)
    assert np.all(same.p_values == 1)
    assert evidence.sequential_interval(np.zeros(n)).low == (0 if n == 50 else -math.inf)
    constant = evidence.sequential_test(np.full(n, 0.1))
    assert (constant.p_values[-1] < 1e-6) == (n == 50)


def test_a_wild_pair_costs_at_most_one_bet() -> None:
    d = np.random.default_rng(2).normal(1, 1, 60)
    wild = d.copy()
    wild[-1] = -1e12
    before, after = evidence.sequential_test(d), evidence.sequential_test(wild)
    assert after.p_values[-1] == after.p_values[-2]
    assert after.p_values[-2] == pytest.approx(before.p_values[-2], rel=1e-9)


# ---- the interval that holds at every pair


def test_interval_holds_the_centres_that_both_one_sided_tests_accept() -> None:
    d = np.random.default_rng(4).normal(0.3, 1, 60)
    low, high = evidence.sequential_interval(d)

    def wealth(centre: float, sign: int) -> float:
        largest, stakes = 0.0, np.ones(STAKES.size)
        for i in range(2, d.size):
            x = np.clip((d[i] - centre) / d[:i].std(ddof=1), -LARGEST, LARGEST)
            stakes = stakes * 2 / (1 + np.exp(-2 * sign * STAKES * x))
            largest = max(largest, float(stakes.mean()))
        return largest

    assert wealth(low, 1) == pytest.approx(40, rel=1e-6)
    assert wealth(high, -1) == pytest.approx(40, rel=1e-6)
    assert low < evidence.hodges_lehmann(d) < high


def test_interval_never_grows_and_starts_as_the_whole_line() -> None:
    d = np.random.default_rng(4).standard_t(3, 80) + 1
    ends = np.array([evidence.sequential_interval(d[:n]) for n in range(2, 81)])
    assert np.all(np.isinf(ends[0]))
    assert np.all(ends[1:, 0] >= ends[:-1, 0] - 1e-9)
    assert np.all(ends[1:, 1] <= ends[:-1, 1] + 1e-9)
    assert np.all(np.isfinite(ends[-1]))


def test_interval_moves_with_the_differences_and_their_unit() -> None:
    d = np.random.default_rng(8).normal(0, 1, 50)
    low, high = evidence.sequential_interval(d)
    moved = evidence.sequential_interval(3 - 2 * d)
    assert moved == pytest.approx((3 - 2 * high, 3 - 2 * low), rel=1e-9)


@pytest.mark.parametrize("name", ["normal", "t of 3", "lognormal arms"])
def test_interval_covers_at_every_pair_at_once(name: str) -> None:
    generator = np.random.default_rng(9)
    missed = 0
    for _ in range(150):
        low, high = evidence.sequential_interval(SYMMETRIC[name](generator, 120) + 7, 0.8)
        missed += not low <= 7 <= high
    # It is the intersection over all pairs so far.
    assert missed <= 150 * 0.2 + 3 * math.sqrt(150 * 0.2 * 0.8)
