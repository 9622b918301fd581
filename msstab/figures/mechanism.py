"""Figures of the mechanism test."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from msstab import judgement
from msstab.agreements import Agreement, agreement
from msstab.control import Control
from msstab.experiment import Experiment
from msstab.explorer import Explorer
from msstab.figures.axes import cycle, identity, plain_ticks
from msstab.judgement import MechanismTest
from msstab.svg import BLUE, GREY, INK, VERMILLION, Picture, style


def forced_variance(test: MechanismTest) -> Picture:
    """Draw predicted against observed output variance of every network, beside the placebo."""
    rows = test.networks
    with style():
        figure, axes = plt.subplots()
        axes.loglog(
            rows.placebo_variance, rows.observed_variance, "x", color=GREY, ms=5,
            label="another network's Jacobians",
        )  # fmt: skip
        if len(test.others):
            axes.loglog(
                test.others.predicted_variance, test.others.observed_variance, "o", color=INK,
                mfc="none", ms=5, mew=0.7, alpha=0.6, label="not learnt, not judged",
            )  # fmt: skip
        for label, own, colour in (
            ("other arms", rows[rows.arm != "baseline"], VERMILLION),
            ("baseline", rows[rows.arm == "baseline"], BLUE),
        ):
            axes.loglog(
                own.predicted_variance, own.observed_variance, "o", color=colour, ms=4,
                alpha=0.6, label=label,
            )  # fmt: skip
        identity(axes)
        axes.set_xlabel("predicted output variance")
        axes.set_ylabel("observed output variance")
        figure.legend(loc="outside upper left", ncols=2)
        p, q = test.prediction, test.placebo
        return Picture(
            figure,
            f"Predicted against observed output variance of {p.n} networks on logarithmic axes. "
            f"With each network's own Jacobians the points lie on the diagonal (log-rmse "
            f"{p.log_rmse:.2f}); with another's they scatter (log-rmse {q.log_rmse:.2f}).",
            pd.concat([rows.assign(judged=True), test.others.assign(judged=False)])[_VARIANCES],
        )


_VARIANCES = [
    *("arm", "learning_rate", "strength", "seed", "judged"),
    *("predicted_variance", "observed_variance", "placebo_variance"),
]


def variances_by_level(runs: Experiment) -> Explorer:
    """Draw predicted against observed output variance, a figure for each noise level.

    Of trained networks that learnt the track, and of untrained ones.
    """
    learnt, _ = judgement.learnt(runs)
    untrained = runs.table[runs.table.role == "untrained"]
    levels = runs.study.sigma_grid
    return Explorer(
        ("noise level",), {(f"{s:g}",): _variances_at(s, learnt, untrained) for s in levels}
    )


def _variances_at(level: float, learnt: pd.DataFrame, untrained: pd.DataFrame) -> Picture:
    groups = {
        "untrained": (untrained, GREY, "x"),
        "trained, other arms": (learnt[learnt.arm != "baseline"], VERMILLION, "o"),
        "trained, baseline": (learnt[learnt.arm == "baseline"], BLUE, "o"),
    }
    rows, said = [], []
    with style():
        figure, axes = plt.subplots()
        for label, (own, colour, mark) in groups.items():
            x, y = own[f"predicted_variance@{level:g}"], own[f"observed_variance@{level:g}"]
            axes.loglog(x, y, mark, color=colour, ms=4, alpha=0.6, label=label)
            drawn = own[["arm", "seed"]].assign(networks=label)
            rows.append(drawn.assign(noise_level=level, predicted=x, observed=y))
            said.append(f"{label} {agreement(x, y).log_rmse:.2f}")
        identity(axes)
        axes.set_xlabel("predicted output variance")
        axes.set_ylabel("observed output variance")
        figure.legend(loc="outside upper left", ncols=3)
        return Picture(
            figure,
            f"Predicted against observed output variance under noise of {level:g}, on logarithmic "
            f"axes. Log-rmse: {'; '.join(said)}.",
            pd.concat(rows),
        )


def changes(test: MechanismTest) -> Picture:
    """Draw predicted against observed change of every network's output variance, and the placebo.

    Changes are factors relative to the tuned baseline of the same seed.
    """
    real, observed, placebo = (np.exp(values).ravel() for values in test.changes)
    with style():
        figure, axes = plt.subplots()
        axes.loglog(placebo, observed, "x", color=GREY, ms=5, label="another network's Jacobians")
        axes.loglog(real, observed, "o", color=BLUE, ms=4, alpha=0.6, label="prediction")
        identity(axes)
        axes.axhline(1, color=GREY, lw=0.8, ls=":")
        axes.axvline(1, color=GREY, lw=0.8, ls=":")
        axes.set_xlabel("predicted change of the output variance (factor)")
        axes.set_ylabel("observed change (factor)")
        figure.legend(loc="outside upper left", ncols=2)
        return Picture(
            figure,
            f"Predicted against observed change of the output variance of {real.size} networks "
            f"against their baselines, on logarithmic axes: {test.findings['R2'].figures}.",
            pd.DataFrame({"predicted": real, "observed": observed, "placebo": placebo}),
        )


def operator_control(made: Control) -> Picture:
    """Draw simulated growth at the fixed point beside its predictions with and without noise."""
    with style():
        figure, axes = plt.subplots()
        axes.axhline(0, color=GREY, lw=0.8, ls=":")
        axes.plot(made.gains, made.without_noise, "--", color=VERMILLION, label="without noise")
        axes.plot(made.gains, made.predicted, "-", color=BLUE, label="predicted")
        axes.errorbar(
            made.gains, made.simulated, 2 * made.standard_error, fmt="o", color=INK, ms=5,
            capsize=4, label="simulated",
        )  # fmt: skip
        axes.set_xlabel("gain of the recurrent weights")
        axes.set_ylabel("log growth a step")
        figure.legend(loc="outside upper left", ncols=3)
        worst = np.abs(made.predicted - made.simulated).max()
        return Picture(
            figure,
            f"Growth from {made.simulated.min():+.3f} to {made.simulated.max():+.3f} a step "
            f"crosses the stability boundary; the prediction errs by at most {worst:.4f}, that "
            f"without noise by {np.abs(made.without_noise - made.simulated).max():.3f}.",
            pd.DataFrame(made._asdict()),
        )


def breakdown(found: Mapping[str, Mapping[float, Agreement]], limit: float) -> Picture:
    """Draw how much the linear prediction errs as the noise grows; `limit` is rule R1's."""
    with style():
        figure, axes = plt.subplots()
        for (name, by_level), colour in zip(found.items(), cycle(len(found)), strict=True):
            errors = [a.log_rmse for a in by_level.values()]
            axes.loglog(list(by_level), errors, "o-", color=colour, ms=5, label=name)
        axes.axhline(limit, color=GREY, lw=1, ls=":")
        # Room around the limit, also where too few networks were compared for any curve.
        levels = [s for by_level in found.values() for s in by_level]
        axes.update_datalim([(min(levels), limit / 3), (max(levels), 3 * limit)])
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
        axes.set_xlabel("noise level")
        axes.set_ylabel("log-rmse of the prediction")
        figure.legend(loc="outside upper left", ncols=2)
        said = "; ".join(
            f"{name} " + ", ".join(f"{a.log_rmse:.2f} at {s:g}" for s, a in by_level.items())
            for name, by_level in found.items()
        )
        rows = [
            {"networks": name, "noise_level": s, "log_rmse": a.log_rmse}
            for name, by_level in found.items()
            for s, a in by_level.items()
        ]
        return Picture(
            figure,
            f"Error of the predicted output variance by noise level: {said}.",
            pd.DataFrame(rows),
        )


