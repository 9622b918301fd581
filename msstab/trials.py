"""One trial: a network trained and scored, each kept under everything it depends on."""

import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from msstab import arms, cells, scores, store, tracks, training
from msstab.arms import Arm
from msstab.keys import key
from msstab.noise import NOISES
from msstab.seeding import generator
from msstab.study import Study
from msstab.training import Trained

ROOMS_OF_TRAINING = ("seeding", "cells", "training", "trials")
"""Code on which every trained network depends, besides that of its own track."""

_ARM_ROOMS = (
    *ROOMS_OF_TRAINING,
    *("arms", "operators", "noise", "noisy", "reduced", "spectral", "moments"),
)
_SCORING_ROOMS = (*_ARM_ROOMS, "evaluation", "mechanism", "scores")


@dataclass(frozen=True)
class Trial:
    """One network to be trained: every parameter on which its weights depend, and no other."""

    track: str
    cell: str
    hidden: int
    layers: int
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
        """Name of the trained network: its parameters and data, the code, the versions."""
        rooms = ROOMS_OF_TRAINING if self.arm == "baseline" else _ARM_ROOMS
        own = tracks.track(self.track)
        return key([asdict(self), own.source_digest], (*rooms, *own.rooms))


class Scoring(NamedTuple):
    """A trial with what its scores depend on besides: the Study and the placebo's network."""

    trial: Trial
    partner: Trial
    study: Study

    @property
    def key(self) -> str:
        """Name of the scores."""
        s = self.study
        sizes = [s.n_validation, s.n_test, s.draws, s.mechanism_sequences]
        how = [*sizes, s.noise, s.sigma_test, s.sigma_grid]
        return key(how, _SCORING_ROOMS, of=(self.trial.key, self.partner.key))


def draw_data(study: Study, purpose: str, seed: int, future: int = 0) -> tracks.Data:
    """Return the data of one seed; `purpose` is "tuning" or "confirmation".

    With `future`, the test sequences go on for so many steps, see `tracks.Split`.
    """
    sizes = (study.n_train, study.n_validation, study.n_test)
    return _data(tracks.name_of(study), study.study_seed, purpose, seed, sizes, future)


def _stream(trial: Trial, *use: str | int) -> np.random.Generator:
    return generator(trial.study_seed, trial.track, trial.purpose, trial.index, *use)


def draw(
    track: str,
    study_seed: int,
    purpose: str,
    seed: int,
    sizes: tuple[int, int, int],
    future: int = 0,
) -> tracks.Data:
    """Draw the data of one seed of a track, anew at each call; `draw_data` keeps them."""
    splits = ("train", "validation", "test")
    streams = [generator(study_seed, track, purpose, seed, split) for split in splits]
    return tracks.track(track).generate(streams, sizes, future)


def _data(
    track: str,
    study_seed: int,
    purpose: str,
    seed: int,
    sizes: tuple[int, int, int],
    future: int = 0,
) -> tracks.Data:
    return _drawn(tracks.track(track), track, study_seed, purpose, seed, sizes, future)


@lru_cache(maxsize=64)
def _drawn(
    _made: tracks.Track,
    track: str,
    study_seed: int,
    purpose: str,
    seed: int,
    sizes: tuple[int, int, int],
    future: int,
) -> tracks.Data:
    """Draw data once for each state of the track, whose file may change in the meantime."""
    return draw(track, study_seed, purpose, seed, sizes, future)


def train_trials(trials: list[Trial], arm: Arm | None) -> int:
    """Train what is missing of trials that differ only in seed, rate and strength, as one ensemble.

    `arm` is theirs, handed over whole because a reader's own is not known in other processes.
    Returns the number of trials, done now or before.
    """
    missing = [t for t in trials if store.load("train", t.key, exactly=True) is None]
    if missing:
        start = time.perf_counter()
        result = _train_ensemble(missing, arm)
        seconds = (time.perf_counter() - start) / len(missing)
        for i, trial in enumerate(missing):
            own = result.parameters.select([i])
            weights = {name: t.cpu().numpy() for name, t in cells.named(own).items()}
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
        targets.shape[3],
        cell=first.cell,
        layers=first.layers,
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


def load_trained(trial: Trial, *, exactly: bool = True) -> Trained:
    """Return a trained network as a stack of one; train it if it isn't kept.

    Only what is shown, and not measured further, need not be `exactly` what this code trains.
    """
    arrays = store.load("train", trial.key, exactly=exactly)
    if arrays is None:
        train_trials([trial], arms.find(trial.arm))
        arrays = store.load("train", trial.key, exactly=exactly)
    assert arrays is not None
    parameters = cells.from_named(arrays, cell=trial.cell, layers=trial.layers, device=trial.device)
    return Trained(parameters, arrays["losses"], arrays["active"])


def score_trials(scorings: list[Scoring]) -> int:
    """Score networks, whether or not they have been before; return their number."""
    for scoring in scorings:
        store.save("score", scoring.key, _score(scoring))
    return len(scorings)


def load_scores(scoring: Scoring) -> dict[str, float]:
    """Return the scores of a network; score it if they aren't kept."""
    found = store.load("score", scoring.key)
    if found is None:
        score_trials([scoring])
        found = store.load("score", scoring.key)
    assert found is not None
    return {name: float(value) for name, value in found.items()}


def _score(scoring: Scoring) -> dict[str, float]:
    """Return a network's scores, and how its training went."""
    trial, _, study = scoring
    model, partner = load_trained(trial), load_trained(scoring.partner)
    data = draw_data(study, trial.purpose, trial.index)
    with training.one_thread():
        found = scores.score(
            model.parameters,
            partner.parameters,
            data,
            study,
            lambda use: _stream(trial, use),
            tuning=trial.purpose == "tuning",
        )
    curves = store.load("train", trial.key, exactly=True) or {}
    last = model.losses[0, -1] if model.losses.size else np.nan
    active = model.active[0].mean() if model.active.size else np.nan
    return {
        **found,
        "train_mse": float(last),
        "hinge_active": float(active),
        "seconds": float(curves.get("seconds", np.nan)),
    }
