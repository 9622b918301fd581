"""Whether free runs end up on the right attractor, where single trajectories must separate."""

import numpy as np
from scipy.signal import periodogram
from scipy.stats import wasserstein_distance

from msstab.rollouts.deviations import Array, Signal, contained


def histogram_distance(outputs: Array, truth: Array, true: Signal) -> float:
    """Return how far the values of two sets of trajectories (N, F, D) are from each other.

    Wasserstein's distance of each component's values, over all sequences and steps, in the
    signal's standard deviations, mean over components. Values count as `contained`.
    """
    own, other = contained(outputs, true), contained(truth, true)
    distances = [
        wasserstein_distance(own[..., d].ravel(), other[..., d].ravel()) / true.deviation[d]
        for d in range(own.shape[2])
    ]
    return float(np.mean(distances))


def spectrum_distance(outputs: Array, truth: Array, true: Signal) -> float:
    """Return how far the power spectra of two sets of trajectories (N, F, D) are from each other.

    Hellinger's distance, 0 to 1, of the spectra as distributions of power over frequency, mean
    over components; 1 for a set without power. Values count as `contained`. Source: Mikhaeil,
    Monfared & Durstewitz (2022), NeurIPS 35.
    """
    own, other = _spectra(contained(outputs, true)), _spectra(contained(truth, true))
    found = np.sqrt(((np.sqrt(own) - np.sqrt(other)) ** 2).sum(axis=0) / 2)
    nothing = (own.sum(axis=0) == 0) | (other.sum(axis=0) == 0)
    return float(np.where(nothing, 1.0, found).mean())


def _spectra(values: Array) -> Array:
    """Return the mean spectrum over sequences, of sum 1 or 0: (N, F, D) -> (frequencies, D)."""
    _, powers = periodogram(values, window="hann", detrend="constant", axis=1)
    mean = powers.mean(axis=0)
    total = mean.sum(axis=0)
    # What is left of a constant by rounding is no power.
    there = total > 1e-20
    return np.asarray(np.where(there, mean / np.where(there, total, 1), 0), dtype=np.float64)
