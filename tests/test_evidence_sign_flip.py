import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from published import PUBLISHED, ZEA
from scipy import stats

from msstab import evidence
from msstab.evidence.subsets import count_up_to, random_subsets, subset_sizes, subset_sums


def brute_force_p(differences: list[int]) -> float:
    """Count in integers, where ties are certain."""
    observed = abs(sum(differences))
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((-1, 1), repeat=len(differences))
    ]
    return sum(total >= observed for total in sums) / len(sums)


@pytest.mark.parametrize("n", range(2, 11))
def test_sign_flip_counts_every_arrangement_and_all_ties(n: int) -> None:
    generator = np.random.default_rng(n)
    for _ in range(10):
        tenths = generator.integers(-5, 6, n).tolist()
        result = evidence.sign_flip_test(np.array(tenths) * 0.1)
        assert result.p == brute_force_p(tenths)
        assert (result.exact, result.resamples) == (True, 2**n)
        assert result.standard_error == 0


def test_ties_survive_differences_of_rounded_errors() -> None:
    # 0.3 - 0.1 and 1.2 - 1.0 are 0.2 on paper only.
    baseline, idea = np.array([0.1, 1.0, 0.7, 0.4]), np.array([0.3, 1.2, 0.5, 0.6])
    assert evidence.sign_flip_test(idea - baseline).p == brute_force_p([2, 2, -2, 2])


def test_sign_flip_reproduces_fishers_count_on_darwins_plants() -> None:
    expected = PUBLISHED["zea_signflip_exact"]["expected"]
    p = evidence.sign_flip_test(ZEA).p
    assert p == expected["p_two_sided"]
    assert p == 2 * expected["n_ge"] / expected["n_total"]


@pytest.mark.parametrize("n", [2, 3, 7, 12])
def test_sign_flip_agrees_with_scipy(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.4, 1, n)
    reference = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=2**n
    )
    assert evidence.sign_flip_test(differences).p == pytest.approx(reference.pvalue, rel=1e-12)


def test_sign_flip_is_valid_whatever_the_sizes_of_the_differences() -> None:
    sizes = np.random.default_rng(3).exponential(size=8)
    ps = np.array(
        [evidence.sign_flip_test(sizes * signs).p for signs in itertools.product((-1, 1), repeat=8)]
    )
    for level in np.unique(ps):
        assert np.mean(ps <= level) == pytest.approx(level, rel=1e-12)


def test_sign_flip_ignores_direction_order_and_unit() -> None:
    differences = np.random.default_rng(0).normal(0.5, 1, 11)
    p = evidence.sign_flip_test(differences).p
    for same in (-differences, differences[::-1], differences * 1e-9, differences * 1e9):
        assert evidence.sign_flip_test(same).p == p


@pytest.mark.parametrize("n", [2, 8, 20, 32, 33, 256])
def test_no_difference_at_all_gives_p_one(n: int) -> None:
    assert evidence.sign_flip_test(np.zeros(n)).p == 1


@pytest.mark.parametrize("n", [2, 5, 8, 20, 32])
def test_smallest_exact_p_is_the_floor(n: int) -> None:
    result = evidence.sign_flip_test(np.arange(1.0, n + 1))
    assert result.p == result.floor == 2 / 2**n


def test_floor_of_eight_pairs_is_the_published_one() -> None:
    expected = PUBLISHED["perm_floor"]["expected"]["min_p_two_sided"]
    assert evidence.sign_flip_test(np.ones(8)).floor == expected


def test_random_arrangements_never_give_p_zero() -> None:
    check = PUBLISHED["perm_mc_plus_one"]
    result = evidence.sign_flip_test(np.ones(40), resamples=check["inputs"]["m"])
    assert not result.exact
    assert result.p == result.floor == check["expected"]["p"]


def counted_p(whole: NDArray[np.int64]) -> float:
    """Exact p of whole numbers at any n, by the number of arrangements that give each sum."""
    reach = int(np.abs(whole).sum())
    counts = np.zeros(2 * reach + 1, dtype=object)
    counts[reach] = 1
    for value in np.abs(whole):
        counts = np.roll(counts, value) + np.roll(counts, -value)
    observed = abs(int(whole.sum()))
    extreme = sum(counts[: reach - observed + 1]) + sum(counts[reach + observed :])
    return min(1.0, float(extreme / 2**whole.size))


