"""What second-moment theory says about one network along its data: arrays in, arrays out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.linalg import LinAlgError  # type: ignore[attr-defined]

from msstab import cells, evaluation, moments, quantisation, scores, spectral
from msstab.cells import Parameters
from msstab.inspection.files import Array, InspectionError, Sequences
from msstab.noise import Noise
from msstab.sensitivities import sensitivity
from msstab.training import one_thread

STATES = 16
"""States along the data at which the spectral radius is taken."""

LEVELS = (0.5, 1.0, 2.0)
"""Noise levels at which the variance is predicted, as multiples of the one that is asked for."""

TOGETHER = 16
"""Sequences whose second moments are carried together, so that memory stays small."""


RUNS = 4096
"""Noisy runs of a simulation, at least: the variance then errs by 2 to 3%."""


class Clean(NamedTuple):
    """A network (M = 1) on its data: inputs (T, 1, D, B), states (T, 1, S, B), outputs (O, B).

    `squared_error`: mean over sequences and outputs, None without targets. `variance`: of the
    outputs over the sequences, mean over outputs, None for a single sequence.
    """

    inputs: Tensor
    states: Tensor
    squared_error: float | None
    variance: float | None


class UnderNoise(NamedTuple):
    """One structure's effect: radii (STATES,), or empty where a state has none that is accurate.

    `growth_rate` in nats a step; `variances` (LEVELS,) of the last output at multiples of the
    noise level, means over sequences and outputs; `simulated` is what noisy runs at the level
    itself have. Numbers that are not finite are NaN.
    """

    radii: Array
    growth_rate: float
    variances: Array
    simulated: float


class Rounded(NamedTuple):
    """The squared deviation of the last output under rounding, mean over sequences and outputs.

    As predicted, and as it is with everything rounded to nearest.
    """

    predicted: float
    measured: float


def choose(sequences: Sequences, most: int) -> Sequences:
    """Return at most so many sequences, evenly spaced over all there are."""
    count = len(sequences.inputs)
    chosen = np.arange(min(most, count)) * count // min(most, count)
    targets = None if sequences.targets is None else sequences.targets[chosen]
    return Sequences(sequences.inputs[chosen], targets)


@torch.no_grad()
def run_clean(parameters: Parameters, sequences: Sequences) -> Clean:
    """Run the network without noise. Raises InspectionError for data that do not fit it."""
    n_inputs, n_outputs = parameters.weight_ih.shape[2], parameters.weight_out.shape[1]
    found = sequences.inputs.shape[2]
    if found != n_inputs:
        raise InspectionError(f"the data have {found} inputs: the network takes {n_inputs}")
    if sequences.targets is not None and sequences.targets.shape[1] != n_outputs:
        columns = sequences.targets.shape[1]
        raise InspectionError(f"the targets have {columns} columns: the network has {n_outputs}")
    inputs = torch.as_tensor(sequences.inputs).permute(1, 2, 0)[:, None].contiguous()
    with one_thread():
        states, outputs = cells.run(parameters, inputs)
    values = outputs[0].numpy()
    error = None
    if sequences.targets is not None:
        error = float(np.mean((values - sequences.targets.T) ** 2))
    variance = float(values.var(axis=1).mean()) if values.shape[1] > 1 else None
    return Clean(inputs, states, error, variance)


@torch.no_grad()
def under_noise(parameters: Parameters, clean: Clean, noise: Noise, sigma: float) -> UnderNoise:
    """Predict what a noise structure of level sigma does, and simulate it as a check.

    Source: theory page, equation (5), theory page, equation (33), and theory page, equation (34).
    """
    inputs, states = clean.inputs, clean.states
    with one_thread():
        rate = scores.growth_rate(parameters, inputs, states, noise, sigma)
        return UnderNoise(
            _radii(parameters, inputs, states, noise, sigma),
            rate if np.isfinite(rate) else float("nan"),
            _variances(parameters, inputs, states, noise, sigma),
            _simulated(parameters, inputs, noise, sigma),
        )


def under_rounding(
    parameters: Parameters, clean: Clean, bits: Sequence[int]
) -> dict[tuple[int, str], Rounded]:
    """Say what rounding does: by bits, and by what is rounded, "weights" or "states".

    Each row of a weight matrix, and each unit, has a step of its own. Source: theory page,
    equation (57) for weights, and theory page, equation (58) for states.
    """
    # In single precision, as torch's own rounding takes steps in no other.
    network, inputs = parameters.like(t.float() for t in parameters), clean.inputs.float()
    weights, states = {}, {}
    with one_thread():
        answer = sensitivity(network, inputs, np.random.default_rng(0))
        with torch.no_grad():
            clean_states, outputs = cells.run(network, inputs)
            for own in bits:
                grid = quantisation.Grid(own, per_channel=True)
                step = quantisation.state_step(clean_states, network.hidden, grid)
                of_weights = cells.forecast(quantisation.weights_to_nearest(network, grid), inputs)
                of_states = quantisation.states_to_nearest(network, inputs, step, grid)
                weights[own, "weights"] = Rounded(
                    quantisation.weights_to_nearest_variance(answer, network, grid),
                    _squared_deviation(of_weights, outputs),
                )
                states[own, "states"] = Rounded(
                    quantisation.states_to_nearest_variance(answer, step),
                    _squared_deviation(of_states, outputs),
                )
    return weights | states


def _squared_deviation(outputs: Tensor, clean: Tensor) -> float:
    return float((outputs - clean).double().square().mean())


def _radii(
    parameters: Parameters, inputs: Tensor, states: Tensor, noise: Noise, sigma: float
) -> Array:
    """Return radii at states before evenly spaced steps, each from the next sequence."""
    length, _, _, batch = states.shape
    count = min(STATES, (length - 1) * batch)
    steps = 1 + torch.arange(count) * (length - 1) // count
    own = torch.arange(count) % batch
    step = cells.linearise(
        parameters,
        states[steps - 1, 0, :, own].T[None].contiguous(),
        inputs[steps, 0, :, own].T[None].contiguous(),
    )
    try:
        return spectral.spectral_radius(noise.operator(step, sigma)).flatten().numpy()
    except (ValueError, LinAlgError):
        return np.empty(0)


def _variances(
    parameters: Parameters, inputs: Tensor, states: Tensor, noise: Noise, sigma: float
) -> Array:
    levels = [sigma * factor for factor in LEVELS]
    parts = []
    pairs = (torch.split(tensor, TOGETHER, dim=-1) for tensor in (inputs, states))
    for x, own in zip(*pairs, strict=True):
        steps = moments.linearisations(parameters, x.contiguous(), own.contiguous())
        found = moments.second_moments(steps, own, noise, levels)
        parts.append(torch.stack([moments.output_variance(parameters, p)[0] for p in found]))
    mean = torch.cat(parts, dim=1).mean(1).numpy() / parameters.weight_out.shape[1]
    return np.where(np.isfinite(mean), mean, np.nan)


def _simulated(parameters: Parameters, inputs: Tensor, noise: Noise, sigma: float) -> float:
    outputs, batch = parameters.weight_out.shape[1], inputs.shape[3]
    nothing = inputs.new_zeros(1, outputs, batch)
    run = evaluation.noisy_run(
        parameters, inputs, nothing, noise, sigma, -(-RUNS // batch), np.random.default_rng(0)
    )
    return float(run.output_variance) / outputs
