import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from msstab import calibration, evidence, figures, results
from msstab.evidence import Interval, Scale
from msstab.verdict import Outcome, decide


@pytest.fixture(scope="module")
def small() -> pd.DataFrame:
    return tiny(1)


def tiny(seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    return calibration.simulate(generator, studies=30, sizes=(8, 12), effect=-0.4, resamples=199)


def one(frame: pd.DataFrame, **wanted: object) -> pd.Series:
    for column, value in wanted.items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1
    return frame.iloc[0]


@pytest.mark.parametrize("family", calibration.FAMILIES)
def test_errors_have_the_stated_centre_spread_and_correlation(family: str) -> None:
    generator = np.random.default_rng(2)
    a, b = calibration.errors(generator, family, -0.2, 0.4, (400, 500))
    logs = np.log(b / a)
    assert np.median(logs) == pytest.approx(math.log(0.8), abs=0.005)
    # The fourth moment of t(3) is infinite, so its standard deviation settles slowly.
    assert logs.std() == pytest.approx(0.4, rel=0.05)
    correlation = np.corrcoef(np.log(a).ravel(), np.log(b).ravel())[0, 1]
    assert correlation == pytest.approx(calibration.CORRELATION, abs=0.03)


def test_arms_without_an_effect_can_be_exchanged() -> None:
    for family in calibration.FAMILIES:
        a, b = calibration.errors(np.random.default_rng(3), family, 0.0, 0.4, (1000, 100))
        for share in (0.1, 0.5, 0.9):
            assert np.quantile(np.log(a), share) == pytest.approx(
                np.quantile(np.log(b), share), abs=0.01
            )


@pytest.mark.parametrize("pairs", [4, 12, 40])
@pytest.mark.parametrize("change", [1.0, 0.98, 0.7, 1.5])
def test_the_outcome_is_that_of_the_whole_evidence(pairs: int, change: float) -> None:
    a, b = calibration.errors(np.random.default_rng(4), "log t(3)", 0.0, 0.1, (5, pairs))
    for baseline, idea in zip(a, change * b, strict=True):
        margin = 0.05 * float(baseline.mean())
        whole = evidence.summarise(baseline, idea, margin=margin)
        on_errors = decide(whole.on(Scale.DIFFERENCES)).outcome
        assert calibration.outcome(idea - baseline, margin, 0.05, 99_999) is on_errors
        logs, log_margin = np.log(idea) - np.log(baseline), evidence.log_margin(0.05)
        on_ratios = decide(whole.judged).outcome
        assert calibration.outcome(logs, log_margin, 0.05, 99_999) is on_ratios


def test_all_four_outcomes_are_reached() -> None:
    noise = np.random.default_rng(5).normal(0, 1, 20)
    cases = {
        Outcome.BETTER: noise - 5,
        Outcome.WORSE: noise + 5,
        Outcome.EQUIVALENT: noise / 100,
        Outcome.INCONCLUSIVE: noise - noise.mean(),
    }
    for expected, differences in cases.items():
        assert calibration.outcome(differences, 0.2, 0.05, 199) is expected


def test_coverage_counts_intervals_that_hold_the_centre() -> None:
    d = np.random.default_rng(6).normal(1.0, 1.0, (500, 20))
    share = calibration.covered(evidence.mean_interval, d, 1.0).mean()
    assert share == pytest.approx(0.95, abs=3 * math.sqrt(0.95 * 0.05 / 500))
    everything = calibration.covered(lambda _: Interval(-math.inf, math.inf), d, 1.0)
    assert everything.all()
    assert not calibration.covered(lambda _: Interval(2.0, 3.0), d, 1.0).any()


def test_an_interval_of_half_the_width_is_caught() -> None:
    def narrow(d: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Interval:
        low, high = evidence.mean_interval(d)
        return Interval((3 * low + high) / 4, (low + 3 * high) / 4)

    d = np.random.default_rng(7).normal(0.0, 1.0, (500, 20))
    share = calibration.covered(narrow, d, 0.0).mean()
    # Half of 2.093 standard errors, 19 degrees of freedom.
    assert share == pytest.approx(0.692, abs=3 * math.sqrt(0.69 * 0.31 / 500))
    assert share < calibration.COVERAGE[0]


def test_a_t_test_at_every_pair_is_the_t_test_wherever_one_stops() -> None:
    d = np.random.default_rng(8).normal(0.3, 1.0, (400, 9))
    by_hand = [any(evidence.t_test_p(x[:n]) <= 0.05 for n in range(6, 10)) for x in d]
    assert calibration.peeked(d, 0.05).tolist() == by_hand
    assert 0 < sum(by_hand) < 400


def test_the_sequential_test_is_stopped_at_the_first_small_p() -> None:
    d = np.random.default_rng(9).normal(0.5, 1.0, (20, 60))
    by_hand = [
        any(evidence.sequential_test(x[:n]).p_values[-1] <= 0.05 for n in range(2, 61)) for x in d
    ]
    assert calibration.stopped(d, 0.05).tolist() == by_hand
    assert 0 < sum(by_hand) < 20


def test_an_exact_sign_flip_test_rejects_at_its_level() -> None:
    a, b = calibration.errors(np.random.default_rng(10), "lognormal", 0.0, 0.4, (2000, 8))
    wrong = (Outcome.BETTER, Outcome.WORSE)
    rate = np.mean([calibration.outcome(d, 1e-9, 0.05, 1) in wrong for d in b - a])
    # Continuous differences: 12 of 256 arrangements, the most that 5% allows.
    assert rate == pytest.approx(12 / 256, abs=3 * math.sqrt(0.047 * 0.953 / 2000))


def test_a_test_that_always_rejects_misses_its_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "outcome", lambda *_: Outcome.WORSE)
    monkeypatch.setattr(calibration, "stopped", lambda d, _: np.ones(len(d), dtype=np.bool_))
    frame = calibration.simulate(
        np.random.default_rng(0), studies=20, sizes=(), effect=-0.4, resamples=19
    )
    rejected = frame[(frame.quantity == "rejected") & (frame.procedure != calibration.PEEKING)]
    null = rejected[rejected.effect == 0]
    assert (null.rate == 1).all()
    assert not null.holds.any()
    # Worse is the wrong answer where the idea is better.
    decisions = [calibration.ERRORS, calibration.LOGS]
    found = rejected[(rejected.effect != 0) & rejected.procedure.isin(decisions)]
    assert (found.rate == 0).all()
    assert not found.holds.any()


def test_the_calibration_of_a_build_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path))
    first = calibration.quick(3, studies=2)
    expected = calibration.simulate(
        np.random.default_rng(3), studies=2, sizes=(64,), power=0.8, resamples=499
    )
    pd.testing.assert_frame_equal(first, expected)
    monkeypatch.setattr(calibration, "simulate", None)
    pd.testing.assert_frame_equal(calibration.quick(3, studies=2), first)
    with pytest.raises(TypeError):
        calibration.quick(4, studies=2)


