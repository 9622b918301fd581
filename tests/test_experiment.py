import dataclasses
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch
from joblib.externals import loky
from plain import modules
from torch import Tensor

from msstab import (
    arms,
    cells,
    evaluation,
    experiment,
    keys,
    planning,
    store,
    study,
    training,
    trials,
)
from msstab.experiment import Experiment
from msstab.seeding import generator
from msstab.study import Study
from msstab.training import Trained
from msstab.trials import Scoring, Trial
from msstab.tuning import Configuration, Grid, configurations

TINY = Study(
    arms=("baseline", "spectral_proxy"),
    hidden=4,
    epochs=1,
    batch=8,
    n_train=20,
    n_validation=8,
    n_test=8,
    learning_rates=(0.01, 0.1),
    strengths=(0.0, 1.0),
    draws=2,
    mechanism_sequences=4,
    tuning_seeds=2,
    seeds=3,
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Experiment, Path]:
    """An undisturbed run and the cache it filled."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MSSTAB_CACHE", str(folder))
        return experiment.run(TINY), folder


@pytest.fixture
def undisturbed(finished: tuple[Experiment, Path]) -> Experiment:
    return finished[0]


@pytest.fixture(autouse=True)
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def warm(cold: Path, finished: tuple[Experiment, Path]) -> Path:
    """A cache that holds the undisturbed run."""
    shutil.copytree(finished[1], cold)
    return cold


def assert_equal(first: Experiment, second: Experiment) -> None:
    """Equal to the last bit, the time that training took apart."""
    a, b = (e.table.drop(columns="seconds") for e in (first, second))
    pd.testing.assert_frame_equal(a, b, check_exact=True)
    assert first[2:] == second[2:]


def entries(folder: Path, kind: str) -> list[Path]:
    return sorted((folder / kind).rglob("*.npz"))


def forbid(monkeypatch: pytest.MonkeyPatch, room: Any, name: str) -> None:
    def called(*_: object, **__: object) -> None:
        raise AssertionError(f"{name} was called")

    monkeypatch.setattr(room, name, called)


class Recorder:
    """Training that notes what it is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[dict[str, Any]] = []
        self.sizes: list[int] = []
        train = training.train

        def record(
            initial: cells.Parameters,
            inputs: Tensor,
            targets: Tensor,
            orders: Tensor,
            learning_rates: Tensor,
            **options: Any,
        ) -> Trained:
            given = {"inputs": inputs, "targets": targets, "orders": orders}
            self.calls.append({**vars(initial), **given, **options})
            self.sizes.append(len(inputs))
            # A single model is trained with a copy, by a call that nobody asked for.
            monkeypatch.setattr(training, "train", train)
            try:
                return train(initial, inputs, targets, orders, learning_rates, **options)
            finally:
                monkeypatch.setattr(training, "train", record)

        monkeypatch.setattr(training, "train", record)


# ---- the table


def test_the_table_has_every_trial_once(undisturbed: Experiment) -> None:
    table, grid = undisturbed.table, undisturbed.grid
    for arm in ("baseline", "spectral_proxy"):
        own = table[(table.role == "tuning") & (table.arm == arm)]
        tried = set(own[["learning_rate", "strength", "seed"]].itertuples(index=False, name=None))
        assert len(own) == len(tried)
        expected = configurations(grid, arm)
        assert tried == {(*c, seed) for c in expected for seed in range(2)}
        chosen = table[(table.role == "selected") & (table.arm == arm)]
        assert chosen.seed.tolist() == [0, 1, 2]
        pairs = set(chosen[["learning_rate", "strength"]].itertuples(index=False, name=None))
        assert pairs == {undisturbed.chosen[arm]}
    penalised = table[table.role == "penalised"]
    assert penalised.arm.tolist() == 3 * ["spectral_proxy"]
    assert penalised.seed.tolist() == [0, 1, 2]
    assert (penalised.strength == undisturbed.penalised["spectral_proxy"].strength).all()
    untrained = table[table.role == "untrained"]
    assert untrained.arm.tolist() == 3 * ["untrained, gain 1"] + 3 * ["untrained, gain 2.2"]
    assert untrained.learning_rate.isna().all()
    for arm in ("baseline", "spectral_proxy"):
        robust = table[(table.role == "robust") & (table.arm == arm)]
        assert robust.seed.tolist() == [0, 1, 2]
        pairs = set(robust[["learning_rate", "strength"]].itertuples(index=False, name=None))
        assert pairs == {undisturbed.robust[arm]}
    assert set(table.role) == {"tuning", "selected", "penalised", "robust", "untrained"}


