"""Second moments of the deviation that noise causes, along the trajectories of networks."""

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from msstab import cells, operators
from msstab.cells import Linearisation, Parameters
from msstab.noise import Noise
from msstab.operators import Operator


def linearisations(
    parameters: Parameters, inputs: Tensor, states: Tensor, *, closed_loop: bool = False
) -> Iterator[Linearisation]:
    """Yield each step's derivatives along clean states, leading dimensions (M, B).

    Inputs (T, M, D, B) and the states after each step (T, M, S, B) from a zero state. With
    `closed_loop` the readout of the unperturbed state is the next input, so that a deviation also
    travels through the forecasts: J_cl = J + J_x W_o (theory page, equation (13)).
    Raises ValueError for a closed loop whose outputs are not its inputs.
    """
    for x, state in zip(inputs, _before(states), strict=True):
        step = cells.linearise(parameters, state, x)
        yield feed_back(parameters, step) if closed_loop else step


def feed_back(parameters: Parameters, step: Linearisation) -> Linearisation:
    """Close the loop: the readout of the unperturbed state becomes the step's input.

    Derivatives with leading dimensions (M, B); only `jacobian` changes, J_cl = J + J_x W_o.
    Raises ValueError for outputs that are not the inputs.
    """
    outputs, n_inputs = parameters.weight_out.shape[1], parameters.weight_ih.shape[2]
    if outputs != n_inputs:
        raise ValueError(f"{outputs} outputs cannot be fed back as {n_inputs} inputs")
    readout = _readout_of_state(parameters)[:, None]
    closed = step.jacobian
    # Term by term, as in `cells`: the last bits of a product can depend on a model's place.
    for k in range(n_inputs):
        closed = closed + step.inputs[..., k, None] * readout[:, :, k, None, :]
    return step._replace(jacobian=closed)


def forced_second_moment(
    parameters: Parameters,
    inputs: Tensor,
    states: Tensor,
    noise: Noise,
    sigma: float,
    jacobian_of: tuple[Parameters, Tensor] | None = None,
    *,
    closed_loop: bool = False,
) -> Tensor:
    """Return P_T = E[d d^T] of the deviation d from the clean trajectory after the last step.

    Inputs (T, M, D, B) and the clean states after each step (T, M, S, B) -> (M, B, S, S), by
    P' = L_t(P) + Q_t from P = 0, exact to second order in the noise. `jacobian_of` replaces the
    linearised steps by those of another network along its own clean states: the placebo, in which
    everything is right except the dynamics. `closed_loop` as in `linearisations`.
    Source: theory page, equation (2).
    """
    other, other_states = jacobian_of or (parameters, states)
    steps = linearisations(other, inputs, other_states, closed_loop=closed_loop)
    return second_moments(steps, states, noise, [sigma])[0]


def second_moments(
    steps: Iterable[Linearisation], states: Tensor, noise: Noise, sigmas: Sequence[float]
) -> list[Tensor]:
    """Return P_T as `forced_second_moment` does, for several noise levels at the price of one.

    The linearised steps, which take longest, and the clean states after each (T, M, S, B)
    -> for each level (M, B, S, S).
    """
    *_, last = moments_along(steps, states, noise, sigmas)
    return last


def moments_along(
    steps: Iterable[Linearisation], states: Tensor, noise: Noise, sigmas: Sequence[float]
) -> Iterator[list[Tensor]]:
    """Yield what `second_moments` returns after each step: P_1, P_2, ..., P_T for each level."""
    _, models, size, batch = states.shape
    moments = [states.new_zeros(models, batch, size, size) for _ in sigmas]
    for step, state in zip(steps, _before(states), strict=True):
        before = state.transpose(1, 2)
        moments = [
            operators.propagate(noise.operator(step, sigma), moment, before)
            for sigma, moment in zip(sigmas, moments, strict=True)
        ]
        yield moments


def output_variances(
    parameters: Parameters,
    steps: Iterable[Linearisation],
    states: Tensor,
    noise: Noise,
    sigmas: Sequence[float],
    last: int = 1,
) -> list[Tensor]:
    """Return the variance of the outputs after the last K steps, summed: for each level (M, B).

    `parameters` are those of the readout; the rest is as in `second_moments`. Source: theory page,
    equation (34).
    """
    unread, found = len(states) - last, []
    for step, moments in enumerate(moments_along(steps, states, noise, sigmas)):
        if step >= unread:
            found.append([output_variance(parameters, moment) for moment in moments])
    return [functools.reduce(torch.add, by_level) for by_level in zip(*found, strict=True)]


