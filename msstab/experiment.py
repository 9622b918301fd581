"""Which trials a Study needs; runs the missing ones, keeps each, returns one tidy table."""

import ast
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
import torch

from msstab import cells, evaluation, mechanism, moments, store, tracks, training
from msstab.arms import ARMS
from msstab.cells import Parameters
from msstab.noise import NOISES
from msstab.seeding import generator
from msstab.study import Study, digest
from msstab.training import Trained
from msstab.tuning import Configuration, Grid, choose, configurations, widen

Progress = Callable[[int, int], None]

LARGEST_ENSEMBLE = 32
MOST_WIDENINGS = 4
UNTRAINED_GAINS = (1.0, 2.2)
"""Gains of the initial weights of the networks that are scored without any training."""

_TRAINING_ROOMS = ("seeding", "tracks", "cells", "arms", "training")
_SCORING_ROOMS = (
    *_TRAINING_ROOMS, "operators", "noise", "moments", "evaluation", "mechanism",
)  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """One network to be trained: every parameter on which its weights depend, and no other."""

    track: str
    cell: str
    hidden: int
    epochs: int
    batch: int
    n_train: int
    arm: str
    learning_rate: float
    strength: float
    sigma: float
    target: float
    purpose: str
    index: int
    study_seed: int
    dtype: str
    device: str
    gain: float = 1.0

    @property
    def key(self) -> str:
        """Name of the trained network: its parameters, the code that trains, the versions."""
        return digest([asdict(self), _code(_TRAINING_ROOMS), *_versions()])


class Scoring(NamedTuple):
    """A trial with what its scores depend on besides: the Study and the placebo's network."""

    trial: Trial
    partner: Trial
    study: Study

    @property
    def key(self) -> str:
        """Name of the scores."""
        s = self.study
        how = [s.n_validation, s.n_test, s.noise, s.sigma_test, s.draws, s.mechanism_sequences]
        return digest([self.trial.key, self.partner.key, how, _code(_SCORING_ROOMS)])


class Experiment(NamedTuple):
    """A Study's runs.

    `table` has a row for each network: arm, role ("tuning", "selected", "penalised",
    "untrained"), seed, configuration and scores. `chosen` is each arm's configuration, strength
    0 allowed, and `penalised` the best one of positive strength. `bracketed`: none of these lies
    on the edge of `grid`, the widened one.
    """

    study: Study
    table: pd.DataFrame
    grid: Grid
    chosen: dict[str, Configuration]
    penalised: dict[str, Configuration]
    bracketed: bool


def run(study: Study, *, jobs: int = 1, progress: Progress | None = None) -> Experiment:
    """Run what is missing of a Study's trials and return all of them.

    Tuning seeds choose every arm's configuration on validation data, the grid being widened
    until each choice is bracketed; confirmation seeds, none of which took part in tuning, then
    compare the arms. `jobs` processes share the work; the numbers do not depend on it.
    `progress(done, total)` is told of missing trials done; the total grows with the grid.
    """
    runner = _Runner(jobs, progress)
    wider = Grid(study.learning_rates, study.strengths)
    for _ in range(MOST_WIDENINGS + 1):
        grid = wider
        rows = _tuning_rows(study, grid)
        chosen, penalised = _choices(runner.table(rows))
        picks = [(c, _penalised(arm)) for arm, c in [*chosen.items(), *penalised.items()]]
        wider = widen(grid, picks)
        if wider == grid:
            break
    for arm in study.arms:
        rows += _rows(study, arm, "selected", chosen[arm])
    for arm, configuration in penalised.items():
        rows += _rows(study, arm, "penalised", configuration)
    for gain in UNTRAINED_GAINS:
        rows += _untrained(study, gain)
    return Experiment(study, runner.table(rows), grid, chosen, penalised, bracketed=grid == wider)


def trained(study: Study, configuration: Configuration, arm: str, role: str, seed: int) -> Trained:
    """Return one trained network of a Study that has been run, as a stack of one."""
    trial = _trial(study, arm, configuration, _PURPOSES[role], seed)
    _train_chunk([trial])
    return _load_trained(trial)


