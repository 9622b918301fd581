import itertools
import math

import numpy as np
import pytest
from published import DIFFERENCES, PUBLISHED, ZEA
from scipy import stats

from msstab import evidence
from msstab.evidence.ranks import _lower_quantile, signed_rank_distribution

# ---- Hodges-Lehmann and signed ranks


def test_hodges_lehmann_is_the_published_one() -> None:
    expected = PUBLISHED["zea_hodges_lehmann"]["expected"]
    assert evidence.hodges_lehmann(ZEA) == expected["HL_eighths"]
    assert evidence.hodges_lehmann(np.array(ZEA) / 8) == expected["HL_in"]
    assert evidence.hodges_lehmann(DIFFERENCES) == pytest.approx(0.000144, abs=5e-7)


@pytest.mark.parametrize("n", [2, 3, 8, 13])
def test_hodges_lehmann_is_the_median_of_all_pairwise_means(n: int) -> None:
    d = np.random.default_rng(n).normal(size=n)
    means = [(x + y) / 2 for x, y in itertools.combinations_with_replacement(d, 2)]
    assert evidence.hodges_lehmann(d) == pytest.approx(np.median(means), rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_signed_rank_distribution_counts_every_choice_of_ranks(n: int) -> None:
    sums = [sum(c) for k in range(n + 1) for c in itertools.combinations(range(1, n + 1), k)]
    counts = np.bincount(sums, minlength=n * (n + 1) // 2 + 1)
    assert signed_rank_distribution(n) == pytest.approx(counts / 2**n, rel=1e-14)


@pytest.mark.parametrize("n", [6, 8, 15, 40])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_signed_rank_interval_holds_the_centres_that_scipys_test_accepts(
    n: int, level: float
) -> None:
    d = np.random.default_rng(n).normal(0.5, 1, n)
    low, high = evidence.signed_rank_interval(d, level)
    for centre, inside in (
        (low - 1e-6, False),
        (low + 1e-6, True),
        (high - 1e-6, True),
        (high + 1e-6, False),
    ):
        p = stats.wilcoxon(d - centre, method="exact").pvalue
        assert (p > 1 - level) == inside


def test_signed_rank_interval_agrees_with_the_published_test() -> None:
    # Whole numbers with ties, where scipy's exact p is the published one too.
    p = PUBLISHED["zea_wilcoxon_exact"]["expected"]["p_two_sided"]
    assert evidence.signed_rank_interval(ZEA, 1 - p - 1e-6).low > 0
    assert evidence.signed_rank_interval(ZEA, 1 - p + 1e-6).low <= 0


def test_signed_rank_interval_of_too_few_pairs_is_the_whole_line() -> None:
    assert evidence.signed_rank_interval(np.arange(1.0, 6)) == (-math.inf, math.inf)
    assert evidence.signed_rank_interval(np.arange(1.0, 7)) == (1, 6)
    assert evidence.signed_rank_interval([0.5] * 7) == (0.5, 0.5)
    # p = 0.25 is attained at n = 3, and rejects.
    assert evidence.signed_rank_interval([1.0, 2.0, 3.0], 0.75) == (1, 3)
    assert evidence.signed_rank_interval([1.0, 2.0, 3.0], 0.76) == (-math.inf, math.inf)


@pytest.mark.parametrize("share", [0.005, 0.025, 0.1])
def test_normal_quantile_of_many_ranks_comes_close_to_the_exact_one(share: float) -> None:
    n = 250
    exact = int(np.searchsorted(np.cumsum(signed_rank_distribution(n)), share, side="right"))
    # Of 31,375 possible sums, with a standard deviation of 1,145.
    assert exact - 10 <= _lower_quantile(n, share) <= exact + 1


# ---- bootstrap


def test_bootstrap_interval_is_scipys_and_follows_its_seed() -> None:
    d = np.random.default_rng(2).normal(size=20)
    reference = stats.bootstrap(
        (d,), np.mean, n_resamples=999, batch=100, rng=np.random.default_rng(3)
    ).confidence_interval
    found = evidence.bootstrap_interval(d, seed=3, resamples=999)
    assert found == pytest.approx((reference.low, reference.high), rel=1e-12)
    assert evidence.bootstrap_interval(d, seed=3, resamples=999) == found
    assert evidence.bootstrap_interval(d, seed=4, resamples=999) != found


def test_bootstrap_interval_is_the_published_one() -> None:
    check = PUBLISHED["bca_spatial"]
    found = evidence.bootstrap_interval(
        check["inputs"]["A"], check["inputs"]["level"], resamples=50_000, statistic=np.var
    )
    # The book drew 2,000 resamples.
    assert found == pytest.approx(check["expected"]["bca"], abs=check["tolerance"]["bca"])


def test_bootstrap_without_an_answer_says_so() -> None:
    ratios = PUBLISHED["bca_degenerate"]["inputs"]["ratios"]
    with pytest.raises(ValueError, match="4 values, 2 of them distinct"):
        evidence.bootstrap_interval(np.log(ratios), statistic=np.median)
    low, high = evidence.bootstrap_interval(np.log(ratios))
    assert math.log(0.5) <= low < high <= 0


def test_bootstrap_of_equal_values_has_no_width() -> None:
    assert evidence.bootstrap_interval([0.0] * 5) == (0, 0)
    assert evidence.bootstrap_interval([0.1] * 5) == pytest.approx((0.1, 0.1))
    with pytest.raises(ValueError, match="at least 1"):
        evidence.bootstrap_interval([0.0, 1.0], resamples=0)


# ---- probability of improvement


def test_probability_of_improvement_counts_ties_half() -> None:
    assert evidence.probability_of_improvement([-1.0, -2.0, 3.0, 0.0]) == 2.5 / 4
    assert evidence.probability_of_improvement([0.0, 0.0]) == 0.5
    assert evidence.improvement_interval(np.zeros(10)) == pytest.approx(
        (0.5 - 0.30, 0.5 + 0.30), abs=0.02
    )


@pytest.mark.parametrize(("won", "n"), [(0, 8), (3, 8), (8, 8), (120, 200)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_improvement_interval_agrees_with_scipy(won: int, n: int, level: float) -> None:
    d = np.where(np.arange(n) < won, -1.0, 1.0)
    reference = stats.binomtest(won, n).proportion_ci(level, method="exact")
    found = evidence.improvement_interval(d, level)
    assert found == pytest.approx((reference.low, reference.high), rel=1e-10)


def test_improvement_interval_excludes_a_half_where_the_published_sign_test_rejects() -> None:
    p = PUBLISHED["zea_sign_test"]["expected"]["p"]
    losses = -np.array(ZEA, dtype=float)
    assert evidence.probability_of_improvement(losses) == 13 / 15
    assert evidence.improvement_interval(losses, 1 - p - 1e-6).low > 0.5
    assert evidence.improvement_interval(losses, 1 - p + 1e-6).low < 0.5


def test_half_a_tie_lies_between_a_win_and_a_loss() -> None:
    def ends(last: float) -> tuple[float, float]:
        return evidence.improvement_interval([-1.0, -1.0, 1.0, 1.0, 1.0, last])

    for loss, tie, win in zip(ends(1.0), ends(0.0), ends(-1.0), strict=True):
        assert loss < tie < win


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 95.0, math.nan])
def test_levels_are_shares(level: float) -> None:
    for function in (
        evidence.mean_interval,
        evidence.sign_flip_interval,
        evidence.signed_rank_interval,
        evidence.bootstrap_interval,
        evidence.improvement_interval,
        evidence.sequential_interval,
    ):
        with pytest.raises(ValueError, match="level"):
            function(DIFFERENCES, level)