def test_counted_p_is_the_oracle_it_claims_to_be() -> None:
    assert counted_p(np.array(ZEA)) == brute_force_p(ZEA)


@pytest.mark.parametrize("n", [15, 21, 24, 32])
@pytest.mark.parametrize("spread", [3, 200])
def test_the_count_stays_exact_with_many_pairs_and_many_ties(n: int, spread: int) -> None:
    generator = np.random.default_rng(n)
    for shift in (0, 0.3, 1):
        whole = np.rint(generator.normal(shift * spread, spread, n)).astype(np.int64)
        result = evidence.sign_flip_test(whole * 0.1)
        assert result.exact
        assert result.p == pytest.approx(counted_p(whole), rel=1e-14)


@pytest.mark.parametrize("n", [33, 48])
@pytest.mark.parametrize("shift", [3, 12])
def test_random_arrangements_come_close_to_the_exact_p(n: int, shift: int) -> None:
    whole = np.rint(np.random.default_rng(n).normal(shift, 50, n)).astype(np.int64)
    exact = counted_p(whole)
    for seed in range(3):
        result = evidence.sign_flip_test(whole * 0.1, seed=seed)
        assert not result.exact
        assert abs(result.p - exact) < 4 * result.standard_error
        error = math.sqrt(exact * (1 - exact) / 1e5)
        assert result.standard_error == pytest.approx(error, rel=0.1, abs=1e-5)


def test_random_arrangements_depend_on_the_seed_alone() -> None:
    differences = np.random.default_rng(0).normal(0.1, 1, 300)
    first = evidence.sign_flip_test(differences, seed=4)
    assert evidence.sign_flip_test(differences, seed=4) == first
    assert evidence.sign_flip_test(differences, seed=5).p != first.p


def test_blocks_of_pairs_add_up() -> None:
    # 2,005 pairs take 126 blocks, the last one partial; a sum of so many is normal.
    differences = np.random.default_rng(1).normal(0, 1, 2005)
    z = abs(differences.sum()) / math.sqrt(np.sum(differences**2))
    result = evidence.sign_flip_test(differences, resamples=9_999)
    assert abs(result.p - 2 * stats.norm.sf(z)) < 4 * result.standard_error + 1e-3


@pytest.mark.parametrize(
    ("alpha", "pairs"), [(0.05, 6), (0.0625, 5), (0.01, 8), (0.25, 3), (0.5, 2), (0.9, 2)]
)
def test_fewest_pairs_for_a_level(alpha: float, pairs: int) -> None:
    assert evidence.pairs_for_level(alpha) == pairs
    assert evidence.sign_flip_test(np.ones(pairs)).p <= alpha
    if pairs > 2:
        assert evidence.sign_flip_test(np.ones(pairs - 1)).p > alpha


@pytest.mark.parametrize("values", [[1.0], [], [1.0, math.nan], [1.0, math.inf], [[1.0, 2.0]]])
def test_unusable_differences_are_refused(values: list[Any]) -> None:
    for function in (
        evidence.sign_flip_test,
        evidence.sign_flip_interval,
        evidence.half_width,
        evidence.t_test_p,
        evidence.bootstrap_interval,
        evidence.hodges_lehmann,
        evidence.signed_rank_interval,
        evidence.probability_of_improvement,
        evidence.improvement_interval,
        evidence.bayes_factor,
        evidence.sequential_test,
        evidence.sequential_interval,
    ):
        with pytest.raises(ValueError, match=r"at least 2 pairs|must be finite"):
            function(values)


def test_a_wild_pair_leaves_the_count_exact() -> None:
    for wild in (10**3, 10**6):
        tenths = [3, -1, 4, 1, -5, 9, wild]
        assert evidence.sign_flip_test(np.array(tenths) * 0.1).p == brute_force_p(tenths)


# ---- subsets


def test_subset_sums_follow_the_bits_of_their_places() -> None:
    assert subset_sums(np.array([1.0, 10.0, 100.0])).tolist() == [
        0,
        1,
        10,
        11,
        100,
        101,
        110,
        111,
    ]
    assert subset_sizes(3).tolist() == [0, 1, 1, 2, 1, 2, 2, 3]


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_subsets_up_to_a_bound_are_counted_with_those_on_it(n: int) -> None:
    whole = np.random.default_rng(n).integers(-3, 4, n)
    sums = [sum(c) for k in range(n + 1) for c in itertools.combinations(whole.tolist(), k)]
    for bound in range(-4, 5):
        expected = sum(total <= bound for total in sums)
        assert count_up_to(whole.astype(float), bound) == expected


