"""Figures that compare arms with the baseline."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from numpy.typing import NDArray

from msstab.evidence import PairedEvidence, Scale
from msstab.figures.axes import panels, plain_ticks, ratio_ticks
from msstab.results import Comparison
from msstab.svg import BLUE, GREY, INK, PAPER, VERMILLION, Picture, style
from msstab.tables import spoken


def paired(comparison: Comparison, labels: tuple[str, str] = ("baseline", "penalised")) -> Picture:
    """Draw every seed's pair of errors, and beside it their changes with mean and interval.

    The changes are on the scale that decides: ratios, on a logarithmic axis, or differences in
    percent of the baseline's mean error. In the data, the row without a pair is of the means.
    """
    e, judged = comparison.evidence, comparison.evidence.judged
    wins = comparison.idea < comparison.baseline
    changes, shift = _changes(comparison)
    with style():
        figure, (left, right) = plt.subplots(1, 2, gridspec_kw={"width_ratios": [1, 1]})
        for a, b in zip(comparison.baseline, comparison.idea, strict=True):
            colour = BLUE if b < a else VERMILLION
            left.plot([0, 1], [a, b], "-", color=colour, lw=1, alpha=max(0.12, min(1, 10 / e.n)))
        left.plot([0, 1], [e.mean_baseline, e.mean_idea], "o-", color=INK, lw=2.5, ms=6)
        left.set_xticks([0, 1], labels)
        left.set_xlim(-0.2, 1.2)
        left.set_yscale("log")
        plain_ticks(left.yaxis)
        left.set_ylabel("test error (MSE)")
        spread = np.random.default_rng(0).uniform(-0.25, 0.25, changes.size)
        colours = np.where(wins, BLUE, VERMILLION)
        right.scatter(spread, changes, s=14, c=colours, alpha=max(0.2, min(1, 20 / e.n)))
        if judged.scale is Scale.RATIOS:
            right.set_yscale("log")
            ratio_ticks(right.yaxis)
            right.set_ylabel("error relative to the baseline's")
            right.axhspan(1 / (1 + judged.margin), 1 + judged.margin, color=GREY, alpha=0.3, lw=0)
        else:
            right.set_ylabel("difference (% of baseline mean)")
            band = 100 * judged.margin
            right.axhspan(-band, band, color=GREY, alpha=0.3, lw=0)
        right.axhline(shift(0), color=GREY, lw=1)
        low, mean, high = map(shift, (judged.interval.low, judged.effect, judged.interval.high))
        right.errorbar(
            0, mean, [[mean - low], [high - mean]], fmt="o", color=INK, capsize=6, lw=2.5
        )
        right.set_xticks([])
        right.set_xlim(-0.6, 0.6)
        low_text, high_text = (judged.written(end, "+", 1) for end in judged.interval)
        pairs = {labels[0]: comparison.baseline, labels[1]: comparison.idea, "change": changes}
        means = {labels[0]: e.mean_baseline, labels[1]: e.mean_idea, "change": mean}
        ends = pd.DataFrame([means | {"low": low, "high": high}])
        data = pd.concat([pd.DataFrame(pairs).rename_axis("pair").reset_index(), ends])
        return Picture(
            figure,
            f"{comparison.title} of {e.n} pairs: {e.wins} favour the {labels[1]} network. Mean "
            f"change {judged.written(judged.effect, '+', 1)}, {100 * (1 - e.alpha):g}% interval "
            f"{low_text} to {high_text}; the grey band is plus or minus "
            f"{judged.written(judged.margin)}.",
            data.astype({"pair": "Int64"}),
        )


def _changes(comparison: Comparison) -> tuple[NDArray[np.float64], Callable[[float], float]]:
    """Return what is drawn of each pair, and what brings an effect onto the same axis."""
    e, a, b = comparison.evidence, comparison.baseline, comparison.idea
    if e.judged.scale is Scale.RATIOS:
        return b / a, lambda effect: 1 + effect
    unit = e.mean_baseline if e.judged.relative else 1.0
    return 100 * (b - a) / unit, lambda effect: 100 * effect


def frontiers(frame: pd.DataFrame, sigma: float) -> Picture:
    """Draw each arm's frontier in a panel, the others' behind it in grey.

    `frame` as `msstab.frontiers.frontiers` returns it: errors relative to the baseline's.
    """
    by_arm = {str(arm): own for arm, own in frame.groupby("arm", sort=False)}
    with style():
        figure, grid = panels([spoken(arm) for arm in by_arm])
        for axes, (arm, own) in zip(grid, by_arm.items(), strict=True):
            for other, rest in by_arm.items():
                if other != arm:
                    axes.plot(rest.clean, rest.noisy, "-", color=GREY, lw=0.8, alpha=0.6)
            axes.axvline(1, color=GREY, lw=0.8, ls=":")
            axes.axhline(1, color=GREY, lw=0.8, ls=":")
            axes.plot(own.clean, own.noisy, "-", color=BLUE, lw=1.5)
            for row in own.to_dict("records"):
                x, y = row["clean"], row["noisy"]
                axes.plot([row["clean_low"], row["clean_high"]], [y, y], "-", color=BLUE, lw=1)
                axes.plot([x, x], [row["noisy_low"], row["noisy_high"]], "-", color=BLUE, lw=1)
                shape = "s" if row["strength"] == 0 else "o"
                axes.plot(x, y, shape, color=BLUE, ms=4 + 2 * (row["strength"] > 0))
        grid[0].loglog()
        plain_ticks(grid[0].xaxis)
        plain_ticks(grid[0].yaxis)
        figure.supxlabel("clean error relative to the baseline", fontsize=11)
        figure.supylabel(f"error under noise of {sigma:g}, relative", fontsize=11)
        lowest = {arm: own.sort_values("noisy").iloc[0] for arm, own in by_arm.items()}
        said = "; ".join(
            f"{spoken(arm)} down to {best.noisy:.2f} at a clean error of {best.clean:.2f}"
            for arm, best in lowest.items()
        )
        return Picture(
            figure,
            "Error under noise against clean error, both relative to the baseline, as each arm's "
            f"strength grows. Lowest error under noise: {said}.",
            frame,
        )


def levels(compared: Mapping[str, Mapping[float, Comparison]]) -> Picture:
    """Draw each arm's change of the error under noise against the noise level, with intervals."""
    curves = {
        arm: (list(own), np.array([_effect(c.evidence) for c in own.values()]))
        for arm, own in compared.items()
    }
    with style():
        figure, grid = panels([spoken(arm) for arm in curves])
        for axes, (arm, (sigmas, values)) in zip(grid, curves.items(), strict=True):
            for other, (at, rest) in curves.items():
                if other != arm:
                    axes.plot(at, rest[:, 0], "-", color=GREY, lw=0.8, alpha=0.6)
            axes.axhline(0, color=GREY, lw=0.8, ls=":")
            mean, low, high = values.T
            axes.fill_between(sigmas, low, high, color=BLUE, alpha=0.25, lw=0)
            axes.plot(sigmas, mean, "o-", color=BLUE, ms=4)
        grid[0].set_xscale("log")
        plain_ticks(grid[0].xaxis)
        figure.supxlabel("noise level", fontsize=11)
        figure.supylabel("change of the error (% of baseline)", fontsize=11)
        said = "; ".join(
            f"{spoken(arm)} {values[0, 0]:+.0f}% at {sigmas[0]:g} to {values[-1, 0]:+.0f}% at "
            f"{sigmas[-1]:g}"
            for arm, (sigmas, values) in curves.items()
        )
        rows = [
            {"arm": arm, "noise_level": at} | dict(zip(_PERCENT, own, strict=True))
            for arm, (sigmas, values) in curves.items()
            for at, own in zip(sigmas, values, strict=True)
        ]
        return Picture(
            figure,
            f"Change of the error under noise against its level: {said}.",
            pd.DataFrame(rows),
        )


