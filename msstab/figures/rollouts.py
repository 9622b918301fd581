"""Figures of free runs."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from numpy.typing import NDArray

from msstab import evidence
from msstab.figures.axes import cycle, identity, panels, plain_ticks, ratio_ticks
from msstab.rollouts import (
    SATURATION,
    THRESHOLD,
    FreeRuns,
    Growths,
    attractor,
    growth_agreement,
    growths,
)
from msstab.svg import BLUE, GREY, INK, VERMILLION, Picture, style
from msstab.tables import spoken

MOST_STEPS = 48
"""Steps at which an error curve is drawn, evenly on a logarithmic axis."""


def error_growth(found: FreeRuns) -> Picture:
    """Draw each arm's normalised free-run error by step, without noise and under it.

    The geometric mean over networks of the root mean square over sequences, with its interval.
    """
    study = found.study
    drawn = np.unique(np.geomspace(1, found.longest, MOST_STEPS).round().astype(int))
    titles = {False: "without noise", True: f"under noise of {study.sigma_test:g}"}
    with style():
        figure, columns = panels(list(titles.values()), columns=2)
        figure.set_figheight(3.3)
        said, curves = [], []
        for axes, (noisy, title) in zip(columns, titles.items(), strict=True):
            axes.axhline(SATURATION, color=GREY, lw=1, ls="--")
            axes.axhline(THRESHOLD, color=GREY, lw=1, ls=":")
            for arm, colour in zip(found.arms, cycle(len(found.arms)), strict=True):
                name = "noisy_error" if noisy else "error"
                logs = np.log([own[name][drawn - 1] for own in found.of(arm, noisy=noisy)]) / 2
                level = 1 - study.alpha
                bounds = [evidence.mean_interval(column, level) for column in logs.T]
                low, high = np.exp(np.transpose(bounds))
                axes.fill_between(drawn, low, high, color=colour, alpha=0.2, lw=0)
                mean = np.exp(logs.mean(axis=0))
                curve = {"step": drawn, "error": mean, "low": low, "high": high}
                curves.append(pd.DataFrame({"run": title, "arm": arm, **curve}))
                label = spoken(arm) if not noisy else None
                axes.plot(drawn, mean, color=colour, label=label)
                said.append(f"{spoken(arm)} {title} from {mean[0]:.2g} to {mean[-1]:.2g}")
            axes.set_xscale("log")
            axes.set_yscale("log")
            plain_ticks(axes.yaxis)
        figure.supxlabel("steps after the window", fontsize=11)
        columns[0].set_ylabel("normalised error")
        figure.legend(loc="outside upper left", ncols=min(3, len(found.arms)))
        return Picture(
            figure,
            f"Normalised error of free runs by step, up to {found.longest} steps, on logarithmic "
            f"axes: {'; '.join(said)}. Independent trajectories differ by {SATURATION:.2f}.",
            pd.concat(curves),
        )


def free_trajectories(found: FreeRuns) -> Picture:
    """Draw the first free runs of the first seed's networks, of each arm, over the true ones.

    The first component, without noise, in the middle one of the horizons.
    """
    length = sorted(found.lengths.values())[len(found.lengths) // 2]
    times = np.arange(1, length + 1)
    networks = {arm: found.of(arm)[0] for arm in found.arms}
    runs, curves = len(networks[found.arms[0]]["truth"]), []
    with style():
        figure, grid = plt.subplots(
            runs, 1, sharex=True, sharey=True, squeeze=False, figsize=(5.4, 0.8 + 1.2 * runs)
        )
        for run, axes in enumerate(grid[:, 0]):
            truth = networks[found.arms[0]]["truth"][run, :length, 0]
            axes.plot(times, truth, color=INK, lw=1.2, label="truth" if not run else None)
            curve = {"run": run, "step": times, "truth": truth}
            for (arm, own), colour in zip(networks.items(), cycle(len(networks)), strict=True):
                label = spoken(arm) if not run else None
                curve[arm] = own["outputs"][run, :length, 0]
                axes.plot(times, curve[arm], color=colour, lw=1, label=label)
            curves.append(pd.DataFrame(curve))
        grid[-1, 0].set_xlabel("steps after the window")
        figure.supylabel("signal, in standard deviations", fontsize=11)
        figure.legend(loc="outside upper left", ncols=min(3, len(networks) + 1))
        first = "; ".join(
            f"{spoken(arm)} " + ", ".join(f"{t:.0f}" for t in own["valid"][:runs])
            for arm, own in networks.items()
        )
        return Picture(
            figure,
            f"{runs} true trajectories of {length} steps and the free runs of one network of each "
            f"arm, which first err by {THRESHOLD:g} at steps: {first}.",
            pd.concat(curves),
        )


def attractors(found: FreeRuns) -> Picture:
    """Draw every network's distances from the true attractor, beside those of true trajectories."""
    by_arm = {arm: attractor(found, arm) for arm in found.arms}
    first = by_arm[found.arms[0]]
    columns = {
        "values": ([a.histogram for a in by_arm.values()], first.histogram_floor),
        "spectrum": ([a.spectrum for a in by_arm.values()], first.spectrum_floor),
    }
    names = [*map(spoken, by_arm), "true trajectories"]
    with style():
        figure, grid = plt.subplots(1, 2, sharey=True, figsize=(5.4, 1.1 + 0.45 * len(names)))
        said, rows = [], []
        for axes, (title, (own, floor)) in zip(grid, columns.items(), strict=True):
            _strips(axes, [*own, floor])
            of_rows = zip([*by_arm, "true trajectories"], [*own, floor], strict=True)
            rows += [(title, name, value) for name, values in of_rows for value in values]
            axes.set_title(f"distance of {title}")
            medians = ", ".join(
                f"{name} {np.median(d):.2g}" for name, d in zip(names, [*own, floor], strict=True)
            )
            said.append(f"{title}: {medians}")
        grid[0].set_yticks(range(len(names)), names)
        grid[0].set_ylim(len(names) - 0.5, -0.5)
        return Picture(
            figure,
            "Distances of free runs from independent true trajectories, one dot a network; medians "
            f"of the {'; of the '.join(said)}.",
            pd.DataFrame(rows, columns=["of", "row", "distance"]),
        )


