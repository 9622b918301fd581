"""Files of a user's own as tensors and arrays: no code in them is ever run."""

import re
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from msstab import terminal

Array = NDArray[np.float64]

DEEPEST = 4
"""How far down a checkpoint's mappings are searched for tensors."""


printable = partial(terminal.printable, longest=60)
"""Return a name from a file without codes that would move a terminal's cursor."""


class InspectionError(ValueError):
    """A file or an option that cannot be used, in one line."""


class Sequences(NamedTuple):
    """Input sequences (N, T, D) and, where known, the targets of each one's last output (N, O)."""

    inputs: Array
    targets: Array | None


def read_tensors(path: Path) -> list[dict[str, Tensor]]:
    """Return every mapping of names to tensors in a safetensors file or a saved torch file.

    A torch file may hold state dicts inside other mappings, as checkpoints do. Raises
    OSError for a file that cannot be read, and InspectionError for one that holds more than tensors
    and plain values, which torch's restricted reader refuses without running anything.
    """
    with path.open("rb") as file:
        start = file.read(9)
    # A damaged file may make either reader raise anything at all.
    if start[8:] == b"{":
        from safetensors.torch import load_file

        try:
            return [load_file(path)]
        except Exception as error:
            raise InspectionError(f"this is not a safetensors file: {error}") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise InspectionError(_refusal(start, str(error))) from None
    return [*_mappings(content)]


def read_sequences(path: Path) -> Sequences:
    """Return the sequences of an .npz or a .csv file.

    An .npz holds `inputs` (N, T, D) and may hold `targets` (N, O); a .csv is one sequence, a row
    for each step and a column for each input, with or without a line of names. Raises OSError for
    a file that cannot be read, InspectionError for anything else, and for values that are not
    finite.
    """
    readers = {".npz": _from_npz, ".csv": _from_csv}
    if path.suffix.lower() not in readers:
        raise InspectionError("data must be in a file that ends in .npz or .csv")
    found = readers[path.suffix.lower()](path)
    for name, array in found._asdict().items():
        if array is not None and not np.isfinite(array).all():
            place = ", ".join(map(str, np.argwhere(~np.isfinite(array))[0]))
            raise InspectionError(f"{name}[{place}] is not a finite number")
    return found


def _refusal(start: bytes, message: str) -> str:
    """Say why torch's restricted reader refused a file."""
    remedy = "save the tensors alone, torch.save(model.state_dict(), FILE), or as safetensors"
    if wanted := re.search(r"GLOBAL ([\w.]+)", message):
        return f"it asks for {wanted[1]}, and code that a file names is never run: {remedy}"
    if start.startswith((b"PK", b"\x80")) and "weights" in message.lower():
        return f"it holds more than tensors, and code in a file is never run: {remedy}"
    return "this is neither a safetensors file nor one that torch.save wrote"


def _mappings(content: object, depth: int = 0) -> Iterator[dict[str, Tensor]]:
    if not isinstance(content, Mapping) or depth > DEEPEST:
        return
    tensors = {str(k): value for k, value in content.items() if isinstance(value, Tensor)}
    if tensors:
        yield tensors
    for value in content.values():
        yield from _mappings(value, depth + 1)


def _from_npz(path: Path) -> Sequences:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ("inputs", "targets") if name in file.files}
            names = ", ".join(map(printable, file.files)) or "nothing"
    except OSError:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InspectionError(f"this is not an .npz of plain arrays: {reason}") from None
    if "inputs" not in arrays:
        raise InspectionError(f"an array named inputs (N, T, D) is needed; found {names}")
    inputs, targets = _numbers("inputs", arrays["inputs"], "N, T, D"), None
    if "targets" in arrays:
        targets = _numbers("targets", arrays["targets"], "N, O")
        if len(targets) != len(inputs):
            raise InspectionError(f"{len(targets)} targets for {len(inputs)} sequences")
    return _checked(inputs, targets)


def _from_csv(path: Path) -> Sequences:
    try:
        lines = [line for line in path.read_text("utf-8-sig").splitlines() if line.strip()]
        has_names = bool(lines) and not any(map(_is_number, lines[0].split(",")))
        if not lines[has_names:]:
            raise InspectionError("the file has no steps")
        steps = np.loadtxt(lines[has_names:], delimiter=",", comments=None, ndmin=2)
    except InspectionError:
        raise
    except UnicodeDecodeError:
        raise InspectionError("this is not a text in UTF-8") from None
    except ValueError as error:
        raise InspectionError(printable(str(error).split(";")[0], longest=200)) from None
    return _checked(steps[None], None)


def _checked(inputs: Array, targets: Array | None) -> Sequences:
    count, length, _ = inputs.shape
    if count < 1 or length < 2 or not inputs.shape[2]:
        shown = " x ".join(map(str, inputs.shape))
        raise InspectionError(
            f"inputs are {shown}: at least 1 sequence of 2 steps and 1 input is needed"
        )
    return Sequences(inputs, targets)


def _numbers(name: str, array: NDArray[Any], axes: str) -> Array:
    if array.dtype.kind not in "fiub":
        raise InspectionError(f"{name} are of type {array.dtype}: real numbers are needed")
    if array.ndim != axes.count(",") + 1:
        shown = ", ".join(map(str, array.shape))
        raise InspectionError(f"{name} have shape ({shown}): ({axes}) is needed")
    return array.astype(np.float64)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
