"""Which configurations each arm tries, and which one its validation errors choose.

Every arm tries equally many. A penalised arm tries each of its strengths at each rung of the
ladder of learning rates; the baseline, which has no strength, tries as many learning rates, the
rungs among them. A grid whose best point lies on its edge is widened, for all arms alike.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Configuration(NamedTuple):
    """What tuning decides for an arm."""

    learning_rate: float
    strength: float


class Grid(NamedTuple):
    """The ladder of learning rates and each penalised arm's strengths, all increasing.

    Every arm's strengths begin with 0 and are equally many.
    """

    rungs: tuple[float, ...]
    strengths: Mapping[str, tuple[float, ...]]

    @property
    def n_strengths(self) -> int:
        """Strengths of each arm; raises ValueError where arms would try unequally many."""
        counts = {len(own) for own in self.strengths.values()}
        if len(counts) != 1:
            raise ValueError(f"arms would try unequally many strengths: {dict(self.strengths)}")
        return counts.pop()


def configurations(grid: Grid, arm: str) -> list[Configuration]:
    """Return the configurations an arm tries: as many rungs times as many strengths for each.

    An arm that is not in `grid.strengths` is the baseline.
    """
    if arm in grid.strengths:
        return [Configuration(rate, s) for rate in grid.rungs for s in grid.strengths[arm]]
    ratios = [b / a for a, b in itertools.pairwise(grid.rungs)]
    between = grid.n_strengths
    return [
        Configuration(rung if k == 0 else _round(rung * ratio ** (k / between), 3), 0.0)
        for rung, ratio in zip(grid.rungs, [*ratios, ratios[-1]], strict=True)
        for k in range(between)
    ]


Errors = Mapping[Configuration, NDArray[np.float64]]
"""Validation errors (tuning seeds,) by configuration."""


def choose(errors: Errors) -> Configuration:
    """Return the configuration of lowest mean validation error over the tuning seeds.

    Of equally good ones, that of smallest strength, then of smallest learning rate.
    """
    return ranked(errors)[0]


def ranked(
    errors: Errors, summary: Callable[[NDArray[np.float64]], float] = np.mean
) -> list[Configuration]:
    """Return configurations, best first by a summary of their errors, ties as in `choose`."""
    return sorted(errors, key=lambda c: (float(summary(errors[c])), c.strength, c.learning_rate))


def widen(grid: Grid, chosen: Sequence[tuple[str, Configuration]]) -> Grid:
    """Return the grid with a value more at each edge on which an arm's best point lies.

    `chosen` holds arms and configurations that were chosen for them, several of an arm if need be;
    the same grid comes back where all are bracketed. Strength 0 is no edge, for there is nothing
    beyond it. A strength more for one arm is a strength more for all, so that budgets stay equal.
    """
    rungs, strengths = list(grid.rungs), dict(grid.strengths)
    tried = {arm: [c.learning_rate for c in configurations(grid, arm)] for arm, _ in chosen}
    if any(c.learning_rate == max(tried[arm]) for arm, c in chosen):
        rungs.append(_round(rungs[-1] ** 2 / rungs[-2]))
    if any(c.learning_rate == min(tried[arm]) for arm, c in chosen):
        rungs.insert(0, _round(rungs[0] ** 2 / rungs[1]))
    if any(arm in strengths and c.strength == strengths[arm][-1] for arm, c in chosen):
        strengths = {arm: (*own, _beyond(own)) for arm, own in strengths.items()}
    return Grid(tuple(rungs), strengths)


def _beyond(strengths: Sequence[float]) -> float:
    last, before = strengths[-1], strengths[-2]
    return _round(last * (last / before if before > 0 else 10.0))


def _round(value: float, digits: int = 2) -> float:
    return float(f"{value:.{digits}g}")
