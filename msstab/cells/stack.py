"""Layers on top of each other: their parts of a state, a step, and its derivatives.

Layer k + 1 takes the new hidden units of layer k, of the same step, as its inputs.
"""

import torch
from torch import Tensor

from msstab.cells.layout import CELLS, Parameters, pad
from msstab.cells.linear import Linearisation


def apart(parameters: Parameters, state: Tensor) -> list[Tensor]:
    """Return each layer's own state, from the bottom: (..., S, B) -> L times (..., S/L, B)."""
    layers, parts = parameters.layers, CELLS[parameters.cell].parts
    *leading, _, batch = state.shape
    blocks = state.reshape(*leading, parts, layers, parameters.hidden, batch)
    own = [block.flatten(-3, -2).contiguous() for block in blocks.unbind(-3)]
    return own[::-1]


def together(parameters: Parameters, rows: list[Tensor]) -> Tensor:
    """Return rows of whole states from those of the layers, from the bottom; undoes `apart`."""
    if len(rows) == 1:
        return rows[0]
    *leading, size, columns = rows[0].shape
    shape = (*leading, size // parameters.hidden, parameters.hidden, columns)
    blocks = [own.reshape(shape) for own in reversed(rows)]
    return torch.stack(blocks, dim=-3).flatten(-4, -2)


def step(
    parameters: Parameters, state: Tensor, inputs: Tensor, disturbance: Tensor | None = None
) -> Tensor:
    """Advance every model by one step: state (M, S, B), inputs (M, D, B) -> next state (M, S, B).

    A `disturbance` (M, LGH, B) is added to the recurrent pre-activations, the top layer's first.
    """
    layers, cell = parameters.layers, CELLS[parameters.cell]
    pushes = [None] * layers if disturbance is None else disturbance.chunk(layers, dim=1)[::-1]
    rows = []
    for index, (own, push) in enumerate(zip(apart(parameters, state), pushes, strict=True)):
        rows.append(cell.step(parameters.layer(index), own, inputs, push))
        inputs = rows[-1][:, : parameters.hidden]
    return together(parameters, rows)


def linearise(parameters: Parameters, state: Tensor, inputs: Tensor) -> Linearisation:
    """Return the exact derivatives of a step: state (M, S, B), inputs (M, D, B).

    Source: the chain rule; a layer's own derivatives, and those of the hidden units below, which
    are its inputs.
    """
    hidden, batch, cell = parameters.hidden, state.shape[-1], CELLS[parameters.cell]
    of_state: list[Tensor] = []
    of_recurrent: list[Tensor] = []
    of_inputs: list[Tensor] = []
    for index, own in enumerate(apart(parameters, state)):
        layer = parameters.layer(index)
        alone = cell.linearise(layer, own, inputs)
        direct = _columns(parameters, alone.jacobian, cell.parts, index)
        disturbed = _columns(parameters, alone.recurrent, 1, index)
        if index == 0:
            of_state, of_recurrent, of_inputs = [direct], [disturbed], [alone.inputs]
        else:
            of_state.append(direct + _chain(alone.inputs, of_state[-1]))
            of_recurrent.append(disturbed + _chain(alone.inputs, of_recurrent[-1]))
            of_inputs.append(_chain(alone.inputs, of_inputs[-1]))
        if index + 1 < parameters.layers:
            after = cell.step(layer, pad(own, hidden), pad(inputs, hidden), None)
            inputs = after[:, :hidden, :batch]
    jacobian = together(parameters, of_state)
    return Linearisation(
        jacobian,
        together(parameters, of_recurrent),
        together(parameters, of_inputs),
        torch.stack(parameters.recurrent, dim=1)[:, None],
        jacobian,
    )


def _columns(parameters: Parameters, matrix: Tensor, parts: int, index: int) -> Tensor:
    """Put a layer's columns (..., parts x N) among the other layers' zeros (..., parts x L x N)."""
    above = parameters.layers - 1 - index
    *leading, columns = matrix.shape
    blocks = matrix.reshape(*leading, parts, 1, columns // parts)
    return torch.nn.functional.pad(blocks, (0, 0, above, index)).flatten(-3)


def _chain(from_inputs: Tensor, below: Tensor) -> Tensor:
    """Return the product of (M, B, S, H) with the first H rows of (M, B, S', N).

    The columns are filled up to whole vectors, without which the last bits of a batched product
    could depend on a matrix's place in the batch.
    """
    models, batch, rows, hidden = from_inputs.shape
    second = pad(below[..., :hidden, :], hidden).flatten(0, 1)
    product = torch.bmm(from_inputs.flatten(0, 1), second)
    return product.view(models, batch, rows, -1)[..., : below.shape[-1]]
