"""Prepare a book aside and swap it in whole, so that no reader ever meets half of one."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from msstab import targets
from msstab.checks import MANIFEST


class BuildError(Exception):
    """A book that can't be built, described for a person; `exit_code` 2 is the caller's mistake."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextmanager
def staging_area(root: Path, out: Path, *, mark: str = MANIFEST) -> Iterator[Path]:
    """Give a build its own folder in `root/_build`, and remove what dead builds left behind.

    Raises BuildError if `out` is in use for something other than what `mark`, a file, stands for;
    then nothing is written.
    """
    parent = root / "_build"
    if out == parent.resolve():
        raise BuildError(f"{out} is where builds do their work; name a folder in it", exit_code=2)
    require_replaceable(out, mark=mark)
    parent.mkdir(exist_ok=True)
    with _locked(parent):
        _restore(out)
        require_replaceable(out, mark=mark)
        _remove_dead(parent)
        area = Path(tempfile.mkdtemp(prefix="staging-", dir=parent))
        # Held until this process ends, however it ends: that is how others know it is alive.
        lock = _try_lock(area / "lock")
    try:
        yield area
    finally:
        shutil.rmtree(area, ignore_errors=True)
        if lock is not None:
            lock.close()


def require_replaceable(out: Path, *, mark: str = MANIFEST) -> None:
    """Raise BuildError unless `out` is free, empty, or holds what msstab built, with its mark.

    It must also lie outside of other books, where a folder can be made.
    """
    what = {MANIFEST: "a book", "msstab-site.json": "a site"}.get(mark, "results")
    if out.is_file():
        raise BuildError(f"{out} is a file; name a folder for {what}", exit_code=2)
    if out.is_dir() and any(out.iterdir()) and not (out / mark).is_file():
        raise BuildError(
            f"{out} holds something other than {what} of msstab, and is left alone; "
            "name a folder that is new or empty",
            exit_code=2,
        )
    if around := next((own for own in out.absolute().parents if (own / MANIFEST).is_file()), None):
        raise BuildError(f"{out} lies inside the book {around}; name a folder outside", exit_code=2)
    try:
        targets.require_folder(out)
    except ValueError as error:
        raise BuildError(str(error), exit_code=2) from None


def publish(html: Path, out: Path, root: Path, *, mark: str = MANIFEST) -> None:
    """Move a finished book or site to `out`, in place of a former one; BuildError as above."""
    # On the same disk as `out`, since only there a rename happens at once.
    incoming, former = _aside(out, "incoming"), _aside(out, "former")
    out.parent.mkdir(parents=True, exist_ok=True)
    with _locked(root / "_build"):
        _restore(out)
        require_replaceable(out, mark=mark)
        shutil.rmtree(incoming, ignore_errors=True)
        try:
            shutil.move(html, incoming)
            if out.exists():
                os.rename(out, former)
            os.rename(incoming, out)
        finally:
            _restore(out)
            shutil.rmtree(incoming, ignore_errors=True)


def _restore(out: Path) -> None:
    """Finish what an interrupted swap left: put the former book back, or remove it."""
    former = _aside(out, "former")
    if former.is_dir() and not out.exists():
        os.rename(former, out)
    shutil.rmtree(former, ignore_errors=True)


def _aside(out: Path, purpose: str) -> Path:
    return out.parent / f".{out.name}.{purpose}"


def _remove_dead(parent: Path) -> None:
    """Remove the folders of builds whose process is gone."""
    for area in parent.glob("staging-*"):
        lock = _try_lock(area / "lock")
        if lock is not None:
            shutil.rmtree(area, ignore_errors=True)
            lock.close()


def _try_lock(path: Path) -> IO[str] | None:
    """Return the file, locked, or None if a living process holds it or it can't be had."""
    try:
        file = path.open("a")
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other builds of this clone out of the few steps that concern them all."""
    with (folder / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
