"""Work for another machine: it takes along what it needs, and brings back what it keeps."""

import atexit
import functools
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import scipy
import threadpoolctl
import torch

# The parts load all that can be asked for, in the state in which `VERSIONS` finds it.
import msstab.parts  # noqa: F401
from msstab import __version__, files, store, tracks
from msstab.publishing import BuildError
from msstab.spreading import Work
from msstab.trials import Trial

Contents = dict[str, bytes]
"""Files by path, from the folder of the cache or as a person named them."""


def _versions() -> dict[str, str]:
    folder = Path(__file__).parent
    code = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.suffix in {".py", ".npz", ".csv"}):
        code.update(path.relative_to(folder).as_posix().encode() + b"\n" + path.read_bytes())
    return {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "msstab": f"{__version__} (code {code.hexdigest()[:8]})",
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
    }


VERSIONS = _versions()
"""What decides numbers besides a trial's parameters, as it is on this machine."""

VECTORS = "vector instructions"


def machine() -> dict[str, str]:
    """Return the versions, and the vector instructions, of the machine that is asked."""
    return {**VERSIONS, VECTORS: torch.backends.cpu.get_cpu_capability()}


class Parcel(NamedTuple):
    """What goes with a call: trained networks, the reader's own series, and the code meant."""

    kept: Contents
    own: Contents
    versions: Mapping[str, str]


def pack(arguments: tuple[Any, ...]) -> Parcel:
    """Gather what a call needs: for each trial that it names its network, if there is one."""
    kept: Contents = {}
    own: Contents = {}
    for trial in _trials(arguments):
        path = store.path_of("train", trial.key)
        if store.is_reused("train", trial.key, exactly=True):
            store.save("train", trial.key, store.load("train", trial.key, exactly=True) or {})
        if path.is_file():
            kept[path.relative_to(store.cache_folder()).as_posix()] = path.read_bytes()
        if tracks.is_own(trial.track):
            # The full name ends with how the series is used, in JSON.
            name = trial.track.rpartition(' {"')[0].partition(":")[2]
            own[name] = files.find(name).read_bytes()
    return Parcel(kept, own, VERSIONS)


def run(parcel: Parcel, work: Work, arguments: tuple[Any, ...]) -> tuple[Any, Contents]:
    """Run a call on a machine that shares no disk; return its value and what it has kept.

    One call at a time, however many threads the process has, and each on one thread. Raises
    BuildError for other code or versions than the sender's, and for what this machine cannot do.
    """
    if found := differences(VERSIONS, parcel.versions):
        raise BuildError(f"{platform.node()} has {found}")
    try:
        with _ALONE, threadpoolctl.threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
            return _run_in(Path(folder), parcel, work, arguments)
    except (ImportError, OSError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise BuildError(f"{platform.node()} could not go on: {what}") from error


def keep(made: Contents) -> None:
    """Put what a call brought back into the store of this machine."""
    for name, content in made.items():
        store.replace(store.cache_folder() / name, content)


def differences(there: Mapping[str, str], here: Mapping[str, str]) -> str:
    """Say which versions differ; empty where none does."""
    found = (
        f"{k} {there.get(k)}, where {v} runs here" for k, v in here.items() if there.get(k) != v
    )
    return "; ".join(found)


_ALONE = threading.Lock()


def _run_in(
    cache: Path, parcel: Parcel, work: Work, arguments: tuple[Any, ...]
) -> tuple[Any, Contents]:
    """Run a call with an empty folder as its store."""
    for name, content in parcel.kept.items():
        store.replace(cache / name, content)
    named = str(_place(tuple(parcel.own.items()))) if parcel.own else ""
    with _environment({"MSSTAB_CACHE": str(cache), store.REUSE: "", files.FOLDERS: named}):
        value = work(*arguments)
    made = {p.relative_to(cache).as_posix(): p.read_bytes() for p in cache.rglob("*.npz")}
    return value, {name: c for name, c in made.items() if parcel.kept.get(name) != c}


@functools.lru_cache(maxsize=1)
def _place(own: tuple[tuple[str, bytes], ...]) -> Path:
    """Put files where their names lead from a folder, and forget what others held.

    A worker outlives the command, and a file of the same name may have changed since.
    """
    for name, module in list(sys.modules.items()):
        # Names of results stay those of the code that runs.
        if name.startswith("msstab.") and name not in {"msstab.keys", __name__}:
            for function in vars(module).values():
                if isinstance(function, functools._lru_cache_wrapper):
                    function.cache_clear()
    # As many folders further down as names lead up.
    below = max(name.count("..") for name, _ in own) * ["below"]
    folder = Path(tempfile.mkdtemp(dir=_room()), *below)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in own:
        store.replace(folder / name, content)
    return folder


@functools.cache
def _room() -> str:
    """Make a folder that is there as long as this process."""
    folder = tempfile.mkdtemp(prefix="msstab-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables in the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _trials(value: object) -> Iterator[Trial]:
    """Find all trials among the arguments of a call."""
    if isinstance(value, Trial):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _trials(item)
