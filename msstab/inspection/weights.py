"""A saved recurrent network, from its tensors' names and shapes: state dict in, Parameters out."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from msstab.cells import CELLS, Parameters
from msstab.inspection.files import InspectionError, printable
from msstab.study import nearest

_NAME = re.compile(
    r"(?P<prefix>(?:.*\.)?)(?P<kind>weight_ih|weight_hh|weight_hr|bias_ih|bias_hh)"
    r"(?:_l(?P<layer>\d+))?(?P<reverse>_reverse)?",
    re.DOTALL,
)
_GATES = {cell.gates: name for name, cell in CELLS.items()}
_MOST_NAMES = 6


class Network(NamedTuple):
    """A network (M = 1) in double precision, its readout's name, and what had to be assumed."""

    parameters: Parameters
    readout: str
    notes: tuple[str, ...]


def to_network(
    mappings: Sequence[Mapping[str, Tensor]],
    *,
    cell: str | None = None,
    nonlinearity: str = "tanh",
    readout: str | None = None,
) -> Network:
    """Return the one recurrent network with a linear readout among mappings of names to tensors.

    Names are torch's (`weight_ih_l0`, or `weight_ih` of a cell), behind any prefix. The cell
    follows from the rows of the recurrent weights, H, 3H or 4H; `cell` only confirms it. The
    readout is the one other matrix of H columns; `readout` names it where the file holds more.
    Missing biases are zeros. Raises InspectionError where names or shapes do not fit.
    """
    _require_known(cell, nonlinearity)
    tensors = _only_recurrent(mappings)
    layers = _layers(tensors)
    name, hidden, n_inputs = _shape(layers)
    if cell not in (None, name):
        raise InspectionError(
            f"--cell {cell}: {CELLS[str(cell)].gates} x {hidden} rows are needed, and the "
            f"recurrent weights have {CELLS[name].gates} x {hidden}, as a network of {name} cells"
        )
    if nonlinearity != "tanh":
        raise InspectionError(
            f"--nonlinearity {nonlinearity}: tanh is needed, and the cell is {name}"
        )
    rows = CELLS[name].gates * hidden
    found: list[Tensor] = []
    notes = ["tanh is assumed: the file does not say"] if name == "rnn" else []
    for index in range(len(layers)):
        columns = hidden if index else n_inputs
        expected = {
            **{"weight_ih": (rows, columns), "weight_hh": (rows, hidden)},
            **{"bias_ih": (rows,), "bias_hh": (rows,)},
        }
        for kind, shape in expected.items():
            found.append(_fitting(layers[index].get(kind), f"{kind}_l{index}", kind, shape))
        if missing := [kind for kind in expected if kind not in layers[index]]:
            notes.append(f"layer {index} has no {' and no '.join(missing)} in the file: zeros")
    others = {own: tensor for own, tensor in tensors.items() if not _NAME.fullmatch(own)}
    chosen = _choose_readout(others, hidden, readout)
    weight = others.pop(chosen)
    bias_name = chosen.removesuffix("weight") + "bias"
    outputs = len(weight)
    if bias_name not in others:
        notes.append("the readout has no bias in the file: zeros")
    top = [
        _fitting(weight, chosen, "weight", (outputs, hidden)),
        _fitting(others.pop(bias_name, None), bias_name, "bias", (outputs,)),
    ]
    if others:
        notes.append(f"not read: {_names(others)}")
    stacked = [tensor[None] for tensor in (*found[:4], *top, *found[4:])]
    parameters = Parameters(*stacked[:6], cell=name, upper=tuple(stacked[6:]))
    return Network(parameters, printable(chosen.removesuffix(".weight")), tuple(notes))


def _require_known(cell: str | None, nonlinearity: str) -> None:
    if cell is not None and cell not in CELLS:
        raise InspectionError(f"--cell {cell}: {nearest(cell, CELLS)}")
    if nonlinearity not in ("tanh", "relu"):
        raise InspectionError(f"--nonlinearity {nonlinearity}: {nearest(nonlinearity, ('tanh',))}")


