"""What the chapters of part II answer, each in a few computed sentences."""

from collections.abc import Mapping

from msstab import (
    by_track,
    quantised,
    rollouts,
    sentences_quantisation,
    sentences_sizes,
    sentences_structures,
    sentences_tracks,
    sizes,
    structured,
)
from msstab.quantised import Quantised
from msstab.rollouts import FreeRuns
from msstab.rollouts import sentences as sentences_rollouts
from msstab.sizes import Sizes
from msstab.structured import Structured
from msstab.study import Study
from msstab.surveys import Survey


def tracks(found: Mapping[str, Survey], judged: str) -> str:
    """Say on which tracks the judged arm changes an error, and where there is skill at all."""
    return f"{sentences_tracks.arm(found, judged)} {sentences_tracks.skill(found)}"


def networks(found: Sizes) -> str:
    """Say whether the judged arm's effect depends on the size of a network or on its cell."""
    trends = sentences_sizes.trends(found, found.arms[:1])
    return f"{sentences_sizes.everywhere(found)} {trends}"


def structures(found: Structured) -> str:
    """Say which structure of noise hurts most, and whether training for one protects from it."""
    return (
        f"{sentences_structures.most_harmful(found)} {sentences_structures.trained_for_it(found)}"
    )


def bits(found: Quantised) -> str:
    """Say whether rounding is predicted, and whether an arm does with fewer bits."""
    bought = sentences_quantisation.bits_bought(quantised.bought(found), "error under noise")
    return f"{sentences_quantisation.rounding_predicted(found)} {bought}"


def free_runs(found: Mapping[str, FreeRuns]) -> str:
    """Say how long free runs hold, on the track of the third question."""
    return sentences_rollouts.answer(next(iter(found.values())))


def every(study: Study) -> dict[str, str]:
    """Return the answer of each chapter of part II, by what the chapter is about.

    Reads what a build has run; what has not been run is run.
    """
    return {
        "Other tracks": tracks(by_track.run(study), study.arms[1]),
        "Sizes and cells": networks(sizes.collect(study)),
        "Structured uncertainty": structures(structured.collect(study)),
        "Few bits": bits(quantised.collect(study)),
        "Free runs": free_runs(rollouts.collect(study)),
    }
