"""What is measured of one trained network's free runs, to be kept beside its scores."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from msstab import training
from msstab.cells import Parameters
from msstab.noise import NOISES
from msstab.rollouts import climates, deviations, growing
from msstab.rollouts.deviations import Array, Signal
from msstab.rollouts.running import closed_linearisations, free_run, free_states
from msstab.seeding import generator
from msstab.tracks import Split
from msstab.trials import Trial, draw, load_trained

ROOMS = (
    *("rollouts/running", "rollouts/deviations", "rollouts/climates", "rollouts/growing"),
    *("rollouts/measured", "noise", "noisy", "operators", "moments"),
)
"""Code on which the measurements depend, besides that of training."""

GROWTH_SEQUENCES = 8
"""Free runs along which growth is measured, which costs more than running."""

DRAWS = 64
"""Draws of the noise for each of them."""

SHOWN = 3
"""Free runs of which the forecasts themselves are kept."""


def free_runs(trial: Trial, settings: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Measure a network's free runs, without noise and, with names in `noisy_`, under it.

    `settings`: "steps" F, "sequences" N, "n_test", "noise" and "sigma". `error` (F,) is the mean
    squared normalised error by step, `valid` (N,) the valid times, `not_finite`, `left` and `still`
    shares of the runs. `histogram` and `spectrum` are distances, in the second half of the runs,
    from the true trajectories of N other sequences; those in `floor_` are the distances of the
    true trajectories of the same sequences from them. `outputs` and `truth` (SHOWN, F, D) are
    the first runs of the first seed's network, and hold none of any other's, for brevity.
    """
    steps, count = settings["steps"], settings["sequences"]
    parameters = load_trained(trial).parameters
    split = _split(trial, settings)
    count = min(count, len(split.future) // 2)
    truth, others = split.future[:count], split.future[count : 2 * count]
    true = deviations.signal(split.future)
    inputs = _columns(split.inputs[:count], parameters)
    stream = _stream(trial, "free run")
    disturbance = (NOISES[settings["noise"]], float(settings["sigma"]), stream)
    with training.one_thread():
        runs = {
            "": _sequences(free_run(parameters, inputs, steps)),
            "noisy_": _sequences(free_run(parameters, inputs, steps, disturbance)),
        }
    found: dict[str, Any] = {}
    for prefix, outputs in runs.items():
        measured = _measured(outputs, truth, others, true)
        found |= {f"{prefix}{name}": value for name, value in measured.items()}
    floor = _distances(truth, others, true)
    found |= {f"floor_{name}": value for name, value in floor.items()}
    shown = SHOWN if trial.index == 0 else 0
    kept = {"outputs": runs[""][:shown], "truth": truth[:shown]}
    return found | {name: np.asarray(v, dtype=np.float32) for name, v in kept.items()}


def growths(trial: Trial, settings: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Measure how small deviations grow in a network's free runs, in nats a step.

    `settings` as for `free_runs`, with "window", the steps over which growth under noise is
    measured, and "levels" of it. Without noise `exponent` is the growth of one deviation from the
    Jacobians, over many steps the largest Lyapunov exponent, and `observed_exponent` that of the
    same deviation in the network. `moment` and `observed_moment` (levels,) are those of the root
    mean square under noise. Means over sequences, after a quarter of the steps has turned what
    deviates into the directions that grow.
    """
    steps, window, levels = settings["steps"], settings["window"], settings["levels"]
    noise, settle = NOISES[settings["noise"]], max(1, window // 4)
    parameters = growing.double(load_trained(trial).parameters)
    inputs = _columns(_split(trial, settings).inputs[:GROWTH_SEQUENCES], parameters)
    with training.one_thread():
        states = list(free_states(parameters, inputs, steps))
        linearised = list(closed_linearisations(parameters, states))
        count = inputs.shape[-1]
        away = growing.directions(_stream(trial, "directions"), parameters, DRAWS * count)
        first = away[..., :count].mT
        exponent = growing.exponent(
            (step.jacobian for step in linearised), first, settle=steps // 4
        )
        found = {
            "exponent": exponent,
            "observed_exponent": growing.observed_exponent(
                parameters, states[0], first, steps=steps, settle=steps // 4
            ),
            "moment": torch.stack(
                [growing.moment_growth(linearised[:window], noise, s, settle) for s in levels]
            ),
            "observed_moment": torch.stack(
                [
                    growing.observed_moment_growth(
                        parameters, states[0], (noise, s, _stream(trial, "neighbours")), away,
                        steps=window, settle=settle,
                    )
                    for s in levels
                ]
            ),
        }  # fmt: skip
    return {name: value.mean(dim=(-2, -1)).numpy() for name, value in found.items()}


def _split(trial: Trial, settings: Mapping[str, Any]) -> Split:
    """Return the test sequences that are run freely, and as many others.

    Of those that go on to the end, where a series ends or has gaps.
    """
    sizes = (trial.n_train, 0, settings["n_test"])
    count, steps = 2 * settings["sequences"], settings["steps"]
    return _test(trial.track, trial.study_seed, trial.purpose, trial.index, sizes, steps, count)


@lru_cache(maxsize=32)
def _test(
    track: str,
    study_seed: int,
    purpose: str,
    seed: int,
    sizes: tuple[int, int, int],
    steps: int,
    count: int,
) -> Split:
    test = draw(track, study_seed, purpose, seed, sizes, steps).test
    whole = np.flatnonzero(np.isfinite(test.future).all(axis=(1, 2)))[:count]
    # Copies, so that all that was drawn beside these few can be forgotten.
    return Split(*(part[whole] for part in test))


def _measured(outputs: Array, truth: Array, others: Array, true: Signal) -> dict[str, Any]:
    squared = deviations.squared_errors(outputs, truth, true)
    return {
        "error": squared.mean(axis=0),
        "valid": deviations.valid_times(squared),
        "not_finite": deviations.not_finite(outputs).mean(),
        "left": deviations.leaves_range(outputs, true).mean(),
        "still": deviations.stands_still(outputs, true).mean(),
        **_distances(outputs, others, true),
    }


def _distances(outputs: Array, others: Array, true: Signal) -> dict[str, float]:
    half = outputs.shape[1] // 2
    pair = outputs[:, half:], others[:, half:]
    return {
        "histogram": climates.histogram_distance(*pair, true),
        "spectrum": climates.spectrum_distance(*pair, true),
    }


def _columns(inputs: Array, like: Parameters) -> Tensor:
    """Bring windows (N, T, D) into the layout of `cells`, for one network: (T, 1, D, N)."""
    own = torch.as_tensor(inputs).to(like.weight_ih)
    return own.permute(1, 2, 0)[:, None].contiguous()


def _sequences(outputs: Tensor) -> Array:
    """Bring one network's forecasts (F, 1, D, N) into the layout of data, (N, F, D)."""
    return outputs[:, 0].permute(2, 0, 1).double().cpu().numpy()


def _stream(trial: Trial, use: str) -> np.random.Generator:
    """Return a stream that all networks of a seed share, so that arms meet the same noise."""
    return generator(trial.study_seed, trial.track, trial.purpose, trial.index, use)
