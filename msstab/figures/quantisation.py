"""Figures of chapter 9, on rounding to few bits."""

from matplotlib import pyplot as plt

from msstab import quantised
from msstab.figures.axes import cycle, identity, panels, plain_ticks
from msstab.quantised import BASELINE, Quantised
from msstab.svg import INK, Picture, style
from msstab.tables import spoken
from msstab.under_rounding import PARTS, PER


def rounding_predictions(found: Quantised) -> Picture:
    """Draw predicted against measured deviation of every network, rounded at random."""
    rows, bits = found.networks, sorted(found.study.bits, reverse=True)
    fits = quantised.fits(found, "random")
    with style():
        figure, axes = plt.subplots(1, 2, sharex=True, sharey=True)
        for panel, part in zip(axes, PARTS, strict=True):
            for own, colour in zip(bits, cycle(len(bits)), strict=True):
                shown = rows[(rows.rounded == part) & (rows.bits == own)]
                panel.loglog(
                    shown.predicted_random, shown.random, "o", color=colour, ms=3.5, alpha=0.5,
                    label=f"{own} bits" if part == PARTS[0] else None,
                )  # fmt: skip
            panel.set_title(f"{part} rounded")
        for panel in axes:
            identity(panel)
        figure.supxlabel("predicted mean squared deviation", fontsize=11)
        figure.supylabel("measured, at random", fontsize=11)
        figure.legend(loc="outside upper left", ncols=len(bits))
        said = ", ".join(
            f"{part} at {own} bits per {per} {fit.ratio:.2f}"
            for (part, per, own), fit in fits.items()
        )
        return Picture(
            figure,
            "Predicted against measured mean squared deviation of the output by rounding at "
            f"random, on logarithmic axes. Mean of measured over predicted: {said}.",
            rows,
        )


def rounded_errors(found: Quantised, tuned_for: str) -> Picture:
    """Draw each arm's test error against the bits, in a panel for each kind of rounding."""
    rows = quantised.errors(found, tuned_for)
    arms = [BASELINE, *found.arms]
    kinds = [(part, per) for part in PARTS for per in PER]
    said = []
    with style():
        figure, grid = panels([f"{part}, per {per}" for part, per in kinds], columns=2)
        for axes, (part, per) in zip(grid, kinds, strict=True):
            for arm, colour in zip(arms, [INK, *cycle(len(arms) - 1)], strict=True):
                own = rows[(rows.arm == arm) & (rows.rounded == part) & (rows["per"] == per)]
                own = own.sort_values("bits")
                label = spoken(arm) if axes is grid[0] else None
                axes.plot(own.bits, own.error, "o-", color=colour, ms=4, label=label)
                axes.axhline(own.clean.iloc[0], color=colour, lw=0.8, ls=":")
                pairs = zip(own.bits, own.error, strict=True)
                values = ", ".join(f"{error:.2g} at {bits}" for bits, error in pairs)
                said.append(f"{part} per {per}, {spoken(arm)}: {values}")
        grid[0].set_yscale("log")
        plain_ticks(grid[0].yaxis)
        grid[0].set_xticks(sorted(found.study.bits))
        figure.supxlabel("bits", fontsize=11)
        figure.supylabel("test error (MSE)", fontsize=11)
        figure.legend(loc="outside upper left", ncols=3)
        return Picture(
            figure,
            "Test error against bits, geometric mean over the seeds, of networks tuned for "
            f"{tuned_for}; dotted lines without rounding. {'; '.join(said)}.",
            rows,
        )
