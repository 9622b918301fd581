"""Second moments of the deviation that noise causes, predicted by the linearised network."""

import torch
from torch import Tensor

from msstab import cells
from msstab.cells import Parameters
from msstab.noise import Noise


def forced_second_moment(
    parameters: Parameters,
    inputs: Tensor,
    states: Tensor,
    noise: Noise,
    sigma: float,
    jacobian_of: tuple[Parameters, Tensor] | None = None,
) -> Tensor:
    """Return P_T = E[d d^T] of the deviation d from the clean trajectory after the last step.

    Inputs (T, M, D, B) and the clean states after each step (T, M, S, B) -> (M, B, S, S), by
    P' = L_t(P) + Q_t from P = 0, exact to second order in the noise. `jacobian_of` replaces the
    Jacobians by those of another network along its own clean states: the placebo, in which
    everything is right except the dynamics. Source: the theory's equation (2).
    """
    other, other_states = jacobian_of or (parameters, states)
    before = torch.cat([torch.zeros_like(states[:1]), states[:-1]])
    other_before = torch.cat([torch.zeros_like(other_states[:1]), other_states[:-1]])
    _, models, size, batch = states.shape
    moment = states.new_zeros(models, batch, size, size)
    for x, state, other_state in zip(inputs, before, other_before, strict=True):
        jacobian = cells.jacobian(other, other_state, x)
        moment = noise.propagate(moment, jacobian, state.transpose(1, 2), sigma)
    return moment


def output_variance(parameters: Parameters, moment: Tensor) -> Tensor:
    """Return tr(W_o P W_o^T), P the hidden units' part of second moments (M, B, S, S): (M, B)."""
    weights = parameters.weight_out[:, None]
    shown = moment[..., : parameters.hidden, : parameters.hidden]
    return torch.diagonal(weights @ shown @ weights.mT, dim1=-2, dim2=-1).sum(-1)