def growth_rate(steps: Iterable[Operator], settle: int = 0) -> Tensor:
    """Return the mean log growth of tr P a step under P' = L_t(P): (...), in nats.

    Operators of successive steps with leading dimensions (...), from P = I; the first `settle`
    steps are left out. The exponent of order 2 of the product of noisy Jacobians; P is scaled to
    trace 1 after every step. Raises ValueError if no step is left, or growth is not finite.
    Source: theory page, equation (33); Arnold, Random Dynamical Systems (1998), moment
    Lyapunov exponents.
    """
    sizes = log_traces(steps)
    count = len(sizes)
    if count <= settle:
        raise ValueError(f"{count} steps leave none after {settle} to settle")
    rate = (sizes[-1] - (sizes[settle - 1] if settle else 0)) / (count - settle)
    if not rate.isfinite().all():
        raise ValueError("the second moment vanishes, overflows or is not a number")
    return rate


def log_traces(steps: Iterable[Operator]) -> list[Tensor]:
    """Return log tr P after each step under P' = L_t(P), from P of trace 1 alike in all directions.

    Operators of successive steps with leading dimensions (...) -> (...) for each step. Where P
    vanishes it is minus infinity from then on, and has no gradient.
    """
    logs = []
    moment: Tensor | None = None
    for operator in steps:
        if moment is None:
            j = operator.jacobian
            n = j.shape[-1]
            moment = torch.eye(n, dtype=j.dtype, device=j.device).expand(j.shape) / n
            scale = moment.new_zeros(moment.shape[:-2])
        moment = operators.apply(operator, moment)
        trace = torch.diagonal(moment, dim1=-2, dim2=-1).sum(-1)
        vanished = trace == 0
        size = torch.where(vanished, torch.ones_like(trace), trace)
        logs.append(torch.where(vanished, -torch.inf, size.log() + scale))
        # L is linear: what a constant factor takes from P is given back to its logarithm.
        factor = 1 / size.detach()
        moment = moment * factor[..., None, None]
        scale = scale - factor.log()
    return logs


def output_variance(parameters: Parameters, moment: Tensor) -> Tensor:
    """Return tr(W_o P W_o^T), P the hidden units' part of second moments (M, B, S, S): (M, B).

    Source: theory page, equation (34).
    """
    weights = parameters.weight_out[:, None]
    shown = moment[..., : parameters.hidden, : parameters.hidden]
    return torch.diagonal(weights @ shown @ weights.mT, dim1=-2, dim2=-1).sum(-1)


def frozen_output_variance(
    parameters: Parameters,
    inputs: Tensor,
    states: Tensor,
    noise: Noise,
    strength: float,
    *,
    closed_loop: bool = False,
) -> Tensor:
    """Return the last output's variance under weight errors drawn once for the whole run: (M, B).

    Inputs (T, M, D, B) and the clean states after each step (T, M, S, B). The sum over the
    recurrent weights of var_w |d y_T / d w|^2, exact to second order; the sensitivities obey
    S' = J S + dF/dw, but only W_o S_T is needed, which is summed backwards from the output.
    `closed_loop` as in `linearisations`. Raises ValueError for a structure without a frozen form.
    Source: theory page, equation (23).
    """
    if noise.frozen is None:
        raise ValueError("this structure has no independent weight errors that could be frozen")
    steps = list(linearisations(parameters, inputs, states, closed_loop=closed_loop))
    swing = _readout_of_state(parameters)[:, None]
    by_row, before = [], [state[:, : parameters.units] for state in _before(states)]
    for step in reversed(steps):
        by_row.append(swing @ step.recurrent)
        swing = swing @ step.jacobian
    # Every layer's weights stand between its own pre-activations and its own hidden units.
    rows = torch.stack(by_row[::-1]).chunk(parameters.layers, dim=-1)
    units = torch.stack(before).chunk(parameters.layers, dim=2)
    found = []
    for row, own, weight in zip(rows, units, parameters.recurrent, strict=True):
        sensitivity = torch.einsum("tmbor,tmhb->mborh", row, own)
        variance = noise.frozen.variance(weight, strength)
        found.append(torch.einsum("mborh,mrh->mb", sensitivity.square(), variance))
    return torch.stack(found).sum(0)


def _readout_of_state(parameters: Parameters) -> Tensor:
    """Return the readout's weights of the whole state (M, O, S), zero for what it doesn't read."""
    unread = parameters.state_size - parameters.hidden
    return torch.nn.functional.pad(parameters.weight_out, (0, unread))


def _before(states: Tensor) -> Iterable[Tensor]:
    """Return the states before each step of a run that starts from zero."""
    return itertools.chain([torch.zeros_like(states[0])], states[:-1])
