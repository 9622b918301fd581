"""Part II's smaller studies: the judged comparison again, with one thing changed at a time."""

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple, TypeVar

import joblib

from msstab import experiment, results, tracks
from msstab.experiment import Experiment, Progress
from msstab.results import ArmComparison
from msstab.study import Study, parse

Key = TypeVar("Key", bound=Hashable)

FEWER = {"draws": 16, "mechanism_sequences": 32}
"""Noise draws and sequences of a survey's networks, where the Study has more."""


class Survey(NamedTuple):
    """One smaller study's runs, and its comparisons with the baseline by arm."""

    experiment: Experiment
    arms: dict[str, ArmComparison]

    @property
    def study(self) -> Study:
        """The parameters of these runs."""
        return self.experiment.study


def variant(study: Study, **changes: Any) -> Study:
    """Return the smaller study of part II, with these parameters changed.

    It compares the baseline, the judged arm and those of `study.survey_arms` that the Study has,
    each on `study.survey_seeds` pairs, at the noise level of the test only. Raises StudyError for
    a change that cannot be made.
    """
    others = [arm for arm in study.survey_arms if arm in study.arms[2:]]
    if not tracks.is_own(changes.get("track", study.track)):
        # What says how a series of one's own is used has no meaning for another track.
        changes = {**{n: Study.model_fields[n].default for n in tracks.FIELDS}, **changes}
    smaller = {
        "arms": (*study.arms[:2], *others),
        "seeds": study.survey_seeds,
        "other_seeds": study.survey_seeds,
        "tuning_seeds": study.survey_tuning_seeds,
        # Without noise in the test the grid still takes a level.
        "sigma_grid": (study.sigma_test or study.sigma_grid[0],),
        **{name: min(fewer, getattr(study, name)) for name, fewer in FEWER.items()},
    }
    return parse({**smaller, **changes}, study)


def collect(
    variants: Mapping[Key, Study], *, jobs: int | None = None, progress: Progress | None = None
) -> dict[Key, Survey]:
    """Return each variant's runs and comparisons; what has been run before is read.

    `jobs` processes share what is to be run, by default one for each core; `progress(done, total)`
    is told of all of it, the total growing as one variant after the other begins.
    """
    found: dict[Key, Survey] = {}
    before = 0
    for name, study in variants.items():
        last = 0

        def advance(done: int, total: int, before: int = before) -> None:
            nonlocal last
            last = total
            if progress:
                progress(before + done, before + total)

        runs = experiment.run(study, jobs=jobs or joblib.cpu_count(), progress=advance)
        before += last
        arms = {arm: results.compare_arm(runs, arm) for arm in study.arms[1:]}
        found[name] = Survey(runs, arms)
    return found
