"""One trial: a network trained and scored, each kept under everything it depends on."""

import ast
import hashlib
import time
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from msstab import arms, cells, evaluation, mechanism, moments, store, tracks, training
from msstab.arms import Arm
from msstab.cells import Parameters
from msstab.noise import NOISES
from msstab.seeding import generator
from msstab.study import Study, digest
from msstab.training import Trained

DIVERGED = 100.0
"""A network whose error is more than so many times the constant forecast's has diverged."""

_TRAINING_ROOMS = ("seeding", "tracks", "cells", "training", "trials")
_ARM_ROOMS = (
    *_TRAINING_ROOMS,
    "arms",
    "operators",
    "noise",
    "noisy",
    "reduced",
    "spectral",
    "moments",
)
_SCORING_ROOMS = (*_ARM_ROOMS, "evaluation", "mechanism")


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
    noise: str
    sigma: float
    target: float
    purpose: str
    index: int
    study_seed: int
    dtype: str
    device: str
    gain: float = 1.0
    arm_source: str = ""

    @property
    def key(self) -> str:
        """Name of the trained network: its parameters, the code that trains, the versions."""
        rooms = _TRAINING_ROOMS if self.arm == "baseline" else _ARM_ROOMS
        return digest([asdict(self), _code(rooms), *_versions()])


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


def draw_data(study: Study, purpose: str, seed: int) -> tracks.Data:
    """Return the data of one seed; `purpose` is "tuning" or "confirmation"."""
    sizes = (study.n_train, study.n_validation, study.n_test)
    return _data(study.track, study.study_seed, purpose, seed, sizes)


def _stream(trial: Trial, *use: str | int) -> np.random.Generator:
    return generator(trial.study_seed, trial.track, trial.purpose, trial.index, *use)


@lru_cache(maxsize=64)
def _data(
    track: str, study_seed: int, purpose: str, seed: int, sizes: tuple[int, int, int]
) -> tracks.Data:
    splits = ("train", "validation", "test")
    streams = [generator(study_seed, track, purpose, seed, split) for split in splits]
    return tracks.track(track).generate(streams, sizes)


def train_trials(trials: list[Trial], arm: Arm | None) -> int:
    """Train what is missing of trials that differ only in seed, rate and strength, as one ensemble.

    `arm` is theirs, handed over whole because a reader's own is not known in other processes.
    Returns the number of trials, done now or before.
    """
    missing = [t for t in trials if store.load("train", t.key) is None]
    if missing:
        start = time.perf_counter()
        result = _train_ensemble(missing, arm)
        seconds = (time.perf_counter() - start) / len(missing)
        for i, trial in enumerate(missing):
            own = result.parameters.select([i])
            weights = {name: t.cpu().numpy() for name, t in zip(cells.TENSORS, own, strict=True)}
            curves = {"losses": result.losses[[i]], "active": result.active[[i]]}
            store.save("train", trial.key, {**weights, **curves, "seconds": seconds})
    return len(trials)


def _train_ensemble(trials: list[Trial], arm: Arm | None) -> Trained:
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
        cell=first.cell,
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
        arm=arm,
        strengths=tensor([t.strength for t in trials]),
        noise=NOISES[first.noise],
        sigma=first.sigma,
        target=first.target,
        streams=[_stream(t, "arm") for t in trials],
    )


def _orders(trial: Trial) -> Any:
    rng = _stream(trial, "order")
    return np.stack([rng.permutation(trial.n_train) for _ in range(trial.epochs)])


def load_trained(trial: Trial) -> Trained:
    """Return a trained network as a stack of one; train it if it isn't kept."""
    arrays = store.load("train", trial.key)
    if arrays is None:
        train_trials([trial], arms.find(trial.arm))
        arrays = store.load("train", trial.key)
    assert arrays is not None
    weights = (torch.as_tensor(arrays[n], device=trial.device) for n in cells.TENSORS)
    return Trained(Parameters(*weights, cell=trial.cell), arrays["losses"], arrays["active"])


def score_trials(scorings: list[Scoring]) -> int:
    """Score networks, whether or not they have been before; return their number."""
    for scoring in scorings:
        store.save("score", scoring.key, _score(scoring))
    return len(scorings)


def load_scores(scoring: Scoring) -> dict[str, float]:
    """Return the scores of a network; score it if they aren't kept."""
    scores = store.load("score", scoring.key)
    if scores is None:
        score_trials([scoring])
        scores = store.load("score", scoring.key)
    assert scores is not None
    return {name: float(value) for name, value in scores.items()}


@torch.no_grad()
def _score(scoring: Scoring) -> dict[str, float]:
    """Score one network alone, so that its numbers depend on no other.

    A network has diverged if its error is not finite or a hundred times the constant forecast's;
    it is then scored as that forecast, which is what a user would fall back on, so that it counts
    and stays comparable.
    """
    trial, _, study = scoring
    model, partner = load_trained(trial), load_trained(scoring.partner)
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
    forecast = {
        name: evaluation.constant_error(data, split)
        for name, split in (
            *(("validation_mse", data.validation), ("test_mse", data.test)),
            *(("clean_mse", few), ("noisy_mse", few)),
        )
    }
    diverged = not all(scores[name] <= DIVERGED * error for name, error in forecast.items())
    if diverged:
        scores |= forecast
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


@cache
def _code(rooms: tuple[str, ...]) -> str:
    """Digest of what the named modules do: their syntax trees, comments and layout left out."""
    folder = Path(__file__).parent
    files = [
        file
        for room in rooms
        for file in (sorted((folder / room).glob("*.py")) or [folder / f"{room}.py"])
    ]
    trees = (ast.dump(ast.parse(file.read_text("utf-8"))) for file in files)
    return hashlib.sha256("\n".join(trees).encode()).hexdigest()


@cache
def _versions() -> tuple[str, str]:
    return torch.__version__, np.__version__