def _only_recurrent(mappings: Sequence[Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    found = [
        own
        for own in mappings
        if any((match := _NAME.fullmatch(name)) and match["kind"] == "weight_hh" for name in own)
    ]
    if not found:
        names = [name for own in mappings for name in own]
        raise InspectionError(
            "no recurrent weights: names that end in weight_ih_l0 and weight_hh_l0 are needed; "
            f"found {_names(names)}"
        )
    if len(found) > 1:
        raise InspectionError(f"{len(found)} state dicts of recurrent networks: save one alone")
    return found[0]


def _layers(tensors: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """Return each layer's tensors by kind, from the bottom."""
    layers: dict[int, dict[str, Tensor]] = {}
    prefixes = set()
    for name, tensor in tensors.items():
        if not (match := _NAME.fullmatch(name)):
            continue
        if match["reverse"]:
            raise InspectionError(
                f"the network is bidirectional ({printable(name)}): one direction is needed"
            )
        if match["kind"] == "weight_hr":
            raise InspectionError(
                f"the network has projections ({printable(name)}, {_size(tensor.shape)}): "
                "proj_size 0 is needed"
            )
        prefixes.add(match["prefix"])
        layers.setdefault(int(match["layer"] or 0), {})[match["kind"]] = tensor
    if len(prefixes) > 1:
        raise InspectionError(
            f"{len(prefixes)} recurrent networks ({_names(sorted(prefixes))}): the state dict of "
            "one, with its readout, is needed"
        )
    if sorted(layers) != [*range(len(layers))]:
        raise InspectionError(f"layers {', '.join(map(str, sorted(layers)))}: some are missing")
    return [layers[index] for index in range(len(layers))]


def _shape(layers: Sequence[Mapping[str, Tensor]]) -> tuple[str, int, int]:
    """Return the cell, its hidden units and inputs, from the shapes of the bottom layer."""
    for kind in ("weight_ih", "weight_hh"):
        if kind not in layers[0] or layers[0][kind].dim() != 2:
            found = _size(layers[0][kind].shape) if kind in layers[0] else "none"
            raise InspectionError(f"{kind}_l0: a matrix is needed; found {found}")
    n_inputs = layers[0]["weight_ih"].shape[1]
    rows, hidden = layers[0]["weight_hh"].shape
    if not hidden or rows % hidden or rows // hidden not in _GATES:
        kinds = ", ".join(f"{gates} ({name})" for gates, name in sorted(_GATES.items()))
        raise InspectionError(
            f"weight_hh_l0 is {rows} x {hidden}: {kinds} times as many rows as columns are needed"
        )
    return _GATES[rows // hidden], hidden, n_inputs


def _fitting(tensor: Tensor | None, name: str, kind: str, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor in double precision; zeros for a missing bias."""
    if tensor is None:
        if kind.startswith("bias"):
            return torch.zeros(shape, dtype=torch.float64)
        raise InspectionError(f"{printable(name)} is missing: {_size(shape)} is needed")
    if tuple(tensor.shape) != shape:
        raise InspectionError(
            f"{printable(name)} is {_size(tensor.shape)}: {_size(shape)} is needed"
        )
    if not tensor.is_floating_point() or tensor.layout is not torch.strided:
        raise InspectionError(
            f"{printable(name)} is of type {tensor.dtype}: dense real numbers are needed"
        )
    numbers = tensor.detach().to(torch.float64).contiguous()
    if not numbers.isfinite().all():
        raise InspectionError(f"{printable(name)} holds numbers that are not finite")
    return numbers


def _choose_readout(others: Mapping[str, Tensor], hidden: int, wanted: str | None) -> str:
    """Return the name of the readout's weight among the tensors that are not recurrent."""
    fitting = [
        name
        for name, tensor in others.items()
        if name.split(".")[-1] == "weight" and tensor.dim() == 2 and tensor.shape[1] == hidden
    ]
    layers = [name.removesuffix(".weight") for name in fitting]
    if wanted is not None:
        if wanted.removesuffix(".weight") in layers:
            return fitting[layers.index(wanted.removesuffix(".weight"))]
        known = nearest(wanted, map(printable, layers)) if layers else "The file holds none."
        raise InspectionError(
            f"--readout {wanted}: a linear layer whose weight has {hidden} columns is needed. "
            f"{known}"
        )
    if not fitting:
        shapes = ", ".join(
            f"{printable(k)} ({_size(v.shape)})" for k, v in [*others.items()][:_MOST_NAMES]
        )
        raise InspectionError(
            f"no linear readout: a weight of shape O x {hidden} is needed; found "
            f"{shapes or 'no other tensor'}"
        )
    unread = [name for name in others if name not in (fitting[0], fitting[0][:-6] + "bias")]
    if len(fitting) > 1:
        raise InspectionError(
            f"{len(fitting)} linear layers could be the readout, {_names(layers)}: "
            f"choose one with --readout"
        )
    if unread:
        raise InspectionError(
            f"the file also holds {_names(unread)}: if the recurrence takes the data themselves "
            f"and one linear layer reads it out, say so with --readout {printable(layers[0])}"
        )
    return fitting[0]


def _names(names: Iterable[str]) -> str:
    """Return the first few names, without the dot that ends a prefix."""
    every = [printable(name.rstrip(".")) or "(no prefix)" for name in names]
    more = f" and {len(every) - _MOST_NAMES} more" if len(every) > _MOST_NAMES else ""
    return (", ".join(every[:_MOST_NAMES]) or "no tensor") + more


def _size(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape)) or "one number"
