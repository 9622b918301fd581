"""Chapter 6: on every track, is there skill, and does the judged arm change anything."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msstab import agreements, arms, results, surveys, tracks
from msstab.agreements import Agreement
from msstab.experiment import Progress
from msstab.families import holm_across
from msstab.results import Comparison
from msstab.study import Study
from msstab.surveys import Survey
from msstab.verdict import Outcome

NAIVE = {
    "constant_mse": "constant",
    "persistence_mse": "persistence",
    "ridge_mse": "linear",
}
"""Forecasts that need no network, by the score that holds their error."""

QUESTIONS = ("clean", "noisy")


class Skill(NamedTuple):
    """The tuned baseline of a track beside the best of the forecasts that need no network.

    `errors` are mean test errors by forecast; `comparison` pairs the network with the best one.
    """

    errors: dict[str, float]
    best: str
    network: float
    comparison: Comparison

    @property
    def skilled(self) -> bool:
        """Whether the network's error is shown to be lower."""
        return self.comparison.decision.outcome is Outcome.BETTER


def run(
    study: Study, *, jobs: int | None = None, progress: Progress | None = None
) -> dict[str, Survey]:
    """Run or read the smaller study of each track."""
    return surveys.collect(plan(study), jobs=jobs, progress=progress)


def plan(study: Study) -> dict[str, Study]:
    """Return the smaller study of each track, a series of the reader's own first.

    A track on which the judged arm makes no sense is left out, see `left_out`; an arm that part II
    adds is left out where it makes none.
    """
    variants = {}
    for name in named(study):
        fitting = tuple(arm for arm in study.arms if _fits(arm, study, name))
        if fitting[:2] == study.arms[:2]:
            variants[name] = surveys.variant(study, track=name, arms=_surveyed(study, fitting))
    return variants


def named(study: Study) -> list[str]:
    """Return the tracks compared: those of `survey_tracks`, and a series of the reader's own."""
    own = [study.track] if tracks.is_own(study.track) else []
    return list(dict.fromkeys([*own, *study.survey_tracks]))


def left_out(study: Study) -> list[str]:
    """Return the tracks whose forecasts cannot be fed back, if the judged arm does that."""
    return [name for name in named(study) if not _fits(study.arms[1], study, name)]


def definition(study: Study, name: str) -> tracks.Track:
    """Return one of the tracks compared."""
    return tracks.of(study.model_copy(update={"track": name}))


def _fits(arm: str, study: Study, name: str) -> bool:
    found = arms.find(arm)
    return not (found and found.closed) or definition(study, name).closed


def _surveyed(study: Study, fitting: tuple[str, ...]) -> tuple[str, ...]:
    others = [arm for arm in study.survey_arms if arm in fitting[2:]]
    return (*fitting[:2], *others)


def skill(survey: Survey) -> Skill:
    """Compare a track's tuned baseline with the forecast of lowest mean error among the naive."""
    table = survey.experiment.table
    rows = table[(table.arm == "baseline") & (table.role == "selected")].sort_values("seed")
    errors = {
        name: float(rows[score].mean())
        for score, name in NAIVE.items()
        if rows[score].notna().all()
    }
    best = min(errors, key=lambda name: errors[name])
    score = next(score for score, name in NAIVE.items() if name == best)
    s = survey.study
    compared = results.compare(
        "network and naive forecast",
        rows[score].to_numpy(),
        rows.test_mse.to_numpy(),
        alpha=s.alpha,
        sesoi=s.sesoi,
    )
    return Skill(errors, best, float(rows.test_mse.mean()), compared)


def compared(found: Mapping[str, Survey], arm: str) -> dict[str, dict[str, Comparison]]:
    """Return an arm's comparisons by question and track, where the arm was run."""
    return {
        question: {
            track: getattr(survey.arms[arm], question)
            for track, survey in found.items()
            if arm in survey.arms
        }
        for question in QUESTIONS
    }


def adjusted(found: Mapping[str, Survey], arm: str) -> dict[str, dict[str, float]]:
    """Return p values by question and track, by Holm over all of them together."""
    family = {
        f"{question} {track}": c
        for question, by_track in compared(found, arm).items()
        for track, c in by_track.items()
    }
    p_values = holm_across(family)
    return {
        question: {track: p_values[f"{question} {track}"] for track in by_track}
        for question, by_track in compared(found, arm).items()
    }


def outcome(comparison: Comparison, p_adjusted: float) -> Outcome:
    """Return what a comparison says among all tracks: a difference must survive the adjustment."""
    judged = comparison.evidence.judged
    if p_adjusted <= judged.alpha:
        return Outcome.BETTER if judged.mean < 0 else Outcome.WORSE
    if comparison.decision.outcome is Outcome.EQUIVALENT:
        return Outcome.EQUIVALENT
    return Outcome.INCONCLUSIVE


def errors_by_arm(
    found: Mapping[str, Survey], question: str = "clean"
) -> dict[str, NDArray[np.float64]]:
    """Return each arm's errors on all tracks and seeds (problems,), of the arms run on all."""
    everywhere = [
        arm
        for arm in next(iter(found.values())).arms
        if all(arm in survey.arms for survey in found.values())
    ]
    own: dict[str, list[NDArray[np.float64]]] = {"baseline": [], **{arm: [] for arm in everywhere}}
    for survey in found.values():
        of_track = [getattr(survey.arms[arm], question) for arm in everywhere]
        pairs = min(len(c.idea) for c in of_track)
        own["baseline"].append(of_track[0].baseline[:pairs])
        for arm, c in zip(everywhere, of_track, strict=True):
            own[arm].append(c.idea[:pairs])
    return {arm: np.concatenate(errors) for arm, errors in own.items()}


def predictions(survey: Survey) -> pd.DataFrame:
    """Return the confirmation networks of a track that did not diverge."""
    table = survey.experiment.table
    rows: pd.DataFrame = table[~table.role.isin(["tuning", "untrained"]) & ~table.diverged]
    return rows


def prediction(survey: Survey) -> Agreement:
    """Compare predicted and observed output variance over a track's confirmation networks."""
    rows = predictions(survey)
    return agreements.agreement(rows.predicted_variance, rows.observed_variance)
