"""How fast neighbouring trajectories part: the largest Lyapunov exponent of a simulated system."""

import numpy as np

from msstab.tracks.simulation import System, starts

DISTANCE = 1e-7
"""Distance of neighbours, small enough to be linear and far above rounding."""


def lyapunov_exponent(
    system: System,
    rng: np.random.Generator,
    *,
    trajectories: int = 64,
    settle: int = 200,
    steps: int = 2000,
) -> tuple[float, float]:
    """Return the largest Lyapunov exponent in nats a step, and its standard error.

    By the distance of two neighbours, set back to its first size after each step (Benettin,
    Galgani, Giorgilli & Strelcyn 1980, Meccanica 15), from independent starts; the first `settle`
    steps turn the distance into the direction that grows most.
    """
    state = starts(system, [(rng, trajectories)])
    away = rng.normal(size=state.shape)
    away *= DISTANCE / np.linalg.norm(away, axis=0)
    total = np.zeros(trajectories)
    for step in range(settle + steps):
        neighbour = system.advance(state + away)
        state = system.advance(state)
        away = neighbour - state
        size = np.linalg.norm(away, axis=0)
        away *= DISTANCE / size
        if step >= settle:
            total += np.log(size / DISTANCE)
    rates = total / steps
    return float(rates.mean()), float(rates.std(ddof=1) / np.sqrt(trajectories))
