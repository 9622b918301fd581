"""Figures of data, training and tuning."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from numpy.typing import NDArray

from msstab.evidence import expected_best
from msstab.figures.axes import cycle, panels, plain_ticks
from msstab.svg import BLUE, GREY, INK, PALETTE, Picture, style
from msstab.tables import spoken
from msstab.tracks import Split
from msstab.tuning import Configuration


def sequences(split: Split, horizon: int, *, shown: int = 4) -> Picture:
    """Draw a few sequences of a split: what a network sees, and what it is to predict.

    Of the first component where there are several.
    """
    with style():
        figure, axes = plt.subplots()
        length, count = split.inputs.shape[1], split.targets.shape[1]
        times = np.arange(length - count + 1, length + 1) + horizon
        for k, colour in zip(range(min(shown, len(split.inputs))), PALETTE, strict=False):
            axes.plot(range(1, length + 1), split.inputs[k, :, 0], ".-", color=colour, ms=4, lw=1)
            axes.plot(times, split.targets[k, :, 0], "D", color=colour, ms=7 if count == 1 else 3)
        axes.set_xlabel("step")
        axes.set_ylabel("signal, in standard deviations")
        if count == 1:
            axes.axvline(length + 0.5, color=GREY, lw=1, ls=":")
            axes.annotate("target", (times[-1], axes.get_ylim()[1]), ha="right", va="bottom")
            later = f"the value {horizon} steps later"
        else:
            later = "the response at every step"
        return Picture(
            figure,
            f"{shown} test sequences of {length} values each, and {later} that is to be predicted.",
            drawn_sequences(split, times, shown),
        )


def drawn_sequences(split: Split, times: NDArray[np.int_], shown: int) -> pd.DataFrame:
    """Return the first component of a few sequences and of their targets, at `times`, by step."""
    steps = np.arange(1, split.inputs.shape[1] + 1)
    rows = [
        pd.DataFrame({"sequence": k, "kind": kind, "step": at, "value": values[k, :, 0]})
        for k in range(min(shown, len(split.inputs)))
        for kind, at, values in (
            ("input", steps, split.inputs),
            ("target", times, split.targets),
        )
    ]
    return pd.concat(rows)


def learning_curves(curves: Mapping[str, NDArray[np.float64]], best: str) -> Picture:
    """Draw mean training errors by epoch; `curves` maps a label to (networks, epochs)."""
    with style():
        figure, axes = plt.subplots()
        for (label, losses), colour in zip(curves.items(), cycle(len(curves)), strict=True):
            mean = losses.mean(axis=0)
            epochs = np.arange(1, mean.size + 1)
            width = 3 if label == best else 1.5
            axes.plot(epochs, mean, ".-", color=colour, lw=width, label=label)
        axes.set_yscale("log")
        axes.set_xlabel("epoch")
        axes.set_ylabel("training error (MSE)")
        figure.legend(title="learning rate", loc="outside upper left", ncols=len(curves))
        means = {label: losses.mean(axis=0) for label, losses in curves.items()}
        ends = ", ".join(f"{m[0]:.2g} to {m[-1]:.2g} at {k}" for k, m in means.items())
        return Picture(
            figure,
            f"Training error from the first epoch to the last, by learning rate: {ends}.",
            _by_epoch(curves, "learning_rate", "training_error"),
        )


def _by_epoch(
    curves: Mapping[str, NDArray[np.float64]], label: str, value: str, factor: float = 1
) -> pd.DataFrame:
    """Return means over networks as rows: label, epoch, value times the factor."""
    rows = [
        {label: name, "epoch": k, value: mean}
        for name, own in curves.items()
        for k, mean in enumerate(factor * own.mean(axis=0), 1)
    ]
    return pd.DataFrame(rows)


def tuning_curves(table: pd.DataFrame, chosen: Configuration, reference: float) -> Picture:
    """Draw validation error against learning rate, a line for each strength of one arm's tuning.

    `reference` is the error of the ridge autoregression, a dotted line.
    """
    with style():
        figure, axes = plt.subplots()
        n_strengths = _draw_tuning(axes, table, [chosen])
        axes.axhline(reference, color=GREY, ls=":", lw=1.5)
        axes.annotate(
            "ridge autoregression", (0, reference), xycoords=axes.get_yaxis_transform(),
            xytext=(3, -4), textcoords="offset points", color=GREY, fontsize=10, va="top",
        )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("learning rate")
        axes.set_ylabel("validation error (MSE)")
        several = n_strengths > 1
        if several:
            axes.legend(loc="best")
        lines = f", a line for each of {n_strengths} strengths" if several else ""
        choice = f"learning rate {chosen.learning_rate:g}"
        choice += f" and strength {chosen.strength:g}" if several else ""
        return Picture(
            figure,
            f"Validation error against learning rate{lines}. The ring is at {choice}.",
            table[_TUNED],
        )


_TUNED = ["arm", "learning_rate", "strength", "seed", "validation_mse"]


def tuning_panels(
    table: pd.DataFrame, chosen: Mapping[str, Sequence[Configuration]], reference: float
) -> Picture:
    """Draw every arm's tuning, a panel each; `chosen` are the configurations to be ringed."""
    with style():
        figure, grid = panels([spoken(arm) for arm in chosen])
        for axes, (arm, rings) in zip(grid, chosen.items(), strict=True):
            _draw_tuning(axes, table[table.arm == arm], rings)
            axes.axhline(reference, color=GREY, ls=":", lw=1.5)
        grid[0].loglog()
        figure.supxlabel("learning rate", fontsize=11)
        figure.supylabel("validation error (MSE)", fontsize=11)
        said = "; ".join(
            f"{spoken(arm)}: " + " and ".join(f"{c.learning_rate:g}, {c.strength:g}" for c in rings)
            for arm, rings in chosen.items()
        )
        return Picture(
            figure,
            "Validation error against learning rate, a panel for each arm, a line for each "
            f"strength. Rings, as learning rate and strength: {said}.",
            table.loc[table.arm.isin(chosen), _TUNED],
        )


