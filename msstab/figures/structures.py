"""Figures of noise structures: what each costs, how well it is predicted, and who bears it."""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator

from msstab import effects, structured, structures
from msstab.figures.axes import cycle, identity, panels, plain_ticks, ratio_ticks
from msstab.structured import BASELINE, Structured
from msstab.svg import BLUE, GREY, INK, PAPER, VERMILLION, Picture, style
from msstab.tables import spoken

STRONGEST = np.log(3)
"""Log ratio from which on a cell of the matrix has its full colour."""


def structure_harm(found: Structured) -> Picture:
    """Draw by which factor each structure raises the error, for the baseline and every arm."""
    by_arm = {arm: structured.harm(found, arm) for arm in (BASELINE, *found.arms)}
    names = list(by_arm[BASELINE])
    with style():
        figure, axes = plt.subplots(figsize=(5.4, 1.2 + 0.34 * len(names)))
        offsets = np.linspace(-0.22, 0.22, len(by_arm))
        for (arm, own), colour, offset in zip(
            by_arm.items(), cycle(len(by_arm)), offsets, strict=True
        ):
            rows = np.arange(len(names)) + offset
            for row, name in zip(rows, names, strict=True):
                axes.plot(own[name].interval, [row, row], "-", color=colour, lw=1.5)
            axes.plot(
                [own[name].ratio for name in names], rows, "o", color=colour, ms=5,
                label=spoken(arm),
            )  # fmt: skip
        axes.axvline(1, color=GREY, lw=1)
        _name_rows(axes, names)
        axes.set_xscale("log")
        ratio_ticks(axes.xaxis)
        axes.set_xlabel("error under noise over clean error")
        figure.legend(loc="outside upper left", ncols=len(by_arm))
        flat = {(arm, name): own[name] for arm, own in by_arm.items() for name in names}
        said = ". ".join(
            f"{spoken(arm)}: " + ", ".join(f"{name} {own[name].ratio:.3g}" for name in names)
            for arm, own in by_arm.items()
        )
        return Picture(
            figure,
            "Factor by which noise of each structure, at matched strength, raises the error, with "
            f"its interval. {said}.",
            _table(("arm", "structure"), flat),
        )


def structure_predictions(found: Structured) -> Picture:
    """Draw predicted against observed output variance, a panel for each structure."""
    agreed = structured.predictions(found)
    rows = {str(name): own for name, own in found.table.groupby("structure", sort=False)}
    with style():
        figure, grid = panels(list(rows))
        for axes, own in zip(grid, rows.values(), strict=True):
            axes.loglog(own.placebo, own.observed, "x", color=GREY, ms=3, mew=0.7)
            axes.loglog(own.predicted, own.observed, "o", color=BLUE, ms=2.5, alpha=0.6)
        _identities(grid)
        figure.supxlabel("predicted output variance", fontsize=11)
        figure.supylabel("observed output variance", fontsize=11)
        said = "; ".join(
            f"{name} {own['predicted'].log_rmse:.2f} ({own['placebo'].log_rmse:.2f})"
            for name, own in agreed.items()
        )
        return Picture(
            figure,
            "Predicted against observed output variance of every network, a panel for each noise "
            "structure, crosses with another network's dynamics. Log-rmse, that of the crosses in "
            f"brackets: {said}.",
            found.table[_VARIANCES],
        )


def structure_benefits(found: Structured) -> Picture:
    """Draw each arm's error under every structure relative to the baseline's, a column an arm.

    Filled where it differs from 1 after Holm's adjustment over all arms and structures.
    """
    compared = structured.benefits(found)
    adjusted = effects.holm(compared)
    names = list(dict.fromkeys(name for _, name in compared))
    with style():
        figure, grid = plt.subplots(
            1, len(found.arms), sharey=True, squeeze=False, figsize=(5.4, 1.2 + 0.34 * len(names))
        )
        said = []
        for axes, arm in zip(grid.flat, found.arms, strict=True):
            axes.axvspan(
                1 / (1 + found.study.sesoi), 1 + found.study.sesoi, color=GREY, alpha=0.3, lw=0
            )
            axes.axvline(1, color=GREY, lw=1)
            for row, name in enumerate(names):
                e = compared[arm, name]
                differs = adjusted[arm, name] <= found.study.alpha
                colour = (BLUE if e.ratio < 1 else VERMILLION) if differs else INK
                face = colour if differs else PAPER
                axes.plot(e.interval, [row, row], "-", color=colour, lw=2, solid_capstyle="butt")
                axes.plot(e.ratio, row, "o", ms=6, mfc=face, mec=colour, mew=1.5)
            axes.set_xscale("log")
            ratio_ticks(axes.xaxis)
            axes.set_title(spoken(arm))
            said.append(
                f"{spoken(arm)}: "
                + ", ".join(
                    f"{name} {compared[arm, name].ratio:.3g}"
                    + (" (differs)" if adjusted[arm, name] <= found.study.alpha else "")
                    for name in names
                )
            )
        _name_rows(grid[0, 0], names)
        figure.supxlabel("error relative to the baseline's", fontsize=11)
        return Picture(
            figure,
            "Error under each noise structure relative to the baseline's, geometric mean with its "
            f"interval. {'. '.join(said)}.",
            _table(("arm", "structure"), compared, adjusted),
        )