def test_random_subsets_are_what_their_sums_and_sizes_say() -> None:
    # A sum of powers of two tells which of them it is made of.
    sums, sizes = random_subsets(np.array([2.0**i for i in range(40)]), 500, seed=1)
    members = [f"{int(total):040b}" for total in sums]
    assert sizes.tolist() == [text.count("1") for text in members]
    shares = np.mean([[int(bit) for bit in text] for text in members], axis=0)
    assert np.all(np.abs(shares - 0.5) < 0.1)
    few, _ = random_subsets(np.array([1.0, 2.0, 4.0]), 8000, seed=1)
    assert np.bincount(few.astype(int)) / 8000 == pytest.approx(np.full(8, 1 / 8), abs=0.015)


# ---- the interval of what it does not reject


@pytest.mark.parametrize("n", [6, 7, 8, 11])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_interval_holds_exactly_the_centres_that_the_test_does_not_reject(
    n: int, level: float
) -> None:
    generator = np.random.default_rng(n)
    for _ in range(5):
        differences = generator.normal(1, 1, n)
        low, high = evidence.sign_flip_interval(differences, level)
        step = 1e-6
        for centre, inside in (
            (low - step, False),
            (low + step, True),
            ((low + high) / 2, True),
            (high - step, True),
            (high + step, False),
        ):
            p = evidence.sign_flip_test(differences - centre).p
            assert (p > 1 - level) == inside


def test_interval_of_too_few_pairs_is_the_whole_line() -> None:
    for n in range(2, 6):
        assert evidence.pairs_for_level(0.05) > n
        ends = evidence.sign_flip_interval(np.arange(1.0, n + 1))
        assert ends == (-math.inf, math.inf)
    # At six pairs p = 2/64 is possible, by the least and the greatest difference alone.
    assert evidence.sign_flip_interval(np.arange(1.0, 7)) == (1, 6)


def test_interval_at_a_level_that_meets_an_arrangement_exactly() -> None:
    # p = 0.25 is attained at n = 3 and rejects, at 0.75 as at any level whose 1 - level rounds up.
    assert evidence.sign_flip_interval([1.0, 2.0, 3.0], 0.75) == (1, 3)
    assert evidence.sign_flip_interval([1.0, 2.0, 3.0], 0.76) == (-math.inf, math.inf)
    assert evidence.sign_flip_interval(np.arange(1.0, 5), 1 - 0.125) == (1, 4)


def test_interval_moves_with_the_differences_and_their_unit() -> None:
    differences = np.random.default_rng(0).normal(0, 1, 9)
    low, high = evidence.sign_flip_interval(differences)
    assert evidence.sign_flip_interval(3 - 2 * differences) == pytest.approx(
        (3 - 2 * high, 3 - 2 * low)
    )
    assert evidence.sign_flip_interval([0.1] * 8) == pytest.approx((0.1, 0.1))
    assert evidence.sign_flip_interval(np.zeros(40)) == (0, 0)


def test_interval_of_random_subsets_comes_close_to_that_of_all() -> None:
    exact = evidence.sign_flip_interval(np.array(ZEA, dtype=float))
    subsets = [np.array(s) for s in itertools.product((0, 1), repeat=15)][1:]
    means = np.sort([float(s @ ZEA / s.sum()) for s in subsets])
    k = math.floor(0.025 * 2**15)
    assert exact == pytest.approx((means[k - 1], means[-k]), rel=1e-12)
    many = np.random.default_rng(3).normal(0.3, 1, 400)
    sums, sizes = random_subsets(many, 99_999, seed=1)
    means = np.sort(sums / sizes)
    assert evidence.sign_flip_interval(many, 0.9, seed=1) == (means[4999], means[-5000])
    t = evidence.mean_interval(many)
    found = evidence.sign_flip_interval(many, seed=1)
    assert found == pytest.approx(t, abs=0.05 * (t.high - t.low))
    assert evidence.sign_flip_interval(many, seed=1) == found
    assert evidence.sign_flip_interval(many, seed=2) != found


def test_no_resamples_are_refused() -> None:
    for function in (evidence.sign_flip_test, evidence.sign_flip_interval):
        with pytest.raises(ValueError, match="at least 1"):
            function(np.ones(40), resamples=0)
