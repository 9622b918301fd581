from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import TINY
from drawn import assert_drawn
from scipy.stats import wasserstein_distance
from test_rollouts import one_by_one

from msstab import experiment, figures, parts, rollouts, tables, trials
from msstab.rollouts import FreeRuns, deviations, measured, sentences
from msstab.rollouts.running import free_run
from msstab.study import Study, StudyError, parse
from msstab.svg import Picture

CHANGED = {
    "track": "henon",
    "survey_tracks": ["henon"],
    "survey_seeds": 4,
    "survey_tuning_seeds": 2,
    "free_runs": [1, 4],
    "sigma_test": 0.1,
    "n_test": 32,
}
STUDY = parse(CHANGED, TINY)


@pytest.fixture(scope="module")
def cache(tiny_cache: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MSSTAB_CACHE", str(tiny_cache))
        yield


@pytest.fixture(scope="module")
def found(cache: None) -> FreeRuns:
    """The free runs of tiny networks on the Hénon map."""
    return rollouts.collect_track(STUDY, "henon", jobs=1)


def changed(found: FreeRuns, arm: str, change: Callable[[str, Any], Any]) -> FreeRuns:
    """The same runs with an arm's measurements changed by name."""
    networks = {
        (own, role): [
            {name: np.asarray(change(name, v)) if own == arm else v for name, v in one.items()}
            for one in group
        ]
        for (own, role), group in found.networks.items()
    }
    return found._replace(networks=networks)


def times(factor: float, *names: str) -> Callable[[str, Any], Any]:
    return lambda name, value: value * factor if name in names else value


@pytest.mark.parametrize(
    ("own", "compared", "expected"),
    [
        ("henon", ("dynamics",), ("henon",)),
        ("henon", ("dynamics", "lorenz_state", "henon"), ("henon", "lorenz_state")),
        ("dynamics", ("dynamics", "duffing"), ("lorenz_state",)),
        ("dynamics", ("henon", "lorenz_state"), ("lorenz_state", "henon")),
        ("duffing", ("dynamics", "henon"), ("henon",)),
    ],
)
def test_free_runs_are_on_tracks_whose_forecasts_are_their_next_inputs(
    own: str, compared: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    study = Study(track=own, survey_tracks=compared)
    assert rollouts.closed_tracks(study) == expected


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ("henon", "on this very track"),
        ("dynamics", "lies 3 steps after its last input"),
        ("duffing", "is another quantity than what goes in"),
    ],
)
def test_the_reason_for_the_track_is_given(own: str, words: str) -> None:
    assert words in sentences.which_track(Study(track=own))


def test_an_arm_that_feeds_forecasts_back_is_compared_on_tracks_that_allow_it() -> None:
    study = Study(survey_arms=("output_variance", "moment_growth_closed"))
    (made,) = {own.arms for own in rollouts.plan(study).values()}
    expected = ("baseline", "spectral_proxy", "output_variance", "moment_growth_closed")
    assert made == expected


@pytest.fixture
def series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], Study]:
    """Makes the Study of a series of one's own, so long, with a gap so far from its end."""
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def make(rows: int, gap: int) -> Study:
        values = [f"{np.sin(0.3 * t) + 0.1 * np.sin(1.7 * t):.6f}" for t in range(rows)]
        values[rows - gap] = ""
        (tmp_path / "own.csv").write_text("\n".join(["x", *values]) + "\n", encoding="utf-8")
        own = {**CHANGED, "track": "csv:own.csv", "window": 8, "horizon": 1}
        return parse({**own, "survey_seeds": 2}, TINY)

    return make


def test_horizons_end_where_a_measured_series_does(series: Callable[[int, int], Study]) -> None:
    assert rollouts.horizons(series(2000, 200)) == {1: 8, 4: 32}
    assert rollouts.horizons(series(150, 10)) == {1: 8}


