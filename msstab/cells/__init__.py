"""Recurrent cells for M stacked models at once: whole sequences, single steps and Jacobians.

Layout: models first, batch last. A state is (M, S, B), a sequence of inputs (T, M, D, B), so
that every product is one batched matrix product and every elementwise operation runs over
contiguous memory. A model's numbers do not depend on how many others share its stack. S, the
rows of a state, is the number of hidden units H, and 2H for a cell that remembers more than it
shows: the hidden units come first, then the rest. Outputs are (M, KO, B): the O outputs after each
of the last K steps, step by step, K being 1 for a forecast from a whole sequence.

Networks of L layers, as torch's `num_layers`, have L times as many rows: the hidden units of all
layers, those of the top layer first, then the memory of all layers in the same order. So the
readout takes the first H rows of a state, and the recurrent weights read the first LH; whatever
else goes through the layers (recurrent pre-activations, their disturbances) has the same order.
"""

from msstab.cells import gru, lstm, rnn  # noqa: F401  (each adds its cell)
from msstab.cells.ensemble import (
    forecast,
    jacobian,
    linearise,
    output_steps,
    readout,
    run,
    step,
    workspace,
)
from msstab.cells.layout import (
    CELLS,
    TENSORS,
    Cell,
    Parameters,
    from_named,
    initial_parameters,
    named,
    pad,
    padded,
    tensor_names,
)
from msstab.cells.linear import Linearisation
from msstab.cells.sequence import Workspace

__all__ = [
    "CELLS",
    "TENSORS",
    "Cell",
    "Linearisation",
    "Parameters",
    "Workspace",
    "forecast",
    "from_named",
    "initial_parameters",
    "jacobian",
    "linearise",
    "named",
    "output_steps",
    "pad",
    "padded",
    "readout",
    "run",
    "step",
    "tensor_names",
    "workspace",
]
