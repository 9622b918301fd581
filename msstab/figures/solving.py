"""Figures of the solvers of the spectral radius."""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.ticker import NullLocator

from msstab.figures.axes import cycle
from msstab.svg import Picture, style


def solvers(frame: pd.DataFrame) -> Picture:
    """Draw the solvers' errors and times against the number of states, from `solvers.compare`."""
    groups = list(frame.groupby("method", sort=False))
    errors, times = [], []
    with style():
        figure, (left, right) = plt.subplots(1, 2)
        marks = "osDv"
        for k, ((name, own), colour) in enumerate(zip(groups, cycle(len(groups)), strict=True)):
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
            frame,
        )
