"""Oscillators that keep going by themselves: two on a limit cycle, one of them slow and fast."""

import numpy as np

from msstab.tracks.registry import Array, add
from msstab.tracks.simulation import System, runge_kutta
from msstab.tracks.windows import Window, free_track


def van_der_pol(state: Array) -> Array:
    """Right-hand side of x'' = (1 - x^2) x' - x; state is (2, N): x and x'."""
    x, v = state
    return np.array([v, (1 - x * x) * v - x])


def fitzhugh_nagumo(state: Array) -> Array:
    """Right-hand side of v' = v - v^3/3 - w + .5, w' = .08 (v + .7 - .8 w); state is (2, N)."""
    v, w = state
    return np.array([v - v * v * v / 3 - w + 0.5, 0.08 * (v + 0.7 - 0.8 * w)])


def _square(rng: np.random.Generator, n: int) -> Array:
    return rng.uniform(-2, 2, size=(2, n))


VAN_DER_POL = System(_square, runge_kutta(van_der_pol, 0.2, substeps=4))
# On the cycle by then, whose period is about 40 steps: stops at random times have random phases.
FITZHUGH_NAGUMO = System(_square, runge_kutta(fitzhugh_nagumo, 1.0, substeps=8), (100, 299))

_POSITION = "The position of the van der Pol oscillator at mu = 1, from starts all over the plane"

add(
    "van_der_pol",
    free_track(
        "Van der Pol oscillator, ten steps ahead",
        _POSITION,
        source="van der Pol (1926)",
        step="0.2 time units",
        system=VAN_DER_POL,
        window=Window(length=16, horizon=10, noise=0.05),
        module=__name__,
    ),
)
add(
    "van_der_pol_step",
    free_track(
        "Van der Pol oscillator, one step ahead",
        _POSITION,
        source="van der Pol (1926)",
        step="0.2 time units",
        system=VAN_DER_POL,
        window=Window(length=16, horizon=1, noise=0.05),
        module=__name__,
    ),
)
add(
    "fitzhugh_nagumo",
    free_track(
        "FitzHugh-Nagumo neuron",
        "The membrane potential of the FitzHugh-Nagumo model, which fires again and again",
        source="FitzHugh (1961) and Nagumo, Arimoto & Yoshizawa (1962)",
        step="time unit",
        system=FITZHUGH_NAGUMO,
        window=Window(length=16, horizon=10, noise=0.05),
        module=__name__,
    ),
)
