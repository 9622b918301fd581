"""One function for each figure: data in, a Picture with its alt text out."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator
from numpy.typing import ArrayLike, NDArray

from msstab.evidence import PairedEvidence
from msstab.experiment import by_configuration
from msstab.results import Comparison, MechanismTest
from msstab.svg import BLUE, GREY, INK, PALETTE, PAPER, VERMILLION, Picture, style
from msstab.tracks import Split
from msstab.tuning import Configuration


def sequences(split: Split, horizon: int, *, shown: int = 4) -> Picture:
    """Draw a few sequences of a split: what a network sees, and what it is to predict."""
    with style():
        figure, axes = plt.subplots()
        length = split.inputs.shape[1]
        for k, colour in zip(range(min(shown, len(split.inputs))), PALETTE, strict=False):
            axes.plot(range(1, length + 1), split.inputs[k, :, 0], ".-", color=colour, ms=4, lw=1)
            axes.plot(length + horizon, split.targets[k, 0], "D", color=colour, ms=7)
        axes.axvline(length + 0.5, color=GREY, lw=1, ls=":")
        axes.set_xlabel("step")
        axes.set_ylabel("signal, in standard deviations")
        axes.annotate("target", (length + horizon, axes.get_ylim()[1]), ha="right", va="bottom")
        return Picture(
            figure,
            f"{shown} test sequences of {length} noisy values each, and the value {horizon} steps "
            "later that is to be predicted.",
        )


def learning_curves(curves: Mapping[str, NDArray[np.float64]], best: str) -> Picture:
    """Draw mean training errors by epoch; `curves` maps a label to (networks, epochs)."""
    with style():
        figure, axes = plt.subplots()
        for (label, losses), colour in zip(curves.items(), _cycle(len(curves)), strict=True):
            mean = losses.mean(axis=0)
            epochs = np.arange(1, mean.size + 1)
            width = 3 if label == best else 1.5
            axes.plot(epochs, mean, ".-", color=colour, lw=width, label=label)
        axes.set_yscale("log")
        axes.set_xlabel("epoch")
        axes.set_ylabel("training error (MSE)")
        figure.legend(title="learning rate", loc="outside upper left", ncols=len(curves))
        final = ", ".join(f"{v.mean(axis=0)[-1]:.2g} at {k}" for k, v in curves.items())
        return Picture(figure, f"Training error falls with the epochs; at the last one: {final}.")


def tuning_curves(table: pd.DataFrame, chosen: Configuration, reference: float) -> Picture:
    """Draw validation error against learning rate, a line for each strength of one arm's tuning.

    `reference` is the error of the ridge autoregression, a dotted line.
    """
    by_strength: dict[float, list[tuple[float, NDArray[np.float64]]]] = {}
    for configuration, rows in by_configuration(table).items():
        errors = rows.validation_mse.to_numpy()
        by_strength.setdefault(configuration.strength, []).append(
            (configuration.learning_rate, errors)
        )
    with style():
        figure, axes = plt.subplots()
        colours = _cycle(len(by_strength))
        for (strength, points), colour in zip(by_strength.items(), colours, strict=True):
            rates = [rate for rate, _ in points]
            means = [float(errors.mean()) for _, errors in points]
            for rate, errors in points:
                axes.plot([rate] * errors.size, errors, ".", color=colour, ms=4, alpha=0.4)
            label = f"strength {strength:g}" if len(by_strength) > 1 else None
            axes.plot(rates, means, "-", color=colour, label=label)
            if strength == chosen.strength:
                best = means[rates.index(chosen.learning_rate)]
                axes.plot(chosen.learning_rate, best, "o", ms=11, mfc="none", mec=INK, mew=1.5)
        axes.axhline(reference, color=GREY, ls=":", lw=1.5)
        axes.annotate(
            "ridge autoregression", (0, reference), xycoords=axes.get_yaxis_transform(),
            xytext=(3, -4), textcoords="offset points", color=GREY, fontsize=10, va="top",
        )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("learning rate")
        axes.set_ylabel("validation error (MSE)")
        if len(by_strength) > 1:
            axes.legend(loc="best")
        several = len(by_strength) > 1
        lines = f", a line for each of {len(by_strength)} strengths" if several else ""
        choice = f"learning rate {chosen.learning_rate:g}"
        choice += f" and strength {chosen.strength:g}" if several else ""
        return Picture(
            figure, f"Validation error against learning rate{lines}. The ring is at {choice}."
        )


def hinge_activity(curves: Mapping[str, NDArray[np.float64]]) -> Picture:
    """Draw the share of optimiser steps on which the hinge was active, by epoch and strength."""
    with style():
        figure, axes = plt.subplots()
        for (label, active), colour in zip(curves.items(), _cycle(len(curves)), strict=True):
            mean = 100 * active.mean(axis=0)
            axes.plot(np.arange(1, mean.size + 1), mean, ".-", color=colour, label=label)
        axes.set_xlabel("epoch")
        axes.set_ylabel("hinge active (% of steps)")
        axes.set_ylim(bottom=0)
        axes.legend()
        figures = ", ".join(f"{100 * v.mean():.0f}% at {k}" for k, v in curves.items())
        return Picture(figure, f"Share of steps on which the hinge was active: {figures}.")


def paired(comparison: Comparison, labels: tuple[str, str] = ("baseline", "penalised")) -> Picture:
    """Draw every seed's pair of errors, and beside it the differences with their interval."""
    e = comparison.evidence
    differences = _percent(e, comparison.idea - comparison.baseline)
    with style():
        figure, (left, right) = plt.subplots(1, 2, gridspec_kw={"width_ratios": [1, 1]})
        for a, b in zip(comparison.baseline, comparison.idea, strict=True):
            colour = BLUE if b < a else VERMILLION
            left.plot([0, 1], [a, b], "-", color=colour, lw=1, alpha=max(0.12, min(1, 10 / e.n)))
        left.plot([0, 1], [e.mean_baseline, e.mean_idea], "o-", color=INK, lw=2.5, ms=6)
        left.set_xticks([0, 1], labels)
        left.set_xlim(-0.2, 1.2)
        left.set_yscale("log")
        _plain_ticks(left.yaxis)
        left.set_ylabel("test error (MSE)")
        spread = np.random.default_rng(0).uniform(-0.25, 0.25, differences.size)
        colours = np.where(differences < 0, BLUE, VERMILLION)
        right.scatter(spread, differences, s=14, c=colours, alpha=max(0.2, min(1, 20 / e.n)))
        margin = e.percent(e.margin)
        right.axhspan(-margin, margin, color=GREY, alpha=0.3, lw=0)
        right.axhline(0, color=GREY, lw=1)
        low, high = _percent(e, np.array(e.interval))
        mean = e.percent(e.mean_difference)
        right.errorbar(
            0, mean, [[mean - low], [high - mean]], fmt="o", color=INK, capsize=6, lw=2.5
        )
        right.set_xticks([])
        right.set_xlim(-0.6, 0.6)
        right.set_ylabel("difference (% of baseline mean)")
        return Picture(
            figure,
            f"{comparison.title} of {e.n} pairs: {e.wins} favour the {labels[1]} network. Mean "
            f"difference {mean:+.1f}% of the baseline, {100 * (1 - e.alpha):g}% interval "
            f"{low:+.1f}% to {high:+.1f}%; the grey band is plus or minus {margin:.3g}%.",
        )