def test_a_calibration_depends_on_the_generator_alone(small: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(small, tiny(1))
    assert not (small.rate == tiny(2).rate).all()


def test_decisions_and_intervals_on_errors_are_those_of_a_comparison() -> None:
    def given() -> np.random.Generator:
        return np.random.default_rng(11)

    # So narrow a spread that some studies are equivalent, some not.
    frame = calibration.simulate(
        given(), studies=40, sizes=(8,), effect=-0.4, sd=0.08, resamples=99
    )
    first = frame[(frame.family == "lognormal") & (frame.pairs == 8)]
    stream = given().spawn(1)[0]
    a, b = calibration.errors(stream, "lognormal", 0.0, 0.08, (40, 8))
    compared = [
        results.compare("", *pair, alpha=0.05, sesoi=0.05) for pair in zip(a, b, strict=True)
    ]
    for scale, procedure in (
        (Scale.DIFFERENCES, calibration.ERRORS),
        (Scale.RATIOS, calibration.LOGS),
    ):
        outcomes = [decide(c.evidence.on(scale)).outcome for c in compared]
        assert Outcome.EQUIVALENT in outcomes
        for kind in (Outcome.EQUIVALENT, Outcome.INCONCLUSIVE):
            row = one(first, quantity=kind.value, procedure=procedure)
            assert row.rate == pytest.approx(np.mean([found is kind for found in outcomes]))
    intervals = {
        "t": ([c.evidence.ratio_interval for c in compared], 1),
        "Hodges-Lehmann": ([c.evidence.ratios.interval_hodges_lehmann for c in compared], 1),
        "t, on errors": ([c.evidence.interval for c in compared], 0),
        "sign flip, on errors": ([c.evidence.interval_sign_flip for c in compared], 0),
    }
    for name, (ends, centre) in intervals.items():
        row = one(first, quantity="covered", procedure=name)
        assert row.rate == pytest.approx(np.mean([low <= centre <= high for low, high in ends]))


def test_rows_have_rates_errors_and_bars(small: pd.DataFrame) -> None:
    assert tuple(small.columns) == calibration.COLUMNS
    assert small.rate.between(0, 1).all()
    expected = np.sqrt(small.rate * (1 - small.rate) / small.studies)
    assert np.allclose(small.standard_error, expected)
    assert (small.holds == small.rate.between(small.low, small.high)).all()
    row = one(
        small, family="lognormal", effect=-0.4, quantity="rejected", procedure=calibration.LOGS
    )
    assert row.pairs == evidence.pairs_needed(math.log(0.6), 0.4, 0.9)
    assert (row.low + row.high) / 2 == pytest.approx(
        evidence.power(math.log(0.6), 0.4, row.pairs), abs=1e-12
    )
    assert row.rate == pytest.approx(0.93, abs=0.15)


def test_outcomes_of_a_setting_add_up(small: pd.DataFrame) -> None:
    null = small[(small.effect == 0) & (small.procedure == calibration.LOGS)]
    assert np.allclose(null.groupby(["family", "pairs"]).rate.sum(), 1)


@pytest.mark.parametrize("effect", [0.0, -1.0, 1.5])
def test_an_effect_that_cannot_be_is_refused(effect: float) -> None:
    with pytest.raises(ValueError, match="effect"):
        calibration.simulate(np.random.default_rng(0), effect=effect)


def test_no_studies_are_refused() -> None:
    with pytest.raises(ValueError, match="studies = 0"):
        calibration.simulate(np.random.default_rng(0), studies=0)


def test_the_figure_is_drawn_alike_twice_and_says_what_it_shows(small: pd.DataFrame) -> None:
    first, again = figures.calibration(small), figures.calibration(small)
    pd.testing.assert_frame_equal(first.data, small)
    assert first.svg == again.svg
    covered = 100 * small[small.quantity == "covered"].rate
    assert f"intervals that cover, {covered.min():.1f}% to {covered.max():.1f}%" in first.alt
    assert "effect of -40%" in first.alt
    assert first.alt.endswith(".")
