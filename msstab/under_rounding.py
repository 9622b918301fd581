"""What rounding weights or states does to one trained network: as measured and as predicted."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from msstab import cells, evaluation, quantisation, sensitivities, trials
from msstab.cells import Parameters
from msstab.quantisation import Grid
from msstab.seeding import generator
from msstab.sensitivities import Sensitivity
from msstab.study import Study
from msstab.training import one_thread
from msstab.trials import Trial

ROOMS = (
    *("operators", "noise", "moments", "evaluation"),
    *("sensitivities", "quantisation", "under_rounding"),
)
"""The modules on which these measurements depend, beside those that train."""

PARTS = ("weights", "states")
"""What is rounded."""

PER = ("tensor", "channel")
"""What has a step of its own."""

Settings = Mapping[str, Any]
"""`bits`, a list; `sequences` and `roundings` of the deviations; `n_validation` and `n_test`."""


class _Subject(NamedTuple):
    """A network with its test data, and its first test sequences, in which deviations are measured.

    `inputs` (T, 1, D, N), `targets` (1, KO, N); `few` (T, 1, D, B) with the `states` (T, 1, S, B)
    and the outputs `exact` (1, KO, B) of the network as it is; `calibration` its states (T, 1, S,
    V) on validation data.
    """

    network: Parameters
    inputs: Tensor
    targets: Tensor
    few: Tensor
    states: Tensor
    exact: Tensor
    calibration: Tensor
    sensitivity: Sensitivity

    @property
    def last(self) -> int:
        """Steps K after which an output is read."""
        return cells.output_steps(self.network, self.targets)


def measure(trial: Trial, settings: Settings) -> dict[str, NDArray[np.float64]]:
    """Return what rounding does: arrays (2, 2, K), by what is rounded, per what, and bits.

    `error`: the test error, rounded to nearest. `nearest`, `random`: the mean squared deviation of
    an output rounded so, the latter the mean of many, with its `standard_error`;
    `predicted_nearest`, `predicted_random`: what is expected. Two single numbers, `clean`, the test
    error of the network as it is, and `constant`, that of the forecast that never changes. All are
    means over the outputs. Rounding of states is calibrated on validation data.
    """
    data = _data(trial, settings)
    network = trials.load_trained(trial).parameters

    def stream(use: str) -> np.random.Generator:
        return generator(trial.study_seed, trial.track, trial.purpose, trial.index, "rounding", use)

    with one_thread(), torch.no_grad():
        subject = _subject(network, data, settings, stream("signs"))
        found = [
            [
                [
                    one(subject, Grid(bits, per == "channel"), settings["roundings"], stream(part))
                    for bits in settings["bits"]
                ]
                for per in PER
            ]
            for part, one in zip(PARTS, (_weights, _states), strict=True)
        ]
        clean = _error(subject, cells.forecast(network, subject.inputs, steps=subject.last))
    arrays = {
        name: np.array([[[case[name] for case in own] for own in part] for part in found])
        for name in found[0][0][0]
    }
    constant = evaluation.constant_error(data, data.test)
    return {**arrays, "clean": np.array(clean), "constant": np.array(constant)}


def _data(trial: Trial, settings: Settings) -> Any:
    study = Study(
        track=trial.track,
        study_seed=trial.study_seed,
        n_train=trial.n_train,
        batch=trial.batch,
        n_validation=settings["n_validation"],
        n_test=settings["n_test"],
        mechanism_sequences=settings["sequences"],
    )
    return trials.draw_data(study, trial.purpose, trial.index)


def _subject(
    network: Parameters, data: Any, settings: Settings, rng: np.random.Generator
) -> _Subject:
    inputs, targets = evaluation.stack(data.test, network.weight_ih)
    others, _ = evaluation.stack(data.validation, network.weight_ih)
    count = cells.output_steps(network, targets)
    few = inputs[..., : settings["sequences"]].contiguous()
    states, exact = cells.run(network, few, steps=count)
    return _Subject(
        network,
        inputs,
        targets,
        few,
        states,
        exact,
        cells.run(network, others)[0],
        sensitivities.sensitivity(network, few, rng, count),
    )


def _weights(
    subject: _Subject, grid: Grid, roundings: int, rng: np.random.Generator
) -> dict[str, float]:
    network, answer, count = subject.network, subject.sensitivity, subject.last
    rounded = quantisation.weights_to_nearest(network, grid)
    outputs = cells.forecast(rounded, subject.inputs, steps=count)
    many = quantisation.weights_at_random(network, grid, roundings, rng)
    repeated = subject.few.expand(-1, roundings, -1, -1).contiguous()
    random = cells.forecast(many, repeated, steps=count)
    return {
        **_of_nearest(subject, outputs),
        **_of_random(subject, random),
        "predicted_nearest": quantisation.weights_to_nearest_variance(answer, network, grid),
        "predicted_random": quantisation.weights_at_random_variance(answer, network, grid),
    }


def _states(
    subject: _Subject, grid: Grid, roundings: int, rng: np.random.Generator
) -> dict[str, float]:
    network, answer, count = subject.network, subject.sensitivity, subject.last
    step = quantisation.state_step(subject.calibration, network.hidden, grid)
    outputs = quantisation.states_to_nearest(network, subject.inputs, step, grid, count)
    repeated = subject.few.repeat(1, 1, 1, roundings)
    random = quantisation.states_at_random(network, repeated, step, grid, rng, count)
    by_rounding = random.view(-1, roundings, subject.few.shape[-1]).transpose(0, 1)
    return {
        **_of_nearest(subject, outputs),
        **_of_random(subject, by_rounding),
        "predicted_nearest": quantisation.states_to_nearest_variance(answer, step),
        "predicted_random": quantisation.states_at_random_variance(answer, subject.states, step),
    }


def _of_nearest(subject: _Subject, outputs: Tensor) -> dict[str, float]:
    few = outputs[..., : subject.few.shape[-1]]
    return {"error": _error(subject, outputs), "nearest": float(_deviations(subject, few))}


def _of_random(subject: _Subject, outputs: Tensor) -> dict[str, float]:
    each = _deviations(subject, outputs)
    return {
        "random": float(each.mean()),
        "standard_error": float(each.std()) / math.sqrt(len(each)),
    }


def _error(subject: _Subject, outputs: Tensor) -> float:
    return float((outputs - subject.targets).double().square().mean())


def _deviations(subject: _Subject, outputs: Tensor) -> Tensor:
    """Return each rounding's mean squared deviation: outputs (R, KO, B) -> (R,)."""
    return (outputs - subject.exact).double().square().mean((1, 2))
