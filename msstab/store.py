"""A folder of numerical results, each under a key that names everything it depends on."""

import hashlib
import io
import os
import uuid
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msstab import archive

REUSE = "MSSTAB_REUSE"
"""Variable that names an archive whose results stand in for those that are not kept here."""

READS = "MSSTAB_READS"
"""Variable that names a folder in which every process notes what it reads, for `published`."""

_CHECKSUM_BYTES = 32


def cache_folder() -> Path:
    """Return where results are kept: `$MSSTAB_CACHE`, else `.cache` beside the package.

    An installed package without its repository keeps them in the user's cache folder.
    """
    if chosen := os.environ.get("MSSTAB_CACHE"):
        return Path(chosen)
    repository = Path(__file__).resolve().parents[1]
    if (repository / "pyproject.toml").is_file():
        return repository / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "msstab"


def path_of(kind: str, key: str) -> Path:
    """Return the file of a result, whether or not it exists."""
    return cache_folder() / kind / key[:2] / f"{key}.npz"


def has(kind: str, key: str, *, exactly: bool = False) -> bool:
    """Whether `load` would find a result, unless its file is damaged."""
    return path_of(kind, key).exists() or is_reused(kind, key, exactly=exactly)


def is_reused(kind: str, key: str, *, exactly: bool = False) -> bool:
    """Whether a result is not kept here, but in the archive that `$MSSTAB_REUSE` names."""
    if path_of(kind, key).exists() or not (reused := os.environ.get(REUSE)):
        return False
    name = archive.name_of(Path(reused), kind, key)
    return name == key if exactly else name is not None


def save(kind: str, key: str, arrays: Mapping[str, ArrayLike]) -> None:
    """Write a result in one step, so that a reader finds all of it or nothing.

    The file is an .npz with a checksum after its end, where other readers of .npz overlook it.
    """
    contents: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **contents)
    replace(path_of(kind, key), buffer.getvalue() + _checksum(buffer.getvalue()))


def replace(path: Path, content: bytes) -> None:
    """Write a file in one step, whether or not there is one, and its folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not a temporary file of tempfile's, which only its owner could read.
    partial = path.with_suffix(f".{uuid.uuid4().hex}.partial")
    try:
        partial.write_bytes(content)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def load(kind: str, key: str, *, exactly: bool = False) -> dict[str, NDArray[Any]] | None:
    """Read a result; None if there is none, or, with a warning, if the file is damaged.

    A damaged file is removed, so that the result is computed anew. What is not kept here is read
    from the archive that `$MSSTAB_REUSE` names, if it answers the same question, or `exactly`, if
    the same code and versions answered it.
    """
    found = _load(path_of(kind, key))
    if found is None and is_reused(kind, key, exactly=exactly):
        found = archive.load(Path(os.environ[REUSE]), kind, key)
    if found is not None and (noted := os.environ.get(READS)):
        with (Path(noted) / str(os.getpid())).open("a") as file:
            file.write(f"{kind} {key}\n")
    return found


def _load(path: Path) -> dict[str, NDArray[Any]] | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    if content[-_CHECKSUM_BYTES:] != _checksum(content[:-_CHECKSUM_BYTES]):
        warnings.warn(f"recomputing a damaged cache entry, {path.name}", RuntimeWarning, 2)
        path.unlink(missing_ok=True)
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
