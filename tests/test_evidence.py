import dataclasses
import math
import time
import warnings

import numpy as np
import pytest
from published import BASELINE, DIFFERENCES, IDEA, ORIGINAL, SD
from scipy import stats

from msstab import evidence

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from statsmodels.stats.power import TTestPower


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
    assert e.interval_sign_flip == evidence.sign_flip_interval(d, 0.9)
    assert e.improvement == (e.wins + 0.5) / 9
    assert e.improvement_interval == evidence.improvement_interval(d, 0.9)
    assert e.mde_power90 == evidence.detectable_effect(float(d.std(ddof=1)), 9, 0.9, 0.1)


def test_ratios_of_the_summary_hold_what_each_function_says_of_log_ratios() -> None:
    generator = np.random.default_rng(3)
    a = generator.uniform(1, 2, 12)
    b = a * generator.lognormal(-0.1, 0.2, 12)
    share = 0.06
    e = evidence.summarise(a, b, margin=share * a.mean(), alpha=0.1)
    logs, r = evidence.log_ratios(a, b), e.ratios
    sd, margin = float(logs.std(ddof=1)), math.log(1 + share)
    assert (r.margin, r.sd) == pytest.approx((margin, sd), rel=1e-12)
    assert r.ratio == e.ratio == pytest.approx(stats.gmean(b / a))
    assert r.interval == e.ratio_interval
    intervals = {
        "interval": evidence.mean_interval,
        "interval_sign_flip": evidence.sign_flip_interval,
        "interval_bootstrap": evidence.bootstrap_interval,
        "interval_hodges_lehmann": evidence.signed_rank_interval,
        "interval_anytime": evidence.sequential_interval,
    }
    for name, interval in intervals.items():
        assert getattr(r, name) == pytest.approx(np.exp(interval(logs, 0.9)), rel=1e-12)
    assert r.hodges_lehmann == pytest.approx(math.exp(evidence.hodges_lehmann(logs)))
    assert (r.p_value, r.p_standard_error) == (evidence.sign_flip_test(logs).p, 0)
    assert r.p_t == evidence.t_test_p(logs)
    assert r.p_equivalence == pytest.approx(evidence.equivalence_p(logs, margin), rel=1e-9)
    assert r.p_improvement == pytest.approx(evidence.improvement_p(logs, margin), rel=1e-9)
    assert r.power_at_margin == pytest.approx(evidence.power(margin, sd, 12, 0.1), rel=1e-9)
    assert r.practical == pytest.approx(evidence.practical_probabilities(logs, margin), rel=1e-9)
    assert r.bayes_factor == evidence.bayes_factor(logs)
    test = evidence.sequential_test(logs)
    assert (r.e_value, r.p_anytime) == (test.e_values[-1], test.p_values[-1])
    for wanted, lowering in ((0.8, r.mde_power80), (0.9, r.mde_power90)):
        effect = math.log(1 - lowering / 100)
        assert evidence.power(effect, sd, 12, 0.1) == pytest.approx(wanted, abs=1e-9)


def test_ratios_know_no_unit() -> None:
    generator = np.random.default_rng(4)
    a, b = generator.lognormal(0, 0.3, (2, 10))
    first = evidence.summarise(a, b, margin=0.05 * a.mean())
    second = evidence.summarise(1e-4 * a, 1e-4 * b, margin=0.05e-4 * a.mean())
    for field in dataclasses.fields(first.ratios):
        one, other = (getattr(e.ratios, field.name) for e in (first, second))
        # A resample on the edge may change sides.
        tolerance = 1e-3 if field.name == "interval_bootstrap" else 1e-6
        assert np.allclose(other, one, rtol=tolerance, atol=0), field.name


def test_level_and_interval_by_sign_flips_agree() -> None:
    generator = np.random.default_rng(5)
    rejections = 0
    for _ in range(60):
        a = generator.lognormal(0, 0.2, 8)
        e = evidence.summarise(a, a * generator.lognormal(-0.15, 0.2, 8), margin=0.05)
        low, high = e.interval_sign_flip
        assert (e.p_value <= 0.05) == (not low <= 0 <= high)
        low, high = e.ratios.interval_sign_flip
        assert (e.ratios.p_value <= 0.05) == (not low <= 1 <= high)
        rejections += e.p_value <= 0.05
    assert 5 < rejections < 55


def test_settling_five_percent_takes_hundreds_of_pairs() -> None:
    # Independent seeds whose errors spread by 30%.
    sd = 0.3 * math.sqrt(2)
    assert evidence.pairs_needed(evidence.log_margin(0.05), sd) == pytest.approx(580, rel=0.03)
    needed = evidence.pairs_needed(evidence.log_margin(0.05), sd, 0.9)
    assert needed == pytest.approx(770, rel=0.04)


def test_summary_of_a_thousand_pairs_is_quick() -> None:
    generator = np.random.default_rng(6)
    a, b = generator.lognormal(0, 0.3, (2, 1000))
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        evidence.summarise(a, b, margin=0.05)
        seconds.append(time.perf_counter() - start)
    # A quarter of a second on a core of its own.
    assert min(seconds) < 1.5


def test_summary_of_identical_arms_is_defined() -> None:
    e = evidence.summarise(BASELINE, BASELINE, margin=1e-4)
    assert (e.p_value, e.p_t, e.p_equivalence, e.mde_power80) == (1, 1, 0, 0)
    assert (e.ratio, e.variance_ratio, e.wins) == (1, 0, 0)
    assert (e.improvement, e.interval_sign_flip) == (0.5, (0, 0))
    r = e.ratios
    assert (r.p_value, r.p_anytime, r.e_value, r.p_equivalence) == (1, 1, 1, 0)
    assert r.interval == r.interval_sign_flip == r.interval_bootstrap == (1, 1)
    assert r.practical == (0, 1, 0)
    assert r.bayes_factor < 0.5
    assert (r.mde_power80, r.mde_power90) == (0, 0)
    assert e.correlation == pytest.approx(1)


def test_summary_marks_what_is_not_defined() -> None:
    e = evidence.summarise([1.0, 1.0, 1.0], [1.1, 1.1, 1.1], margin=0.2)
    assert math.isnan(e.correlation)
    assert math.isnan(e.variance_ratio)
    assert not e.pairing_helped
    zero = evidence.summarise([0.0, 1.0], [1.0, 2.0], margin=0.1)
    assert math.isnan(zero.ratio)
    for field in dataclasses.fields(zero.ratios):
        assert np.all(np.isnan(getattr(zero.ratios, field.name))), field.name
    assert math.isnan(evidence.summarise([-1.0, 0.5], [1.0, 2.0], margin=0.1).percent(1))


def test_summary_survives_a_run_scored_as_diverged() -> None:
    e = evidence.summarise([1e-3, 1e-3], [1e-3, 1e150], margin=1e-4)
    assert e.ratio_interval == (0, math.inf)
    many = evidence.summarise([1e-3] * 10, [1e-3 * 1.1] * 9 + [1e150], margin=1e-4)
    assert many.ratios.p_value == 2 / 2**10
    assert many.ratios.hodges_lehmann == pytest.approx(1.1)


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
    a, b = generator.uniform(1, 2, (2, 40))
    first, second = (evidence.summarise(a, b, margin=0.1, seed=s) for s in (0, 1))
    assert first.p_standard_error > 0
    assert first.p_value != second.p_value
