"""What all cells share: the registry, the parameters of a stack, and how a batch is filled up."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from msstab.cells.linear import Linearisation
from msstab.study import declare

if TYPE_CHECKING:
    from msstab.cells.sequence import Workspace

TENSORS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_out", "bias_out")
"""The tensors of one layer with its readout, as drawn, iterated and laid out, in this order."""

_OF_A_LAYER = 4


class Cell(NamedTuple):
    """One kind of cell: its shape and its functions.

    The weights have `gates` blocks of H rows, a state has `parts` of them, the hidden units
    first. `step` and `linearise` are those of the package for a single layer;
    `workspace(length, parameters, batch)` makes its memory for whole sequences.
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
    """M networks of one kind of cell with a linear readout, in the shapes and gate order of torch.

    With G gates, the bottom layer has `weight_ih` (M, GH, D), `weight_hh` (M, GH, H) and two
    biases (M, GH); the readout of the top layer has `weight_out` (M, O, H) and `bias_out` (M, O).
    `upper` holds four more tensors for every layer above the bottom one, from below, in the same
    order; their weights are (M, GH, H). Iterates over the six, then over `upper`. Raises
    ValueError where the weights are not those of the named cell, or layers do not fit.
    """

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor
    bias_hh: Tensor
    weight_out: Tensor
    bias_out: Tensor
    cell: str = field(default="gru", kw_only=True)
    upper: tuple[Tensor, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        """Refuse weights of another cell, which would otherwise be read as gates they are not."""
        models, rows, hidden = self.weight_hh.shape
        gates = CELLS[self.cell].gates
        if rows != gates * hidden:
            raise ValueError(
                f"{rows} rows are not the {gates} x {hidden} of {self.cell} with {hidden} units"
            )
        weight, bias = (models, rows, hidden), (models, rows)
        expected = [weight, weight, bias, bias] * -(-len(self.upper) // _OF_A_LAYER)
        found = [tuple(tensor.shape) for tensor in self.upper]
        if found != expected:
            raise ValueError(f"upper layers need tensors of shapes {expected}, not {found}")

    def __iter__(self) -> Iterator[Tensor]:
        """Go through all tensors."""
        yield from (getattr(self, name) for name in TENSORS)
        yield from self.upper

    @property
    def layers(self) -> int:
        """Number of layers, L."""
        return 1 + len(self.upper) // _OF_A_LAYER

    @property
    def hidden(self) -> int:
        """Number of hidden units of a layer, H."""
        return self.weight_hh.shape[2]

    @property
    def units(self) -> int:
        """Number of hidden units of all layers, LH: the first rows of a state."""
        return self.layers * self.hidden

    @property
    def state_size(self) -> int:
        """Rows of a state, S."""
        return CELLS[self.cell].parts * self.units

    @property
    def recurrent(self) -> tuple[Tensor, ...]:
        """Every layer's recurrent weights (M, GH, H), in the order of a state: top layer first."""
        return (*self.upper[1::_OF_A_LAYER][::-1], self.weight_hh)

    def layer(self, index: int) -> "Parameters":
        """Return one layer alone, under the same readout; the bottom one is 0."""
        if not self.upper:
            return self
        own = [*list(self)[:_OF_A_LAYER], *self.upper][_OF_A_LAYER * index :][:_OF_A_LAYER]
        return self.like([*own, self.weight_out, self.bias_out])

    def like(self, tensors: Iterable[Tensor]) -> "Parameters":
        """Return parameters of the same kind of cell that hold other tensors."""
        return _assemble(tensors, self.cell)

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
    layers: int = 1,
    gain: float = 1.0,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
) -> Parameters:
    """Draw weights uniformly from +-gain / sqrt(hidden), torch's own initialisation at gain 1.

    One stream a model; a model's weights depend on its stream alone, and upper layers are drawn
    last. Raises ValueError for fewer layers than one.
    """
    if layers < 1:
        raise ValueError(f"{layers} layers: a network has at least 1")
    rows = CELLS[cell].gates * hidden
    shapes = [(rows, n_inputs), (rows, hidden), (rows,), (rows,)]
    shapes += [(n_outputs, hidden), (n_outputs,)]
    shapes += (layers - 1) * [(rows, hidden), (rows, hidden), (rows,), (rows,)]
    bound = gain / math.sqrt(hidden)
    models = [[rng.uniform(-bound, bound, size=shape) for shape in shapes] for rng in streams]
    stacked = (np.stack(tensors) for tensors in zip(*models, strict=True))
    tensors = (torch.as_tensor(t, dtype=dtype, device=device) for t in stacked)
    return _assemble(tensors, cell)


def tensor_names(layers: int = 1) -> tuple[str, ...]:
    """Return the names of the tensors in the order of iteration, in upper layers those of torch."""
    above = [f"{name}_l{k}" for k in range(1, layers) for name in TENSORS[:_OF_A_LAYER]]
    return (*TENSORS, *above)


def named(parameters: Parameters) -> dict[str, Tensor]:
    """Return the tensors of parameters by name, from which `from_named` makes them again."""
    return dict(zip(tensor_names(parameters.layers), parameters, strict=True))


def from_named(
    arrays: Mapping[str, Any], *, cell: str = "gru", layers: int = 1, device: str = "cpu"
) -> Parameters:
    """Return the parameters whose tensors have been stored by name, whatever else is there."""
    names = tensor_names(layers)
    return _assemble((torch.as_tensor(arrays[name], device=device) for name in names), cell)


def _assemble(tensors: Iterable[Tensor], cell: str) -> Parameters:
    """Make parameters of tensors in the order of iteration."""
    given = list(tensors)
    lowest, upper = given[: len(TENSORS)], given[len(TENSORS) :]
    return Parameters(*lowest, cell=cell, upper=tuple(upper))


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