def draw_data(study: Study, purpose: str, seed: int) -> tracks.Data:
    """Return the data of one seed; `purpose` is "tuning" or "confirmation"."""
    sizes = (study.n_train, study.n_validation, study.n_test)
    return _data(study.track, study.study_seed, purpose, seed, sizes)


def by_configuration(table: pd.DataFrame) -> dict[Configuration, pd.DataFrame]:
    """Split a table of runs by what tuning varies, in increasing order."""
    groups: Any = table.groupby(["learning_rate", "strength"])
    return {Configuration(*map(float, key)): rows for key, rows in groups}


_PURPOSES = {"tuning": "tuning", "selected": "confirmation", "penalised": "confirmation"}


class _Row(NamedTuple):
    """A row of the table to be: how it is labelled and how it is scored."""

    arm: str
    role: str
    scoring: Scoring


class _Runner:
    """Trains and scores what is missing, on some processes, and reports progress."""

    def __init__(self, jobs: int, progress: Progress | None) -> None:
        self.jobs, self.progress = jobs, progress
        self.done, self.total = 0, 0

    def table(self, rows: Sequence[_Row]) -> pd.DataFrame:
        scorings = list({row.scoring.key: row.scoring for row in rows}.values())
        missing = [s for s in scorings if not store.path_of("score", s.key).exists()]
        needed = {t.key: t for s in missing for t in (s.trial, s.partner)}
        to_train = [t for k, t in needed.items() if not store.path_of("train", k).exists()]
        self.total += len(to_train) + len(missing)
        self._do(_train_chunk, _ensembles(to_train, self.jobs))
        self._do(_score_chunk, _chunks(missing, self.jobs))
        scores = {s.key: _load_scores(s) for s in scorings}
        return pd.DataFrame([_record(row, scores[row.scoring.key]) for row in rows])

    def _do(self, work: Callable[[list[Any]], int], chunks: list[list[Any]]) -> None:
        if not chunks:
            return
        self._report(0)
        jobs = min(self.jobs, len(chunks))
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        for done in parallel(joblib.delayed(work)(chunk) for chunk in chunks):
            self._report(done)

    def _report(self, done: int) -> None:
        self.done += done
        if self.progress:
            self.progress(self.done, self.total)


def _penalised(arm: str) -> bool:
    return ARMS[arm] is not None


def _rows(study: Study, arm: str, role: str, configuration: Configuration) -> list[_Row]:
    purpose = _PURPOSES[role]
    seeds = study.tuning_seeds if purpose == "tuning" else study.seeds
    trials = [_trial(study, arm, configuration, purpose, seed) for seed in range(seeds)]
    return [_Row(arm, role, scoring) for scoring in _scorings(study, trials)]


def _untrained(study: Study, gain: float) -> list[_Row]:
    base = _trial(study, "baseline", Configuration(study.learning_rates[0], 0.0), "confirmation", 0)
    trials = [
        Trial(**{**asdict(base), "index": seed, "epochs": 0, "gain": gain})
        for seed in range(min(study.seeds, 8))
    ]
    return [_Row(f"untrained, gain {gain:g}", "untrained", s) for s in _scorings(study, trials)]


def _scorings(study: Study, trials: list[Trial]) -> list[Scoring]:
    """Pair each network with the next seed's of the same configuration, for the placebo."""
    partners = [*trials[1:], trials[0]]
    return [Scoring(t, p, study) for t, p in zip(trials, partners, strict=True)]


def _trial(study: Study, arm: str, c: Configuration, purpose: str, seed: int) -> Trial:
    # At strength 0 every arm is the baseline, and what the penalty would assume does not matter.
    active = c.strength > 0
    return Trial(
        track=study.track,
        cell=study.cell,
        hidden=study.hidden,
        epochs=study.epochs,
        batch=study.batch,
        n_train=study.n_train,
        arm=arm if active else "baseline",
        learning_rate=c.learning_rate,
        strength=c.strength,
        sigma=study.sigma if active else 0.0,
        target=study.target if active else 1.0,
        purpose=purpose,
        index=seed,
        study_seed=study.study_seed,
        dtype=study.dtype,
        device=study.device,
    )