def trade_off(table: pd.DataFrame, sigma: float) -> Picture:
    """Draw each configuration's mean error under noise against its mean clean error.

    `table` holds the tuning runs; configurations whose error exceeds a tenth of the constant
    forecast's are left out of the picture, not of the data.
    """
    points = table.groupby(["strength", "learning_rate"], as_index=False)[
        ["test_mse", "noisy_mse", "constant_mse"]
    ].mean()
    points = points[points.test_mse < 0.1 * points.constant_mse]
    with style():
        figure, axes = plt.subplots()
        groups = list(points.groupby("strength"))
        for (strength, own), colour in zip(groups, _cycle(len(groups)), strict=True):
            axes.plot(own.test_mse, own.noisy_mse, "o", color=colour, label=f"{strength:g}")
        axes.loglog()
        _plain_ticks(axes.xaxis)
        _plain_ticks(axes.yaxis)
        axes.set_xlabel("clean test error (MSE)")
        axes.set_ylabel(f"error under noise of {sigma:g} (MSE)")
        axes.legend(title="strength")
        return Picture(
            figure,
            f"Mean error under noise against mean clean error for {len(points)} configurations. "
            + ", ".join(
                f"At strength {s:g} the lowest error under noise is {g.noisy_mse.min():.2g}"
                for s, g in groups
            )
            + ".",
        )