def test_a_series_too_short_for_any_free_run_is_refused(
    series: Callable[[int, int], Study],
) -> None:
    short = series(150, 10).model_copy(update={"free_runs": (4, 16)})
    with pytest.raises(StudyError, match="fewer than 16 test sequences that go on for 32 steps"):
        rollouts.horizons(short)


def test_free_runs_in_a_series_pass_over_its_gaps_and_its_end(
    series: Callable[[int, int], Study],
) -> None:
    study = series(1000, 60)
    found = rollouts.collect_track(study, study.track, jobs=1)
    for own in found.of("baseline"):
        assert own["valid"].size == 8
        assert np.isfinite(own["error"]).all()
        assert np.isfinite(own["floor_histogram"])
        assert own["not_finite"] == 0
    assert found.exponent is None
    assert not sentences.left_out(found)
    assert "Free runs of 16 windows are left out" in sentences.left_out(
        found._replace(
            survey=found.survey._replace(
                experiment=found.survey.experiment._replace(
                    study=found.study.model_copy(update={"free_runs": (1, 4, 16)})
                )
            )
        )
    )


def test_every_network_of_each_arm_runs_freely(found: FreeRuns) -> None:
    assert found.lengths == {1: 16, 4: 64}
    assert set(found.networks) == {
        (arm, role)
        for arm, role in (
            *(("baseline", "selected"), ("spectral_proxy", "penalised")),
            *(("baseline", "robust"), ("spectral_proxy", "robust")),
        )
    }
    assert {len(own) for own in found.networks.values()} == {4}


def test_errors_are_those_of_the_networks_run_one_by_one(found: FreeRuns) -> None:
    trial = experiment.confirmed(found.survey.experiment, "spectral_proxy", "penalised")[0]
    network = trials.load_trained(trial).parameters
    double = network.like(tensor.double() for tensor in network)
    test = trials.draw_data(found.study, "confirmation", 0, 64).test
    inputs = torch.as_tensor(test.inputs[:8]).transpose(0, 1)
    outputs = one_by_one(double, 0, inputs, 64).transpose(0, 1).numpy()
    sd = test.future[:16].std()
    expected = ((outputs - test.future[:8]) / sd) ** 2
    own = found.of("spectral_proxy")[0]
    # Single precision parts from double where runs are chaotic, not in the first steps.
    assert own["error"][:8] == pytest.approx(expected.mean(axis=(0, 2))[:8], rel=1e-2)
    assert rollouts.errors([own], 8) == pytest.approx(expected[:, :8].mean(), rel=1e-2)
    assert own["outputs"][:, :4] == pytest.approx(outputs[:3, :4], abs=1e-4)


def test_distances_are_from_the_true_trajectories_of_other_sequences(found: FreeRuns) -> None:
    future = trials.draw_data(found.study, "confirmation", 0, 64).test.future
    truth, others = future[:8], future[8:16]
    sd, later = future[:16].std(), slice(32, None)
    own = found.of("baseline")[0]
    floor = wasserstein_distance(truth[:, later].ravel(), others[:, later].ravel()) / sd
    assert own["floor_histogram"] == pytest.approx(floor)
    assert own["truth"] == pytest.approx(truth[:3], abs=1e-6)
    trial = experiment.confirmed(found.survey.experiment, "baseline", "selected")[0]
    split = trials.draw_data(found.study, "confirmation", 0).test
    inputs = torch.as_tensor(split.inputs[:8]).permute(1, 2, 0)[:, None].float()
    outputs = free_run(trials.load_trained(trial).parameters, inputs, 64)[32:].numpy()
    expected = wasserstein_distance(outputs.ravel(), others[:, later].ravel()) / sd
    assert own["histogram"] == pytest.approx(expected, rel=1e-3)


def test_noise_changes_the_runs(found: FreeRuns) -> None:
    for own in found.of("baseline", noisy=True):
        assert not np.allclose(own["noisy_error"], own["error"])


