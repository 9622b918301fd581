import math
import warnings

import numpy as np
import pytest
from published import DIFFERENCES, PUBLISHED
from scipy import stats

from msstab import evidence

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from statsmodels.stats.weightstats import DescrStatsW, ttost_paired


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
    other = DescrStatsW(b - a).ttost_mean(-margin, margin)[0]
    assert evidence.equivalence_p(b - a, margin) == pytest.approx(other, rel=1e-10)


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_margin_of_log_ratios_is_the_same_either_way_and_within_the_share(share: float) -> None:
    margin = evidence.log_margin(share)
    assert math.exp(margin) == pytest.approx(1 + share)
    assert 1 - share < math.exp(-margin) < 1
    generator = np.random.default_rng(1)
    a, b = generator.lognormal(0, 0.1, (2, 20))
    there, back = (evidence.log_ratios(*arms) for arms in ((a, b), (b, a)))
    assert evidence.equivalence_p(there, margin) == pytest.approx(
        evidence.equivalence_p(back, margin), rel=1e-12
    )


@pytest.mark.parametrize("margin", [0.1, 1.0])
def test_excluded_improvement_is_a_one_sided_t_test(margin: float) -> None:
    differences = np.random.default_rng(8).normal(0.2, 1, 10)
    reference = stats.ttest_1samp(differences, -margin, alternative="greater").pvalue
    assert evidence.improvement_p(differences, margin) == pytest.approx(reference, rel=1e-12)
    # A large improvement is not excluded by data that show one.
    assert evidence.improvement_p(differences - 5, margin) > 0.99


@pytest.mark.parametrize("margin", [0.0, -1.0, math.nan, math.inf])
def test_margin_must_be_positive(margin: float) -> None:
    for function in (
        evidence.equivalence_p,
        evidence.improvement_p,
        evidence.practical_probabilities,
    ):
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


# ---- log ratios


def test_log_ratios_are_the_logarithms_of_the_ratios() -> None:
    a, b = np.random.default_rng(0).lognormal(0, 1, (2, 7))
    assert evidence.log_ratios(a, b) == pytest.approx(np.log(b / a), rel=1e-12)
    # Also where the ratio itself is no number in double precision.
    assert evidence.log_ratios([1e-300, 1.0], [1e300, 1.0])[0] == pytest.approx(600 * math.log(10))


@pytest.mark.parametrize(
    ("baseline", "idea", "message"),
    [
        ([1.0, 0.0], [1.0, 1.0], "1 errors of the baseline .* first pair 2 with 0"),
        ([1.0, 2.0, 3.0], [1.0, -2.0, -1.0], "2 errors of the idea .* first pair 2 with -2"),
        ([1.0, 2.0], [1.0, 2.0, 3.0], "do not pair up"),
        ([1.0, 2.0], [math.nan, 2.0], "finite"),
    ],
)
def test_errors_without_a_logarithm_are_refused(
    baseline: list[float], idea: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        evidence.log_ratios(baseline, idea)