def forced_variance(test: MechanismTest) -> Picture:
    """Draw predicted against observed output variance of every network, beside the placebo."""
    rows = test.networks
    with style():
        figure, axes = plt.subplots()
        axes.loglog(
            rows.placebo_variance, rows.observed_variance, "x", color=GREY, ms=5,
            label="another network's Jacobians",
        )  # fmt: skip
        for (arm, own), colour in zip(rows.groupby("arm"), PALETTE, strict=False):
            axes.loglog(
                own.predicted_variance, own.observed_variance, "o", color=colour, ms=5,
                label=str(arm).replace("_", " "),
            )  # fmt: skip
        if len(test.others):
            axes.loglog(
                test.others.predicted_variance, test.others.observed_variance, "o", color=INK,
                mfc="none", ms=5, label="not learnt, not judged",
            )  # fmt: skip
        _identity(axes)
        axes.set_xlabel("predicted output variance")
        axes.set_ylabel("observed output variance")
        figure.legend(loc="outside upper left", ncols=2)
        p, q = test.prediction, test.placebo
        return Picture(
            figure,
            f"Predicted against observed output variance of {p.n} networks on logarithmic axes. "
            f"With each network's own Jacobians the points lie on the diagonal (log-rmse "
            f"{p.log_rmse:.2f}); with another's they scatter (log-rmse {q.log_rmse:.2f}).",
        )


def signature(table: pd.DataFrame) -> Picture:
    """Draw the original's check for single networks: predicted growth against observed ratio."""
    shown = table[table.role != "tuning"]
    with style():
        figure, axes = plt.subplots()
        groups = list(shown.groupby(["role", "arm"], sort=False))
        for (_, own), colour in zip(groups, _cycle(len(groups)), strict=True):
            role, arm = own.role.iloc[0], own.arm.iloc[0]
            label = arm if role in ("untrained", "selected") else f"{arm} ({role})"
            axes.plot(
                own.proxy_radius, own.power_ratio, "o", color=colour, ms=5, alpha=0.6,
                label=label.replace("_", " "),
            )  # fmt: skip
        axes.axhline(1, color=GREY, lw=1, ls=":")
        # The same range on both axes, so that agreement would be seen as a diagonal.
        axes.set_ylim(axes.get_xlim())
        _identity(axes)
        axes.set_xlabel(r"predicted growth, $(1 + \sigma^2) ||J||^2$")
        axes.set_ylabel("observed ratio a step")
        figure.legend(loc="outside upper left", ncols=2)
        low, high = shown.power_ratio.quantile([0.025, 0.975])
        first, last = shown.proxy_radius.quantile([0.025, 0.975])
        return Picture(
            figure,
            f"Observed step-to-step ratios stay between {low:.3f} and {high:.3f} whatever the "
            f"prediction, which ranges from {first:.2f} to {last:.2f}.",
        )