def _strips(axes: Axes, rows: Sequence[NDArray[np.float64]]) -> None:
    """Draw a row of dots for each array, those of the last one as the reference."""
    for row, values in enumerate(rows):
        last = row == len(rows) - 1
        # Spread by rank, so that dots do not hide each other, and alike every time.
        spread = (np.argsort(np.argsort(values)) % 5 - 2) * 0.1
        axes.plot(values, row + spread, "o", color=GREY if last else BLUE, ms=4, alpha=0.6)
        axes.plot([np.median(values)] * 2, [row - 0.35, row + 0.35], "-", color=INK, lw=2)
    axes.axvline(float(np.median(rows[-1])), color=GREY, lw=1, ls=":")
    axes.set_xscale("log")
    ratio_ticks(axes.xaxis)
    axes.tick_params(axis="y", length=0)


def growth(found: FreeRuns) -> Picture:
    """Draw predicted against observed growth of small deviations, without noise and under it."""
    by_level = growths(found)
    titles = {s: "without noise" if s == 0 else f"noise of {s:g}" for s in by_level}
    with style():
        figure, columns = panels(list(titles.values()), columns=2)
        figure.set_figheight(4.6)
        for axes, own in zip(columns, by_level.values(), strict=True):
            axes.plot(own.placebo, own.observed, "x", color=GREY, ms=4)
            axes.plot(own.predicted, own.observed, "o", color=BLUE, ms=4, alpha=0.6)
        for axes in columns:
            identity(axes)
        if found.exponent is not None:
            columns[0].axhline(found.exponent[0], color=VERMILLION, lw=1, ls="--")
        figure.supxlabel("predicted growth, nats a step", fontsize=11)
        figure.supylabel("observed growth", fontsize=11)
        data = [pd.DataFrame({"run": titles[s], **own._asdict()}) for s, own in by_level.items()]
        return Picture(figure, _growth_in_words(titles, by_level), pd.concat(data))


def _growth_in_words(titles: Mapping[float, str], by_level: Mapping[float, Growths]) -> str:
    said = []
    for level, own in by_level.items():
        made = growth_agreement(own)
        said.append(
            f"{titles[level]} {made.rmse:.2g}, with another network's Jacobians "
            f"{made.placebo_rmse:.2g}"
        )
    return (
        "Predicted against observed growth of small deviations in free runs, one dot a network. "
        f"Root mean square error in nats a step: {'; '.join(said)}."
    )
