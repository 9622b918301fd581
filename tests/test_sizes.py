from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import TINY
from scipy import stats

from msstab import cells, results, sizes, surveys
from msstab.sizes import Sizes
from msstab.study import Study, parse

STUDY = parse(
    {
        "survey_seeds": 4,
        "survey_tuning_seeds": 2,
        "survey_sizes": [2, 4],
        "survey_cells": ["gru"],
    },
    TINY,
)


@pytest.fixture
def tiny(tiny_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Sizes:
    """The surveys of real networks, trained once for all tests."""
    monkeypatch.setenv("MSSTAB_CACHE", str(tiny_cache))
    return collected()


@cache
def collected() -> Sizes:
    return sizes.collect(STUDY, jobs=1)


def test_seeds_become_fewer_as_the_state_grows_and_never_too_few() -> None:
    study = Study(survey_sizes=(8, 16, 32, 64, 128), survey_cells=("gru", "lstm"))
    made = sizes.plan(study)
    pairs = [made["gru", size].seeds for size in study.survey_sizes]
    assert pairs == [32, 32, 16, 8, 8]
    # An LSTM of half the units has a state of the same size.
    assert [made["lstm", size].seeds for size in (8, 16, 32, 64)] == pairs[1:]
    for own in made.values():
        assert own.seeds == own.other_seeds
        assert own.tuning_seeds >= 2
        # As many runs for each simulated variance, whatever the size.
        assert own.draws * own.mechanism_sequences == 16 * 32


def test_every_place_is_a_study_of_its_cell_and_size() -> None:
    for (cell, size), own in sizes.plan(Study()).items():
        assert (own.cell, own.hidden) == (cell, size)
        assert own.arms == surveys.variant(Study()).arms


def test_a_small_study_is_not_asked_for_more_than_it_has() -> None:
    made = sizes.plan(parse({"survey_seeds": 3, "survey_sizes": [128]}, TINY))
    for own in made.values():
        assert (own.seeds, own.tuning_seeds) == (3, 2)
        assert own.mechanism_sequences <= TINY.mechanism_sequences
    assert {own.draws for own in made.values()} == {TINY.draws}


def test_states_that_are_too_large_are_left_out_and_named() -> None:
    study = Study(survey_sizes=(64, 128), survey_cells=("lstm", "rnn"))
    made = sizes.plan(study)
    assert list(made) == [("lstm", 64), ("rnn", 64), ("rnn", 128)]
    assert all(cells.CELLS[cell].parts * size <= sizes.LARGEST_STATE for cell, size in made)


def test_something_is_run_however_large_everything_is() -> None:
    assert list(sizes.plan(Study(survey_sizes=(256, 512), survey_cells=("gru", "lstm")))) == [
        ("gru", 256)
    ]


def test_the_surveys_are_those_of_the_plan(tiny: Sizes) -> None:
    assert list(tiny.surveys) == [("gru", 2), ("gru", 4)]
    assert tiny.left_out == []
    assert tiny.arms == ["spectral_proxy"]
    assert tiny.cells == {"gru": [2, 4]}
    for place, own in sizes.plan(STUDY).items():
        assert tiny.surveys[place].study == own


def with_effects(found: Sizes, slopes: dict[str, float], noise: float = 0.02) -> Sizes:
    """Surveys of four sizes of the named cells whose log ratios lie on lines against log2 size."""
    some = next(iter(found.surveys.values()))
    rng = np.random.default_rng(0)
    made = {}
    for cell, slope in slopes.items():
        for size, n in ((8, 10), (16, 10), (32, 6), (64, 4)):
            baseline = np.exp(rng.normal(-4, 0.5, n))
            logs = -0.9 + slope * np.log2(size) + rng.normal(0, noise, n)
            compared = results.compare(
                "errors", baseline, baseline * np.exp(logs), alpha=0.05, sesoi=0.05
            )
            arm = some.arms["spectral_proxy"]._replace(
                clean=compared, noisy=compared, price=compared
            )
            made[cell, size] = some._replace(arms={"spectral_proxy": arm})
    study = found.study.model_copy(update={"survey_cells": tuple(slopes)})
    return found._replace(study=study, surveys=made)


def test_trends_are_found_cell_by_cell(tiny: Sizes) -> None:
    found = sizes.trends(with_effects(tiny, {"gru": 0.1, "rnn": -0.2}), "spectral_proxy", "noisy")
    assert list(found) == ["gru", "rnn"]
    assert found["gru"].slope == pytest.approx(0.1, abs=0.02)
    assert found["rnn"].slope == pytest.approx(-0.2, abs=0.02)


def test_a_trend_is_the_line_through_the_log_ratios_of_all_pairs(tiny: Sizes) -> None:
    made = with_effects(tiny, {"gru": 0.1}, noise=0.3)
    compared = sizes.comparisons(made, "spectral_proxy", "clean")
    x = np.concatenate([np.full(c.evidence.n, np.log2(size)) for (_, size), c in compared.items()])
    y = np.concatenate([np.log(c.idea / c.baseline) for c in compared.values()])
    line = stats.linregress(x, y)
    found = sizes.trends(made, "spectral_proxy", "clean")["gru"]
    assert (found.slope, found.intercept) == pytest.approx((line.slope, line.intercept))


def test_one_size_has_no_trend(tiny: Sizes) -> None:
    one = tiny._replace(surveys={("gru", 2): tiny.surveys["gru", 2]})
    assert sizes.trends(one, "spectral_proxy", "clean") == {}


def test_theory_is_summarised_over_the_networks_of_the_question_under_noise(tiny: Sizes) -> None:
    frame = sizes.mechanism(tiny)
    assert len(frame) == 2 * 2
    for row in frame.to_dict("records"):
        table = tiny.surveys[row["cell"], row["size"]].experiment.table
        own = table[(table.role == "robust") & (table.arm == row["arm"])]
        assert row["networks"] == STUDY.survey_seeds == len(own)
        assert row["radius"] == pytest.approx(np.nanmedian(own.radius))
        assert row["predicted_variance"] == pytest.approx(np.median(own.predicted_variance))


def test_predictions_are_those_of_networks_that_learnt(tiny: Sizes) -> None:
    found = sizes.predictions(tiny)
    for place, survey in tiny.surveys.items():
        table = survey.experiment.table
        tuning = table[
            (table.role == "tuning") & ((table.arm == "baseline") | (table.strength > 0))
        ]
        means = tuning.groupby(["arm", "learning_rate", "strength"]).test_mse.mean()
        learnt = int((means < tuning.ridge_mse.mean()).sum())
        real = found[place]["predicted"]
        assert real.n + real.n_unusable == learnt * survey.study.tuning_seeds
