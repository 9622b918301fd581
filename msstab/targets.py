"""Refuse a place to write to before any work is done, rather than after it."""

import os
from pathlib import Path


def require_folder(path: Path) -> None:
    """Raise ValueError unless there is a folder that takes files, or one can be made there."""
    absolute = path.absolute()
    nearest = next(own for own in (absolute, *absolute.parents) if os.path.exists(own))
    if not nearest.is_dir():
        raise ValueError(f"{nearest} is a file, and not a folder to write to")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ValueError(f"no permission to write in {nearest}")


def require_file(path: Path, ending: str) -> None:
    """Raise ValueError unless a file that ends so can be written, or replaced, at `path`."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file that ends in {ending}")
    if path.suffix != ending:
        raise ValueError(f"{path} does not end in {ending}; name a file that does")
    require_folder(path.parent)