_PERCENT = ("change_percent", "low", "high")


def _effect(e: PairedEvidence) -> tuple[float, float, float]:
    low, high = e.judged.interval
    return 100 * e.judged.effect, 100 * low, 100 * high


def effects(comparisons: Sequence[Comparison], sesoi: float) -> Picture:
    """Draw each comparison's mean effect and interval, in percent of the baseline's error."""
    with style():
        figure, axes = plt.subplots(figsize=(5.4, 0.9 + 0.6 * len(comparisons)))
        said = draw_effects(axes, comparisons, sesoi)
        rows = [
            {"error": c.title} | dict(zip(_PERCENT, _effect(c.evidence), strict=True))
            for c in comparisons
        ]
        alt = f"Effect of the penalty with its interval. {said}"
        return Picture(figure, alt, pd.DataFrame(rows))


def draw_effects(axes: Axes, comparisons: Sequence[Comparison], sesoi: float) -> str:
    """Draw what `effects` shows on given axes; return it in words."""
    size = plt.rcParams["font.size"]
    axes.axvspan(-100 * sesoi, 100 * sesoi, color=GREY, alpha=0.3, lw=0)
    axes.axvline(0, color=GREY, lw=1)
    drawn = [(comparison, *_effect(comparison.evidence)) for comparison in comparisons]
    limit = 1.05 * max(100 * sesoi, *(max(abs(low), abs(high)) for *_, low, high in drawn))
    for row, (comparison, mean, low, high) in enumerate(reversed(drawn)):
        colour = BLUE if high < 0 else VERMILLION if low > 0 else INK
        axes.plot([low, high], [row, row], "-", color=colour, lw=3, solid_capstyle="butt")
        axes.plot(mean, row, "o", ms=9, mfc=colour, mec=PAPER)
        # Towards the middle, where there is room.
        side = "left" if mean < -limit / 3 else "right" if mean > limit / 3 else "center"
        axes.annotate(
            f"{comparison.title}: {mean:+.0f}%",
            ({"left": low, "right": high, "center": mean}[side], row),
            xytext=(0, 0.8 * size), textcoords="offset points", ha=side, annotation_clip=False,
        )  # fmt: skip
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_ylim(-0.6, len(comparisons) - 0.2)
    axes.set_xlim(-limit, limit)
    axes.set_xlabel("change with the penalty (% of baseline error)")
    said = [
        f"{c.title}: {mean:+.1f}% ({low:+.1f}% to {high:+.1f}%)" for c, mean, low, high in drawn
    ]
    return "; ".join(said) + "."