def effects(comparisons: Sequence[Comparison], sesoi: float) -> Picture:
    """Draw each comparison's mean effect and interval, in percent of the baseline's error."""
    with style():
        figure, axes = plt.subplots(figsize=(5.4, 0.9 + 0.6 * len(comparisons)))
        axes.axvspan(-100 * sesoi, 100 * sesoi, color=GREY, alpha=0.3, lw=0)
        axes.axvline(0, color=GREY, lw=1)
        said: list[str] = []
        for row, comparison in enumerate(reversed(comparisons)):
            e = comparison.evidence
            mean = e.percent(e.mean_difference)
            low, high = _percent(e, np.array(e.interval))
            colour = BLUE if high < 0 else VERMILLION if low > 0 else INK
            axes.plot([low, high], [row, row], "-", color=colour, lw=3, solid_capstyle="butt")
            axes.plot(mean, row, "o", ms=9, mfc=colour, mec=PAPER)
            axes.annotate(
                f"{comparison.title}: {mean:+.0f}%", (mean, row), xytext=(0, 9),
                textcoords="offset points", ha="center", annotation_clip=False,
            )  # fmt: skip
            said.insert(0, f"{comparison.title}: {mean:+.1f}% ({low:+.1f}% to {high:+.1f}%)")
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_ylim(-0.6, len(comparisons) - 0.2)
        limit = max(abs(bound) for bound in axes.get_xlim())
        axes.set_xlim(-limit, limit)
        axes.set_xlabel("change with the penalty (% of baseline error)")
        return Picture(figure, "Effect of the penalty with its interval. " + "; ".join(said) + ".")


def solvers(frame: pd.DataFrame) -> Picture:
    """Draw the solvers' errors and times against the number of states, from `solvers.compare`."""
    groups = list(frame.groupby("method", sort=False))
    errors, times = [], []
    with style():
        figure, (left, right) = plt.subplots(1, 2)
        marks = "osDv"
        for k, ((name, own), colour) in enumerate(zip(groups, _cycle(len(groups)), strict=True)):
            mark = f"{marks[k % len(marks)]}-"
            # An error of zero has no place on a logarithmic axis, and means as much as rounding.
            error = own.relative_error.clip(lower=np.finfo(float).eps)
            left.plot(own.n, error, mark, color=colour, ms=5)
            right.plot(own.n, 1000 * own.seconds, mark, color=colour, ms=5, label=str(name))
            if error.notna().any():
                errors.append(f"{name} {error.min():.1g} to {error.max():.1g}")
            last = own.iloc[-1]
            times.append(f"{name} {1000 * last.seconds:.3g} ms at {last.n}")
        sizes = sorted(frame.n.unique())
        for axes in (left, right):
            axes.loglog()
            axes.set_xticks(sizes, [str(n) for n in sizes])
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xlabel("states n")
        left.set_ylabel("relative error of the radius")
        right.set_ylabel("processor time a matrix (ms)")
        figure.legend(loc="outside upper left", ncols=len(groups))
        return Picture(
            figure,
            f"Solvers of the spectral radius for {sizes[0]} to {sizes[-1]} states, on logarithmic "
            f"axes. Relative errors: {', '.join(errors)}. Times at the largest size of each: "
            f"{', '.join(times)}.",
        )


def _cycle(n: int) -> list[str]:
    return [PALETTE[k % len(PALETTE)] for k in range(n)]


def _plain_ticks(axis: Axis) -> None:
    """Label a logarithmic axis that spans little with plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _identity(axes: Axes) -> None:
    low = max(axes.get_xlim()[0], axes.get_ylim()[0])
    high = min(axes.get_xlim()[1], axes.get_ylim()[1])
    axes.plot([low, high], [low, high], "-", color=INK, lw=1, zorder=0)


def _percent(e: PairedEvidence, values: ArrayLike) -> NDArray[np.float64]:
    return 100 * np.asarray(values, dtype=np.float64) / e.mean_baseline
