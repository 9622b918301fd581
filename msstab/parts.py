"""What the chapters of part II need run beside the study's own trials, by chapter."""

from collections.abc import Callable, Iterable
from typing import Protocol

from msstab import by_track, quantised, rollouts, sizes, structured
from msstab.experiment import Progress
from msstab.study import Study


class Part(Protocol):
    """Runs what is missing for a chapter; the chapter calls the same, and finds all of it kept."""

    def __call__(
        self, study: Study, *, jobs: int | None = None, progress: Progress | None = None
    ) -> object:
        """`jobs` processes share the work; `progress(done, total)` is told of it."""


FREE_RUNS = "10_rollouts"
"""The chapter that answers the third question."""

free_run = rollouts.free_run_comparison

PARTS: dict[str, Part] = {
    "06_tracks": by_track.run,
    "07_sizes": sizes.collect,
    "08_uncertainty": structured.collect,
    "09_quantisation": quantised.collect,
    FREE_RUNS: rollouts.collect,
}
"""By the name of the notebook without its ending, such as `06_tracks`."""

STUDIES: dict[str, Callable[[Study], Iterable[Study]]] = {
    "06_tracks": lambda study: by_track.plan(study).values(),
    "07_sizes": lambda study: sizes.plan(study).values(),
    FREE_RUNS: lambda study: rollouts.plan(study).values(),
}
"""By the same names, the smaller studies that a chapter runs, so that a plan can count them.

A chapter whose studies follow from what it measures first has none.
"""
