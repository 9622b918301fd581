"""What noise of every structure does to one trained network: as simulated, and as predicted."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from msstab import cells, evaluation, moments, structures, training, trials
from msstab.cells import Linearisation, Parameters
from msstab.frozen import frozen_run, frozen_variance
from msstab.noise import Noise
from msstab.seeding import generator
from msstab.study import Study
from msstab.tracks import Split
from msstab.trials import Trial

ROOMS = (
    *("operators", "noise", "noisy", "moments", "evaluation"),
    *("frozen", "structures", "under_noise"),
)
"""The modules on which these measurements depend, beside those that train."""

Settings = Mapping[str, Any]
"""`names` (of structures in `noise.NOISES`), `at` (pairs of a structure's name and its strength),
`sequences`, `draws`, `n_validation` and `n_test`; `seeds`, how many networks are alike."""


class _Subject(NamedTuple):
    """A trained network, and the first test sequences: (T, 1, D, B) and (1, KO, B)."""

    network: Parameters
    inputs: Tensor
    targets: Tensor
    constant_error: float


def disturbances(trial: Trial, settings: Settings) -> dict[str, float]:
    """Return the mean square by which each structure of strength 1 disturbs a step, by name."""
    subject = _load(trial, settings)
    with training.one_thread(), torch.no_grad():
        return {
            name: float(structures.disturbance(subject.network, subject.inputs, noise))
            for name, noise in _structures(subject, settings).items()
            if not name.endswith(structures.FROZEN)
        }


def errors(trial: Trial, settings: Settings) -> dict[str, Any]:
    """Return a network's error under each structure of `settings["at"]`, (K,), as `error`.

    Beside it `clean`, without noise, and `constant`, that of the forecast that never changes.
    """
    subject = _load(trial, settings)
    with training.one_thread(), torch.no_grad():
        found = _structures(subject, settings)
        simulated = [
            _simulate(subject, trial, settings, name, found[name], strength)[0]
            for name, strength in settings["at"]
        ]
        return {**_clean(subject), "error": simulated}


def variances(trial: Trial, settings: Settings) -> dict[str, Any]:
    """Return what `errors` does, and the output's variance under each structure, (K,).

    `observed` in the simulation that gives the error; `predicted` by the theory of the structure;
    `white` by that of fresh noise, the same unless errors are frozen; `placebo` as predicted with
    the dynamics of the next seed's network. Summed over the outputs.
    """
    subject = _load(trial, settings)
    following = replace(trial, index=(trial.index + 1) % settings["seeds"])
    other = trials.load_trained(following).parameters
    with training.one_thread(), torch.no_grad():
        network, inputs = subject.network, subject.inputs
        found = _structures(subject, settings)
        states, other_states = (cells.run(p, inputs)[0] for p in (network, other))
        own = list(moments.linearisations(network, inputs, states))
        placebo = list(moments.linearisations(other, inputs, other_states))
        # Everything is the network's own but the dynamics.
        shown = replace(other, weight_out=network.weight_out, bias_out=network.bias_out)

        last = cells.output_steps(network, subject.targets)

        def fresh(steps: list[Linearisation], noise: Noise, strength: float) -> float:
            (found,) = moments.output_variances(network, steps, states, noise, [strength], last)
            return float(found.mean())

        def frozen(model: Parameters, run: Tensor, noise: Noise, strength: float) -> float:
            assert noise.frozen is not None
            return float(frozen_variance(model, inputs, run, noise.frozen, strength, last).mean())

        rows = []
        for name, strength in settings["at"]:
            noise = found[name]
            error, observed = _simulate(subject, trial, settings, name, noise, strength)
            white = fresh(own, noise, strength)
            if name.endswith(structures.FROZEN):
                predicted = frozen(network, states, noise, strength)
                wrong = frozen(shown, other_states, noise, strength)
            else:
                predicted, wrong = white, fresh(placebo, noise, strength)
            rows.append((error, observed, predicted, white, wrong))
    names = ("error", "observed", "predicted", "white", "placebo")
    return {**_clean(subject), **dict(zip(names, np.transpose(rows), strict=True))}


def _load(trial: Trial, settings: Settings) -> _Subject:
    study = Study(
        track=trial.track,
        n_train=trial.n_train,
        n_validation=settings["n_validation"],
        n_test=settings["n_test"],
        mechanism_sequences=settings["sequences"],
        batch=trial.batch,
        study_seed=trial.study_seed,
    )
    data = trials.draw_data(study, trial.purpose, trial.index)
    network = trials.load_trained(trial).parameters
    split = Split(*(part[: settings["sequences"]] for part in data.test))
    stacked = evaluation.stack(split, network.weight_ih)
    return _Subject(network, *stacked, evaluation.constant_error(data, split))


def _structures(subject: _Subject, settings: Settings) -> dict[str, Noise]:
    names = settings["names"]
    white = structures.white_structures(subject.network, names)
    return white | structures.frozen_structures(names)


def _clean(subject: _Subject) -> dict[str, float]:
    error = evaluation.squared_error(subject.network, subject.inputs, subject.targets)
    return {"clean": float(error), "constant": subject.constant_error}


def _simulate(
    subject: _Subject, trial: Trial, settings: Settings, name: str, noise: Noise, strength: float
) -> tuple[float, float]:
    """Return the error and the output's variance under noise, which is the same for all arms."""
    rng, draws = _stream(trial, name), settings["draws"]
    network, inputs, targets, _ = subject
    if name.endswith(structures.FROZEN):
        assert noise.frozen is not None
        error, variance = frozen_run(network, inputs, targets, noise.frozen, strength, draws, rng)
    else:
        run = evaluation.noisy_run(network, inputs, targets, noise, strength, draws, rng)
        error, variance = run.squared_error, run.output_variance
    return float(error), float(variance)


def _stream(trial: Trial, use: str) -> np.random.Generator:
    """Return numbers of one use, the same for all arms."""
    return generator(trial.study_seed, trial.track, trial.purpose, trial.index, "structures", use)
