"""Which trials a Study needs; runs the missing ones, keeps each, returns one tidy table."""

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from msstab import arms, planning, spreading, store, tracks
from msstab.keys import key
from msstab.planning import Plan
from msstab.study import Study, StudyError
from msstab.training import Trained
from msstab.trials import Scoring, Trial, load_scores, load_trained, score_trials, train_trials
from msstab.tuning import Configuration, Grid, choose, configurations, widen

Progress = Callable[[int, int], None]

LARGEST_ENSEMBLE = 32
MOST_WIDENINGS = 4
UNTRAINED_GAINS = (1.0, 2.2)
"""Gains of the initial weights of the networks that are scored without any training."""

MOST_UNTRAINED = 8
"""Networks of each such gain."""


class Experiment(NamedTuple):
    """A Study's runs.

    `table` has a row for each network: arm, role ("tuning", "selected", "penalised", "robust",
    "untrained"), seed, configuration and scores. By arm, `chosen` is the configuration of lowest
    clean validation error, strength 0 allowed, `penalised` the same of positive strength, and
    `robust` that of lowest validation error under noise, of positive strength for all but the
    baseline. `bracketed`: none of these lies on the edge of `grid`, the widened one. `plan` says
    how many seeds confirm. `scorings` are what the table's rows were made from.
    """

    study: Study
    table: pd.DataFrame
    grid: Grid
    chosen: dict[str, Configuration]
    penalised: dict[str, Configuration]
    robust: dict[str, Configuration]
    bracketed: bool
    plan: Plan
    scorings: Sequence[Scoring] = ()


class Foresight(NamedTuple):
    """What a Study's runs would take.

    Of the networks known so far, those whose training is kept and those to train; how many scores
    are kept and how many missing; and an estimate of the networks that tuning still has to name,
    0 where its choices are known.
    """

    kept: list[Trial]
    to_train: list[Trial]
    scored: int
    to_score: int
    later: int


def run(study: Study, *, jobs: int = 1, progress: Progress | None = None) -> Experiment:
    """Run what is missing of a Study's trials and return all of them.

    Tuning seeds choose every arm's configurations on validation data, the grid being widened
    until each choice is bracketed, and plan the confirmation. What is fixed by then is written
    down (`planning.write`). Confirmation seeds, none of which took part in tuning, then compare
    the arms: the judged arm and the baseline on as many as planned for the first question, all
    others on no more than `study.other_seeds`.

    `jobs` processes share the work; the numbers do not depend on it. `progress(done, total)` is
    told of missing work done, training and scoring a network being one each; until the choices
    are made, the total estimates the confirmation and may grow with the grid. Raises StudyError
    for a device that is not there.
    """
    require_device(study)
    return _run(study, _Runner(jobs, progress))


def require_device(study: Study) -> None:
    """Raise StudyError unless torch finds the device on which networks are to be trained."""
    kind, _, index = study.device.partition(":")  # torch takes numbers modulo 256
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if kind != "cpu" and int(index or 0) >= found:
        raise StudyError(f"device = {study.device}: torch finds no such device here; use cpu")


def foresee(study: Study) -> Foresight:
    """Return what `run` would find kept and what it would run, without running anything."""
    scout = _Scout()
    with contextlib.suppress(_NotKeptError):
        _run(study, scout)
    return scout.seen


def score(
    scorings: Sequence[Scoring], *, jobs: int = 1, progress: Progress | None = None
) -> list[dict[str, float]]:
    """Return the scores of networks, in their order; what is missing is run, as in `run`."""
    found = _Runner(jobs, progress).scores(list({s.key: s for s in scorings}.values()))
    return [found[scoring.key] for scoring in scorings]


