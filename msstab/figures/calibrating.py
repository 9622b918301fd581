"""The figure of the calibration: how often decisions are wrong in simulated studies."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from msstab.calibration import COVERAGE, NOMINAL, PEEKING, POWER_SLACK
from msstab.figures.axes import cycle
from msstab.svg import GREY, INK, Picture, style


class Part(NamedTuple):
    """One panel: its rows of a calibration, the line to compare them with and the band allowed."""

    title: str
    rows: pd.DataFrame
    line: float
    band: tuple[float, float]


def calibration(frame: pd.DataFrame, alpha: float = 0.05) -> Picture:
    """Draw false rejections, coverage and power by procedure and family of errors.

    `frame` as `calibration.simulate` returns it, at level `alpha`. Dots are rates, bars two Monte
    Carlo standard errors either way; the line is the level, the nominal coverage or the planned
    power, the band what is allowed. The t test at every pair would lie far outside, and is only
    named in the alt text.
    """
    parts, families = _parts(frame, alpha), list(frame.family.unique())
    heights = [_groups(part.rows) for part in parts]
    with style():
        figure, grid = plt.subplots(
            len(parts), 1, squeeze=False, height_ratios=heights,
            figsize=(5.8, 0.8 + 0.65 * len(parts) + 0.36 * sum(heights)),
        )  # fmt: skip
        for axes, part in zip(grid[:, 0], parts, strict=True):
            _draw(axes, part, families)
        grid[-1, 0].set_xlabel("share of simulated studies (%)")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=len(families))
        said = "; ".join(f"{part.title.lower()}, {_range(part.rows)}" for part in parts)
        peeking = frame[(frame.procedure == PEEKING) & (frame.effect == 0)]
        control = (
            f" A t test at every pair rejects without an effect {_range(peeking)}."
            if len(peeking)
            else ""
        )
        return Picture(
            figure,
            f"Rates in {frame.studies.min()} simulated studies of each kind, lowest to highest "
            f"over procedures, numbers of pairs and families of errors ({', '.join(families)}): "
            f"{said}.{control}",
            frame,
        )


def _parts(frame: pd.DataFrame, alpha: float) -> list[Part]:
    rejected = frame[(frame.quantity == "rejected") & (frame.procedure != PEEKING)]
    power = rejected[rejected.effect != 0]
    # Where a bar was set, its middle is the plan.
    plan = float((power.high[power.low > 0] - POWER_SLACK).max())
    effect = "".join(f"{100 * value:+g}%" for value in power.effect.unique())
    near = (plan - POWER_SLACK, plan + POWER_SLACK)
    parts = [
        Part("Rejected without an effect", rejected[rejected.effect == 0], alpha, (0, alpha)),
        Part("Intervals that cover", frame[frame.quantity == "covered"], NOMINAL, COVERAGE),
        Part(f"Detected: effect of {effect}", power, plan, near),
    ]
    return [part for part in parts if len(part.rows)]


def _draw(axes: Axes, part: Part, families: Sequence[str]) -> None:
    low, high = part.band
    axes.axvspan(100 * low, 100 * high, color=GREY, alpha=0.3, lw=0)
    axes.axvline(100 * part.line, color=INK, lw=1)
    places = {key: k for k, key in enumerate(_keys(part.rows))}
    marks = "osDv"
    for k, (family, colour) in enumerate(zip(families, cycle(len(families)), strict=True)):
        own = part.rows[part.rows.family == family]
        shift = 0.24 * (k - (len(families) - 1) / 2)
        axes.errorbar(
            100 * own.rate, [places[key] + shift for key in _each(own)],
            xerr=200 * own.standard_error, fmt=marks[k % len(marks)], color=colour, ms=4, lw=1.2,
            label=family,
        )  # fmt: skip
    axes.set_yticks(list(places.values()), [f"{name}, n = {n}" for name, n in places])
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.set_title(part.title, loc="left")
    if low == 0:
        axes.set_xlim(left=0)


def _each(rows: pd.DataFrame) -> list[tuple[str, int]]:
    return list(zip(rows.procedure.astype(str), rows.pairs.astype(int), strict=True))


def _keys(rows: pd.DataFrame) -> list[tuple[str, int]]:
    """Return procedures and numbers of pairs, once each, a procedure's numbers together."""
    order = list(rows.procedure.unique())
    return sorted(set(_each(rows)), key=lambda key: (order.index(key[0]), key[1]))


def _groups(rows: pd.DataFrame) -> int:
    return len(_keys(rows))


def _range(rows: pd.DataFrame) -> str:
    return f"{100 * rows.rate.min():.1f}% to {100 * rows.rate.max():.1f}%"
