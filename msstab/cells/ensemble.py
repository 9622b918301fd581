"""What one can do with a stack of models, whatever their cell."""

from typing import Any

import torch
from torch import Tensor

from msstab.cells import stack
from msstab.cells.layout import CELLS, Parameters, pad
from msstab.cells.linear import Linearisation
from msstab.cells.sequence import Workspace


def step(
    parameters: Parameters, state: Tensor, inputs: Tensor, disturbance: Tensor | None = None
) -> Tensor:
    """Advance every model by one step: state (M, S, B), inputs (M, D, B) -> next state (M, S, B).

    A `disturbance` (M, LGH, B) is added to the recurrent pre-activations W_hh h + b_hh of the
    layers, the top one's first. Source: each cell's own `step`.
    """
    advance = CELLS[parameters.cell].step if parameters.layers == 1 else stack.step
    return advance(parameters, state, inputs, disturbance)


def linearise(parameters: Parameters, state: Tensor, inputs: Tensor) -> Linearisation:
    """Return the exact derivatives of a step: state (M, S, B), inputs (M, D, B).

    Source: each cell's own `linearise`.
    """
    derive = CELLS[parameters.cell].linearise if parameters.layers == 1 else stack.linearise
    return derive(parameters, state, inputs)


def jacobian(parameters: Parameters, state: Tensor, inputs: Tensor) -> Tensor:
    """Return the exact Jacobian of a step with respect to the whole state.

    State (M, S, B) and inputs (M, D, B) -> (M, B, S, S), rows for the next state.
    """
    return linearise(parameters, state, inputs).jacobian


def readout(parameters: Parameters, state: Tensor) -> Tensor:
    """Return the linear readout of the top layer's hidden units: (M, S, B) -> (M, O, B)."""
    shown = state[:, : parameters.hidden]
    return torch.baddbmm(parameters.bias_out[:, :, None], parameters.weight_out, shown)


def output_steps(parameters: Parameters, targets: Tensor) -> int:
    """Return for how many steps K there are targets (M, KO, B)."""
    return targets.shape[1] // parameters.weight_out.shape[1]


def workspace(length: int, parameters: Parameters, batch: int) -> tuple[Workspace, ...]:
    """Make the memory for sequences of this length, with the batch rounded up by `padded`.

    One part for each layer, from the bottom.
    """
    make, layers = CELLS[parameters.cell].workspace, range(parameters.layers)
    return tuple(make(length, parameters.layer(index), batch) for index in layers)


def run(
    parameters: Parameters,
    inputs: Tensor,
    space: tuple[Workspace, ...] | None = None,
    factors: Tensor | None = None,
    steps: int = 1,
) -> tuple[Tensor, Tensor]:
    """Run every model over its sequences from a zero state, one layer after the other.

    Inputs (T, M, D, B) -> the states after each step (T, M, S, B) and the readout of the last
    `steps` K of them (M, KO, B), step by step, differentiable in parameters and inputs. A
    workspace `space`, made for these shapes with B rounded up by `padded`, saves allocating memory
    at every call. The state before each step is multiplied by `factors` (T, M, S, B), constants,
    as multiplicative noise does; the first ones meet a state of zeros.
    """
    layers, outputs = _pass(parameters, inputs, space, factors, steps, keep=True)
    return _cut(stack.together(parameters, layers), inputs.shape[-1]), outputs


def forecast(
    parameters: Parameters,
    inputs: Tensor,
    space: tuple[Workspace, ...] | None = None,
    factors: Tensor | None = None,
    steps: int = 1,
) -> Tensor:
    """Return the outputs of `run` alone, which saves the memory and the time for the states."""
    return _pass(parameters, inputs, space, factors, steps, keep=False)[1]


def _pass(
    parameters: Parameters,
    inputs: Tensor,
    space: tuple[Workspace, ...] | None,
    factors: Tensor | None,
    steps: int,
    *,
    keep: bool,
) -> tuple[list[Tensor], Tensor]:
    """Return each layer's states, from the bottom, padded, and the readout of the last ones."""
    length, _, _, batch = inputs.shape
    inputs = pad(inputs, parameters.hidden)
    if space is None:
        space = workspace(length, parameters, inputs.shape[-1])
    if len(space) != parameters.layers:
        raise ValueError(f"a workspace of {len(space)} layers for {parameters.layers}")
    by_layer: list[Tensor | None] = [None] * len(space)
    if factors is not None:
        by_layer = [*stack.apart(parameters, pad(factors, parameters.hidden))]
    layers = []
    for index, own in enumerate(space):
        weights = list(parameters.layer(index))[:4]
        own.multiply(by_layer[index], keep=keep or steps > 1 or index + 1 < len(space))
        states, last = _Sequence.apply(own, keep, inputs, *weights)  # type: ignore[no-untyped-call]
        layers.append(states)
        inputs = states[:, :, : parameters.hidden]
    outputs = readout(parameters, last) if steps == 1 else _readouts(parameters, inputs[-steps:])
    return layers, _cut(outputs, batch)


def _readouts(parameters: Parameters, shown: Tensor) -> Tensor:
    """Return the readout of hidden units (K, M, H, B) as (M, KO, B), in one product."""
    steps, _, _, batch = shown.shape
    columns = shown.permute(1, 2, 0, 3).flatten(2)
    outputs = torch.baddbmm(parameters.bias_out[:, :, None], parameters.weight_out, columns)
    return outputs.view(*outputs.shape[:2], steps, batch).transpose(1, 2).flatten(1, 2)


def _cut(tensor: Tensor, batch: int) -> Tensor:
    """Leave out what fills up the batch; a slice of all would cost zeros on the way back."""
    return tensor if tensor.shape[-1] == batch else tensor[..., :batch]


class _Sequence(torch.autograd.Function):
    """A whole sequence of one layer with hand-written back-propagation.

    Returns all states, or the workspace's own hidden units where nobody keeps them, and the last
    hidden units.
    """

    @staticmethod
    def forward(
        ctx: Any,
        space: Workspace,
        keep: bool,
        inputs: Tensor,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        space.generation += 1
        ctx.space, ctx.generation = space, space.generation
        # The last state comes apart from all of them, and gradients that nobody asks for stay
        # None, so that without a penalty on the states no step has to add zeros.
        ctx.set_materialize_grads(False)
        space.forward(inputs, *weights)
        states = space.states() if keep else space.shown
        return states, space.shown[-1].clone()

    @staticmethod
    def backward(
        ctx: Any, d_states: Tensor | None, d_last: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        if ctx.generation != ctx.space.generation:
            raise RuntimeError("a later forward pass has overwritten this one's workspace")
        space = ctx.space
        shape = (space.length, *space.inputs_weight_t.shape[:2], space.d_gates.shape[-1])
        space.d_inputs = space.template.new_empty(shape) if ctx.needs_input_grad[2] else None
        d_weights = space.backward(d_states, d_last)
        return (None, None, space.d_inputs, *d_weights)
