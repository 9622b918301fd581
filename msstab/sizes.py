"""Chapter 7: the comparison at several sizes of several cells, on what a large network can bear."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msstab import agreements, judgement, surveys
from msstab.agreements import Agreement
from msstab.cells import CELLS
from msstab.evidence import Trend, log_ratios, trend
from msstab.experiment import Progress
from msstab.results import Comparison
from msstab.study import Study
from msstab.surveys import FEWER, Survey

Place = tuple[str, int]
"""A cell and its hidden units."""

AFFORDABLE_STATE = 16
"""Rows of a state up to which a network is compared on all of the survey's seeds."""

LARGEST_STATE = 128
"""Rows of a state beyond which nothing is run: its second moments alone would take a survey's
time, for their cost grows with the cube of the rows and that of their radius faster still."""

FEWEST_PAIRS, FEWEST_SEQUENCES = 8, 8
"""What the largest networks keep, of pairs and of sequences for the mechanism."""

QUESTIONS = {"clean": "clean error", "noisy": "error under noise"}
"""What the trend is of, by the name of the comparison."""


class Sizes(NamedTuple):
    """The surveys by cell and size, and the places that are too large to be run."""

    study: Study
    surveys: dict[Place, Survey]
    left_out: list[Place]

    @property
    def arms(self) -> list[str]:
        """The arms beside the baseline."""
        return list(next(iter(self.surveys.values())).arms)

    @property
    def cells(self) -> dict[str, list[int]]:
        """The sizes of each cell, in increasing order."""
        found: dict[str, list[int]] = {}
        for cell, size in sorted(self.surveys, key=lambda place: place[1]):
            found.setdefault(cell, []).append(size)
        return {cell: found[cell] for cell in self.study.survey_cells if cell in found}


def collect(study: Study, *, jobs: int | None = None, progress: Progress | None = None) -> Sizes:
    """Return the surveys of all cells and sizes; what has been run before is read."""
    variants = plan(study)
    made = surveys.collect(variants, jobs=jobs, progress=progress)
    wanted = [(cell, size) for cell in study.survey_cells for size in study.survey_sizes]
    return Sizes(study, made, [place for place in wanted if place not in variants])


def plan(study: Study) -> dict[Place, Study]:
    """Return the smaller study of each cell and size whose state is not too large.

    Beyond `AFFORDABLE_STATE` rows of a state, seeds and sequences fall in proportion, for all arms
    alike, and noise draws rise so that a simulated variance rests on as many numbers. If every
    state is too large, the smallest is run.
    """
    rows = {
        (cell, size): CELLS[cell].parts * size * study.layers
        for cell in study.survey_cells
        for size in study.survey_sizes
    }
    limit = max(LARGEST_STATE, min(rows.values()))
    return {
        (cell, size): _variant(study, cell, size, min(1.0, AFFORDABLE_STATE / n))
        for (cell, size), n in rows.items()
        if n <= limit
    }


def _variant(study: Study, cell: str, size: int, share: float) -> Study:
    pairs = max(min(FEWEST_PAIRS, study.survey_seeds), round(share * study.survey_seeds))
    most = min(FEWER["mechanism_sequences"], study.mechanism_sequences)
    sequences = max(min(FEWEST_SEQUENCES, most), round(share * most))
    draws = round(min(FEWER["draws"], study.draws) * most / sequences)
    return surveys.variant(
        study,
        cell=cell,
        hidden=size,
        seeds=pairs,
        other_seeds=pairs,
        tuning_seeds=max(2, round(share * study.survey_tuning_seeds)),
        mechanism_sequences=sequences,
        draws=draws,
    )


def comparisons(found: Sizes, arm: str, question: str) -> dict[Place, Comparison]:
    """Return an arm's comparison at every place; `question` is one of `QUESTIONS`, or "price"."""
    return {place: getattr(s.arms[arm], question) for place, s in found.surveys.items()}


def trends(found: Sizes, arm: str, question: str) -> dict[str, Trend]:
    """Return, by cell, how the log ratio of an arm's errors goes with log2 of the hidden units.

    Cells of which fewer than two sizes were run are left out.
    """
    compared = comparisons(found, arm, question)
    return {
        cell: trend(
            np.log2(sizes),
            [_logs(compared[cell, size]) for size in sizes],
            1 - found.study.alpha,
        )
        for cell, sizes in found.cells.items()
        if len(sizes) > 1
    }


def _logs(compared: Comparison) -> NDArray[np.float64]:
    return log_ratios(compared.baseline, compared.idea)


def mechanism(found: Sizes) -> pd.DataFrame:
    """Return what theory says of the networks of every cell, size and arm.

    Medians over the networks of the question under noise: radius, growth rate, predicted and
    observed output variance.
    """
    rows = []
    for (cell, size), survey in found.surveys.items():
        robust = survey.experiment.table[survey.experiment.table.role == "robust"]
        for arm, own in robust.groupby("arm", sort=False):
            medians = own[["radius", "growth_rate", "predicted_variance", "observed_variance"]]
            rows.append(
                {
                    "cell": cell,
                    "size": size,
                    "arm": str(arm),
                    **medians.median().to_dict(),
                    "networks": len(own),
                    "diverged": int(own.diverged.sum()),
                }
            )
    return pd.DataFrame(rows)


def predictions(found: Sizes) -> dict[Place, Mapping[str, Agreement]]:
    """Return rule R1's agreement at every place, and its placebo's: over networks that learnt.

    As `judgement.judge` takes them, all variants that tuning tried whose mean test error is below
    the ridge autoregression's.
    """
    agreed: dict[Place, Mapping[str, Agreement]] = {}
    for place, survey in found.surveys.items():
        learnt, _ = judgement.learnt(survey.experiment)
        agreed[place] = {
            kind: agreements.agreement(learnt[f"{kind}_variance"], learnt.observed_variance)
            for kind in ("predicted", "placebo")
        }
    return agreed
