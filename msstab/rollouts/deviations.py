"""How far free runs are from what they forecast: by step, until when, and whether in range."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

THRESHOLD = 0.4
"""Normalised error up to which a forecast counts as valid, as usual for chaotic systems."""

SATURATION = float(np.sqrt(2))
"""Root mean square normalised error of one trajectory as the forecast of an independent one."""

FARTHEST = 10.0
"""Standard deviations from the signal's mean at which a forecast counts at most."""

MARGIN = 0.5
"""How far beyond an end of its range, in lengths of that range, a signal has left it."""

STILL = 0.05
"""Standard deviations below which what a run does in its second half counts as standing still."""


class Signal(NamedTuple):
    """Mean, standard deviation and range of each component of a signal, each (D,)."""

    mean: Array
    deviation: Array
    low: Array
    high: Array


def signal(values: Array) -> Signal:
    """Return what a signal (N, F, D) is like, over all sequences and steps."""
    both = (0, 1)
    return Signal(
        values.mean(axis=both), values.std(axis=both), values.min(axis=both), values.max(axis=both)
    )


def contained(outputs: Array, true: Signal) -> Array:
    """Return forecasts (N, F, D) at most `FARTHEST` deviations from the signal's mean.

    One that is no number counts as that far away, so that no run drops out of a mean.
    """
    reach = FARTHEST * true.deviation
    high = true.mean + reach
    return np.clip(np.where(np.isnan(outputs), high, outputs), true.mean - reach, high)


def squared_errors(outputs: Array, truth: Array, true: Signal) -> Array:
    """Return squared normalised errors by sequence and step: (N, F, D) twice -> (N, F).

    The mean over components of the squared error in standard deviations of the signal; its mean
    for independent trajectories is 2. Forecasts count as `contained`.
    """
    found = ((contained(outputs, true) - truth) / true.deviation) ** 2
    return np.asarray(found.mean(axis=2), dtype=np.float64)


def valid_times(squared: Array, threshold: float = THRESHOLD) -> Array:
    """Return the first step, from 1, at which the normalised error exceeds a threshold.

    Squared errors (N, F) -> (N,); F + 1 where none does. Source: the valid prediction time of
    Vlachas et al. (2020), Neural Networks 126.
    """
    beyond = np.sqrt(squared) > threshold
    first = np.where(beyond.any(axis=1), beyond.argmax(axis=1) + 1, squared.shape[1] + 1)
    return np.asarray(first, dtype=np.float64)


def not_finite(outputs: Array) -> NDArray[np.bool_]:
    """Return which runs (N, F, D) have a value that is no finite number: (N,)."""
    return np.asarray(~np.isfinite(outputs).all(axis=(1, 2)))


def leaves_range(outputs: Array, true: Signal) -> NDArray[np.bool_]:
    """Return which runs (N, F, D) leave the signal's range by `MARGIN`, or are not finite: (N,)."""
    room = MARGIN * (true.high - true.low)
    inside = (outputs >= true.low - room) & (outputs <= true.high + room)
    return np.asarray(~inside.all(axis=(1, 2)))


def stands_still(outputs: Array, true: Signal) -> NDArray[np.bool_]:
    """Return which runs (N, F, D) hardly move in their second half, in any component: (N,)."""
    later = contained(outputs, true)[:, outputs.shape[1] // 2 :]
    return np.asarray((later.std(axis=1) < STILL * true.deviation).all(axis=1))
