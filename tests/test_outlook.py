from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import TINY

from msstab import experiment, outlook, parts, store, trials
from msstab.outlook import GUESSED_SCORING, GUESSED_TRAINING
from msstab.results import Results
from msstab.study import Study, parse
from msstab.trials import Scoring


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path))
    return tmp_path


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_an_empty_cache_is_planned_by_guesses(empty: Path) -> None:
    found = outlook.outlook(TINY, [], jobs=2)
    (stage,) = found.stages
    # Two rates at two strengths or four rates, on two seeds, of which strength 0 is the baseline's.
    arms, rates, strengths, seeds = 2, 2, 2, TINY.tuning_seeds
    shared = rates * seeds  # the penalised arm at strength 0, already among the baseline's
    assert stage.train == stage.score == arms * rates * strengths * seeds - shared
    assert stage.kept == 0
    # Six pairs for each question: the baseline in two roles, the idea in three.
    assert stage.later == 2 * TINY.seeds + 3 * TINY.seeds
    networks = stage.train + stage.later
    assert stage.seconds == pytest.approx(networks * (GUESSED_TRAINING + GUESSED_SCORING))
    assert found.seconds == stage.seconds / 2
    assert found.basis.count("a guess") == 2
    assert not files(empty)


def test_what_has_been_run_leaves_nothing_to_run(tiny_results: Results, tiny_cache: Path) -> None:
    before = files(tiny_cache)
    found = outlook.outlook(TINY, [])
    (stage,) = found.stages
    assert (stage.train, stage.score, stage.later, stage.seconds) == (0, 0, 0, 0)
    assert stage.kept == tiny_results.table[["arm", "role", "seed"]].shape[0] - _shared(
        tiny_results
    )
    assert files(tiny_cache) == before


def _shared(found: Results) -> int:
    """Rows of the table that show a network another row shows too."""
    table = found.table.fillna({"learning_rate": 0})
    table["confirms"] = ~table.role.isin(["tuning", "untrained"])
    table["own"] = np.where(table.strength > 0, table.arm, "baseline")
    table.loc[table.role == "untrained", "own"] = table.arm
    columns = ["confirms", "own", "learning_rate", "strength", "seed", "role"]
    merged = table.assign(role=np.where(table.role == "untrained", "untrained", ""))[columns]
    return int(merged.duplicated().sum())


def test_the_foresight_of_more_seeds_is_what_then_runs(
    tiny_results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = parse({"seeds": TINY.seeds + 2, "other_seeds": 3}, TINY)
    seen = experiment.foresee(more)
    assert seen.later == 0
    ran = {"train": 0, "score": 0}

    def pretend(kind: str) -> Any:
        def work(items: list[object], *_: object) -> int:
            ran[kind] += len(items)
            return len(items)

        return work

    class StopError(Exception):
        pass

    def load(scoring: Scoring) -> dict[str, float]:
        if scoring.key not in kept:
            raise StopError
        return trials.load_scores(scoring)

    kept = {path.stem for path in (store.cache_folder() / "score").rglob("*.npz")}
    monkeypatch.setattr(experiment, "train_trials", pretend("train"))
    monkeypatch.setattr(experiment, "score_trials", pretend("score"))
    monkeypatch.setattr(experiment, "load_scores", load)
    with pytest.raises(StopError):
        experiment.run(more)
    assert ran == {"train": len(seen.to_train), "score": seen.to_score}
    assert ran["train"] > 0


def test_times_are_those_of_this_studys_networks_by_arm(
    tiny_results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {"baseline": 2.0, "spectral_proxy": 5.0}
    load = store.load
    timed = {trial.key: seconds[trial.arm] for trial in experiment.foresee(TINY).kept}
    pace = {"seconds": np.array(7.0)}

    def fake(kind: str, key: str) -> Any:
        if kind == "train" and key in timed:
            return {"seconds": np.array(timed[key])}
        return pace if kind == "pace" else load(kind, key)

    monkeypatch.setattr(store, "load", fake)
    (stage,) = (found := outlook.outlook(parse({"seeds": TINY.seeds + 2}, TINY), [])).stages
    by_arm: dict[str, int] = {}
    for trial in experiment.foresee(parse({"seeds": TINY.seeds + 2}, TINY)).to_train:
        # A network that is drawn and not trained takes no time.
        by_arm[trial.arm] = by_arm.get(trial.arm, 0) + (trial.epochs > 0)
    expected = sum(seconds[arm] * n for arm, n in by_arm.items()) + 7.0 * stage.score
    assert stage.seconds == pytest.approx(expected)
    assert "timed in" in found.basis


def test_other_studies_set_the_pace_where_this_one_has_none(
    tiny_results: Results, tiny_cache: Path
) -> None:
    found = outlook.outlook(parse({"study_seed": 1}, TINY), [])
    assert found.basis.count("timed in other studies") == 2
    (scoring,) = (store.load("pace", TINY.key),)
    assert scoring is not None
    assert 0 < float(scoring["seconds"]) < 60


@pytest.fixture
def chapters(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    def part(study: Study, **_: object) -> None:
        raise AssertionError("a plan runs nothing")

    monkeypatch.setattr(parts, "PARTS", {"06_some": part, "07_silent": part})
    smaller = {"06_some": lambda study: [parse({"hidden": h}, study) for h in (3, 4)]}
    monkeypatch.setattr(parts, "STUDIES", smaller)
    return ["01_data", "06_some", "07_silent", "own_idea"]


def test_chapters_of_part_two_are_counted_or_named(empty: Path, chapters: list[str]) -> None:
    found = outlook.outlook(TINY, chapters)
    own, some = found.stages
    assert some.name == "trials of 06_some"
    assert (some.train, some.later) == (2 * own.train, 2 * own.later)
    assert found.unforeseen == ["07_silent", "own_idea"]
    assert outlook.notes(found)[-1] == "Not counted: what 07_silent, own_idea would run."


def test_every_chapter_whose_studies_are_known_has_a_part() -> None:
    assert parts.STUDIES.keys() <= parts.PARTS.keys()
    sizes = {s.hidden for s in parts.STUDIES["07_sizes"](Study())}
    assert sizes == set(Study().survey_sizes)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (9000, "2.5 h")],
)
def test_times_are_written_as_people_do(seconds: float, text: str) -> None:
    assert outlook.duration(seconds) == text


def test_the_table_shows_the_time_on_the_processes_there_are(empty: Path) -> None:
    found = outlook.outlook(TINY, [], jobs=4)
    ((*_, time),) = outlook.to_texts(found)
    assert time == outlook.duration(found.seconds)
