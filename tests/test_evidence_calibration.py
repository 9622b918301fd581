"""Simulated experiments, seeded: intervals cover, and p values are valid, where they promise to."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from msstab import evidence

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
SYMMETRIC: dict[str, Draw] = {
    "normal": lambda generator, n: generator.normal(size=n),
    "t of 3": lambda generator, n: generator.standard_t(3, n),
    "lognormal arms": lambda generator, n: np.subtract(*generator.lognormal(0, 1, (2, n))),
}
INTERVALS: dict[str, Callable[[NDArray[np.float64]], evidence.Interval]] = {
    "t": evidence.mean_interval,
    "sign flip": lambda d: evidence.sign_flip_interval(d, resamples=1_999),
    "signed rank": evidence.signed_rank_interval,
}


def coverage(
    interval: Callable[[NDArray[np.float64]], evidence.Interval], draw: Draw, n: int, runs: int
) -> float:
    generator = np.random.default_rng(n)
    ends = [interval(draw(generator, n)) for _ in range(runs)]
    return float(np.mean([low <= 0 <= high for low, high in ends]))


@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("kind", INTERVALS)
@pytest.mark.parametrize(("n", "runs"), [(8, 1000), (32, 500), (200, 200)])
def test_intervals_cover_the_centre(name: str, kind: str, n: int, runs: int) -> None:
    covered = coverage(INTERVALS[kind], SYMMETRIC[name], n, runs)
    slack = 3 * math.sqrt(0.05 * 0.95 / runs)
    # At 8 pairs signed ranks can do 96.1% but not 95%; t is cautious with heavy tails.
    assert 0.95 - slack <= covered <= 0.975 + slack


def test_bootstrap_covers_too_rarely_with_few_pairs_and_well_with_many() -> None:
    def interval(d: NDArray[np.float64]) -> evidence.Interval:
        return evidence.bootstrap_interval(d, resamples=999)

    assert coverage(interval, SYMMETRIC["normal"], 8, 300) < 0.93
    assert 0.91 < coverage(interval, SYMMETRIC["normal"], 100, 300) < 0.98


def test_skewed_differences_defeat_every_interval_of_few_pairs() -> None:
    def skewed(generator: np.random.Generator, n: int) -> NDArray[np.float64]:
        return generator.lognormal(0, 1, n) - math.exp(0.5)

    for interval in INTERVALS.values():
        assert coverage(interval, skewed, 8, 300) < 0.9


@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("n", [8, 40])
def test_sign_flip_p_values_are_valid(name: str, n: int) -> None:
    generator = np.random.default_rng(n)
    ps = np.array(
        [
            evidence.sign_flip_test(SYMMETRIC[name](generator, n), resamples=999).p
            for _ in range(1000)
        ]
    )
    for level in (0.05, 0.2, 0.5):
        assert np.mean(ps <= level) <= level + 3 * math.sqrt(level * (1 - level) / 1000)
        assert np.mean(ps <= level) >= level - 0.02 - 3 * math.sqrt(level * (1 - level) / 1000)


def test_equivalence_is_rarely_shown_at_the_margin_itself() -> None:
    generator = np.random.default_rng(0)
    ps = [evidence.equivalence_p(generator.normal(1, 1, 30), 1.0) for _ in range(1000)]
    assert np.mean(np.array(ps) <= 0.05) == pytest.approx(0.05, abs=0.02)


def test_improvement_interval_covers_at_least_at_its_level() -> None:
    generator = np.random.default_rng(1)
    for shift in (0.0, 1.0):
        truth = 0.5 * (1 + math.erf(shift / math.sqrt(2)))
        ends = [evidence.improvement_interval(generator.normal(-shift, 1, 20)) for _ in range(1000)]
        assert np.mean([low <= truth <= high for low, high in ends]) > 0.93


def test_the_detectable_effect_is_detected_as_often_as_promised() -> None:
    generator = np.random.default_rng(2)
    for wanted in (0.8, 0.9):
        effect = evidence.detectable_effect(2.0, 10, wanted)
        ps = [evidence.t_test_p(generator.normal(effect, 2.0, 10)) for _ in range(1000)]
        assert np.mean(np.array(ps) <= 0.05) == pytest.approx(wanted, abs=0.04)