def frozen_errors(found: Structured) -> Picture:
    """Draw the observed variance of networks with frozen errors against both theories' values."""
    lasting = found.table[found.table.structure.str.endswith(structures.FROZEN)]
    rows = {str(name): own for name, own in lasting.groupby("structure", sort=False)}
    agreed = structured.predictions(found)
    with style():
        figure, grid = panels(list(rows), columns=2)
        figure.set_size_inches(5.4, 3.2)
        for axes, own in zip(grid, rows.values(), strict=True):
            axes.loglog(
                own.white, own.observed, "x", color=VERMILLION, ms=4, label="theory of fresh noise"
            )
            axes.loglog(
                own.predicted, own.observed, "o", color=BLUE, ms=3, alpha=0.6,
                label="theory of frozen errors",
            )  # fmt: skip
        _identities(grid)
        for axis in (grid[0].xaxis, grid[0].yaxis):
            plain_ticks(axis)
            # Fewer than usual: small numbers are long.
            axis.set_major_locator(LogLocator(subs=(1, 3)))
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=2)
        figure.supxlabel("predicted output variance", fontsize=11)
        figure.supylabel("observed output variance", fontsize=11)
        said = "; ".join(
            f"{name}: log-rmse {agreed[name]['predicted'].log_rmse:.2f} for frozen errors, "
            f"{agreed[name]['white'].log_rmse:.2f} for fresh noise"
            for name in rows
        )
        return Picture(
            figure,
            "Observed output variance of networks whose weights are wrong for a whole run against "
            f"two predictions. {said}.",
            lasting[_VARIANCES],
        )


def structure_transfer(found: Structured) -> Picture:
    """Draw each arm's effects: trained for a row's structure, tested under a column's.

    Bold where the error differs from the baseline's after Holm's adjustment over all of them.
    """
    compared = structured.transfer(found)
    adjusted = effects.holm(compared)
    names = found.trained
    with style():
        height = 0.9 + len(found.arms) * (0.5 + 0.5 * len(names))
        figure, grid = plt.subplots(
            len(found.arms), 1, sharex=True, squeeze=False, figsize=(5.4, height)
        )
        said = []
        for axes, arm in zip(grid.flat, found.arms, strict=True):
            for row, trained in enumerate(names):
                for column, tested in enumerate(names):
                    e = compared[arm, trained, tested]
                    differs = adjusted[arm, trained, tested] <= found.study.alpha
                    _draw_cell(axes, column, row, e, differs)
                    said.append(
                        f"{spoken(arm)} trained for {trained}, tested under {tested}: "
                        f"{e.percent[0]:+.0f}%"
                    )
            axes.set_xlim(-0.5, len(names) - 0.5)
            axes.set_ylim(len(names) - 0.5, -0.5)
            axes.set_yticks(range(len(names)), names)
            axes.set_xticks(range(len(names)), names)
            axes.tick_params(length=0)
            axes.spines[:].set_visible(False)
            axes.set_title(spoken(arm))
        figure.supxlabel("tested under", fontsize=11)
        figure.supylabel("trained and tuned for", fontsize=11)
        return Picture(
            figure,
            "Change of the error against the baseline that was tuned for the tested noise. "
            + "; ".join(said)
            + ".",
            _table(("arm", "trained", "tested"), compared, adjusted),
        )


_Name = TypeVar("_Name", bound=tuple[str, ...])

_VARIANCES = ["structure", "arm", "seed", "predicted", "observed", "placebo", "white"]


def _table(
    names: tuple[str, ...],
    found: Mapping[_Name, effects.Effect],
    adjusted: Mapping[_Name, float] | None = None,
) -> pd.DataFrame:
    """Return effects as rows: the parts of each one's name, ratio, interval and adjusted p."""
    rows = []
    for key, e in found.items():
        row = dict(zip(names, key, strict=True)) | {"ratio": e.ratio} | e.interval._asdict()
        rows.append(row | ({"adjusted_p": adjusted[key]} if adjusted else {}))
    return pd.DataFrame(rows)


def _draw_cell(axes: Axes, column: int, row: int, e: effects.Effect, differs: bool) -> None:
    colour = BLUE if e.ratio < 1 else VERMILLION
    alpha = 0.55 * min(1.0, abs(np.log(e.ratio)) / STRONGEST)
    axes.add_patch(Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, fc=colour, alpha=alpha, lw=0))
    if column == row:
        axes.add_patch(
            Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, fill=False, ec=INK, lw=1.2)
        )
    change, low, high = e.percent
    weight = "bold" if differs else "normal"
    axes.text(column, row - 0.03, f"{change:+.0f}%", ha="center", va="bottom", weight=weight)
    axes.text(column, row + 0.03, f"{low:+.0f} to {high:+.0f}", ha="center", va="top", fontsize=9.5)


def _identities(grid: list[Axes]) -> None:
    """Draw equality into panels of equal scales, which one line after the other would widen."""
    limits = grid[0].get_xlim(), grid[0].get_ylim()
    for axes in grid:
        identity(axes)
    grid[0].set_xlim(limits[0])
    grid[0].set_ylim(limits[1])


def _name_rows(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
