"""Figures of the mechanism test."""

import pandas as pd
from matplotlib import pyplot as plt

from msstab.figures.axes import cycle, identity
from msstab.results import MechanismTest
from msstab.svg import GREY, INK, PALETTE, Picture, style


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
        )


def signature(table: pd.DataFrame) -> Picture:
    """Draw the original's check for single networks: predicted growth against observed ratio."""
    shown = table[table.role != "tuning"]
    with style():
        figure, axes = plt.subplots()
        groups = list(shown.groupby(["role", "arm"], sort=False))
        for (_, own), colour in zip(groups, cycle(len(groups)), strict=True):
            role, arm = own.role.iloc[0], own.arm.iloc[0]
            label = arm if role in ("untrained", "selected") else f"{arm} ({role})"
            axes.plot(
                own.proxy_radius, own.power_ratio, "o", color=colour, ms=5, alpha=0.6,
                label=label.replace("_", " "),
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
        )
