"""Which configurations each arm tries, and which one its validation errors choose.

Every arm tries equally many. A penalised arm tries each strength at each rung of the ladder of
learning rates; the baseline, which has no strength, tries as many learning rates, the rungs
among them. A grid whose best point lies on its edge is widened, for all arms alike.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Configuration(NamedTuple):
    """What tuning decides for an arm."""

    learning_rate: float
    strength: float


class Grid(NamedTuple):
    """The ladder of learning rates and the strengths, both increasing; strengths[0] is 0."""

    rungs: tuple[float, ...]
    strengths: tuple[float, ...]


def configurations(grid: Grid, *, penalised: bool) -> list[Configuration]:
    """Return the configurations an arm tries: len(rungs) * len(strengths) of them."""
    if penalised:
        return [Configuration(rate, s) for rate in grid.rungs for s in grid.strengths]
    ratios = [b / a for a, b in itertools.pairwise(grid.rungs)]
    between = len(grid.strengths)
    return [
        Configuration(rung if k == 0 else _round(rung * ratio ** (k / between), 3), 0.0)
        for rung, ratio in zip(grid.rungs, [*ratios, ratios[-1]], strict=True)
        for k in range(between)
    ]


def choose(errors: Mapping[Configuration, NDArray[np.float64]]) -> Configuration:
    """Return the configuration of lowest mean validation error over the tuning seeds.

    Of equally good ones, that of smallest strength, then of smallest learning rate.
    """
    return min(errors, key=lambda c: (float(np.mean(errors[c])), c.strength, c.learning_rate))


def widen(grid: Grid, chosen: Sequence[tuple[Configuration, bool]]) -> Grid:
    """Return the grid with a value more at each edge on which an arm's best point lies.

    `chosen` holds each arm's configuration and whether the arm is penalised; the same grid comes
    back where all are bracketed. Strength 0 is no edge, for there is nothing beyond it.
    """
    rungs, strengths = list(grid.rungs), list(grid.strengths)
    tried = {p: [c.learning_rate for c in configurations(grid, penalised=p)] for p in (False, True)}
    if any(c.learning_rate == max(tried[p]) for c, p in chosen):
        rungs.append(_round(rungs[-1] ** 2 / rungs[-2]))
    if any(c.learning_rate == min(tried[p]) for c, p in chosen):
        rungs.insert(0, _round(rungs[0] ** 2 / rungs[1]))
    if any(p and c.strength == strengths[-1] for c, p in chosen):
        ratio = strengths[-1] / strengths[-2] if strengths[-2] > 0 else 10.0
        strengths.append(_round(strengths[-1] * ratio))
    return Grid(tuple(rungs), tuple(strengths))


def _round(value: float, digits: int = 2) -> float:
    return float(f"{value:.{digits}g}")
