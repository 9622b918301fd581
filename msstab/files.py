"""Find the files that a person names, from wherever a chapter or another process runs."""

import os
from pathlib import Path

FOLDERS = "MSSTAB_FOLDERS"
"""Environment variable, for this process and those it starts: where named files may lie."""


def remember(folder: Path) -> None:
    """Look into a folder first from now on, here and in processes started later."""
    known = [str(folder.resolve()), *_remembered()]
    os.environ[FOLDERS] = os.pathsep.join(dict.fromkeys(known))


def find(path: str) -> Path:
    """Find a file by its path from a remembered folder, the working folder or one above it.

    Chapters run in a folder of their own, so that it need not be the caller's. Raises ValueError
    if there is none.
    """
    here = Path.cwd()
    for folder in (*map(Path, _remembered()), here, *here.parents):
        if (folder / path).is_file():
            return folder / path
    raise ValueError(f"there is no file {path} here")


def _remembered() -> list[str]:
    return [folder for folder in os.environ.get(FOLDERS, "").split(os.pathsep) if folder]
