import itertools
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, special, stats

from msstab import evidence

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pingouin
    from statsmodels.stats.power import TTestPower
    from statsmodels.stats.weightstats import ttost_paired

HERE = Path(__file__).parent
PUBLISHED: dict[str, dict[str, Any]] = {
    check["name"]: check
    for check in json.loads((HERE / "data" / "external_checks.json").read_text())
}
ORIGINAL = json.loads((HERE.parent / "book" / "data" / "stage2_report.json").read_text())
BASELINE = np.array(ORIGINAL["bench_report"]["baseline"]["full"]["per_seed"])
IDEA = np.array(ORIGINAL["bench_report"]["idea"]["per_seed"])
DIFFERENCES = IDEA - BASELINE
SD = float(DIFFERENCES.std(ddof=1))
ZEA = PUBLISHED["zea_signflip_exact"]["inputs"]["diffs_eighths_inch"]


def brute_force_p(differences: list[int]) -> float:
    """Count in integers, where ties are certain."""
    observed = abs(sum(differences))
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((-1, 1), repeat=len(differences))
    ]
    return sum(total >= observed for total in sums) / len(sums)


def half_sums_p(differences: NDArray[np.float64]) -> float:
    """Exact p beyond enumeration: sums of one half, looked up among those of the other."""
    halves = np.array_split(differences, 2)
    first, second = (
        np.sort(np.array(list(itertools.product((-1, 1), repeat=h.size))) @ h) for h in halves
    )
    above = second.size - np.searchsorted(second, abs(differences.sum()) - first - 1e-12)
    return float(2 * above.sum() / 2**differences.size)


def integrated_power(standardised: float, n: int, alpha: float) -> float:
    """Power of the t test without the noncentral t: a normal mean over a chi denominator."""
    degrees, shift = n - 1, standardised * math.sqrt(n)
    critical = stats.t.isf(alpha / 2, degrees)

    def density(scale: float) -> float:
        bound = critical * scale / math.sqrt(degrees)
        rejected = special.ndtr(shift - bound) + special.ndtr(-shift - bound)
        return float(stats.chi.pdf(scale, degrees) * rejected)

    low, high = stats.chi.ppf(1e-15, degrees), stats.chi.isf(1e-15, degrees)
    return float(integrate.quad(density, low, high, limit=200, epsabs=1e-11)[0])


# ---- sign-flip test


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


@pytest.mark.parametrize("n", [2, 8, 20, 25, 256])
def test_no_difference_at_all_gives_p_one(n: int) -> None:
    assert evidence.sign_flip_test(np.zeros(n)).p == 1


@pytest.mark.parametrize("n", [2, 5, 8, 20])
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


@pytest.mark.parametrize("n", [21, 22])
@pytest.mark.parametrize("shift", [0.1, 0.5])
def test_random_arrangements_come_close_to_the_exact_p(n: int, shift: float) -> None:
    differences = np.random.default_rng(n).normal(shift, 1, n)
    exact = half_sums_p(differences)
    for seed in range(3):
        result = evidence.sign_flip_test(differences, seed=seed)
        assert abs(result.p - exact) < 4 * result.standard_error
        assert result.standard_error == pytest.approx(math.sqrt(exact * (1 - exact) / 1e5), rel=0.1)


def test_half_sums_are_the_oracle_they_claim_to_be() -> None:
    assert half_sums_p(np.array(ZEA, dtype=float)) == brute_force_p(ZEA)


def test_random_arrangements_depend_on_the_seed_alone() -> None:
    differences = np.random.default_rng(0).normal(0.1, 1, 300)
    first = evidence.sign_flip_test(differences, seed=4)
    assert evidence.sign_flip_test(differences, seed=4) == first
    assert evidence.sign_flip_test(differences, seed=5).p != first.p


def test_chunks_of_arrangements_add_up() -> None:
    # 2,000 pairs take five chunks, the last one partial; a sum of so many is normal.
    differences = np.random.default_rng(1).normal(0, 1, 2000)
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
    for function in (evidence.sign_flip_test, evidence.half_width, evidence.t_test_p):
        with pytest.raises(ValueError, match=r"at least 2 pairs|must be finite"):
            function(values)


