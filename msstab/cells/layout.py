"""What all cells share: the registry, the parameters of a stack, and how a batch is filled up."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from msstab.cells.linear import Linearisation
from msstab.study import declare

if TYPE_CHECKING:
    from msstab.cells.sequence import Workspace

TENSORS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_out", "bias_out")
"""The tensors of `Parameters`, in the order in which they are drawn, iterated and laid out."""


class Cell(NamedTuple):
    """One kind of cell: its shape and its functions.

    The weights have `gates` blocks of H rows, a state has `parts` of them, the hidden units
    first. `step` and `linearise` are those of the package; `workspace(length, parameters, batch)`
    makes the memory for whole sequences.
    """

    gates: int
    parts: int
    step: Callable[["Parameters", Tensor, Tensor, Tensor | None], Tensor]
    linearise: Callable[["Parameters", Tensor, Tensor], Linearisation]
    workspace: Callable[[int, "Parameters", int], "Workspace"]


CELLS: dict[str, Cell] = {}
"""Cells by name; each one's file adds it."""


def add(name: str, cell: Cell) -> None:
    """Make a cell known by a name, here and in a Study."""
    CELLS[name] = cell
    declare("cell", name)


@dataclass(frozen=True, eq=False)
class Parameters:
    """M recurrent cells of one kind with a linear readout, in the shapes and gate order of torch.

    With G gates: `weight_ih` (M, GH, D), `weight_hh` (M, GH, H), both biases (M, GH),
    `weight_out` (M, O, H), `bias_out` (M, O). Iterates over these six. Raises ValueError where
    the weights are not those of the named cell.
    """

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor
    bias_hh: Tensor
    weight_out: Tensor
    bias_out: Tensor
    cell: str = field(default="gru", kw_only=True)

    def __post_init__(self) -> None:
        """Refuse weights of another cell, which would otherwise be read as gates they are not."""
        _, rows, hidden = self.weight_hh.shape
        gates = CELLS[self.cell].gates
        if rows != gates * hidden:
            raise ValueError(
                f"{rows} rows are not the {gates} x {hidden} of {self.cell} with {hidden} units"
            )

    def __iter__(self) -> Iterator[Tensor]:
        """Go through the six tensors."""
        return (getattr(self, name) for name in TENSORS)

    @property
    def hidden(self) -> int:
        """Number of hidden units, H."""
        return self.weight_hh.shape[2]

    @property
    def state_size(self) -> int:
        """Rows of a state, S."""
        return CELLS[self.cell].parts * self.hidden

    def like(self, tensors: Iterable[Tensor]) -> "Parameters":
        """Return parameters of the same kind of cell that hold other tensors."""
        return Parameters(*tensors, cell=self.cell)

    def select(self, models: slice | Sequence[int] | Tensor) -> "Parameters":
        """Return the parameters of some of the models."""
        return self.like(tensor[models] for tensor in self)

    def require_grad(self) -> "Parameters":
        """Return leaf copies that record gradients."""
        return self.like(tensor.detach().clone().requires_grad_() for tensor in self)


def initial_parameters(
    streams: Sequence[np.random.Generator],
    hidden: int,
    n_inputs: int,
    n_outputs: int,
    *,
    cell: str = "gru",
    gain: float = 1.0,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
) -> Parameters:
    """Draw weights uniformly from +-gain / sqrt(hidden), torch's own initialisation at gain 1.

    One stream a model; a model's weights depend on its stream alone.
    """
    rows = CELLS[cell].gates * hidden
    shapes = [(rows, n_inputs), (rows, hidden), (rows,), (rows,)]
    shapes += [(n_outputs, hidden), (n_outputs,)]
    bound = gain / math.sqrt(hidden)
    models = [[rng.uniform(-bound, bound, size=shape) for shape in shapes] for rng in streams]
    stacked = (np.stack(tensors) for tensors in zip(*models, strict=True))
    tensors = (torch.as_tensor(t, dtype=dtype, device=device) for t in stacked)
    return Parameters(*tensors, cell=cell)


def padded(batch: int, hidden: int) -> int:
    """Return the batch rounded up so that a state's numbers fill whole vectors, two at a time.

    Vector units treat a remainder, and matrix products a misaligned matrix, differently in the
    last bits; with whole vectors a model's numbers do not depend on its place in the stack.
    """
    unit = 32 if hidden % 2 else 16
    return -(-batch // unit) * unit


def pad(tensor: Tensor, hidden: int) -> Tensor:
    """Fill a tensor's last dimension, the batch, with zeros up to whole vectors."""
    missing = padded(tensor.shape[-1], hidden) - tensor.shape[-1]
    return torch.nn.functional.pad(tensor, (0, missing)) if missing else tensor.contiguous()
