"""Trajectories of simulated systems, for all sequences at once, and how windows are cut of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Draws = Sequence[tuple[np.random.Generator, int]]
"""Random streams, and how many sequences are to be drawn from each."""


@dataclass(frozen=True)
class System:
    """A system without inputs or chance: where trajectories start and how they go on.

    `start(rng, N)` draws states (n, N), coordinates first, and `advance` takes them one step
    further. A sequence begins after a number of steps drawn evenly from `transient`, both ends
    included.
    """

    start: Callable[[np.random.Generator, int], Array]
    advance: Callable[[Array], Array]
    transient: tuple[int, int] = (0, 0)


def runge_kutta(
    derivative: Callable[[Array], Array], dt: float, substeps: int
) -> Callable[[Array], Array]:
    """Return the step of x' = derivative(x) by an interval `dt`, for all trajectories at once.

    In so many substeps of the classical 4th-order method, for states (n, N), coordinates first.
    """
    h = dt / substeps

    def advance(state: Array) -> Array:
        for _ in range(substeps):
            k1 = derivative(state)
            k2 = derivative(state + (h / 2) * k1)
            k3 = derivative(state + (h / 2) * k2)
            k4 = derivative(state + h * k3)
            state = state + (h / 6) * (k1 + 2 * (k2 + k3) + k4)
        return state

    return advance


def trajectory(advance: Callable[[Array], Array], state: Array, steps: int) -> Array:
    """Return the states (steps + 1, n, N) from a start (n, N), which is the first of them."""
    path = np.empty((steps + 1, *state.shape))
    path[0] = state
    for step in range(1, steps + 1):
        path[step] = state = advance(state)
    return path


def starts(system: System, draws: Draws) -> Array:
    """Draw the states (n, N) with which sequences begin, those of the first stream first.

    Trajectories from one cloud of starts stay phase-coherent; stopping each at a random time
    spreads them over the attractor.
    """
    state = np.hstack([system.start(rng, n) for rng, n in draws])
    first, last = system.transient
    stop = np.hstack([rng.integers(first, last, size=n, endpoint=True) for rng, n in draws])
    begun = state.copy()
    for step in range(1, last + 1):
        state = system.advance(state)
        begun = np.where(stop == step, state, begun)
    return begun


def standardise(values: Array, sizes: Sequence[int], length: int) -> Array:
    """Scale (L, D, N) to mean 0 and deviation 1 of the training sequences' first L' values.

    Returns (N, L, D); the first `sizes[0]` sequences are those of training, and no other enters.
    """
    scaled = np.empty((values.shape[2], values.shape[0], values.shape[1]))
    for d in range(values.shape[1]):
        x = values[:, d].T
        training = x[: sizes[0], :length]
        scaled[..., d] = (x - training.mean()) / training.std()
    return scaled


def cut(values: Array, sizes: Sequence[int]) -> list[Array]:
    """Split (N, ...) into the splits' own sequences."""
    return np.split(values, np.cumsum(sizes)[:-1])
