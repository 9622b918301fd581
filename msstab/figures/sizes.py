"""Figures of how effects and theory go with the size of a network, cell by cell."""

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from msstab import sizes
from msstab.figures.axes import cycle, panels, plain_ticks, ratio_ticks
from msstab.sizes import QUESTIONS, Sizes
from msstab.svg import GREY, Picture, style
from msstab.tables import spoken


def effects_by_size(found: Sizes) -> Picture:
    """Draw each arm's error relative to the baseline's against the hidden units, a line a cell.

    A row for each arm, a column for each question; dashed: the fitted trend.
    """
    with style():
        figure, grid = plt.subplots(
            len(found.arms), len(QUESTIONS), sharex=True, sharey="row", squeeze=False,
            figsize=(5.4, 1.3 + 1.9 * len(found.arms)),
        )  # fmt: skip
        said = []
        for row, arm in zip(grid, found.arms, strict=True):
            for axes, (question, title) in zip(row, QUESTIONS.items(), strict=True):
                said.append(f"{spoken(arm)}, {title}: {_draw_effects(axes, found, arm, question)}")
                axes.set_title(f"{spoken(arm)}, {title}", fontsize=9.5)
            ratio_ticks(row[0].yaxis)
        _size_ticks(grid[0, 0].xaxis, found.study.survey_sizes)
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=len(labels))
        figure.supxlabel("hidden units", fontsize=11)
        figure.supylabel("error relative to the baseline's", fontsize=11)
        return Picture(
            figure,
            "Geometric mean ratio of the error to the baseline's by number of hidden units, with "
            f"intervals. {'. '.join(said)}.",
            pd.DataFrame(_effects(found)),
        )


def _effects(found: Sizes) -> Iterator[dict[str, object]]:
    """Yield what is drawn of each comparison."""
    for arm in found.arms:
        for question, title in QUESTIONS.items():
            for (cell, size), c in sizes.comparisons(found, arm, question).items():
                row = {"arm": arm, "error": title, "cell": cell, "hidden_units": size}
                r = c.evidence.ratios
                yield row | {"ratio": r.ratio} | r.interval._asdict()


def _draw_effects(axes: Axes, found: Sizes, arm: str, question: str) -> str:
    """Draw an arm's effect on one question for every cell; return it in words."""
    compared = sizes.comparisons(found, arm, question)
    fitted, said = sizes.trends(found, arm, question), []
    axes.axhline(1, color=GREY, lw=0.8, ls=":")
    axes.loglog()
    # Beside each other, so that intervals of one size can be told apart.
    shifts = 2 ** (0.12 * (np.arange(len(found.cells)) - (len(found.cells) - 1) / 2))
    for (cell, own), colour, shift in zip(
        found.cells.items(), cycle(len(found.cells)), shifts, strict=True
    ):
        ratios = [compared[cell, size].evidence.ratios for size in own]
        x = shift * np.array(own)
        for at, r in zip(x, ratios, strict=True):
            axes.plot([at, at], r.interval, "-", color=colour, lw=1.5)
        axes.plot(x, [r.ratio for r in ratios], "o", color=colour, ms=4, label=cell.upper())
        if cell in fitted:
            line = np.exp(fitted[cell].intercept + fitted[cell].slope * np.log2(own))
            axes.plot(own, line, "--", color=colour, lw=1)
        values = ", ".join(f"{r.ratio:.2f} at {size}" for r, size in zip(ratios, own, strict=True))
        said.append(f"{cell.upper()} {values}")
    return "; ".join(said)


def theory_by_size(frame: pd.DataFrame) -> Picture:
    """Draw the radius and the predicted output variance against the hidden units.

    `frame` as `sizes.mechanism` returns it. A row for each cell, a line for each arm.
    """
    quantities = {"radius": "radius of L", "predicted_variance": "predicted variance"}
    cells, arms = list(frame.cell.unique()), list(frame.arm.unique())
    with style():
        figure, grid = plt.subplots(
            len(cells), len(quantities), sharex=True, sharey="col", squeeze=False,
            figsize=(5.4, 0.9 + 1.7 * len(cells)),
        )  # fmt: skip
        said = []
        for row, cell in zip(grid, cells, strict=True):
            for axes, (name, title) in zip(row, quantities.items(), strict=True):
                axes.set_title(f"{str(cell).upper()}, {title}", fontsize=9.5)
                for arm, colour in zip(arms, cycle(len(arms)), strict=True):
                    own = frame[(frame.cell == cell) & (frame.arm == arm)].sort_values("size")
                    axes.plot(
                        own["size"], own[name], "o-", color=colour, ms=4, lw=1.5, label=spoken(arm)
                    )
                    ends = f"{own[name].iloc[0]:.2g} to {own[name].iloc[-1]:.2g}"
                    said.append(f"{str(cell).upper()}, {spoken(arm)}, {title} {ends}")
            row[0].axhline(1, color=GREY, lw=0.8, ls=":")
        grid[0, 0].set_xscale("log")
        grid[0, 1].set_yscale("log")
        _size_ticks(grid[0, 0].xaxis, sorted(frame["size"].unique()))
        plain_ticks(grid[0, 1].yaxis)
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=len(labels))
        figure.supxlabel("hidden units", fontsize=11)
        return Picture(
            figure,
            "Median radius of the second-moment operator and predicted output variance from the "
            f"smallest to the largest size: {'; '.join(said)}.",
            frame,
        )


def agreement_by_size(found: Sizes, limit: float) -> Picture:
    """Draw the prediction's log-rmse and its placebo's against the hidden units, a panel a cell.

    `limit` is rule R1's.
    """
    agreed = sizes.predictions(found)
    with style():
        figure, grid = panels([cell.upper() for cell in found.cells])
        figure.set_size_inches(5.4, 2.8)
        said = []
        for axes, (cell, own) in zip(grid, found.cells.items(), strict=True):
            axes.axhline(limit, color=GREY, lw=1, ls=":")
            axes.loglog()
            for (kind, label), colour in zip(
                (("predicted", "prediction"), ("placebo", "another network's Jacobians")),
                cycle(2),
                strict=True,
            ):
                errors = [agreed[cell, size][kind].log_rmse for size in own]
                axes.plot(own, errors, "o-", color=colour, ms=4, lw=1.5, label=label)
                values = ", ".join(f"{e:.2f} at {n}" for e, n in zip(errors, own, strict=True))
                said.append(f"{cell.upper()}, {label}: {values}")
            axes.update_datalim([(own[0], limit / 3), (own[-1], 3 * limit)])
        _size_ticks(grid[0].xaxis, found.study.survey_sizes)
        plain_ticks(grid[0].yaxis)
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=2)
        figure.supxlabel("hidden units", fontsize=11)
        figure.supylabel("log-rmse", fontsize=11)
        rows = [
            {"cell": cell, "hidden_units": size}
            | {f"{kind}_log_rmse": by_kind[kind].log_rmse for kind in ("predicted", "placebo")}
            for (cell, size), by_kind in agreed.items()
        ]
        return Picture(
            figure,
            f"Error of the predicted output variance by hidden units. {'; '.join(said)}.",
            pd.DataFrame(rows),
        )


def _size_ticks(axis: Axis, values: Iterable[int]) -> None:
    """Label a logarithmic axis at the sizes that were run."""
    axis.set_major_locator(FixedLocator([float(value) for value in values]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