def _run(study: Study, runner: "_Runner") -> Experiment:
    wider = _first_grid(study)
    for _ in range(MOST_WIDENINGS + 1):
        grid = wider
        rows = _tuning_rows(study, grid)
        tuning = runner.table(rows, later=_confirmations(study))
        choices = _choices(tuning)
        picks = [(arm, c) for by_arm in choices for arm, c in by_arm.items()]
        wider = widen(grid, picks)
        if wider == grid:
            break
    chosen, penalised, robust = choices
    baseline, idea, *_ = study.arms
    errors = [
        at(tuning, arm, c).validation_mse for arm, c in ((baseline, chosen), (idea, penalised))
    ]
    plan = planning.plan(study, *(e.to_numpy() for e in errors))
    named = zip(("selected", "penalised", "robust"), choices, strict=True)
    runner.write(planning.record(study, plan, dict(named)))
    others = min(study.other_seeds, plan.seeds)
    rows += _rows(study, baseline, "selected", chosen[baseline], plan.seeds)
    rows += _rows(study, idea, "selected", chosen[idea], others)
    for arm, configuration in penalised.items():
        pairs = plan.seeds if arm == idea else others
        rows += _rows(study, arm, "penalised", configuration, pairs)
    for arm, configuration in robust.items():
        rows += _rows(study, arm, "robust", configuration, others)
    for gain in UNTRAINED_GAINS:
        rows += _untrained(study, gain, min(others, MOST_UNTRAINED))
    bracketed = grid == wider
    return Experiment(
        study,
        runner.table(rows),
        grid,
        *choices,
        bracketed=bracketed,
        plan=plan,
        scorings=[row.scoring for row in rows],
    )


def at(table: pd.DataFrame, arm: str, chosen: Mapping[str, Configuration]) -> pd.DataFrame:
    """Return an arm's tuning runs at its chosen configuration, in the order of seeds."""
    c = chosen[arm]
    own = (table.arm == arm) & (table.role == "tuning")
    own &= (table.learning_rate == c.learning_rate) & (table.strength == c.strength)
    return table[own].sort_values("seed")


def trained(study: Study, configuration: Configuration, arm: str, role: str, seed: int) -> Trained:
    """Return one trained network of a Study that has been run, as a stack of one, to be shown."""
    trial = _trial(study, arm, configuration, _PURPOSES[role], seed)
    return load_trained(trial, exactly=False)


def curves(
    study: Study, configuration: Configuration, arm: str, role: str, seed: int
) -> dict[str, NDArray[Any]]:
    """Return how the training of one network went: `losses` and `active`, (1, epochs) each.

    They are kept apart from the network's weights, so that they can be published without them.
    """
    trial = _trial(study, arm, configuration, _PURPOSES[role], seed)
    name = key("curves", (), of=(trial.key,))
    found = store.load("curves", name)
    if found is None:
        network = load_trained(trial)
        store.save("curves", name, {"losses": network.losses, "active": network.active})
        # Read again, since what is read is noted where results are to be published.
        found = store.load("curves", name)
    assert found is not None
    return found


def confirmed(runs: Experiment, arm: str, role: str) -> list[Trial]:
    """Return the trials of an arm's confirmation networks in a role, in the order of seeds.

    Their number is that of the role's rows in `runs.table`. Raises KeyError for an arm or a role
    of which there are none.
    """
    choices = {"selected": runs.chosen, "penalised": runs.penalised, "robust": runs.robust}[role]
    seeds = int(((runs.table.arm == arm) & (runs.table.role == role)).sum())
    return [_trial(runs.study, arm, choices[arm], _PURPOSES[role], seed) for seed in range(seeds)]


def by_configuration(table: pd.DataFrame) -> dict[Configuration, pd.DataFrame]:
    """Split a table of runs by what tuning varies, in increasing order."""
    groups: Any = table.groupby(["learning_rate", "strength"])
    return {Configuration(*map(float, key)): rows for key, rows in groups}


def _first_grid(study: Study) -> Grid:
    """Each arm's own strengths, unless the Study names some for all."""
    own: dict[str, tuple[float, ...]] = {}
    for name in study.arms[1:]:
        arm = arms.find(name)
        assert arm is not None
        own[name] = study.strengths or arm.strengths
    return Grid(study.learning_rates, own)


def _confirmations(study: Study) -> int:
    """Estimate the steps of the confirmation: networks trained and networks scored."""
    planned = study.seeds or 3 * study.max_seeds // 4
    others = (2 * len(study.arms) - 1) * min(study.other_seeds, planned)
    return 2 * (2 * planned + others)


_PURPOSES = {
    "tuning": "tuning",
    "selected": "confirmation",
    "penalised": "confirmation",
    "robust": "confirmation",
}