def _tuning_rows(study: Study, grid: Grid) -> list[_Row]:
    return [
        row
        for arm in study.arms
        for configuration in configurations(grid, penalised=_penalised(arm))
        for row in _rows(study, arm, "tuning", configuration)
    ]


def _choices(
    table: pd.DataFrame,
) -> tuple[dict[str, Configuration], dict[str, Configuration]]:
    """Each arm's best configuration on validation data, and its best one of positive strength."""
    chosen, penalised = {}, {}
    for arm, own in table.groupby("arm", sort=False):
        errors = {c: rows.validation_mse.to_numpy() for c, rows in by_configuration(own).items()}
        chosen[str(arm)] = choose(errors)
        if active := {c: e for c, e in errors.items() if c.strength > 0}:
            penalised[str(arm)] = choose(active)
    return chosen, penalised


def _ensembles(trials: list[Trial], jobs: int) -> list[list[Trial]]:
    """Group trials that can train as one ensemble: those that differ in seed, rate or strength."""
    groups: dict[tuple[Any, ...], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.arm, trial.epochs, trial.gain), []).append(trial)
    return [chunk for group in groups.values() for chunk in _chunks(group, jobs)]


def _chunks(items: list[Any], jobs: int) -> list[list[Any]]:
    size = max(1, min(LARGEST_ENSEMBLE, -(-len(items) // jobs)))
    return [items[i : i + size] for i in range(0, len(items), size)]


def _stream(trial: Trial, *use: str | int) -> np.random.Generator:
    return generator(trial.study_seed, trial.track, trial.purpose, trial.index, *use)


@lru_cache(maxsize=64)
def _data(
    track: str, study_seed: int, purpose: str, seed: int, sizes: tuple[int, int, int]
) -> tracks.Data:
    splits = ("train", "validation", "test")
    streams = [generator(study_seed, track, purpose, seed, split) for split in splits]
    return tracks.track(track).generate(streams, sizes)


def _train_chunk(trials: list[Trial]) -> int:
    missing = [t for t in trials if store.load("train", t.key) is None]
    if missing:
        start = time.perf_counter()
        result = _train(missing)
        seconds = (time.perf_counter() - start) / len(missing)
        for i, trial in enumerate(missing):
            own = result.parameters.select([i])
            weights = {name: t.cpu().numpy() for name, t in own._asdict().items()}
            curves = {"losses": result.losses[[i]], "active": result.active[[i]]}
            store.save("train", trial.key, {**weights, **curves, "seconds": seconds})
    return len(trials)


def _train(trials: list[Trial]) -> Trained:
    first = trials[0]
    dtype, device = getattr(torch, first.dtype), first.device
    data = [_data(t.track, t.study_seed, t.purpose, t.index, (t.n_train, 0, 0)) for t in trials]

    def tensor(values: Any) -> torch.Tensor:
        return torch.as_tensor(np.asarray(values), device=device)

    inputs = tensor([d.train.inputs for d in data]).to(dtype)
    targets = tensor([d.train.targets for d in data]).to(dtype)
    initial = cells.initial_parameters(
        [_stream(t, "weights") for t in trials],
        first.hidden,
        inputs.shape[3],
        targets.shape[2],
        gain=first.gain,
        dtype=dtype,
        device=device,
    )
    if first.epochs == 0:
        nothing = np.zeros((len(trials), 0))
        return Trained(initial, nothing, nothing)
    return training.train(
        initial,
        inputs,
        targets,
        tensor([_orders(t) for t in trials]),
        tensor([t.learning_rate for t in trials]),
        batch=first.batch,
        arm=ARMS[first.arm],
        strengths=tensor([t.strength for t in trials]),
        sigma=first.sigma,
        target=first.target,
    )


def _orders(trial: Trial) -> Any:
    rng = _stream(trial, "order")
    return np.stack([rng.permutation(trial.n_train) for _ in range(trial.epochs)])


def _load_trained(trial: Trial) -> Trained:
    arrays = store.load("train", trial.key)
    if arrays is None:
        _train_chunk([trial])
        arrays = store.load("train", trial.key)
    assert arrays is not None
    weights = (torch.as_tensor(arrays[n], device=trial.device) for n in Parameters._fields)
    return Trained(Parameters(*weights), arrays["losses"], arrays["active"])


def _score_chunk(scorings: list[Scoring]) -> int:
    for scoring in scorings:
        store.save("score", scoring.key, _score(scoring))
    return len(scorings)


def _load_scores(scoring: Scoring) -> dict[str, float]:
    scores = store.load("score", scoring.key)
    if scores is None:
        _score_chunk([scoring])
        scores = store.load("score", scoring.key)
    assert scores is not None
    return {name: float(value) for name, value in scores.items()}


@torch.no_grad()
def _score(scoring: Scoring) -> dict[str, float]:
    """Score one network alone, so that its numbers depend on no other.

    A network whose outputs are not finite has diverged; its error is then that of the constant
    forecast, which is what a user would fall back on, so that it counts and stays comparable.
    """
    trial, _, study = scoring
    model, partner = _load_trained(trial), _load_trained(scoring.partner)
    parameters = model.parameters
    data = draw_data(study, trial.purpose, trial.index)
    noise = NOISES[study.noise]
    with training.one_thread():
        validation, test = (
            float(evaluation.squared_error(parameters, *evaluation.stack(s, parameters.weight_ih)))
            for s in (data.validation, data.test)
        )
        few = tracks.Split(*(part[: study.mechanism_sequences] for part in data.test))
        inputs, targets = evaluation.stack(few, parameters.weight_ih)
        clean = float(evaluation.squared_error(parameters, inputs, targets))
        noisy = evaluation.noisy_run(
            parameters, inputs, targets, noise, study.sigma_test, study.draws,
            _stream(trial, "noise"),
        )  # fmt: skip
        states, _ = cells.run(parameters, inputs)
        partner_states, _ = cells.run(partner.parameters, inputs)

        def predicted(swapped: tuple[Parameters, torch.Tensor] | None) -> float:
            moment = moments.forced_second_moment(
                parameters, inputs, states, noise, study.sigma_test, swapped
            )
            return float(moments.output_variance(parameters, moment).mean())

        scores = {
            "validation_mse": validation,
            "test_mse": test,
            "clean_mse": clean,
            "noisy_mse": float(noisy.squared_error),
            "observed_variance": float(noisy.output_variance),
            "predicted_variance": predicted(None),
            "placebo_variance": predicted((partner.parameters, partner_states)),
            "proxy_radius": float(
                mechanism.proxy_radius(parameters, inputs, states, study.sigma_test)
            ),
            "power_ratio": float(mechanism.power_ratio(noisy.power)),
        }
    fallbacks = {"validation_mse": data.validation, "test_mse": data.test}
    fallbacks |= {"clean_mse": few, "noisy_mse": few}
    diverged = not all(np.isfinite(scores[name]) for name in fallbacks)
    for name, split in fallbacks.items():
        if not np.isfinite(scores[name]):
            scores[name] = evaluation.constant_error(data, split)
    curves = store.load("train", trial.key) or {}
    seconds = float(curves.get("seconds", np.nan))
    last = model.losses[0, -1] if model.losses.size else np.nan
    active = model.active[0].mean() if model.active.size else np.nan
    return {
        **scores,
        "constant_mse": evaluation.constant_error(data, data.test),
        "persistence_mse": evaluation.persistence_error(data.test),
        "ridge_mse": evaluation.ridge_error(data, data.test),
        "diverged": float(diverged),
        "train_mse": float(last),
        "hinge_active": float(active),
        "seconds": seconds,
    }


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


@cache
def _code(rooms: tuple[str, ...]) -> str:
    """Digest of what the named modules do: their syntax trees, comments and layout left out."""
    folder = Path(__file__).parent
    trees = (ast.dump(ast.parse((folder / f"{room}.py").read_text("utf-8"))) for room in rooms)
    return hashlib.sha256("\n".join(trees).encode()).hexdigest()


@cache
def _versions() -> tuple[str, str]:
    return torch.__version__, np.__version__
