"""Figures that set all tracks side by side."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from msstab import by_track
from msstab.explorer import Explorer
from msstab.figures.across import draw_forest
from msstab.figures.axes import identity
from msstab.figures.comparison import paired
from msstab.figures.training import drawn_sequences
from msstab.surveys import Survey
from msstab.svg import BLUE, PALETTE, VERMILLION, Picture, style
from msstab.tables import spoken
from msstab.tracks import Split, Track

COLUMNS = 2
SHOWN = 2
"""Panels side by side, and sequences in each."""


def track_sequences(splits: Mapping[str, tuple[Track, Split]]) -> Picture:
    """Draw two sequences of each track, inputs and targets, of the first component."""
    with style():
        figure, grid = _panels(list(splits))
        said, rows = [], []
        for axes, (name, (made, split)) in zip(grid, splits.items(), strict=True):
            length = split.inputs.shape[1]
            times = np.arange(length - made.steps + 1, length + 1) + made.horizon
            size = 6 if made.steps == 1 else 1.3
            for k, colour in zip(range(min(SHOWN, len(split.inputs))), PALETTE, strict=False):
                axes.plot(
                    range(1, length + 1), split.inputs[k, :, 0], ".-", color=colour, ms=2, lw=0.8
                )
                axes.plot(times, split.targets[k, :, 0], "D", color=colour, ms=size)
            said.append(f"{name}, {length} inputs")
            rows.append(drawn_sequences(split, times, SHOWN).assign(track=name))
        figure.supxlabel("step", fontsize=11)
        figure.supylabel("standard deviations", fontsize=11)
        return Picture(
            figure,
            f"Two test sequences of each track, and what is to be predicted: {'; '.join(said)}.",
            pd.concat(rows),
        )


def track_forest(found: Mapping[str, Survey], arm: str, sesoi: float) -> Picture:
    """Draw an arm's ratio to the baseline on every track with its interval, on both questions.

    A filled mark differs after Holm's adjustment over all tracks and both questions.
    """
    compared = by_track.compared(found, arm)
    titles = {"clean": "clean error", "noisy": "error under noise"}
    p_values = by_track.adjusted(found, arm)
    lead = (
        f"Geometric mean ratio of the error with {spoken(arm)} to the baseline's on each track, "
        "with its interval; filled where it differs from 1 after Holm's adjustment for the number "
        "of tracks and questions."
    )
    return draw_forest(
        {titles[question]: own for question, own in compared.items()},
        {titles[question]: own for question, own in p_values.items()},
        sesoi,
        lead,
    )


def track_pairs(found: Mapping[str, Survey]) -> Explorer:
    """Draw every seed's pair of errors, a figure for each track, arm and error."""
    return Explorer(
        ("track", "arm", "error"),
        {
            (track, spoken(arm), title): paired(comparison, ("baseline", "with the arm"))
            for track, survey in found.items()
            for arm, own in survey.arms.items()
            for title, comparison in (("clean", own.clean), ("under noise", own.noisy))
        },
    )


def track_predictions(found: Mapping[str, Survey]) -> Picture:
    """Draw predicted against observed output variance of each track's networks."""
    with style():
        figure, grid = _panels(list(found))
        said, points = [], []
        for axes, (track, survey) in zip(grid, found.items(), strict=True):
            rows = by_track.predictions(survey)
            points.append(rows[_VARIANCES].assign(track=track))
            for own, colour in (
                (rows[rows.arm != "baseline"], VERMILLION),
                (rows[rows.arm == "baseline"], BLUE),
            ):
                axes.loglog(
                    own.predicted_variance, own.observed_variance, ".", color=colour, ms=4,
                    alpha=0.6,
                )  # fmt: skip
            identity(axes)
            said.append(f"{track} {by_track.prediction(survey).log_rmse:.2g}")
        figure.supxlabel("predicted output variance", fontsize=11)
        figure.supylabel("observed", fontsize=11)
        return Picture(
            figure,
            "Predicted against observed output variance, a panel for each track and a point for "
            f"each network, with the line of equality; log-rmse: {'; '.join(said)}.",
            pd.concat(points),
        )


_VARIANCES = ["arm", "seed", "predicted_variance", "observed_variance"]


def _panels(titles: list[str]) -> tuple[Figure, list[Axes]]:
    """Return small axes with scales of their own, one for each title, and their figure."""
    rows = -(-len(titles) // COLUMNS)
    figure, grid = plt.subplots(rows, COLUMNS, squeeze=False, figsize=(5.4, 0.7 + 1.4 * rows))
    axes: list[Axes] = list(grid.flat)
    for own, title in zip(axes, titles, strict=False):
        own.set_title(spoken(title), fontsize=9.5)
        own.tick_params(labelsize=8)
    for spare in axes[len(titles) :]:
        spare.set_axis_off()
    return figure, axes[: len(titles)]