class _Row(NamedTuple):
    """A row of the table to be: how it is labelled and how it is scored."""

    arm: str
    role: str
    scoring: Scoring


class _Runner:
    """Trains and scores what is missing, on some processes, and reports progress."""

    def __init__(self, jobs: int, progress: Progress | None) -> None:
        self.jobs, self.progress = jobs, progress
        self.done, self.total, self.later = 0, 0, 0

    def table(self, rows: Sequence[_Row], later: int = 0) -> pd.DataFrame:
        """Return the table of these rows; `later` estimates what further tables will take."""
        scores = self.scores(_scorings_of(rows), later)
        return pd.DataFrame([_record(row, scores[row.scoring.key]) for row in rows])

    def scores(self, scorings: Sequence[Scoring], later: int = 0) -> dict[str, dict[str, float]]:
        """Return the scores of each scoring by its key."""
        self.later = later
        missing = [s for s in scorings if not store.has("score", s.key)]
        to_train = _to_train(missing)
        self.total += len(to_train) + len(missing)
        ensembles = _ensembles(to_train, self.jobs)
        self._do(train_trials, [(group, arms.find(group[0].arm)) for group in ensembles])
        seconds = self._do(score_trials, [(group,) for group in _chunks(missing, self.jobs)])
        if missing:
            # For the next plan: scores themselves don't hold how long they took.
            store.save("pace", missing[0].study.key, {"seconds": seconds / len(missing)})
        return _load(scorings)

    def write(self, record: dict[str, Any]) -> None:
        """Keep what is fixed before any seed confirms."""
        planning.write(record)

    def _do(self, work: Callable[..., int], calls: Sequence[tuple[Any, ...]]) -> float:
        """Do all work and return the seconds it took, those of each process added up."""
        if not calls:
            return 0.0
        start = time.perf_counter()
        self._report(0)
        jobs = min(self.jobs, len(calls))
        for done in spreading.spread(work, calls, jobs):
            self._report(done)
        return jobs * (time.perf_counter() - start)

    def _report(self, done: int) -> None:
        self.done += done
        if self.progress:
            self.progress(self.done, self.total + self.later)


def _load(scorings: Sequence[Scoring]) -> dict[str, dict[str, float]]:
    """Return kept scores by key.

    They are kept once more as one result, since thousands of files take a minute to read. Where
    other results are reused or what is read is noted, each is read by itself.
    """
    if not scorings or any(os.environ.get(name) for name in (store.REUSE, store.READS)):
        return {s.key: load_scores(s) for s in scorings}
    names = tuple(s.key for s in scorings)
    together = key("scores", (), of=names)
    columns = store.load("scores", together)
    if columns is None:
        each = [load_scores(s) for s in scorings]
        columns = {name: np.array([scores[name] for scores in each]) for name in each[0]}
        store.save("scores", together, columns)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return {
        name: dict(zip(columns, row, strict=True)) for name, row in zip(names, rows, strict=True)
    }


class _NotKeptError(Exception):
    """The scores on which the next trials depend are not there."""


class _Scout(_Runner):
    """Goes where a runner would, as far as what is kept leads, and notes what it sees."""

    def __init__(self) -> None:
        super().__init__(1, None)
        self.seen = Foresight([], [], 0, 0, 0)

    def scores(self, scorings: Sequence[Scoring], later: int = 0) -> dict[str, dict[str, float]]:
        missing = [s for s in scorings if not store.has("score", s.key)]
        to_train = _to_train(missing)
        new = {trial.key for trial in to_train}
        kept = [s.trial for s in scorings if s.trial.key not in new]
        # A trained network and a score are two steps of what is estimated.
        self.seen = Foresight(
            kept, to_train, len(scorings) - len(missing), len(missing), later // 2
        )
        if missing:
            raise _NotKeptError
        return super().scores(scorings, later)

    def write(self, record: dict[str, Any]) -> None:
        pass


def _scorings_of(rows: Sequence[_Row]) -> list[Scoring]:
    """Return each scoring once."""
    return list({row.scoring.key: row.scoring for row in rows}.values())


