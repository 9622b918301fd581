"""What the chapters of part II need run beside the study's own trials, by chapter."""

from typing import Protocol

from msstab import rollouts
from msstab.experiment import Progress
from msstab.study import Study


class Part(Protocol):
    """Runs what is missing for a chapter; the chapter calls the same, and finds all of it kept."""

    def __call__(
        self, study: Study, *, jobs: int | None = None, progress: Progress | None = None
    ) -> object:
        """`jobs` processes share the work; `progress(done, total)` is told of it."""


PARTS: dict[str, Part] = {
    "10_rollouts": rollouts.collect,
}
"""By the name of the notebook without its ending, such as `06_tracks`."""
