import math
import warnings

import numpy as np
import pytest
from published import PUBLISHED
from scipy import integrate, special, stats

from msstab import evidence

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pingouin
    from statsmodels.stats.power import TTestPower


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