# ---- t test, interval, margins


@pytest.mark.parametrize(("name", "unit"), [("zea_paired_t", 8), ("sleep_paired_t", 1)])
def test_t_statistics_are_the_published_ones(name: str, unit: float) -> None:
    inputs, expected = PUBLISHED[name]["inputs"], PUBLISHED[name]["expected"]
    if "group1" in inputs:
        differences = np.subtract(inputs["group1"], inputs["group2"])
    else:
        differences = np.array(inputs["diffs_eighths_inch"]) / unit
    interval = expected.get("ci95", expected.get("ci95_in"))
    assert evidence.t_test_p(differences) == pytest.approx(expected["p"], abs=1e-8)
    assert evidence.mean_interval(differences) == pytest.approx(interval, abs=1e-8)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_t_statistics_agree_with_scipy(level: float) -> None:
    differences = np.random.default_rng(5).normal(0.3, 2, 9)
    reference = stats.ttest_1samp(differences, 0)
    low, high = reference.confidence_interval(level)
    assert evidence.t_test_p(differences) == pytest.approx(reference.pvalue, rel=1e-12)
    assert evidence.mean_interval(differences, level) == pytest.approx((low, high), rel=1e-12)
    assert evidence.half_width(differences, level) == pytest.approx((high - low) / 2, rel=1e-12)


@pytest.mark.parametrize("margin", [0.1, 0.6, 3.0])
def test_equivalence_agrees_with_statsmodels(margin: float) -> None:
    generator = np.random.default_rng(7)
    a, b = generator.normal(1, 1, 12), generator.normal(1.3, 1, 12)
    reference = ttost_paired(b, a, -margin, margin)[0]
    assert evidence.equivalence_p(b - a, margin) == pytest.approx(reference, rel=1e-10)


@pytest.mark.parametrize("margin", [0.1, 1.0])
def test_excluded_improvement_is_a_one_sided_t_test(margin: float) -> None:
    differences = np.random.default_rng(8).normal(0.2, 1, 10)
    reference = stats.ttest_1samp(differences, -margin, alternative="greater").pvalue
    assert evidence.improvement_p(differences, margin) == pytest.approx(reference, rel=1e-12)
    # A large improvement is not excluded by data that show one.
    assert evidence.improvement_p(differences - 5, margin) > 0.99


@pytest.mark.parametrize("margin", [0.0, -1.0, math.nan, math.inf])
def test_margin_must_be_positive(margin: float) -> None:
    for function in (evidence.equivalence_p, evidence.improvement_p):
        with pytest.raises(ValueError, match="margin"):
            function(DIFFERENCES, margin)


def test_differences_that_do_not_vary_have_limits_for_p() -> None:
    assert evidence.t_test_p([0.0, 0.0, 0.0]) == 1
    assert evidence.t_test_p([0.1, 0.1, 0.1]) == 0
    assert evidence.mean_interval([0.1] * 3) == pytest.approx((0.1, 0.1))
    assert evidence.equivalence_p([0.1] * 3, 0.2) == 0
    assert evidence.equivalence_p([0.3] * 3, 0.2) == 1
    assert evidence.improvement_p([-0.3] * 3, 0.2) == 1
    # Equal but for rounding, where scipy warns of a loss of precision.
    hardly = np.array([0.2, 0.3, 0.4]) - np.array([0.1, 0.2, 0.3])
    assert np.ptp(hardly) > 0
    assert evidence.equivalence_p(hardly, 0.2) < 1e-9


# ---- power


@pytest.mark.parametrize("n", [2, 3, 5, 8, 20, 33, 200])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_power_agrees_with_integration(n: int, alpha: float) -> None:
    for standardised in (0.0, 0.1, 0.5, 1.0, 2.5, 4.0, 6.0):
        expected = integrated_power(standardised, n, alpha)
        assert evidence.power(standardised, 1, n, alpha) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("n", [5, 8, 20, 33, 1000])
