"""Scores of one trained network: its errors with and without noise, and what predicts them."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.linalg import LinAlgError  # type: ignore[attr-defined]

from msstab import cells, evaluation, mechanism, moments, spectral, tracks
from msstab.cells import Linearisation, Parameters
from msstab.noise import NOISES, Noise
from msstab.study import Study
from msstab.tracks import Data, Split

DIVERGED = 100.0
"""A network whose error is more than so many times the constant forecast's has diverged."""

FEWER_DRAWS = 4
"""By how much draws are fewer where they are many: at other noise levels and on validation data."""

GROWTH_SEQUENCES, RADIUS_STATES = 8, 4
"""Test sequences and states at which the growth rate and the radius are sampled, for speed."""


@torch.no_grad()
def score(
    parameters: Parameters,
    partner: Parameters,
    data: Data,
    study: Study,
    stream: Callable[[str], np.random.Generator],
    *,
    tuning: bool,
) -> dict[str, float]:
    """Score one network (M = 1) alone, so that its numbers depend on no other.

    `partner` is the network whose Jacobians make the placebo; `stream` gives the random numbers
    of a use. The validation error under noise, for choosing configurations, is not a number
    unless `tuning`. Variances are averaged over outputs and steps, as errors are. Levels s of the
    study's `sigma_grid` have scores named `noisy_mse@s`, `observed_variance@s` and
    `predicted_variance@s`.

    A network has diverged if its error is not finite or `DIVERGED` times the constant forecast's;
    it is then scored as that forecast, which is what a user would fall back on, so that it counts
    and stays comparable.
    """
    noise, sigma, like = NOISES[study.noise], study.sigma_test, parameters.weight_ih
    few = {name: _first(getattr(data, name), study) for name in ("validation", "test")}
    inputs, targets = evaluation.stack(few["test"], like)
    states, _ = cells.run(parameters, inputs)
    partner_states, _ = cells.run(partner, inputs)
    noisy, by_level = _under_noise(parameters, inputs, targets, states, study, stream)
    of_partner = moments.linearisations(partner, inputs, partner_states)
    placebo = _predicted(parameters, of_partner, states, targets, noise, [sigma])[0]
    errors = {
        "validation_mse": _error(parameters, data.validation),
        "test_mse": _error(parameters, data.test),
        "clean_mse": _error(parameters, few["test"]),
        "noisy_mse": noisy["noisy_mse"],
    }
    forecast = {
        name: evaluation.constant_error(data, split)
        for name, split in (
            *(("validation_mse", data.validation), ("test_mse", data.test)),
            *(("clean_mse", few["test"]), ("noisy_mse", few["test"])),
        )
    }
    diverged = not all(errors[name] <= DIVERGED * error for name, error in forecast.items())
    errors["noisy_validation_mse"] = np.nan
    if tuning:
        run = evaluation.noisy_run(
            parameters, *evaluation.stack(few["validation"], like), noise, sigma,
            _fewer(study), stream("validation noise"),
        )  # fmt: skip
        errors["noisy_validation_mse"] = float(run.squared_error)
        forecast["noisy_validation_mse"] = evaluation.constant_error(data, few["validation"])
    forecast |= {name: forecast["noisy_mse"] for name in by_level if name.startswith("noisy_mse@")}
    found = {
        **errors,
        **noisy,
        **by_level,
        "placebo_variance": placebo,
        "growth_rate": growth_rate(parameters, inputs, states, noise, sigma),
        "radius": radius(parameters, inputs, states, noise, sigma),
        "proxy_radius": float(mechanism.proxy_radius(parameters, inputs, states, sigma)),
    }
    if diverged:
        found |= forecast
    autonomous = tracks.of(study).autonomous
    persistence = evaluation.persistence_error(data.test) if autonomous else np.nan
    return {
        **found,
        "constant_mse": evaluation.constant_error(data, data.test),
        "persistence_mse": persistence,
        "ridge_mse": evaluation.ridge_error(data, data.test),
        "diverged": float(diverged),
    }