def test_what_has_been_measured_is_read(found: FreeRuns) -> None:
    told: list[tuple[int, int]] = []
    again = parts.PARTS["10_rollouts"](STUDY, jobs=1, progress=lambda *now: told.append(now))
    assert not told
    assert isinstance(again, dict)
    assert list(again) == ["henon"]
    assert np.array_equal(
        again["henon"].of("baseline")[0]["error"], found.of("baseline")[0]["error"]
    )


def test_progress_counts_up_to_the_total(cache: None) -> None:
    told: list[tuple[int, int]] = []
    other = parse({"free_runs": [1]}, STUDY)
    rollouts.collect_track(other, "henon", jobs=1, progress=lambda *now: told.append(now))
    done = [now for now, _ in told]
    assert len(set(done)) > 16
    assert done == sorted(done)
    assert told[-1][0] == told[-1][1]


def test_the_third_question_is_the_error_at_the_shortest_horizon(found: FreeRuns) -> None:
    name, compared = rollouts.free_run_comparison(STUDY, jobs=1)
    assert name == "henon"
    assert compared.title == "Q3: free-run error over one window"
    expected = [np.mean(own["error"][:16]) for own in found.of("spectral_proxy")]
    assert compared.idea == pytest.approx(expected)
    assert compared.evidence.n == 4


def test_horizons_pair_the_arms_by_seed(found: FreeRuns) -> None:
    compared = rollouts.by_horizon(found, "spectral_proxy")
    for length, c in zip((16, 64), compared.values(), strict=True):
        logs = [
            np.log(b["error"][:length].mean() / a["error"][:length].mean())
            for a, b in zip(found.of("baseline"), found.of("spectral_proxy"), strict=True)
        ]
        assert c.evidence.ratio == pytest.approx(np.exp(np.mean(logs)))


def test_longer_valid_times_count_as_better(found: FreeRuns) -> None:
    longer = changed(found, "spectral_proxy", times(3, "valid"))
    plain, better = (
        rollouts.by_valid_time(f, "spectral_proxy").evidence.ratio for f in (found, longer)
    )
    assert better == pytest.approx(plain / 3)


def test_the_placebo_is_the_prediction_for_the_next_seed(found: FreeRuns) -> None:
    own = rollouts.growths(found)[0.0]
    assert own.placebo[:4] == pytest.approx(np.roll(own.predicted[:4], -1))
    assert own.placebo[4:] == pytest.approx(np.roll(own.predicted[4:], -1))
    agreed = rollouts.growth_agreement(own)
    assert agreed.holds
    assert agreed.rmse < 1e-5
    assert agreed.n == 8


def test_a_prediction_no_better_than_the_placebo_does_not_hold() -> None:
    rng = np.random.default_rng(0)
    made = rollouts.Growths(*rng.normal(size=(3, 20)))
    assert not rollouts.growth_agreement(made).holds


def test_networks_without_finite_growth_are_counted() -> None:
    made = rollouts.Growths(
        np.array([0.1, np.nan, 0.3, 0.2]), np.array([0.1, 0.2, 0.3, 0.2]), np.zeros(4)
    )
    agreed = rollouts.growth_agreement(made)
    assert (agreed.n, agreed.n_unusable) == (3, 1)


def test_the_exponent_of_the_tracks_system_is_the_published_one(found: FreeRuns) -> None:
    assert found.exponent is not None
    assert found.exponent[0] == pytest.approx(0.4192, abs=4 * found.exponent[1] + 1e-3)
    assert found.lyapunov_time == pytest.approx(1 / found.exponent[0])


@pytest.mark.parametrize("exponent", [None, (1e-5, 1e-5), (-0.1, 0.001)])
def test_without_chaos_there_is_no_lyapunov_time(
    found: FreeRuns, exponent: tuple[float, float] | None
) -> None:
    assert found._replace(exponent=exponent).lyapunov_time is None


