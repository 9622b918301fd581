"""The figure of what an experiment can detect."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.ticker import PercentFormatter

from msstab.evidence import log_margin, power
from msstab.figures.axes import plain_ticks
from msstab.svg import BLUE, GREY, INK, PAPER, VERMILLION, Picture, style

FEWEST_PAIRS = 4
"""Where the curves begin: fewer pairs have hardly any power."""


def power_curve(
    sd: float,
    n_planned: int,
    effects: Sequence[float],
    alpha: float = 0.05,
    *,
    sesoi: float,
    n_achieved: int | None = None,
    sd_planned: float | None = None,
) -> Picture:
    """Draw power against the number of pairs for several effects, that of interest in colour.

    sd: of the log ratios that were found; effects and sesoi: shares of the error, drawn as log
    ratios of that size (`log_margin`). A ring marks the plan, at the sd it assumed (by default
    the one found), a disc what came of it, both for the effect of interest.
    """
    n_achieved = n_planned if n_achieved is None else n_achieved
    sd_planned = sd if sd_planned is None else sd_planned
    planned = power(log_margin(sesoi), sd_planned, n_planned, alpha)
    achieved = power(log_margin(sesoi), sd, n_achieved, alpha)
    most = 4 * max(n_planned, n_achieved)
    pairs = np.unique(np.geomspace(FEWEST_PAIRS, most, 60).round().astype(int))
    rows = [("plan", sesoi, n_planned, planned), ("achieved", sesoi, n_achieved, achieved)]
    with style():
        figure, axes = plt.subplots()
        for share in sorted({*effects, sesoi}):
            curve = np.array([power(log_margin(share), sd, int(n), alpha) for n in pairs])
            rows += [("curve", share, n, own) for n, own in zip(pairs, curve, strict=True)]
            own = share == sesoi
            colour = BLUE if own else GREY
            axes.plot(pairs, curve, "-", color=colour, lw=3 if own else 1.5, zorder=2 + own)
            # Where a curve is half way up, or as far as it gets, it is apart from the others.
            at = min(int(np.searchsorted(curve, 0.5)), pairs.size - 1)
            axes.annotate(
                f"{100 * share:.3g}%", (float(pairs[at]), float(curve[at])), xytext=(-4, 3),
                textcoords="offset points", ha="right", color=colour,
            )  # fmt: skip
        axes.axhline(0.8, color=GREY, lw=0.8, ls=":")
        axes.plot(
            n_planned, planned, "o", ms=12, mfc="none", mec=INK, mew=1.5, zorder=5, label="planned"
        )
        axes.plot(
            n_achieved, achieved, "o", ms=7, mfc=VERMILLION, mec=PAPER, zorder=4, label="achieved"
        )
        axes.set_xscale("log")
        plain_ticks(axes.xaxis)
        axes.set_ylim(0, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.set_xlabel("pairs of networks")
        axes.set_ylabel("power")
        figure.legend(loc="outside upper left", ncols=2)
        others = ", ".join(
            f"{100 * share:.3g}% {power(log_margin(share), sd, n_achieved, alpha):.0%}"
            for share in effects
            if share != sesoi
        )
        return Picture(
            figure,
            f"Power of the paired test at a level of {alpha:g} against the number of pairs, at a "
            f"standard deviation of the log ratios of {sd:.2g}. For an effect of "
            f"{100 * sesoi:.3g}%, {n_planned} planned pairs were to give {planned:.0%}, and "
            f"{n_achieved} gave {achieved:.0%}; with these, for effects of {others or 'no other'}.",
            pd.DataFrame(rows, columns=["kind", "effect", "pairs", "power"]),
        )
