"""What one can do with a stack of models, whatever their cell."""

from typing import Any

import torch
from torch import Tensor

from msstab.cells.layout import CELLS, Parameters, pad
from msstab.cells.linear import Linearisation
from msstab.cells.sequence import Workspace


def step(
    parameters: Parameters, state: Tensor, inputs: Tensor, disturbance: Tensor | None = None
) -> Tensor:
    """Advance every model by one step: state (M, S, B), inputs (M, D, B) -> next state (M, S, B).

    A `disturbance` (M, GH, B) is added to the recurrent pre-activations W_hh h + b_hh.
    Source: each cell's own `step`.
    """
    return CELLS[parameters.cell].step(parameters, state, inputs, disturbance)


def linearise(parameters: Parameters, state: Tensor, inputs: Tensor) -> Linearisation:
    """Return the exact derivatives of a step: state (M, S, B), inputs (M, D, B).

    Source: each cell's own `linearise`.
    """
    return CELLS[parameters.cell].linearise(parameters, state, inputs)


def jacobian(parameters: Parameters, state: Tensor, inputs: Tensor) -> Tensor:
    """Return the exact Jacobian of a step with respect to the whole state.

    State (M, S, B) and inputs (M, D, B) -> (M, B, S, S), rows for the next state.
    """
    return linearise(parameters, state, inputs).jacobian


def readout(parameters: Parameters, state: Tensor) -> Tensor:
    """Return the linear readout of a state's hidden units: (M, S, B) -> (M, O, B)."""
    shown = state[:, : parameters.hidden]
    return torch.baddbmm(parameters.bias_out[:, :, None], parameters.weight_out, shown)


def workspace(length: int, parameters: Parameters, batch: int) -> Workspace:
    """Make the memory for sequences of this length, with the batch rounded up by `padded`."""
    return CELLS[parameters.cell].workspace(length, parameters, batch)


def run(
    parameters: Parameters,
    inputs: Tensor,
    space: Workspace | None = None,
    factors: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Run every model over its sequences from a zero state; differentiable in the parameters.

    Inputs (T, M, D, B) -> the states after each step (T, M, S, B) and the readout of the last
    one (M, O, B). A workspace `space`, made for these shapes with B rounded up by `padded`,
    saves allocating memory at every call. The state before each step is multiplied by `factors`
    (T, M, S, B), constants, as multiplicative noise does; the first ones meet a state of zeros.
    """
    length, _, _, batch = inputs.shape
    inputs = pad(inputs, parameters.hidden)
    missing = inputs.shape[-1] - batch
    if space is None:
        space = workspace(length, parameters, inputs.shape[-1])
    if factors is not None and missing:
        factors = torch.nn.functional.pad(factors, (0, missing))
    weights = list(parameters)[:4]
    states, last = _Sequence.apply(  # type: ignore[no-untyped-call]
        space, inputs, factors, *weights
    )
    outputs = readout(parameters, last)
    # A slice costs zeros of the whole size on the way back, even one that leaves nothing out.
    return (states[..., :batch], outputs[..., :batch]) if missing else (states, outputs)


class _Sequence(torch.autograd.Function):
    """A whole sequence with hand-written back-propagation."""

    @staticmethod
    def forward(
        ctx: Any, space: Workspace, inputs: Tensor, factors: Tensor | None, *weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        space.generation += 1
        ctx.space, ctx.generation, ctx.factors = space, space.generation, factors
        # The last state comes apart from all of them, and gradients that nobody asks for stay
        # None, so that without a penalty on the states no step has to add zeros.
        ctx.set_materialize_grads(False)
        weight_ih, weight_hh, bias_ih, bias_hh = weights
        states = space.forward(inputs, weight_ih, weight_hh, bias_ih, bias_hh, factors)
        return states, states[-1].clone()

    @staticmethod
    def backward(
        ctx: Any, d_states: Tensor | None, d_last: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        if ctx.generation != ctx.space.generation:
            raise RuntimeError("a later forward pass has overwritten this one's workspace")
        return (None, None, None, *ctx.space.backward(d_states, d_last, ctx.factors))