def signature(table: pd.DataFrame) -> Picture:
    """Draw the original's check for single networks: predicted growth against observed ratio."""
    shown = table[~table.role.isin(["tuning", "robust"])]
    with style():
        figure, axes = plt.subplots()
        kind = shown.arm.where(
            (shown.role == "untrained") | (shown.arm == "baseline"), "penalised arms"
        )
        groups = list(shown.groupby(kind, sort=False))
        for (label, own), colour in zip(groups, cycle(len(groups)), strict=True):
            axes.plot(
                own.proxy_radius, own.power_ratio, "o", color=colour, ms=5, alpha=0.6,
                label=str(label),
            )  # fmt: skip
        axes.axhline(1, color=GREY, lw=1, ls=":")
        # The same range on both axes, so that agreement would be seen as a diagonal.
        axes.set_ylim(axes.get_xlim())
        identity(axes)
        axes.set_xlabel(r"predicted growth, $(1 + \sigma^2) ||J||^2$")
        axes.set_ylabel("observed ratio a step")
        figure.legend(loc="outside upper left", ncols=2)
        low, high = shown.power_ratio.quantile([0.025, 0.975])
        first, last = shown.proxy_radius.quantile([0.025, 0.975])
        return Picture(
            figure,
            f"Observed step-to-step ratios stay between {low:.3f} and {high:.3f} whatever the "
            f"prediction, which ranges from {first:.2f} to {last:.2f}.",
            shown[["role", "arm", "seed", "proxy_radius", "power_ratio"]],
        )