def test_the_best_mean_validation_error_of_the_tuning_seeds_is_chosen(
    undisturbed: Experiment,
) -> None:
    tuning = undisturbed.table[undisturbed.table.role == "tuning"]
    means = tuning.groupby(["arm", "learning_rate", "strength"]).validation_mse.mean()
    for arm in ("baseline", "spectral_proxy"):
        assert undisturbed.chosen[arm] == pytest.approx(means[arm].idxmin())
    positive = means["spectral_proxy"].drop(index=0.0, level="strength")
    assert undisturbed.penalised == {"spectral_proxy": pytest.approx(positive.idxmin())}
    assert "baseline" not in undisturbed.penalised


def test_for_robustness_the_best_error_under_noise_on_validation_data_is_chosen(
    undisturbed: Experiment,
) -> None:
    tuning = undisturbed.table[undisturbed.table.role == "tuning"]
    means = tuning.groupby(["arm", "learning_rate", "strength"]).noisy_validation_mse.mean()
    positive = means["spectral_proxy"].drop(index=0.0, level="strength")
    assert undisturbed.robust == {
        "baseline": pytest.approx(means["baseline"].idxmin()),
        "spectral_proxy": pytest.approx(positive.idxmin()),
    }


def test_test_sequences_have_no_say_in_the_choice(
    undisturbed: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where the test set is the very opposite of what was to be learnt."""
    draw = trials.draw_data

    def opposite(*args: Any) -> Any:
        data = draw(*args)
        return data._replace(test=data.test._replace(targets=-5 * data.test.targets))

    monkeypatch.setattr(trials, "draw_data", opposite)
    disturbed = experiment.run(TINY)
    assert (disturbed.table.test_mse != undisturbed.table.test_mse).all()
    assert disturbed[2:] == undisturbed[2:]


def test_scores_are_those_of_the_trained_network_in_torchs_modules(warm: Path) -> None:
    found = experiment.run(TINY)
    for arm in ("baseline", "spectral_proxy"):
        rows = found.table[(found.table.role == "selected") & (found.table.arm == arm)]
        for row in rows.itertuples():
            seed = int(str(row.seed))
            network = experiment.trained(TINY, found.chosen[arm], arm, "selected", seed)
            gru, linear = modules(network.parameters)
            data = trials.draw_data(TINY, "confirmation", seed)
            errors = []
            for inputs, targets, _ in (data.validation, data.test):
                states, _ = gru(torch.as_tensor(inputs.transpose(1, 0, 2), dtype=torch.float32))
                errors.append(
                    float(np.mean((linear(states[-1]).detach().numpy() - targets[:, 0]) ** 2))
                )
            assert [row.validation_mse, row.test_mse] == pytest.approx(errors, rel=1e-5)
            assert row.train_mse == network.losses[0, -1]
            assert row.hinge_active == network.active.mean()
            assert row.ridge_mse == evaluation.ridge_error(data, data.test)
            assert row.constant_mse == evaluation.constant_error(data, data.test)
            assert row.persistence_mse == evaluation.persistence_error(data.test)
            assert not row.diverged


@pytest.mark.parametrize(("cell", "layers"), [("lstm", 1), ("rnn", 1), ("lstm", 2)])
def test_another_cell_is_trained_and_scored_as_itself(cell: str, layers: int) -> None:
    changes = {
        "cell": cell,
        "layers": layers,
        "seeds": 2,
        "sigma_test": 0.05,
        "draws": 400,
        "mechanism_sequences": 8,
    }
    studied = TINY.model_copy(update=changes)
    found = experiment.run(studied)
    for arm in ("baseline", "spectral_proxy"):
        rows = found.table[(found.table.role == "selected") & (found.table.arm == arm)]
        assert rows.seed.tolist() == [0, 1]
        for row in rows.itertuples():
            seed = int(str(row.seed))
            network = experiment.trained(studied, found.chosen[arm], arm, "selected", seed)
            assert (network.parameters.cell, network.parameters.layers) == (cell, layers)
            recurrent, linear = modules(network.parameters)
            inputs, targets, _ = trials.draw_data(studied, "confirmation", seed).test
            shown, _ = recurrent(torch.as_tensor(inputs.transpose(1, 0, 2), dtype=torch.float32))
            error = np.mean((linear(shown[-1]).detach().numpy() - targets[:, 0]) ** 2)
            assert row.test_mse == pytest.approx(float(error), rel=1e-5)
    ran = found.table[found.table.role.isin(["selected", "untrained"])]
    assert (ran.observed_variance / ran.predicted_variance).between(0.8, 1.2).all()
    assert np.isfinite(ran[["proxy_radius", "power_ratio", "noisy_mse"]]).all(axis=None)


def test_predicted_and_observed_variance_agree_and_the_placebo_does_not(warm: Path) -> None:
    changes = {"sigma_test": 0.05, "draws": 400, "mechanism_sequences": 8}
    table = experiment.run(TINY.model_copy(update=changes)).table
    table = table[table.role.isin(["selected", "untrained"])]
    ratio = table.observed_variance / table.predicted_variance
    assert ratio.between(0.85, 1.15).all()
    placebo = table.observed_variance / table.placebo_variance
    assert not placebo.between(0.85, 1.15).all()


def test_without_noise_the_noisy_error_is_the_clean_one() -> None:
    # In double precision, for a chaotic network makes more of rounding errors than this allows.
    changes = {"sigma_test": 0.0, "dtype": "float64"}
    table = experiment.run(TINY.model_copy(update=changes)).table
    np.testing.assert_allclose(table.noisy_mse, table.clean_mse, rtol=1e-4)
    assert (table.predicted_variance == 0).all()
    assert (table.observed_variance <= 1e-8 * table.clean_mse).all()


def test_at_strength_zero_an_arm_is_the_baseline(undisturbed: Experiment) -> None:
    tuning = undisturbed.table[undisturbed.table.role == "tuning"]
    none = tuning[(tuning.arm == "spectral_proxy") & (tuning.strength == 0)]
    same = tuning[(tuning.arm == "baseline") & tuning.learning_rate.isin(none.learning_rate)]
    pd.testing.assert_frame_equal(
        none.drop(columns="arm").reset_index(drop=True),
        same.drop(columns="arm").reset_index(drop=True),
        check_exact=True,
    )


def test_untrained_networks_are_scored_as_they_were_drawn(undisturbed: Experiment) -> None:
    untrained = undisturbed.table[undisturbed.table.role == "untrained"]
    assert untrained.train_mse.isna().all()
    assert untrained.hinge_active.isna().all()
    for row in untrained.itertuples():
        seed, gain = int(str(row.seed)), float(str(row.arm).removeprefix("untrained, gain "))
        weights = generator(0, "dynamics", "confirmation", seed, "weights")
        gru, linear = modules(cells.initial_parameters([weights], 4, 1, 1, gain=gain))
        inputs, targets, _ = trials.draw_data(TINY, "confirmation", seed).test
        states, _ = gru(torch.as_tensor(inputs.transpose(1, 0, 2), dtype=torch.float32))
        error = np.mean((linear(states[-1]).detach().numpy() - targets[:, 0]) ** 2)
        assert row.test_mse == pytest.approx(error, rel=1e-5)


def test_the_grid_is_widened_until_the_choices_are_inside(undisturbed: Experiment) -> None:
    assert undisturbed.bracketed
    assert undisturbed.grid.rungs[:2] == TINY.learning_rates
    chosen = (undisturbed.chosen, undisturbed.penalised, undisturbed.robust)
    for arm, c in [pair for choices in chosen for pair in choices.items()]:
        rates = {k.learning_rate for k in configurations(undisturbed.grid, arm)}
        assert min(rates) < c.learning_rate < max(rates)
        assert c.strength < max(undisturbed.grid.strengths["spectral_proxy"])


def test_a_choice_that_stays_on_the_edge_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "MOST_WIDENINGS", 0)
    found = experiment.run(TINY)
    assert not found.bracketed
    assert found.grid == Grid(TINY.learning_rates, {"spectral_proxy": TINY.strengths})
    assert found.chosen["spectral_proxy"].learning_rate == 0.1


OWN_ARM = """
import torch
from msstab.arms import Penalty, Step, arm

def size(step: Step) -> torch.Tensor:
    return step.parameters.weight_hh.square().mean((1, 2))

@arm(strengths=(0, 1, 10))
def small_weights(step: Step) -> Penalty:
    value = size(step)
    return Penalty(value, torch.ones_like(value))
"""


@pytest.fixture
def own_arm(
    cold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Path]]:
    """A reader's file with an arm, in a folder above the one in which the run starts."""
    (tmp_path / "ideas").mkdir()
    (tmp_path / "chapters").mkdir()
    file = tmp_path / "ideas" / "mine.py"
    file.write_text(OWN_ARM, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "chapters")
    name = "ideas/mine.py:small_weights"
    yield name, file
    arms.ARMS.pop(name, None)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_arm_of_ones_own_is_trained_and_compared(
    undisturbed: Experiment, own_arm: tuple[str, Path], jobs: int
) -> None:
    name, _ = own_arm
    found = experiment.run(study.parse({"arms": ["baseline", name]}, TINY), jobs=jobs)
    table = found.table[found.table.arm == name]
    assert table[table.strength > 0].hinge_active.eq(1).all()
    assert set(table.role) == {"tuning", "selected", "penalised", "robust"}
    # The baseline's networks are what they were beside the other arm.
    first, second = (
        e.table[(e.table.arm == "baseline") & e.table.learning_rate.isin(TINY.learning_rates)]
        for e in (found, undisturbed)
    )
    tuning = [part[part.role == "tuning"].test_mse.tolist() for part in (first, second)]
    assert tuning[0] == tuning[1] != []


def test_an_arm_of_ones_own_that_was_changed_is_trained_anew(
    own_arm: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, file = own_arm
    c = Configuration(0.1, 1.0)
    first = experiment.trained(
        study.parse({"arms": ["baseline", name]}, TINY), c, name, "tuning", 0
    )
    file.write_text(OWN_ARM.replace("value = size", "value = 100 * size"), encoding="utf-8")
    changed = study.parse({"arms": ["baseline", name]}, TINY)
    second = experiment.trained(changed, c, name, "tuning", 0)
    norms = [float(n.parameters.weight_hh.norm()) for n in (first, second)]
    assert norms[1] < 0.5 * norms[0]
    forbid(monkeypatch, training, "train")
    experiment.trained(changed, c, name, "tuning", 0)


def test_the_primary_comparison_has_as_many_pairs_as_planned_and_the_others_fewer(
    warm: Path,
) -> None:
    planned = TINY.model_copy(update={"seeds": 0, "max_seeds": 5, "other_seeds": 2})
    found = experiment.run(planned)
    assert (found.plan.seeds, found.plan.reason) == (5, "capped at max_seeds = 5")
    assert found.plan.needed > 5
    counts = found.table.groupby(["arm", "role"]).size()
    for arm, role, expected in (
        *(("baseline", "selected", 5), ("spectral_proxy", "penalised", 5)),
        *(("baseline", "robust", 2), ("spectral_proxy", "robust", 2)),
        ("spectral_proxy", "selected", 2),
    ):
        assert counts[arm, role] == expected
    chosen = [
        experiment.at(found.table, "baseline", found.chosen),
        experiment.at(found.table, "spectral_proxy", found.penalised),
    ]
    errors = [runs.validation_mse.to_numpy() for runs in chosen]
    assert found.plan == planning.plan(planned, *errors)


def test_the_plan_is_written_before_any_seed_confirms(
    cold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = trials._data

    def only_tuning(track: str, study_seed: int, purpose: str, *rest: Any) -> Any:
        if purpose == "confirmation":
            raise InterruptedError
        return draw(track, study_seed, purpose, *rest)

    monkeypatch.setattr(trials, "_data", only_tuning)
    with pytest.raises(InterruptedError):
        experiment.run(TINY)
    (path,) = (cold / "plans").iterdir()
    assert json.loads(path.read_text(encoding="utf-8"))["plan"]["seeds"] == TINY.seeds


# ---- pairing and independence


def test_all_arms_meet_the_same_data_order_and_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch)
    monkeypatch.setattr(experiment, "LARGEST_ENSEMBLE", 1)
    experiment.run(TINY)
    names = ("inputs", "targets", "orders", "weight_ih", "weight_hh", "weight_out")
    distinct = {name: {tuple(c[name].flatten().tolist()) for c in recorder.calls} for name in names}
    # Two tuning seeds and three that confirm, whatever arm, rate and strength.
    assert {name: len(values) for name, values in distinct.items()} == dict.fromkeys(names, 5)
    assert len(recorder.calls) > 20
    for call in recorder.calls:
        assert sorted(call["orders"].flatten().tolist()) == list(range(TINY.n_train))


def test_tuning_and_confirmation_share_no_sequence() -> None:
    studied = TINY.model_copy(update={"study_seed": 3})
    starts = [
        value
        for purpose in ("tuning", "confirmation")
        for seed in range(4)
        for split in trials.draw_data(studied, purpose, seed)
        for value in split.inputs[:, 0, 0].tolist()
    ]
    assert len(set(starts)) == len(starts) == 8 * (20 + 8 + 8)


def test_another_study_seed_gives_other_numbers(undisturbed: Experiment) -> None:
    other = experiment.run(TINY.model_copy(update={"study_seed": 1}))
    assert not set(other.table.test_mse) & set(undisturbed.table.test_mse)


# ---- nothing is computed twice


def test_a_second_run_computes_nothing(
    undisturbed: Experiment, warm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, training, "train")
    forbid(monkeypatch, evaluation, "noisy_run")
    told: list[tuple[int, int]] = []
    again = experiment.run(TINY, progress=lambda *state: told.append(state))
    pd.testing.assert_frame_equal(again.table, undisturbed.table, check_exact=True)
    assert again[2:] == undisturbed[2:]
    assert told == []


@pytest.mark.parametrize("name", ["sigma_test", "draws", "mechanism_sequences"])
def test_what_scores_alone_depend_on_trains_nothing(
    undisturbed: Experiment, warm: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    forbid(monkeypatch, training, "train")
    value = {"sigma_test": 0.4, "draws": 3, "mechanism_sequences": 5}[name]
    other = experiment.run(TINY.model_copy(update={name: value}))
    assert other.table.test_mse.equals(undisturbed.table.test_mse)
    selected = undisturbed.table.role == "selected"
    before, after = (e.table.observed_variance[selected] for e in (undisturbed, other))
    assert not (before == after).any()


@pytest.mark.parametrize(("name", "value"), [("sigma", 0.3), ("target", 0.5)])
def test_what_the_penalty_assumes_trains_penalised_networks_alone(
    cold: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: float
) -> None:
    monkeypatch.setattr(experiment, "MOST_WIDENINGS", 0)
    experiment.run(TINY)
    before = [len(entries(cold, kind)) for kind in ("train", "score")]
    recorder = Recorder(monkeypatch)
    experiment.run(TINY.model_copy(update={name: value}))
    assert recorder.calls
    for call in recorder.calls:
        assert call["arm"] is not None
        assert call["strengths"].min() > 0
        assert call[name] == value
    after = [len(entries(cold, kind)) for kind in ("train", "score")]
    # Nor is a network scored again that was not trained again.
    assert after[0] - before[0] == after[1] - before[1] == sum(recorder.sizes)


def test_more_seeds_train_the_new_ones_alone(warm: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in entries(warm, "train")}
    experiment.run(TINY.model_copy(update={"seeds": 4}))
    assert {path: path.stat().st_mtime_ns for path in before} == before
    # One network more for each: two selected arms, a penalised one, two untrained.
    assert len(before) < len(entries(warm, "train")) <= len(before) + 5


def test_confirmed_trials_are_those_of_the_table(undisturbed: Experiment) -> None:
    table = undisturbed.table
    for arm, role in (("baseline", "selected"), ("spectral_proxy", "penalised")):
        rows = table[(table.arm == arm) & (table.role == role)]
        trials = experiment.confirmed(undisturbed, arm, role)
        assert [t.index for t in trials] == rows.sort_values("seed").seed.tolist()
        assert {t.learning_rate for t in trials} == set(rows.learning_rate)
        assert {t.strength for t in trials} == set(rows.strength)
        assert {t.purpose for t in trials} == {"confirmation"}


def test_one_trained_network_can_be_had_again(warm: Path) -> None:
    c = Configuration(0.1, 1.0)
    with pytest.MonkeyPatch.context() as patch:
        forbid(patch, training, "train")
        found = experiment.trained(TINY, c, "spectral_proxy", "tuning", 1)
    assert [len(tensor) for tensor in found.parameters] == 6 * [1]
    for path in entries(warm, "train"):
        path.unlink()
    again = experiment.trained(TINY, c, "spectral_proxy", "tuning", 1)
    assert all(torch.equal(a, b) for a, b in zip(found.parameters, again.parameters, strict=True))
    assert len(entries(warm, "train")) == 1


# ---- the same numbers however the work is done


def test_the_number_of_jobs_changes_no_number(undisturbed: Experiment) -> None:
    try:
        assert_equal(experiment.run(TINY, jobs=2), undisturbed)
    finally:
        loky.get_reusable_executor().shutdown(wait=True)


@pytest.mark.parametrize("size", [1, 3])
def test_the_size_of_ensembles_changes_no_number(
    undisturbed: Experiment, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(experiment, "LARGEST_ENSEMBLE", size)
    recorder = Recorder(monkeypatch)
    assert_equal(experiment.run(TINY), undisturbed)
    assert max(recorder.sizes) == size


@pytest.mark.parametrize("finished_chunks", [0, 1, 4])
def test_an_interrupted_run_resumes_to_the_same_numbers(
    undisturbed: Experiment, cold: Path, finished_chunks: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "LARGEST_ENSEMBLE", 3)
        train = training.train
        sizes: list[int] = []

        def interrupted(initial: cells.Parameters, *args: Any, **options: Any) -> Trained:
            if len(sizes) == finished_chunks:
                raise KeyboardInterrupt
            sizes.append(len(initial.bias_out))
            return train(initial, *args, **options)

        patch.setattr(training, "train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            experiment.run(TINY)
    assert len(sizes) == finished_chunks
    assert len(entries(cold, "train")) == sum(sizes)
    assert_equal(experiment.run(TINY), undisturbed)


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_numbers(undisturbed: Experiment, cold: Path) -> None:
    code = (
        "from msstab import experiment; from msstab.study import Study\n"
        "experiment.LARGEST_ENSEMBLE = 1\n"
        f"experiment.run(Study.model_validate_json({TINY.model_dump_json()!r}, strict=False))"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        deadline = time.monotonic() + 60
        while len(entries(cold, "train")) < 10:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.002)
    finally:
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    done = len(entries(cold, "train"))
    assert_equal(experiment.run(TINY), undisturbed)
    assert 10 <= done < len(entries(cold, "train"))


def damage(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize("kind", ["scores", "score", "train"])
def test_a_damaged_entry_is_computed_anew(undisturbed: Experiment, warm: Path, kind: str) -> None:
    damage(entries(warm, kind)[-1])
    # Single scores are read only where those of all are missing, a network where scores are.
    for read_before in {"score": ["scores"], "train": ["scores", "score"]}.get(kind, []):
        shutil.rmtree(warm / read_before)
    with pytest.warns(RuntimeWarning, match="damaged cache entry"):
        again = experiment.run(TINY)
    assert_equal(again, undisturbed)
    assert all(np.load(path) for path in entries(warm, kind))


# ---- keys


def test_every_parameter_of_a_trial_is_in_its_key() -> None:
    trial = experiment._trial(TINY, "spectral_proxy", Configuration(0.1, 1.0), "tuning", 0)
    other: dict[str, Any] = {
        "track": "lorenz_state",
        "learning_rate": 0.2,
        "strength": 0.5,
        "sigma": 0.3,
        "gain": 2.0,
    }
    keys = {trial.key}
    for field in dataclasses.fields(Trial):
        value = getattr(trial, field.name)
        value = other.get(field.name, value + 1 if isinstance(value, int) else f"{value} else")
        keys.add(dataclasses.replace(trial, **{field.name: value}).key)
    assert len(keys) == len(dataclasses.fields(Trial)) + 1


@pytest.fixture
def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the code from which keys are made."""
    source = Path(trials.__file__).parent
    copy = shutil.copytree(
        source, tmp_path / "msstab", ignore=shutil.ignore_patterns("__pycache__")
    )
    monkeypatch.setattr(keys, "__file__", str(copy / "keys.py"))
    keys._code.cache_clear()
    yield copy
    keys._code.cache_clear()


class Named(NamedTuple):
    """Names of a baseline, of a penalised network and of a baseline's scores."""

    baseline: str
    penalised: str
    scores: str


def names() -> Named:
    keys._code.cache_clear()
    first, second = (
        experiment._trial(TINY, "baseline", Configuration(0.1, 0.0), "tuning", k) for k in (0, 1)
    )
    penalised = experiment._trial(TINY, "spectral_proxy", Configuration(0.1, 1.0), "tuning", 0)
    return Named(first.key, penalised.key, Scoring(first, second, TINY).key)


def test_other_noise_levels_make_new_scores_of_the_same_networks() -> None:
    trial = experiment._trial(TINY, "baseline", Configuration(0.1, 0.0), "tuning", 0)
    changes: list[dict[str, Any]] = [{}, {"sigma_grid": (0.1,)}, {"sigma_test": 0.1}]
    found = {Scoring(trial, trial, TINY.model_copy(update=c)).key for c in changes}
    assert len(found) == len(changes)


PACKAGE = Path(trials.__file__).parent


def files(*names: str) -> list[str]:
    """The files of modules and of packages, without their extension."""
    paths = [
        path
        for name in names
        for path in (sorted((PACKAGE / name).glob("*.py")) or [PACKAGE / f"{name}.py"])
    ]
    return [path.relative_to(PACKAGE).as_posix().removesuffix(".py") for path in paths]


TRAINING = files(
    *("seeding", "tracks/registry", "tracks/simulation", "tracks/windows", "tracks/lorenz"),
    *("cells", "training", "trials"),
)
PENALTIES = files("arms", "operators", "noise", "reduced", "spectral", "moments")
SCORING = files("evaluation", "mechanism", "scores")


@pytest.mark.parametrize("room", TRAINING + PENALTIES + SCORING)
def test_an_edit_of_a_room_makes_new_keys_where_it_matters(rooms: Path, room: str) -> None:
    before = names()
    path = rooms / f"{room}.py"
    path.write_text(path.read_text() + "\nEDITED = 1\n")
    after = names()
    assert after.scores != before.scores
    assert (after.penalised != before.penalised) == (room in TRAINING + PENALTIES)
    assert (after.baseline != before.baseline) == (room in TRAINING)


def test_comments_docstrings_and_layout_make_no_new_keys(rooms: Path) -> None:
    before = names()
    for room in TRAINING + PENALTIES + SCORING:
        path = rooms / f"{room}.py"
        text = re.sub(
            r"^(\s+)return ", r"\1# A remark.\n\n\1return  ", path.read_text(), flags=re.M
        )
        assert text != path.read_text() or "    return " not in text
        text = re.sub(r'^( *)"""(?=[A-Z])', r'\1"""Read this first. ', text, flags=re.M)
        path.write_text(text)
    assert names() == before


def test_other_versions_of_the_libraries_make_new_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    before = names()
    monkeypatch.setattr(keys, "_versions", lambda: ("0.0", np.__version__))
    assert not set(names()) & set(before)


# ---- trouble


def test_a_diverged_run_counts_with_the_constant_forecasts_error() -> None:
    studied = TINY.model_copy(update={"learning_rates": (0.01, 1e30)})
    table = experiment.run(studied).table
    diverged, rest = table[table.diverged], table[~table.diverged]
    assert (diverged.learning_rate > 1e5).all()
    assert set(diverged.arm) == {"baseline", "spectral_proxy"}
    assert set(rest[rest.role == "selected"].arm) == {"baseline", "spectral_proxy"}
    np.testing.assert_array_equal(diverged.test_mse, diverged.constant_mse)
    for row in diverged.itertuples():
        data = trials.draw_data(studied, "tuning", int(str(row.seed)))
        assert row.validation_mse == evaluation.constant_error(data, data.validation)
    errors = [str(name) for name in table if "_mse" in str(name) and name != "train_mse"]
    tuning = table[table.role == "tuning"]
    assert np.isfinite(tuning[errors]).all(axis=None)
    confirmed = table[table.role != "tuning"]
    assert confirmed.noisy_validation_mse.isna().all()
    assert np.isfinite(confirmed[errors].drop(columns="noisy_validation_mse")).all(axis=None)
    np.testing.assert_array_equal(diverged["noisy_mse@0.4"], diverged.noisy_mse)


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_progress_ends_with_all_done(jobs: int) -> None:
    told: list[tuple[int, int]] = []
    try:
        experiment.run(TINY, jobs=jobs, progress=lambda *state: told.append(state))
    finally:
        if jobs > 1:
            loky.get_reusable_executor().shutdown(wait=True)
    done, total = zip(*told, strict=True)
    assert told[0][0] == 0
    assert list(done) == sorted(done)
    # From the first word on, the total counts the confirmation to come.
    assert total[0] > 2 * TINY.seeds
    assert all(d <= t for d, t in told)
    folder = store.cache_folder()
    assert told[-1] == (total[-1], total[-1])
    assert total[-1] == len(entries(folder, "train")) + len(entries(folder, "score"))


def test_a_failure_to_keep_a_result_stops_the_run(
    monkeypatch: pytest.MonkeyPatch, cold: Path
) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(store, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        experiment.run(TINY)
    assert not cold.exists()


def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(study.StudyError, match="device = cuda: torch finds no such device"):
        experiment.run(study.parse({"device": "cuda"}, TINY))
