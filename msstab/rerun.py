"""One chapter alone: its trials with these parameters, and its executed notebook."""

import tempfile
from pathlib import Path

from msstab import book, store, targets
from msstab.publishing import BuildError
from msstab.study import Study, nearest

OWN_TRIALS = "results.collect(study)"
"""What a chapter calls that reads the study's own trials."""


def chapters(root: Path | None = None) -> list[str]:
    """Return the names of all notebooks, in order; raise BuildError outside of a project."""
    folder = (root or book.find_root()) / "notebooks"
    return sorted(path.stem for path in folder.glob("*.ipynb"))


def find(name: str, root: Path) -> Path:
    """Return a chapter's notebook; raise BuildError, which names the nearest, for another name."""
    known = chapters(root)
    stem = Path(name).name.removesuffix(".ipynb")
    if stem not in known:
        raise BuildError(f"there is no chapter {name}; {nearest(stem, known)}", exit_code=2)
    return root / "notebooks" / f"{stem}.ipynb"


def run(study: Study, chapter: Path, out: Path, root: Path, *, jobs: int = 1) -> None:
    """Run what a chapter needs, then the chapter, and write the executed notebook to `out`.

    A former notebook stays as it is until the new one is there. Raises BuildError for a cell that
    fails and for an `out` where no notebook can be written or a chapter is kept, StudyError for
    what the study cannot do here.
    """
    try:
        targets.require_file(out, ".ipynb")
    except ValueError as error:
        raise BuildError(str(error), exit_code=2) from None
    if out.resolve().parent == chapter.resolve().parent:
        raise BuildError(f"{out} lies among the chapters themselves; name another folder", 2)
    book.find_chapters(root, [f"notebooks/{chapter.stem}"])
    timings: dict[str, float] = {}
    with book.environment(root) as variables, tempfile.TemporaryDirectory() as folder:
        # Whatever is missing a chapter would also train by itself, without saying how far it is.
        if OWN_TRIALS in chapter.read_text(encoding="utf-8"):
            book.run_trials(study, jobs, timings)
        book.run_parts(study, [chapter], jobs, timings)
        book.narrate(study, [chapter], Path(folder), 1, variables)
        store.replace(out, Path(folder, "notebooks", chapter.name).read_bytes())