def test_power_rises_to_one_where_scipy_loses_the_lower_tail(n: int) -> None:
    effects = np.concatenate([np.linspace(0, 6, 601), [1e2, 1e6, 1e300]])
    powers = np.array([evidence.power(effect, 1, n) for effect in effects])
    assert np.all(np.diff(powers) > -1e-9)
    assert powers[0] == pytest.approx(0.05)
    assert powers[-1] == pytest.approx(1)


def test_power_of_an_enormous_effect_is_one_at_two_pairs_too() -> None:
    for effect in (1e300, -1e300):
        assert evidence.power(effect, 1, 2) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("n", [3, 5, 8, 20, 33])
def test_a_lower_tail_that_scipy_loses_is_negligible(n: int) -> None:
    shifts = np.linspace(0, 6, 601) * math.sqrt(n)
    tails = np.asarray(stats.nct.cdf(-stats.t.isf(0.025, n - 1), n - 1, shifts))
    assert np.all(np.diff(tails[~np.isnan(tails)]) <= 1e-12)
    if np.isnan(tails).any():
        assert tails[np.argmax(np.isnan(tails)) - 1] < 1e-10


def test_power_is_the_published_one() -> None:
    inputs = PUBLISHED["power_cohen_d02_n60"]["inputs"]
    expected = PUBLISHED["power_cohen_d02_n60"]["expected"]["power"]
    power = evidence.power(inputs["d"], 1, inputs["n"], inputs["alpha"])
    assert power == pytest.approx(expected, abs=1e-6)


def test_power_counts_an_effect_in_either_direction() -> None:
    for effect in (0.7, 2.0, 12.0):
        assert evidence.power(-effect, 2, 20) == evidence.power(effect, 2, 20)
    assert evidence.power(0.0, 0.0, 4, 0.1) == 0.1
    assert evidence.power(0.1, 0.0, 4, 0.1) == 1


@pytest.mark.parametrize("name", ["power_mde_n20_paired", "power_mde_n8"])
def test_detectable_effect_is_the_published_one(name: str) -> None:
    inputs, expected = PUBLISHED[name]["inputs"], PUBLISHED[name]["expected"]
    effect = evidence.detectable_effect(1, inputs["n"], inputs["power"], inputs["alpha"])
    published = expected.get("d", expected.get("dz"))
    assert effect == pytest.approx(published, abs=PUBLISHED[name]["tolerance"])


