"""Many kept results in one file, to be handed out and read without unpacking."""

import io
import zipfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from msstab import keys

Arrays = Mapping[str, NDArray[Any]]

_NAMES = "names"
_ARRAY = "array "


class _Place(NamedTuple):
    """Where a result lies: its full name, the group of its like, and its row there."""

    name: str
    group: str
    row: int


def pack(results: Iterable[tuple[str, str, Arrays]]) -> bytes:
    """Return the content of an .npz of results, each a kind, a name (`keys.key`) and its arrays.

    Results of one kind whose arrays have the same names, shapes and types lie in one array with a
    row for each, which takes far less room than a file for each. The same results give the same
    bytes, in whatever order. Raises ValueError if two of a kind answer the same question.
    """
    alike: dict[tuple[Any, ...], list[tuple[str, Arrays]]] = {}
    asked = set()
    for kind, name, arrays in sorted(results, key=lambda result: result[:2]):
        if (kind, keys.question(name)) in asked:
            raise ValueError(f"two results answer the same question: {kind} {name}")
        asked.add((kind, keys.question(name)))
        shapes = tuple((n, a.shape, a.dtype.str) for n, a in arrays.items())
        alike.setdefault((kind, shapes), []).append((name, arrays))
    members = {}
    for number, ((kind, shapes), group) in enumerate(alike.items()):
        members[f"{kind}/{number}/{_NAMES}"] = np.array([name for name, _ in group])
        for n, _, _ in shapes:
            members[f"{kind}/{number}/{_ARRAY}{n}"] = np.stack([arrays[n] for _, arrays in group])
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **members)
    return buffer.getvalue()


def load(path: Path, kind: str, name: str) -> dict[str, NDArray[Any]] | None:
    """Return what an archive holds of the same kind and question, whatever code answered it.

    None if there is no such result. Raises ValueError if the file cannot be read.
    """
    archive = _open(path)
    place = archive.places.get((kind, keys.question(name)))
    if place is None:
        return None
    return {n: array[place.row] for n, array in _group(archive, place.group).items()}


def name_of(path: Path, kind: str, name: str) -> str | None:
    """Return the whole name under which an archive answers the same question, or None.

    Raises ValueError if the file cannot be read.
    """
    place = _open(path).places.get((kind, keys.question(name)))
    return place.name if place else None


class _Archive(NamedTuple):
    path: Path
    places: dict[tuple[str, str], _Place]
    groups: dict[str, dict[str, NDArray[Any]]]


def _open(path: Path) -> _Archive:
    try:
        return _indexed(path, path.stat().st_mtime_ns)
    except (OSError, zipfile.BadZipFile, ValueError, KeyError) as error:
        raise ValueError(f"{path} cannot be read as results of msstab: {error}") from None


@lru_cache(maxsize=2)
def _indexed(path: Path, _modified: int) -> _Archive:
    places = {}
    # A stream of our own, since numpy leaves its own open where a file is damaged.
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
        for member in file.files:
            group, _, last = member.rpartition("/")
            if last != _NAMES:
                continue
            kind = group.partition("/")[0]
            for row, name in enumerate(file[member].tolist()):
                places[kind, keys.question(name)] = _Place(name, group, row)
    return _Archive(path, places, {})


def _group(archive: _Archive, group: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of a group, read once."""
    if group not in archive.groups:
        start = f"{group}/{_ARRAY}"
        with archive.path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            archive.groups[group] = {
                member.removeprefix(start): file[member]
                for member in file.files
                if member.startswith(start)
            }
    return archive.groups[group]
