"""The tracks side by side: choices, comparisons, tables, figures and sentences."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import TINY
from drawn import assert_drawn
from outcomes import BASELINE, SHIFTS

from msstab import by_track, experiment, figures, results, sentences_tracks, surveys, tables, trials
from msstab.results import ArmComparison, Comparison
from msstab.study import Study, parse
from msstab.surveys import Survey
from msstab.verdict import Outcome

RUN = parse(
    {"survey_tracks": "henon,el_nino", "survey_seeds": 6, "arms": "baseline,output_variance"}, TINY
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Survey]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MSSTAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        return by_track.run(RUN, jobs=1)


def comparison(outcome: Outcome) -> Comparison:
    idea = BASELINE + SHIFTS[outcome]
    return results.compare("made up", BASELINE, idea, alpha=0.05, sesoi=0.05)


def surveyed(clean: Outcome, noisy: Outcome, *, network: float = 1.0, miss: float = 0.0) -> Survey:
    """A survey of made-up errors, of which the baseline's are `network` times the naive ones."""
    seeds, naive = range(len(BASELINE)), BASELINE + SHIFTS[Outcome.EQUIVALENT]
    rows = [
        {
            "arm": "baseline", "role": "selected", "seed": seed,
            "test_mse": network * BASELINE[seed], "ridge_mse": naive[seed], "diverged": False,
            "persistence_mse": 2 * naive[seed], "constant_mse": 3 * naive[seed],
            "predicted_variance": 1.0 + seed, "observed_variance": (1 + seed) * np.exp(miss),
        }
        for seed in seeds
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    nothing: Any = None
    runs = experiment.Experiment(
        Study(arms=("baseline", "output_variance")),
        table,
        *(nothing, nothing, nothing, nothing),
        bracketed=True,
        plan=nothing,
    )
    arm = ArmComparison("output_variance", comparison(clean), comparison(noisy), comparison(clean))
    return Survey(runs, {"output_variance": arm})


B, W, E, U = Outcome.BETTER, Outcome.WORSE, Outcome.EQUIVALENT, Outcome.INCONCLUSIVE


# ---- what is run


def test_every_track_named_is_run_as_a_survey(found: Mapping[str, Survey]) -> None:
    assert list(found) == ["henon", "el_nino"]
    for name, survey in found.items():
        assert survey.study == surveys.variant(RUN, track=name)


def test_a_series_of_the_readers_own_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wave = "\n".join(f"{k % 13},{k % 7}" for k in range(400))
    Path("own.csv").write_text("a,b\n" + wave)
    given = parse({"track": "csv:own.csv", "window": 8, "input_columns": "a"}, RUN)
    assert by_track.named(given) == ["csv:own.csv", "henon", "el_nino"]
    assert by_track.definition(given, "csv:own.csv").length == 8
    assert surveys.variant(given, track="henon").window == Study.model_fields["window"].default


def test_tracks_without_a_free_run_are_left_out_for_an_arm_that_needs_one() -> None:
    given = parse(
        {"track": "henon", "survey_tracks": "dynamics,henon,duffing",
         "arms": "baseline,moment_growth_closed"}, TINY,
    )  # fmt: skip
    assert by_track.left_out(given) == ["dynamics", "duffing"]
    assert "dynamics and duffing, which do not forecast" in sentences_tracks.left_out(given)
    assert sentences_tracks.left_out(RUN) == ""


def test_an_added_arm_is_left_out_where_it_makes_no_sense(monkeypatch: pytest.MonkeyPatch) -> None:
    given = parse(
        {"track": "henon", "survey_tracks": "dynamics,henon",
         "arms": "baseline,output_variance,moment_growth_closed",
         "survey_arms": "moment_growth_closed"}, TINY,
    )  # fmt: skip
    asked: dict[str, Study] = {}
    monkeypatch.setattr(surveys, "collect", lambda variants, **_: asked.update(variants) or {})
    by_track.run(given)
    assert asked["dynamics"].arms == ("baseline", "output_variance")
    assert asked["henon"].arms == ("baseline", "output_variance", "moment_growth_closed")


# ---- skill


def test_skill_is_measured_against_the_best_naive_forecast(found: Mapping[str, Survey]) -> None:
    for survey in found.values():
        made, table = by_track.skill(survey), survey.experiment.table
        rows = table[(table.arm == "baseline") & (table.role == "selected")]
        expected = {
            "constant": rows.constant_mse.mean(),
            "persistence": rows.persistence_mse.mean(),
            "linear": rows.ridge_mse.mean(),
        }
        assert made.errors == pytest.approx(expected)
        assert made.best == min(expected, key=lambda name: expected[name])
        assert made.network == pytest.approx(rows.test_mse.mean())


def test_a_forecast_that_does_not_apply_is_none_of_them() -> None:
    survey = surveyed(U, U)
    survey.experiment.table["persistence_mse"] = np.nan
    assert set(by_track.skill(survey).errors) == {"constant", "linear"}
    shown = tables.track_skill({"duffing": survey})
    assert shown["Persistence forecast"].tolist() == ["does not apply"]


@pytest.mark.parametrize(("network", "word"), [(0.5, "yes"), (1.0, "no skill"), (2.0, "no skill")])
def test_skill_is_said_both_ways(network: float, word: str) -> None:
    own = {"a": surveyed(U, U, network=0.1), "b": surveyed(U, U, network=network)}
    sentence = sentences_tracks.skill(own)
    assert ("on 2 of 2 tracks." in sentence) == (word == "yes")
    assert ("no skill on b" in sentence) == (word == "no skill")
    assert tables.track_skill(own)["Skill"].tolist() == ["yes", word]


# ---- comparisons


def test_p_values_are_adjusted_over_tracks_and_questions_together() -> None:
    own = {"a": surveyed(B, U), "b": surveyed(W, E), "c": surveyed(U, U)}
    p_values = by_track.adjusted(own, "output_variance")
    raw = sorted(
        getattr(s.arms["output_variance"], q).evidence.judged.p_value
        for s in own.values()
        for q in by_track.QUESTIONS
    )
    assert min(min(by.values()) for by in p_values.values()) == pytest.approx(6 * raw[0])


def test_a_difference_must_survive_the_adjustment() -> None:
    better, alike = comparison(B), comparison(E)
    assert by_track.outcome(better, 0.01) is B
    assert by_track.outcome(better, 0.2) is U
    assert by_track.outcome(comparison(W), 0.01) is W
    assert by_track.outcome(alike, 0.9) is E
    assert by_track.outcome(comparison(U), 0.9) is U


def test_sentences_on_an_arm_name_every_outcome() -> None:
    own = {"a": surveyed(B, U), "b": surveyed(W, B), "c": surveyed(E, E)}
    sentence = sentences_tracks.arm(own, "output_variance")
    assert "after Holm's adjustment over 6 tests" in sentence
    assert "The clean error is lower on a; higher on b; equivalent on c." in sentence
    assert "The error under noise is lower on b; equivalent on c; undecided on a." in sentence
    shown = tables.track_comparisons(own)
    assert shown["Clean error: outcome"].tolist() == ["better", "worse", "equivalent"]
    assert shown["Under noise: outcome"].tolist() == ["inconclusive", "better", "equivalent"]


def test_all_errors_are_those_of_the_same_tracks_and_seeds(found: Mapping[str, Survey]) -> None:
    errors = by_track.errors_by_arm(found)
    assert set(errors) == {"baseline", "output_variance"}
    own = [s.arms["output_variance"].clean for s in found.values()]
    np.testing.assert_array_equal(errors["baseline"], np.concatenate([c.baseline for c in own]))
    np.testing.assert_array_equal(errors["output_variance"], np.concatenate([c.idea for c in own]))


# ---- predictions


@pytest.mark.parametrize(("miss", "kept"), [(0.01, True), (0.5, False), (np.nan, False)])
def test_agreement_is_said_both_ways(miss: float, kept: bool) -> None:
    own = {"a": surveyed(U, U, miss=miss), "b": surveyed(U, U)}
    sentence = sentences_tracks.prediction(own, 0.1)
    assert ("on 2 of 2 tracks." in sentence) == kept
    assert ("do not on a" in sentence) != kept


def test_predictions_leave_out_what_tuning_trained_and_what_diverged(
    found: Mapping[str, Survey],
) -> None:
    for survey in found.values():
        rows = by_track.predictions(survey)
        assert set(rows.role) == {"selected", "penalised", "robust"}
        assert by_track.prediction(survey).n == len(rows)
    survey = surveyed(U, U)
    survey.experiment.table.loc[0, "diverged"] = True
    assert by_track.prediction(survey).n == len(BASELINE) - 1


# ---- tables and figures of real runs


def test_tables_have_a_row_for_every_track(found: Mapping[str, Survey]) -> None:
    listed = tables.track_list(RUN)
    assert listed["Track"].tolist() == ["henon", "el_nino"]
    assert listed["Kind"].tolist() == ["simulated", "measured"]
    assert listed["Licence"].tolist() == ["generated by this project", "public domain"]
    for table in (tables.track_skill(found), tables.track_predictions(found)):
        assert table["Track"].tolist() == list(found)
    assert tables.track_comparisons(found)["Arm"].tolist() == ["output variance"] * 2


def test_a_driven_track_is_listed_as_one() -> None:
    listed = tables.track_list(RUN.model_copy(update={"survey_tracks": ("two_tank",)}))
    assert listed["Kind"].tolist() == ["simulated, driven"]
    assert listed["Targets"].tolist() == ["each of 64 steps"]


def test_figures_say_what_they_show(found: Mapping[str, Survey]) -> None:
    splits = {
        name: (
            by_track.definition(RUN, name),
            trials.draw_data(survey.study, "confirmation", 0).test,
        )
        for name, survey in found.items()
    }
    made = {
        "sequences": figures.track_sequences(splits),
        "forest": figures.track_forest(found, "output_variance", 0.05),
        "predictions": figures.track_predictions(found),
        "profile": figures.performance_profile(by_track.errors_by_arm(found)),
    }
    for picture in made.values():
        assert picture.svg.startswith("<svg")
        assert picture.alt.endswith(".")
    assert "henon, 16 inputs; el_nino, 24 inputs" in made["sequences"].alt
    pairs = figures.track_pairs(found).pictures
    assert len(pairs) == len(found) * len(found["henon"].arms) * 2
    clean = found["henon"].arms["output_variance"].clean.evidence
    assert f"{clean.wins} favour" in pairs["henon", "output variance", "clean"].alt
    assert_drawn(made["sequences"], "step", "value")
    assert_drawn(made["forest"], "ratio", "low", "high")
    assert_drawn(made["predictions"], "predicted_variance", "observed_variance")
    assert set(made["predictions"].data.track) == set(found)
    ratio = found["henon"].arms["output_variance"].noisy.evidence.ratios.ratio
    assert f"henon {ratio:.3g}" in made["forest"].alt.partition("under noise: ")[2]
    miss = by_track.prediction(found["el_nino"]).log_rmse
    assert f"el_nino {miss:.2g}" in made["predictions"].alt
