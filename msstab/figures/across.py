"""Figures that show all arms at once."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import ArrayLike

from msstab import evidence
from msstab.families import holm_across
from msstab.figures.axes import panels, ratio_ticks
from msstab.results import ArmComparison, Comparison
from msstab.svg import BLUE, GREY, INK, PAPER, VERMILLION, Picture, style
from msstab.tables import spoken

LARGEST_FACTOR = 10.0
"""Where a performance profile ends at the latest: beyond, an arm has failed."""


def forest(arms: Mapping[str, ArmComparison], judged: str, sesoi: float) -> Picture:
    """Draw every arm's geometric mean ratio to the baseline with its interval, on both questions.

    `judged` comes first. A filled mark differs from the baseline after Holm's adjustment over the
    arms of its question, by the sign-flip test of the log ratios; the band is the equivalence
    margin. Raises ValueError for a judged arm that is not among the arms, and for errors without
    ratios.
    """
    if judged not in arms:
        raise ValueError(f"judged = {judged}: the arms are {', '.join(arms)}")
    order = [judged, *(arm for arm in arms if arm != judged)]
    questions = {
        "clean error": {arm: arms[arm].clean for arm in order},
        "error under noise": {arm: arms[arm].noisy for arm in order},
    }
    return draw_forest(
        questions,
        {title: holm_across(compared) for title, compared in questions.items()},
        sesoi,
        "Geometric mean ratio of each arm's error to the baseline's, with its interval; filled "
        "where it differs from 1 after Holm's adjustment for the number of arms.",
        judged=judged,
    )


def draw_forest(
    questions: Mapping[str, Mapping[str, Comparison]],
    adjusted: Mapping[str, Mapping[str, float]],
    sesoi: float,
    lead: str,
    *,
    judged: str = "",
) -> Picture:
    """Draw ratios to the baseline, a column for each question and a row for each comparison.

    `adjusted` are their p values, by which marks are filled; the row of `judged` is bold; `lead`
    begins the alt text.
    """
    order = list(next(iter(questions.values())))
    with style():
        figure, columns = plt.subplots(
            1, len(questions), sharey=True, figsize=(5.4, 1.1 + 0.34 * len(order))
        )
        said = [
            f"{title}: {_draw_ratios(axes, compared, adjusted[title], sesoi)}"
            for axes, (title, compared) in zip(columns, questions.items(), strict=True)
        ]
        for axes, title in zip(columns, questions, strict=True):
            axes.set_title(title)
            axes.tick_params(axis="y", length=0)
            axes.spines["left"].set_visible(False)
        columns[0].set_yticks(range(len(order)), [spoken(name) for name in order])
        if judged:
            columns[0].get_yticklabels()[order.index(judged)].set_fontweight("bold")
        columns[0].set_ylim(len(order) - 0.5, -0.5)
        figure.supxlabel("error relative to the baseline's", fontsize=11)
        rows = [
            {"error": title, "row": name, "ratio": c.evidence.ratios.ratio}
            | c.evidence.ratios.interval._asdict()
            | {"adjusted_p": adjusted[title][name]}
            for title, compared in questions.items()
            for name, c in compared.items()
        ]
        return Picture(figure, f"{lead} {'. '.join(said)}.", pd.DataFrame(rows))


def _draw_ratios(
    axes: Axes, compared: Mapping[str, Comparison], adjusted: Mapping[str, float], sesoi: float
) -> str:
    """Draw one question's column, from above; return what it shows in words."""
    said = []
    axes.axvspan(1 / (1 + sesoi), 1 + sesoi, color=GREY, alpha=0.3, lw=0)
    axes.axvline(1, color=GREY, lw=1)
    for row, (arm, c) in enumerate(compared.items()):
        r = c.evidence.ratios
        differs = adjusted[arm] <= c.evidence.alpha
        colour = (BLUE if r.ratio < 1 else VERMILLION) if differs else INK
        axes.plot(r.interval, [row, row], "-", color=colour, lw=2, solid_capstyle="butt")
        axes.plot(r.ratio, row, "o", ms=7, mfc=colour if differs else PAPER, mec=colour, mew=1.5)
        low, high = r.interval
        mark = ", differs" if differs else ""
        said.append(f"{spoken(arm)} {r.ratio:.3g} ({low:.3g} to {high:.3g}{mark})")
    axes.set_xscale("log")
    ratio_ticks(axes.xaxis)
    return "; ".join(said)


def performance_profile(errors: Mapping[str, ArrayLike]) -> Picture:
    """Draw on what share of problems each arm's error is within a factor of the lowest error.

    `errors` maps arms to errors (problems,), of the same problems in the same order: seeds, or
    the seeds of several tracks. A panel for each arm, the others behind it in grey. Raises
    ValueError for unequally many errors and where no arm has a finite one.
    """
    sizes = {arm: np.size(own) for arm, own in errors.items()}
    if len(set(sizes.values())) != 1:
        raise ValueError(f"arms need errors of the same problems; got {sizes}")
    table = np.array(list(errors.values()), dtype=np.float64)
    table[np.isnan(table)] = np.inf
    with np.errstate(invalid="ignore"):
        relative = table / table.min(axis=0)
    reached = relative[np.isfinite(relative)]
    if reached.size == 0:
        raise ValueError("no arm has a finite error")
    usual = float(np.quantile(reached, 0.98))
    largest = min(LARGEST_FACTOR, max(1.05, usual))
    factors = np.geomspace(1, largest, 61)
    profiles = evidence.performance_profile(table, factors)
    by_arm = dict(zip(errors, profiles, strict=True))
    with style():
        figure, grid = panels([spoken(arm) for arm in by_arm])
        for axes, (arm, own) in zip(grid, by_arm.items(), strict=True):
            for other, rest in by_arm.items():
                if other != arm:
                    axes.plot(factors[::3], rest[::3], "-", color=GREY, lw=0.8, alpha=0.6)
            axes.plot(factors, own, "-", color=BLUE, lw=2)
        grid[0].set_xscale("log")
        ratio_ticks(grid[0].xaxis)
        grid[0].set_ylim(0, 1.02)
        grid[0].yaxis.set_major_formatter(PercentFormatter(1))
        figure.supxlabel("factor of the lowest error on the same seed", fontsize=11)
        figure.supylabel("share of networks within it", fontsize=11)
        middle = float(np.sqrt(largest))
        at_middle = evidence.performance_profile(table, [middle])[:, 0]
        said = "; ".join(
            f"{spoken(arm)} best on {own[0]:.0%}, within {middle:.2f} on {share:.0%}"
            for (arm, own), share in zip(by_arm.items(), at_middle, strict=True)
        )
        return Picture(
            figure,
            f"Share of {table.shape[1]} networks whose error is within a factor of the lowest "
            f"among all arms on the same seed, by arm: {said}.",
            pd.DataFrame({"factor": factors, **by_arm}),
        )