def _to_train(scorings: Sequence[Scoring]) -> list[Trial]:
    """Return each network that must be trained before these scores can be had."""
    needed = {t.key: t for s in scorings for t in (s.trial, s.partner)}
    return [t for k, t in needed.items() if not store.has("train", k, exactly=True)]


def _rows(
    study: Study, arm: str, role: str, configuration: Configuration, seeds: int
) -> list[_Row]:
    purpose = _PURPOSES[role]
    trials = [_trial(study, arm, configuration, purpose, seed) for seed in range(seeds)]
    return [_Row(arm, role, scoring) for scoring in _scorings(study, trials)]


def _untrained(study: Study, gain: float, seeds: int) -> list[_Row]:
    base = _trial(study, "baseline", Configuration(study.learning_rates[0], 0.0), "confirmation", 0)
    trials = [
        Trial(**{**asdict(base), "index": seed, "epochs": 0, "gain": gain}) for seed in range(seeds)
    ]
    return [_Row(f"untrained, gain {gain:g}", "untrained", s) for s in _scorings(study, trials)]


def _scorings(study: Study, trials: list[Trial]) -> list[Scoring]:
    """Pair each network with the next seed's of the same configuration, for the placebo."""
    partners = [*trials[1:], trials[0]]
    return [Scoring(t, p, study) for t, p in zip(trials, partners, strict=True)]


def _trial(study: Study, arm: str, c: Configuration, purpose: str, seed: int) -> Trial:
    # At strength 0 every arm is the baseline, and what the penalty would assume does not matter.
    active = c.strength > 0
    own = arms.find(arm) if active else None
    return Trial(
        track=tracks.name_of(study),
        cell=study.cell,
        hidden=study.hidden,
        layers=study.layers,
        epochs=study.epochs,
        batch=study.batch,
        n_train=study.n_train,
        arm=arm if active else "baseline",
        learning_rate=c.learning_rate,
        strength=c.strength,
        noise=study.noise if active else "unit",
        sigma=study.sigma if active else 0.0,
        target=study.target if active else 1.0,
        purpose=purpose,
        index=seed,
        study_seed=study.study_seed,
        dtype=study.dtype,
        device=study.device,
        arm_source=own.source if own else "",
    )


def _tuning_rows(study: Study, grid: Grid) -> list[_Row]:
    return [
        row
        for arm in study.arms
        for configuration in configurations(grid, arm)
        for row in _rows(study, arm, "tuning", configuration, study.tuning_seeds)
    ]


Choices = dict[str, Configuration]


def _choices(table: pd.DataFrame) -> tuple[Choices, Choices, Choices]:
    """Each arm's best configurations on validation data; see Experiment."""
    chosen, penalised, robust = {}, {}, {}
    for name, own in table.groupby("arm", sort=False):
        arm, runs = str(name), by_configuration(own)
        clean = {c: rows.validation_mse.to_numpy() for c, rows in runs.items()}
        noisy = {c: rows.noisy_validation_mse.to_numpy() for c, rows in runs.items()}
        active = [c for c in runs if c.strength > 0]
        chosen[arm] = choose(clean)
        robust[arm] = choose({c: noisy[c] for c in active or runs})
        if active:
            penalised[arm] = choose({c: clean[c] for c in active})
    return chosen, penalised, robust


def _ensembles(trials: list[Trial], jobs: int) -> list[list[Trial]]:
    """Group trials that can train as one ensemble: those that differ in seed, rate or strength."""
    groups: dict[tuple[Any, ...], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.arm, trial.epochs, trial.gain), []).append(trial)
    return [chunk for group in groups.values() for chunk in _chunks(group, jobs)]


def _chunks(items: list[Any], jobs: int) -> list[list[Any]]:
    size = max(1, min(LARGEST_ENSEMBLE, -(-len(items) // jobs)))
    return [items[i : i + size] for i in range(0, len(items), size)]


def _record(row: _Row, scores: dict[str, float]) -> dict[str, Any]:
    trial = row.scoring.trial
    return {
        "arm": row.arm,
        "role": row.role,
        "seed": trial.index,
        "learning_rate": trial.learning_rate if trial.epochs else np.nan,
        "strength": trial.strength,
        **scores,
        "diverged": bool(scores["diverged"]),
    }
