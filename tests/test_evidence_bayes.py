import math
import warnings

import numpy as np
import pytest
from published import BASELINE, DIFFERENCES, PUBLISHED, SD
from scipy import integrate, stats

from msstab import evidence

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pingouin
    from statsmodels.stats.multitest import multipletests


def mixed_bayes_factor(t: float, n: int, scale: float) -> float:
    """BF10 from its definition: the density of t under a Cauchy prior of the effect."""
    # Over the angle of the effect the prior is uniform.
    points = (np.arange(20_000) + 0.5) / 20_000
    effects = scale * np.tan(math.pi * (points - 0.5))
    inside = np.abs(effects) < 6
    densities = np.asarray(stats.nct.pdf(t, n - 1, effects[inside] * math.sqrt(n)))
    return float(densities.sum() / points.size / stats.t.pdf(t, n - 1))


# ---- posterior of the mean


@pytest.mark.parametrize("margin", [0.1, 0.5])
def test_practical_probabilities_are_those_of_a_moved_t(margin: float) -> None:
    d = np.random.default_rng(1).normal(-0.3, 1, 12)
    posterior = stats.t(11, d.mean(), d.std(ddof=1) / math.sqrt(12))
    found = evidence.practical_probabilities(d, margin)
    assert found.better == pytest.approx(posterior.cdf(-margin), rel=1e-10)
    assert found.within == pytest.approx(posterior.cdf(margin) - posterior.cdf(-margin), rel=1e-10)
    assert found.worse == pytest.approx(posterior.sf(margin), rel=1e-10)
    assert found.better == evidence.improvement_p(d, margin)


def test_practical_probabilities_agree_with_draws_from_the_posterior() -> None:
    # Variance: scaled inverse chi-squared; mean given the variance: normal.
    d = np.random.default_rng(1).normal(0.2, 1, 9)
    generator = np.random.default_rng(0)
    variances = 8 * d.var(ddof=1) / generator.chisquare(8, 200_000)
    means = generator.normal(d.mean(), np.sqrt(variances / 9))
    drawn = [np.mean(means < -0.3), np.mean(np.abs(means) <= 0.3), np.mean(means > 0.3)]
    assert evidence.practical_probabilities(d, 0.3) == pytest.approx(drawn, abs=5e-3)


def test_practical_probability_of_the_original() -> None:
    found = evidence.practical_probabilities(DIFFERENCES, 0.1 * float(BASELINE.mean()))
    assert found.within == pytest.approx(0.363, abs=5e-4)
    assert sum(found) == pytest.approx(1)


def test_practical_probabilities_of_differences_that_do_not_vary() -> None:
    assert evidence.practical_probabilities([0.0] * 4, 0.1) == (0, 1, 0)
    assert evidence.practical_probabilities([0.2] * 4, 0.1) == (0, 0, 1)
    assert evidence.practical_probabilities([-0.2] * 4, 0.1) == (1, 0, 0)


# ---- Bayes factor


def test_bayes_factor_is_the_published_one() -> None:
    check = PUBLISHED["pingouin_bf_one_sample"]
    found = evidence.bayes_factor_of_t(check["inputs"]["t"], check["inputs"]["n"], 0.707)
    assert found == pytest.approx(check["expected"]["BF10"], abs=check["tolerance"])
    assert evidence.bayes_factor(DIFFERENCES) == pytest.approx(0.356, abs=5e-4)
    t = DIFFERENCES.mean() / SD * math.sqrt(8)
    assert evidence.bayes_factor(DIFFERENCES) == evidence.bayes_factor_of_t(float(t), 8)


@pytest.mark.parametrize("n", [2, 3, 8, 50, 1000])
@pytest.mark.parametrize("t", [0.0, 0.4, -2.5, 6.0])
@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_bayes_factor_agrees_with_pingouin(n: int, t: float, scale: float) -> None:
    reference = float(pingouin.bayesfactor_ttest(t, n, r=scale))
    # Its integration stops at an absolute error of 1.5e-8, before it divides by the null's.
    null = (1 + t**2 / (n - 1)) ** (-n / 2)
    tolerance = 1e-10 * reference + 1e-8 / null
    assert evidence.bayes_factor_of_t(t, n, scale) == pytest.approx(reference, abs=tolerance)


@pytest.mark.parametrize(("t", "n"), [(0.0, 8), (1.5, 8), (2.5, 30)])
def test_bayes_factor_agrees_with_its_definition(t: float, n: int) -> None:
    expected = mixed_bayes_factor(t, n, 0.7)
    assert evidence.bayes_factor_of_t(t, n, 0.7) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("n", [2, 8, 1000])
def test_bayes_factor_is_exact_at_a_plain_integral(n: int) -> None:
    # At t = 0 what is left is the mean of (1 + n g r^2)^(-1/2) over g = 1 / chi-squared.
    def integrand(z: float) -> float:
        return 2 * float(stats.norm.pdf(z)) * z / math.sqrt(z * z + n * 0.5)

    expected = integrate.quad(integrand, 0, 40, epsabs=0, epsrel=1e-12, limit=200)[0]
    assert evidence.bayes_factor_of_t(0.0, n) == pytest.approx(expected, rel=1e-10)


def test_bayes_factor_of_extremes_is_a_number() -> None:
    assert evidence.bayes_factor([0.0] * 5) == evidence.bayes_factor_of_t(0.0, 5) < 1
    assert evidence.bayes_factor([0.1] * 5) == math.inf
    assert evidence.bayes_factor_of_t(1e4, 500) == math.inf
    factors = [evidence.bayes_factor_of_t(t, 10) for t in (1, 5, 20, 100, 1e4, 1e8)]
    assert np.all(np.diff(factors) > 0)
    # Of two pairs t says little: its factor grows as the logarithm of t.
    growth = np.diff([evidence.bayes_factor_of_t(t, 2) for t in (1e4, 1e6, 1e8, 1e10)])
    assert growth == pytest.approx(np.full(3, growth[0]), rel=1e-3)


def test_impossible_priors_and_statistics_are_refused() -> None:
    for scale in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="scale"):
            evidence.bayes_factor(DIFFERENCES, scale)
    for t, n in ((math.nan, 8), (math.inf, 8), (1.0, 1)):
        with pytest.raises(ValueError, match="t must be finite"):
            evidence.bayes_factor_of_t(t, n)


# ---- several tests at once


@pytest.mark.parametrize("name", ["holm", "holm_unsorted"])
def test_holm_is_the_published_one(name: str) -> None:
    check = PUBLISHED[name]
    assert evidence.holm(check["inputs"]["p"]) == pytest.approx(check["expected"]["adj"], abs=1e-12)


@pytest.mark.parametrize("k", [1, 2, 5, 30])
def test_holm_agrees_with_statsmodels(k: int) -> None:
    generator = np.random.default_rng(k)
    for _ in range(5):
        p = np.round(generator.beta(0.5, 2, k), 2)
        reference = multipletests(p, method="holm")[1]
        assert evidence.holm(p) == pytest.approx(reference, rel=1e-12)


def test_holm_leaves_its_argument_and_refuses_what_is_no_probability() -> None:
    p = np.array([0.5, 0.01])
    evidence.holm(p)
    assert p.tolist() == [0.5, 0.01]
    for wrong in ([1.1], [-0.1, 0.2], [math.nan], [], [[0.1]]):
        with pytest.raises(ValueError, match="p values"):
            evidence.holm(wrong)
