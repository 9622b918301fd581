"""What a study would still train and score, and how long that takes by what was timed before."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from msstab import experiment, parts, store
from msstab.experiment import Foresight
from msstab.study import Study
from msstab.trials import Trial

GUESSED_TRAINING, GUESSED_SCORING = 0.15, 0.3
"""Seconds to train and to score a network where none has been timed: those of one machine."""

UNCOUNTED = ("own_idea",)
"""Chapters that make up their studies while they run."""

TIMED_HERE = "timed in this study"

TIMED = 64
"""Kept networks, at most, whose seconds are read for each arm."""


class Stage(NamedTuple):
    """Trials of the study itself or of a chapter's smaller studies.

    `kept`, `train`: networks that are and are not in the cache; `score`: scores that are not;
    `later`: about as many more networks to train and to score, which tuning has yet to name.
    """

    name: str
    kept: int
    train: int
    score: int
    later: int
    seconds: float


class Outlook(NamedTuple):
    """The stages, the seconds on so many jobs, what they rest on, and chapters left out."""

    stages: list[Stage]
    jobs: int
    seconds: float
    basis: str
    unforeseen: list[str]


def outlook(study: Study, chapters: Iterable[str], *, jobs: int = 1) -> Outlook:
    """Return what building the book of a study with these chapters would run.

    Nothing is trained, and nothing is written. Chapters of part II that run trials of their own
    and don't say which are named in `unforeseen`.
    """
    names = list(chapters)
    studies = {"trials": [study]}
    for name in names:
        if name in parts.STUDIES:
            studies[f"trials of {name}"] = list(parts.STUDIES[name](study))
    seen = {name: [experiment.foresee(s) for s in own] for name, own in studies.items()}
    everything = [foresight for own in seen.values() for foresight in own]
    pace, basis = _pace(study, [trial for f in everything for trial in f.kept])
    stages = [_stage(name, own, pace) for name, own in seen.items()]
    silent = {*parts.PARTS, *UNCOUNTED} - parts.STUDIES.keys()
    unforeseen = [name for name in names if name in silent]
    seconds = sum(stage.seconds for stage in stages) / jobs
    return Outlook(stages, jobs, seconds, basis, unforeseen)


def to_json(found: Outlook) -> dict[str, Any]:
    """Return an outlook for programs."""
    return {**found._asdict(), "stages": [stage._asdict() for stage in found.stages]}


def to_texts(found: Outlook) -> Iterator[tuple[str, ...]]:
    """Yield each stage as a terminal shows it, its time on the jobs there are."""
    for stage in found.stages:
        counts = (stage.kept, stage.train, stage.score, stage.later)
        yield stage.name, *map(str, counts), duration(stage.seconds / found.jobs)


def notes(found: Outlook) -> list[str]:
    """Return what a table of an outlook does not say, each as a sentence."""
    total = duration(found.seconds)
    said = [
        f"About {total} on {found.jobs} process{'es' if found.jobs > 1 else ''}: {found.basis}."
    ]
    if any(stage.later for stage in found.stages):
        said.append(
            "Later: networks that tuning has yet to name, of which the plan may ask for more or "
            "fewer, after a wider grid if need be."
        )
    if found.unforeseen:
        said.append(f"Not counted: what {', '.join(found.unforeseen)} would run.")
    return said


def duration(seconds: float) -> str:
    """Write a time as a person would, from seconds to hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


class _Pace(NamedTuple):
    """Seconds to train a network, by arm where such were timed, and to score one."""

    by_arm: dict[str, float]
    training: float
    scoring: float


def _stage(name: str, seen: Sequence[Foresight], pace: _Pace) -> Stage:
    train = [trial for foresight in seen for trial in foresight.to_train]
    later = sum(foresight.later for foresight in seen)
    score = sum(foresight.to_score for foresight in seen)
    # An untrained network is drawn, and takes no time.
    training = sum(pace.by_arm.get(t.arm, pace.training) for t in train if t.epochs)
    return Stage(
        name,
        kept=sum(len(foresight.kept) for foresight in seen),
        train=len(train),
        score=score,
        later=later,
        seconds=training + later * pace.training + pace.scoring * (score + later),
    )


def _pace(study: Study, kept: Sequence[Trial]) -> tuple[_Pace, str]:
    """Return the seconds that a network takes, and a clause that says how they are known."""
    by_arm: dict[str, list[str]] = {}
    for trial in kept:
        if trial.epochs:
            by_arm.setdefault(trial.arm, []).append(trial.key)
    timed = {arm: _seconds("train", keys[-TIMED:]) for arm, keys in by_arm.items()}
    means = {arm: float(np.mean(found)) for arm, found in timed.items() if found}
    if means:
        training, trained = float(np.mean(list(means.values()))), TIMED_HERE
    else:
        training, trained = _elsewhere("train", GUESSED_TRAINING)
    if own := _seconds("pace", [study.key]):
        scoring, scored = own[0], TIMED_HERE
    else:
        scoring, scored = _elsewhere("pace", GUESSED_SCORING)
    basis = f"training a network takes {training:.2g} s ({trained}), scoring it {scoring:.2g} s"
    return _Pace(means, training, scoring), f"{basis} ({scored})"


def _elsewhere(kind: str, guess: float) -> tuple[float, str]:
    """Return the mean seconds of the newest entries of a kind, or else a guess; and which."""
    files = store.path_of(kind, "00").parents[1].glob("*/*.npz")
    newest = sorted(files, key=lambda path: path.stat().st_mtime)[-TIMED:]
    if found := _seconds(kind, [path.stem for path in newest]):
        return float(np.mean(found)), "timed in other studies"
    return guess, "a guess"


def _seconds(kind: str, keys: Iterable[str]) -> list[float]:
    """Return how long each of these kept entries took, where that is known."""
    found = [store.load(kind, key) for key in keys]
    times = [float(arrays["seconds"]) for arrays in found if arrays and "seconds" in arrays]
    return [time for time in times if np.isfinite(time)]
