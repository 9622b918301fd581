"""A folder of published results: its files, and whether they are as they were written."""

import hashlib
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch

from msstab import store
from msstab.report import Report, read_report
from msstab.study import Study, StudyError, parse

DEFAULT = Path(__file__).resolve().parents[2] / "results"
"""Where a clone of the project has the published results."""

MANIFEST = "msstab-results.json"
TRIALS, REPORT, PLAN, KEPT = "trials.csv", "bench_report.json", "plan.json", "kept.npz"
NUMBERS, EFFECT, ABOUT = "numbers.json", "effect.svg", "README.md"
FILES = (TRIALS, REPORT, PLAN, KEPT, NUMBERS, EFFECT, ABOUT)


class PublishedError(ValueError):
    """A folder that holds no sound results, described for the person who named it."""


class Published(NamedTuple):
    """A folder of results and its manifest: parameters, versions, platform, files' digests."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def study(self) -> Study:
        """The parameters of the runs; raises PublishedError if they are none of today's."""
        try:
            return parse(self.manifest["parameters"])
        except StudyError as error:
            raise PublishedError(f"{self.folder / MANIFEST}: {error}") from None

    @property
    def table(self) -> pd.DataFrame:
        """One row for each network of the study, to the last bit; see `Experiment`."""
        return pd.read_csv(self.folder / TRIALS)

    @property
    def report(self) -> Report:
        """The bench report."""
        return read_report(self.folder / REPORT)

    @property
    def kept(self) -> Path:
        """The archive of everything that the chapters read."""
        return self.folder / KEPT


def open_results(folder: Path) -> Published:
    """Return the results in a folder; raise PublishedError unless all of it is as written."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise PublishedError(f"{folder} is not a folder; name one of published results: results")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        digests, _ = manifest["files"], manifest["parameters"]
        changed = [name for name in FILES if digest_of(folder / name) != digests[name]]
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        raise PublishedError(
            f"{folder} holds no published results: there is no {missing} in it"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PublishedError(f"{path} cannot be read: {error}") from None
    if changed:
        raise PublishedError(
            f"{folder}: {', '.join(changed)} is not what was published; restore it from git"
        )
    return Published(folder, manifest)


@contextmanager
def reusing(found: Published | None) -> Iterator[None]:
    """Let the results stand in for what is not kept here, in this process and those it starts.

    None: let none do so, not even those that `$MSSTAB_REUSE` names.
    """
    before = os.environ.pop(store.REUSE, None)
    if found is not None:
        os.environ[store.REUSE] = str(found.kept.resolve())
    try:
        yield
    finally:
        os.environ.pop(store.REUSE, None)
        if before is not None:
            os.environ[store.REUSE] = before


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def platform_here() -> dict[str, str]:
    """Return what, beside versions, can decide the last bits of a sum."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "vectors": torch.backends.cpu.get_cpu_capability(),
    }
