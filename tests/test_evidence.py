import math
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
    a, b = generator.uniform(1, 2, (2, 40))
    first, second = (evidence.summarise(a, b, margin=0.1, seed=s) for s in (0, 1))
    assert first.p_standard_error > 0
    assert first.p_value != second.p_value
