"""The Lorenz system: one coordinate three steps ahead, and the full state one step ahead."""

import numpy as np

from msstab.tracks.registry import Array, add
from msstab.tracks.simulation import System, runge_kutta
from msstab.tracks.windows import Window, free_track


def lorenz(state: Array) -> Array:
    """Right-hand side of Lorenz's equations at sigma 10, rho 28, beta 8/3; state is (3, N)."""
    x, y, z = state
    return np.array([10 * (y - x), x * (28 - z) - y, x * y - (8 / 3) * z])


def _start(rng: np.random.Generator, n: int) -> Array:
    state = rng.normal(size=(3, n))
    state[2] += 25
    return state


LORENZ = System(_start, runge_kutta(lorenz, 0.02, substeps=2), transient=(500, 999))

add(
    "dynamics",
    free_track(
        "Lorenz system, one coordinate",
        "The first coordinate of the Lorenz system",
        source="Lorenz (1963)",
        step="0.02 time units",
        system=LORENZ,
        window=Window(length=24, horizon=3, noise=0.02),
        module=__name__,
    ),
)
add(
    "lorenz_state",
    free_track(
        "Lorenz system, full state",
        "The three coordinates of the Lorenz system, each in its own standard deviations",
        source="Lorenz (1963)",
        step="0.02 time units",
        system=LORENZ,
        window=Window(length=48, horizon=1, noise=0.03, target_noise=0.03),
        module=__name__,
        coordinates=(0, 1, 2),
    ),
)