def test_a_network_that_diverged_counts(found: FreeRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = experiment.confirmed(found.survey.experiment, "baseline", "selected")[0]
    own = trials.load_trained(trial)
    broken = own._replace(parameters=own.parameters.like(t * np.nan for t in own.parameters))
    monkeypatch.setattr(measured, "load_trained", lambda trial: broken)
    settings = {
        "steps": 64, "window": 16, "sequences": 8, "n_test": 32, "noise": "unit", "sigma": 0.1,
        "levels": [0.1],
    }  # fmt: skip
    runs, grown = (m(trial, settings) for m in (measured.free_runs, measured.growths))
    assert runs["not_finite"] == runs["left"] == runs["noisy_not_finite"] == 1
    assert np.isfinite(runs["error"]).all()
    assert (runs["error"] > (deviations.FARTHEST - 3) ** 2).all()
    assert (runs["valid"] == 1).all()
    assert np.isnan(grown["exponent"])


def test_the_answer_says_better_and_worse(found: FreeRuns) -> None:
    for factor, words in ((0.001, "lower than the baseline's"), (1e3, "higher than the")):
        wide = found._replace(
            networks={
                key: [dict(one) for _ in range(3) for one in group]
                for key, group in found.networks.items()
            }
        )
        made = changed(wide, "spectral_proxy", times(factor, "error", "noisy_error"))
        assert words in sentences.answer(made)


def test_the_answer_says_when_an_arm_did_nothing(found: FreeRuns) -> None:
    same = found._replace(
        networks={
            **found.networks,
            ("spectral_proxy", "robust"): found.networks["baseline", "robust"],
        }
    )
    different = changed(found, "spectral_proxy", times(1.1, "noisy_error"))
    assert "the baseline's very networks" in sentences.answer(same)
    assert "the baseline's very networks" not in sentences.answer(different)


def test_runs_that_go_astray_are_said(found: FreeRuns) -> None:
    tame = changed(found, "spectral_proxy", times(0, "left", "not_finite", "still", "noisy_left"))
    tame = changed(tame, "baseline", times(0, "left", "not_finite", "still", "noisy_left"))
    assert "Without noise all 64 runs stay in range" in sentences.astray(tame)
    wild = changed(
        tame, "spectral_proxy", lambda name, v: 0.25 if name in ("left", "not_finite") else v
    )
    said = sentences.astray(wild)
    assert "of 64 runs 8 leave the signal's range (8 of them" in said
    assert "most of these belong to spectral proxy" in said


def test_networks_on_the_attractor_are_counted(found: FreeRuns) -> None:
    near = changed(found, "baseline", lambda name, v: 0.0 if name == "histogram" else v)
    far = changed(found, "baseline", lambda name, v: 9.0 if name == "histogram" else v)
    assert "baseline 4 by values" in sentences.on_the_attractor(near)
    assert "baseline 0 by values" in sentences.on_the_attractor(far)


def test_saturation_is_said_where_it_begins(found: FreeRuns) -> None:
    sure = changed(found, "baseline", lambda name, v: 0 * v + 2 if name == "error" else v)
    never = changed(found, "baseline", times(0.001, "error"))
    assert "Over one window the baseline's error is nearly" in sentences.saturation(sure)
    assert "Even over 4 windows" in sentences.saturation(never)


def test_exponents_are_compared_with_the_truth(found: FreeRuns) -> None:
    own = float(np.min([g["exponent"] for group in found.growth.values() for g in group]))
    assert "of 8 networks 8 stay below half" in sentences.growth_and_the_truth(
        found._replace(exponent=(50.0, 0.01))
    )
    growing = {
        arm: [{**g, "exponent": g["exponent"] - own + 1} for g in group]
        for arm, group in found.growth.items()
    }
    assert "every network has at least half" in sentences.growth_and_the_truth(
        found._replace(exponent=(1.0, 0.01), growth=growing)
    )
    assert "true system" not in sentences.growth_and_the_truth(found._replace(exponent=None))


def test_the_levels_at_which_growth_is_predicted_are_named(found: FreeRuns) -> None:
    exact = {
        arm: [{**g, "observed_moment": g["moment"]} for g in group]
        for arm, group in found.growth.items()
    }
    wrong = {
        arm: [{**g, "observed_moment": g["moment"] + 1} for g in group]
        for arm, group in found.growth.items()
    }
    assert "holds at 0.005, 0.025 and 0.1" in sentences.growth_predicted(
        found._replace(growth=exact)
    )
    assert "does not stand out from the placebo at 0.005, 0.025 and 0.1" in (
        sentences.growth_predicted(found._replace(growth=wrong))
    )


def test_how_long_forecasts_are_valid_is_said_in_lyapunov_times_where_there_are_any(
    found: FreeRuns,
) -> None:
    assert "Lyapunov times; spectral proxy" in sentences.how_long(found)
    assert "no Lyapunov time is given" in sentences.how_long(found._replace(exponent=None))


def test_the_other_tracks_are_read_one_by_one(found: FreeRuns) -> None:
    assert "No other of the tracks" in sentences.other_tracks({"henon": found})
    worse = changed(found, "spectral_proxy", times(1e3, "error"))
    said = sentences.other_tracks({"henon": found, "laser": worse._replace(track="laser")})
    assert "on `laser`" in said
    ratio = rollouts.by_horizon(worse, "spectral_proxy")[1].evidence.ratio
    assert f"{ratio:.2f} times it" in said


@pytest.mark.parametrize(
    ("draw", "columns"),
    [
        (figures.error_growth, ("step", "error", "low", "high")),
        (figures.free_trajectories, ("step", "truth", "baseline", "spectral_proxy")),
        (figures.attractors, ("distance",)),
        (figures.growth, ("predicted", "observed", "placebo")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_figures_are_drawn_alike_twice_and_say_what_they_show(
    draw: Callable[[FreeRuns], Picture], columns: tuple[str, ...], found: FreeRuns
) -> None:
    first, again = draw(found), draw(found)
    assert_drawn(first, *columns)
    assert first.svg == again.svg
    assert len(first.alt) > 40
    assert first.alt.endswith(".")


def test_the_table_of_horizons_gives_ratio_interval_and_outcome(found: FreeRuns) -> None:
    frame = tables.horizons(found)
    c = rollouts.by_horizon(found, "spectral_proxy")[1]
    low, high = c.evidence.ratio_interval
    expected = f"{c.evidence.ratio:.2f} [{low:.2f}, {high:.2f}], {c.decision.outcome.value}"
    assert frame["Error over one window"][0] == expected
    assert list(frame["Noise"]) == ["none", "0.1"]


def test_the_table_of_fates_gives_valid_times_in_both_units(found: FreeRuns) -> None:
    frame = tables.fates_of_runs(found)
    mean = np.mean([own["valid"].mean() for own in found.of("baseline")])
    assert frame["Valid time, steps"][0] == f"{mean:.1f}"
    assert found.exponent is not None
    assert frame["Lyapunov times"][0] == f"{mean * found.exponent[0]:.2f}"
    assert "Lyapunov times" not in tables.fates_of_runs(found._replace(exponent=None))


def test_tables_end_with_the_truth(found: FreeRuns) -> None:
    distances, exponents = tables.attractor_distances(found), tables.free_exponents(found)
    floor = np.median([float(own["floor_histogram"]) for own in found.of("baseline")])
    assert distances["Distance of values"].iloc[-1] == tables.number(float(floor), 2)
    assert exponents["Trajectories"].iloc[-1] == "the true system"
    assert list(tables.free_growth(found)["Noise"]) == ["none", "0.005", "0.025", "0.1"]