def growth_rate(
    parameters: Parameters, inputs: Tensor, states: Tensor, noise: Noise, sigma: float
) -> float:
    """Return the mean growth rate along the first sequences, NaN where it is not finite.

    One network's inputs (T, 1, D, B) and states (T, 1, S, B); source: moments.growth_rate.
    """
    inputs, states = inputs[..., :GROWTH_SEQUENCES], states[..., :GROWTH_SEQUENCES]
    steps = moments.linearisations(parameters, inputs, states)
    try:
        rates = moments.growth_rate(noise.operator(step, sigma) for step in steps)
    except ValueError:
        return float("nan")
    return float(rates.mean())


def radius(
    parameters: Parameters, inputs: Tensor, states: Tensor, noise: Noise, sigma: float
) -> float:
    """Return the median spectral radius of L at a few states, NaN where one has none.

    One network's inputs (T, 1, D, B) and states (T, 1, S, B), of which the states before evenly
    spaced steps up to the last are taken, each from a sequence of its own.
    """
    length, _, _, batch = states.shape
    count = min(RADIUS_STATES, length - 1, batch)
    steps = torch.arange(1, count + 1) * (length - 1) // count
    own = torch.arange(count)
    step = cells.linearise(
        parameters,
        states[steps - 1, 0, :, own].T[None].contiguous(),
        inputs[steps, 0, :, own].T[None].contiguous(),
    )
    try:
        radii = spectral.spectral_radius(noise.operator(step, sigma))
    except (ValueError, LinAlgError):
        return float("nan")
    return float(radii.double().quantile(0.5))


def _under_noise(
    parameters: Parameters,
    inputs: Tensor,
    targets: Tensor,
    states: Tensor,
    study: Study,
    stream: Callable[[str], np.random.Generator],
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the scores under noise of the test's level, and those of the grid's by level."""
    noise = NOISES[study.noise]
    levels = (study.sigma_test, *(s for s in study.sigma_grid if s != study.sigma_test))
    steps = moments.linearisations(parameters, inputs, states)
    predicted = _predicted(parameters, steps, states, targets, noise, levels)
    outputs = targets.shape[1]
    grid: dict[str, float] = {}
    first: dict[str, float] = {}
    for level, variance in zip(levels, predicted, strict=True):
        # The levels beside the test's have fewer draws, but the same: common random numbers.
        draws = _fewer(study) if first else study.draws
        run = evaluation.noisy_run(
            parameters, inputs, targets, noise, level, draws, stream("noise")
        )
        scores = {
            "noisy_mse": float(run.squared_error),
            "observed_variance": float(run.output_variance / outputs),
            "predicted_variance": variance,
        }
        if level in study.sigma_grid:
            grid |= {f"{name}@{level:g}": value for name, value in scores.items()}
        first = first or {**scores, "power_ratio": float(mechanism.power_ratio(run.power))}
    return first, grid


def _predicted(
    parameters: Parameters,
    steps: Iterable[Linearisation],
    states: Tensor,
    targets: Tensor,
    noise: Noise,
    levels: Sequence[float],
) -> list[float]:
    """Return the predicted variance of an output for each level, mean over the steps that count."""
    last = cells.output_steps(parameters, targets)
    found = moments.output_variances(parameters, steps, states, noise, levels, last)
    return [float(variance.mean() / targets.shape[1]) for variance in found]


def _error(parameters: Parameters, split: Split) -> float:
    return float(
        evaluation.squared_error(parameters, *evaluation.stack(split, parameters.weight_ih))
    )


def _first(split: Split, study: Study) -> Split:
    return Split(*(part[: study.mechanism_sequences] for part in split))


def _fewer(study: Study) -> int:
    return max(2, study.draws // FEWER_DRAWS)