def budget_curves(tuning: pd.DataFrame, baseline: str = "baseline") -> Picture:
    """Draw the validation error to expect of each arm's best against the configurations tried.

    `tuning`: the runs of all arms' tuning; an arm's configuration counts with its mean over the
    seeds. Grey in every panel: the baseline.
    """
    curves: dict[str, NDArray[np.float64]] = {}
    for arm, own in tuning.groupby("arm", sort=False):
        errors = own.groupby(["learning_rate", "strength"]).validation_mse.mean()
        curves[str(arm)] = expected_best(errors, np.arange(1, errors.size + 1))
    plain = curves.pop(baseline)
    with style():
        figure, grid = panels([spoken(arm) for arm in curves])
        for axes, curve in zip(grid, curves.values(), strict=True):
            axes.plot(np.arange(1, plain.size + 1), plain, "-", color=GREY, lw=2.5)
            axes.plot(np.arange(1, curve.size + 1), curve, "-", color=BLUE)
        grid[0].loglog()
        plain_ticks(grid[0].xaxis)
        plain_ticks(grid[0].yaxis)
        figure.supxlabel("configurations tried", fontsize=11)
        figure.supylabel("expected best validation error", fontsize=11)
        rows = [
            {"arm": arm, "configurations": k, "expected_error": best}
            for arm, curve in {baseline: plain, **curves}.items()
            for k, best in enumerate(curve, 1)
        ]
        said = "; ".join(
            f"{spoken(arm)} {curve[0]:.2g} with one configuration, {curve[-1]:.2g} with all "
            f"{curve.size}"
            for arm, curve in {baseline: plain, **curves}.items()
        )
        return Picture(
            figure,
            "Validation error to expect of the best of so many configurations, a panel for each "
            f"arm, the baseline in grey: {said}.",
            pd.DataFrame(rows),
        )


def _draw_tuning(axes: Axes, table: pd.DataFrame, chosen: Sequence[Configuration]) -> int:
    """Draw one arm's runs and means, a line for each strength; return how many there are."""
    groups = list(table.groupby("strength"))
    for (strength, rows), colour in zip(groups, cycle(len(groups)), strict=True):
        axes.plot(rows.learning_rate, rows.validation_mse, ".", color=colour, ms=4, alpha=0.4)
        means = rows.groupby("learning_rate").validation_mse.mean()
        label = f"strength {strength:g}" if len(groups) > 1 else None
        axes.plot(means.index, means, "-", color=colour, label=label)
        for c in chosen:
            if c.strength == strength:
                best = means[c.learning_rate]
                axes.plot(c.learning_rate, best, "o", ms=11, mfc="none", mec=INK, mew=1.5)
    return len(groups)


def hinge_activity(curves: Mapping[str, NDArray[np.float64]]) -> Picture:
    """Draw the share of optimiser steps on which the hinge was active, by epoch and strength."""
    with style():
        figure, axes = plt.subplots()
        for (label, active), colour in zip(curves.items(), cycle(len(curves)), strict=True):
            mean = 100 * active.mean(axis=0)
            axes.plot(np.arange(1, mean.size + 1), mean, ".-", color=colour, label=label)
        axes.set_xlabel("epoch")
        axes.set_ylabel("hinge active (% of steps)")
        axes.set_ylim(bottom=0)
        axes.legend()
        figures = ", ".join(f"{100 * v.mean():.0f}% at {k}" for k, v in curves.items())
        return Picture(
            figure,
            f"Share of steps on which the hinge was active: {figures}.",
            _by_epoch(curves, "strength", "active_percent", 100),
        )
