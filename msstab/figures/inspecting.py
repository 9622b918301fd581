"""The figure of a user's own network: its radii along the data, and what noise adds by level."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from msstab.figures.axes import cycle, plain_ticks
from msstab.svg import INK, Picture, style

_MARKS = "osDv"


def inspection(
    radii: Mapping[str, Sequence[float]],
    levels: Sequence[float],
    variances: Mapping[str, Sequence[float | None]],
    sigma: float,
    clean_error: float | None,
) -> Picture:
    """Draw spectral radii at states along the data, and predicted output variances by noise level.

    Both by noise structure; an empty list of radii and a variance of None are left out. `sigma` is
    the level of the radii, and `clean_error`, where known, the error without noise.
    """
    with style():
        figure, (upper, lower) = plt.subplots(
            2, 1, figsize=(5.4, 1.4 + 0.4 * len(radii) + 3.0), height_ratios=[0.4 * len(radii), 2.8]
        )
        said = _draw_radii(upper, radii, sigma)
        said += _draw_variances(lower, levels, variances, clean_error)
        figure.legend(loc="outside lower center", ncols=3)
        return Picture(figure, said, _data(radii, levels, variances, sigma))


def _data(
    radii: Mapping[str, Sequence[float]],
    levels: Sequence[float],
    variances: Mapping[str, Sequence[float | None]],
    sigma: float,
) -> pd.DataFrame:
    """Return a row for each radius and each predicted variance."""
    rows = [("radius", name, sigma, value) for name, own in radii.items() for value in own]
    rows += [
        ("output variance", name, level, value)
        for name, own in variances.items()
        for level, value in zip(levels, own, strict=True)
        if value is not None
    ]
    return pd.DataFrame(rows, columns=["quantity", "structure", "noise_level", "value"])


def _draw_radii(axes: Axes, radii: Mapping[str, Sequence[float]], sigma: float) -> str:
    medians = []
    for k, ((name, own), colour) in enumerate(zip(radii.items(), cycle(len(radii)), strict=True)):
        if not own:
            continue
        axes.plot(own, np.full(len(own), k), "o", color=colour, ms=5, alpha=0.45, mew=0)
        middle = float(np.median(own))
        axes.plot([middle, middle], [k - 0.3, k + 0.3], "-", color=colour, lw=3)
        medians.append(f"{name} {middle:.3g}")
    axes.axvline(1, color=INK, ls="--", lw=1)
    axes.set_yticks(range(len(radii)), list(radii))
    axes.set_ylim(len(radii) - 0.5, -0.5)
    axes.set_xlabel(f"spectral radius at σ = {sigma:g}")
    return (
        f"Spectral radii of the second-moment operator at states along the data, medians: "
        f"{', '.join(medians) or 'none known'}; a line marks 1, below which deviations die out. "
    )


def _draw_variances(
    axes: Axes,
    levels: Sequence[float],
    variances: Mapping[str, Sequence[float | None]],
    clean_error: float | None,
) -> str:
    spans = []
    axes.loglog()
    for k, (name, own) in enumerate(variances.items()):
        known = [(x, y) for x, y in zip(levels, own, strict=True) if y is not None and y > 0]
        if not known:
            continue
        mark = f"{_MARKS[k % len(_MARKS)]}-"
        colour = cycle(len(variances))[k]
        axes.plot(*zip(*known, strict=True), mark, color=colour, ms=5, label=name)
        spans.append(
            f"{name} {known[0][1]:.3g} at {known[0][0]:g} to {known[-1][1]:.3g} at {known[-1][0]:g}"
        )
    plain_ticks(axes.xaxis)
    axes.set_xticks(levels, [f"{level:g}" for level in levels])
    axes.set_xlabel("noise level σ")
    axes.set_ylabel("output variance")
    end = ""
    if clean_error:
        axes.axhline(clean_error, color=INK, ls="--", lw=1, label="clean error")
        end = f" A line marks the error without noise, {clean_error:.3g}."
    return f"Predicted output variance by noise level: {', '.join(spans) or 'none known'}.{end}"