@pytest.mark.parametrize("n", [4, 8, 20, 100])
@pytest.mark.parametrize("wanted", [0.2, 0.8, 0.9])
def test_detectable_effect_agrees_with_statsmodels_and_pingouin(n: int, wanted: float) -> None:
    effect = evidence.detectable_effect(2.5, n, wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = TTestPower().solve_power(None, n, 0.05, wanted)
        other = pingouin.power_ttest(n=n, power=wanted, contrast="one-sample")
    # Their solvers stop at five to six digits.
    assert effect / 2.5 == pytest.approx(float(reference), rel=1e-5)
    assert effect / 2.5 == pytest.approx(float(other), rel=1e-5)


@pytest.mark.parametrize("n", [2, 3, 8, 1000])
@pytest.mark.parametrize("alpha", [0.001, 0.05])
@pytest.mark.parametrize("wanted", [0.06, 0.8, 0.999])
def test_detectable_effect_has_the_power_it_promises(n: int, alpha: float, wanted: float) -> None:
    effect = evidence.detectable_effect(0.3, n, wanted, alpha)
    assert evidence.power(effect, 0.3, n, alpha) == pytest.approx(wanted, abs=1e-9)
    assert integrated_power(effect / 0.3, n, alpha) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize(
    ("n", "wanted", "alpha"),
    [(1, 0.8, 0.05), (8, 0.05, 0.05), (8, 0.01, 0.05), (8, 1.0, 0.05), (8, 0.8, 0.0)],
)
def test_no_detectable_effect_is_an_error_not_a_bracket(
    n: int, wanted: float, alpha: float
) -> None:
    with pytest.raises(ValueError, match=r"pairs are needed|power|alpha"):
        evidence.detectable_effect(1.0, n, wanted, alpha)


def test_detectable_effect_of_a_power_next_to_one_ends() -> None:
    for n in (2, 8, 1000):
        effect = evidence.detectable_effect(1.0, n, math.nextafter(1, 0))
        assert evidence.power(effect, 1.0, n) == pytest.approx(1, abs=1e-12)


def test_pairs_needed_is_the_published_number() -> None:
    check = PUBLISHED["power_n_two_sided"]
    assert evidence.pairs_needed(check["inputs"]["d"], 1) == math.ceil(check["expected"]["n"])


@pytest.mark.parametrize("effect", [-2.0, 0.1, 0.37, 0.9])
@pytest.mark.parametrize("wanted", [0.8, 0.9])
def test_pairs_needed_are_enough_and_one_fewer_is_not(effect: float, wanted: float) -> None:
    n = evidence.pairs_needed(effect, 0.8, wanted)
    assert evidence.power(effect, 0.8, n) >= wanted
    assert n == 6 or evidence.power(effect, 0.8, n - 1) < wanted


def test_pairs_needed_never_goes_below_what_a_sign_flip_test_needs() -> None:
    assert evidence.pairs_needed(50, 1) == 6
    assert evidence.pairs_needed(50, 1, alpha=0.01) == 8
    assert evidence.pairs_needed(1, 0) == 6


@pytest.mark.parametrize("effect", [0.0, math.nan, math.inf, 1e-7])
def test_no_number_of_pairs_is_an_error_not_a_bracket(effect: float) -> None:
    with pytest.raises(ValueError, match="effect"):
        evidence.pairs_needed(effect, 1)


# ---- the original report's numbers


def test_the_originals_mde_is_a_half_width_with_half_the_power() -> None:
    stated = ORIGINAL["bench_report"]["comparison"]["mde"]
    half_width = evidence.half_width(DIFFERENCES)
    # Its t quantile was rounded, 2.365 for 2.36462.
    assert stated == pytest.approx(half_width * 2.365 / stats.t.ppf(0.975, 7), rel=1e-12)
    assert evidence.power(half_width, SD, 8) == pytest.approx(0.531, abs=5e-4)
    assert evidence.detectable_effect(SD, 8) == pytest.approx(0.0013811, abs=5e-8)
    assert evidence.detectable_effect(1, 8) == pytest.approx(1.15604, abs=1e-5)


@pytest.mark.parametrize(
    ("share", "pairs", "equivalence"),
    [(0.3, 27, 0.130), (0.2, 58, 0.254), (0.1, 226, 0.436), (0.05, 895, None), (0.5, None, 0.028)],
)
def test_what_the_original_could_and_could_not_show(
    share: float, pairs: int | None, equivalence: float | None
) -> None:
    effect = share * float(BASELINE.mean())
    if pairs:
        assert evidence.pairs_needed(effect, SD) == pairs
        assert math.ceil(TTestPower().solve_power(effect / SD, None, 0.05, 0.8)) == pairs
    if equivalence:
        assert evidence.equivalence_p(DIFFERENCES, effect) == pytest.approx(equivalence, abs=5e-4)


def test_summary_of_the_original() -> None:
    e = evidence.summarise(BASELINE, IDEA, margin=0.05 * float(BASELINE.mean()))
    assert (e.n, e.wins, e.p_value, e.p_exact) == (8, 4, 180 / 256, True)
    assert e.interval == pytest.approx((-0.000845, 0.001153), abs=5e-7)
    assert e.correlation == pytest.approx(-0.337, abs=5e-4)
    assert e.variance_ratio == pytest.approx(1.335, abs=5e-4)
    assert not e.pairing_helped
    assert e.ratio == pytest.approx(1.088, abs=5e-4)
    assert e.ratio_interval == pytest.approx((0.684, 1.731), abs=6e-4)
    assert e.percent(e.mde_power80) == pytest.approx(61.6, abs=0.05)
    assert evidence.pairs_needed(e.mean_difference, e.sd_difference) == 475


# ---- summary


def test_summary_holds_what_each_function_says() -> None:
    generator = np.random.default_rng(2)
    a = generator.uniform(1, 2, 9)
    b = a + generator.normal(-0.1, 0.1, 9)
    b[3] = a[3]
    e = evidence.summarise(a, b, margin=0.2, alpha=0.1)
    d = b - a
    logs = stats.ttest_1samp(np.log(b / a), 0).confidence_interval(0.9)
    assert e.mean_difference == pytest.approx(e.mean_idea - e.mean_baseline)
    assert e.wins == sum(x < y for x, y in zip(b, a, strict=True))
    assert e.p_value == evidence.sign_flip_test(d).p
    assert e.p_floor == 2 / 2**9
    assert e.p_t == evidence.t_test_p(d)
    assert e.interval == evidence.mean_interval(d, 0.9)
    assert e.mde_half_width == pytest.approx((e.interval.high - e.interval.low) / 2)
    assert e.mde_power80 == evidence.detectable_effect(float(d.std(ddof=1)), 9, 0.8, 0.1)
    assert e.power_at_margin == evidence.power(0.2, float(d.std(ddof=1)), 9, 0.1)
    assert (e.p_equivalence, e.p_improvement) == (
        evidence.equivalence_p(d, 0.2),
        evidence.improvement_p(d, 0.2),
    )
    assert e.correlation == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert e.variance_ratio == pytest.approx(
        np.var(d, ddof=1) / (np.var(a, ddof=1) + np.var(b, ddof=1))
    )
    assert e.pairing_helped
    assert e.ratio == pytest.approx(stats.gmean(b / a))
    assert e.ratio_interval == pytest.approx((np.exp(logs.low), np.exp(logs.high)))
    assert e.percent(e.mean_baseline) == 100


def test_summary_of_identical_arms_is_defined() -> None:
    e = evidence.summarise(BASELINE, BASELINE, margin=1e-4)
    assert (e.p_value, e.p_t, e.p_equivalence, e.mde_power80) == (1, 1, 0, 0)
    assert (e.ratio, e.variance_ratio, e.wins) == (1, 0, 0)
    assert e.correlation == pytest.approx(1)


def test_summary_marks_what_is_not_defined() -> None:
    e = evidence.summarise([1.0, 1.0, 1.0], [1.1, 1.1, 1.1], margin=0.2)
    assert math.isnan(e.correlation)
    assert math.isnan(e.variance_ratio)
    assert not e.pairing_helped
    assert math.isnan(evidence.summarise([0.0, 1.0], [1.0, 2.0], margin=0.1).ratio)
    assert math.isnan(evidence.summarise([-1.0, 0.5], [1.0, 2.0], margin=0.1).percent(1))


def test_summary_survives_a_run_scored_as_diverged() -> None:
    e = evidence.summarise([1e-3, 1e-3], [1e-3, 1e150], margin=1e-4)
    assert e.ratio_interval == (0, math.inf)


@pytest.mark.parametrize(
    ("baseline", "idea", "margin", "message"),
    [
        ([1.0, 2.0], [1.0, 2.0, 3.0], 0.1, "do not pair up"),
        ([1.0, math.nan], [1.0, 2.0], 0.1, "finite"),
        ([1.0], [1.0], 0.1, "at least 2 pairs"),
        ([0.002, 0.003], [0.002, 0.003], 0.05, "whole error"),
        ([1.0, 2.0], [1.0, 2.0], 0.0, "margin"),
    ],
)
def test_unusable_arms_are_refused(
    baseline: list[float], idea: list[float], margin: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        evidence.summarise(baseline, idea, margin=margin)


def test_random_signs_of_the_summary_follow_its_seed() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.uniform(1, 2, (2, 30))
    first, second = (evidence.summarise(a, b, margin=0.1, seed=s) for s in (0, 1))
    assert first.p_standard_error > 0
    assert first.p_value != second.p_value
