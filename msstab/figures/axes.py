"""What several figures do to their axes."""

from collections.abc import Sequence

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)

from msstab.svg import INK, PALETTE


def cycle(n: int) -> list[str]:
    """Return n colours, from the palette in its order."""
    return [PALETTE[k % len(PALETTE)] for k in range(n)]


def plain_ticks(axis: Axis) -> None:
    """Label a logarithmic axis that spans little with plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def ratio_ticks(axis: Axis) -> None:
    """Label a logarithmic axis of ratios, which may span less than a factor of two."""
    plain_ticks(axis)
    low, high = axis.get_view_interval()
    if high < 3 * low:
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        axis.set_minor_locator(NullLocator())


def identity(axes: Axes) -> None:
    """Draw the line on which both axes are equal."""
    low = max(axes.get_xlim()[0], axes.get_ylim()[0])
    high = min(axes.get_xlim()[1], axes.get_ylim()[1])
    axes.plot([low, high], [low, high], "-", color=INK, lw=1, zorder=0)


def panels(titles: Sequence[str], *, columns: int = 3) -> tuple[Figure, list[Axes]]:
    """Return small axes of equal scales, one for each title, and their figure."""
    columns = min(columns, len(titles))
    rows = -(-len(titles) // columns)
    # One row alone must still be as high as the label of its axis is long.
    height = max(2.8, 0.7 + 1.5 * rows)
    figure, grid = plt.subplots(
        rows, columns, sharex=True, sharey=True, squeeze=False, figsize=(5.4, height)
    )
    axes: list[Axes] = list(grid.flat)
    for own, title in zip(axes, titles, strict=False):
        own.set_title(title, fontsize=9.5)
    for spare in axes[len(titles) :]:
        spare.set_axis_off()
    # The panel above an empty place is the last of its column.
    for own in axes[max(0, len(titles) - columns) : len(titles)]:
        own.xaxis.set_tick_params(labelbottom=True)
    return figure, axes[: len(titles)]
