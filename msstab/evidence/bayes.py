"""Bayesian answers about the mean of paired differences: how probable, and for or against zero."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate

from msstab.evidence.pairs import paired, require_margin, standard_error
from msstab.evidence.t_test import t_tails

SCALE = math.sqrt(0.5)
"""The usual scale of the Cauchy prior of a standardised effect, 0.707 (Rouder et al. 2009)."""


class Practical(NamedTuple):
    """Probabilities that the idea is better by more than a margin, within it, or worse by more."""

    better: float
    within: float
    worse: float


def practical_probabilities(differences: ArrayLike, margin: float) -> Practical:
    """Return how probable an effect beyond the margin is, either way, given the differences.

    differences: (n,), n >= 2, taken as normal; margin > 0: the region of practical equivalence is
    -margin to margin. Under Jeffreys' prior p(mean, variance) ~ 1 / variance the posterior of the
    mean is a t of n - 1 degrees of freedom, moved to the sample mean and scaled by its standard
    error, so `better` equals `improvement_p`. It is a point where differences do not vary.
    Gelman et al. (2013), sec. 3.2; Kruschke (2013). Raises ValueError as `improvement_p` does.
    """
    d = paired(differences)
    better = t_tails(d, -require_margin(margin))[0]
    worse = t_tails(d, margin)[1]
    return Practical(better, max(0.0, 1 - better - worse), worse)


def bayes_factor(differences: ArrayLike, scale: float = SCALE) -> float:
    """Return BF10, how many times likelier the differences are under an effect than under none.

    differences: (n,), n >= 2. The standardised effect has a Cauchy(0, scale) prior, scale > 0, the
    variance Jeffreys'. At zero variance the limit is infinite, and that of t = 0 where all
    differences are 0. Raises ValueError for a scale that is not positive. Rouder et al. (2009).
    """
    d = paired(differences)
    mean, error = float(d.mean()), standard_error(d)
    if error == 0:
        return math.inf if mean else bayes_factor_of_t(0.0, d.size, scale)
    return bayes_factor_of_t(mean / error, d.size, scale)


def bayes_factor_of_t(t: float, n: int, scale: float = SCALE) -> float:
    """Return BF10 for a paired t statistic of n >= 2 pairs, eq. 1 of Rouder et al. (2009).

    It integrates over g, the variance of the standardised effect, whose prior is scaled inverse
    chi-squared; here over log g, and in logarithms, so that no t overflows on the way.
    """
    if n < 2 or not math.isfinite(t):
        raise ValueError(f"t = {t} of n = {n} pairs: t must be finite and n at least 2")
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"scale = {scale}: it must be positive")
    degrees = n - 1
    null = -n / 2 * math.log1p(t * t / degrees)

    def log_integrand(log_g: float) -> float:
        g = math.exp(log_g)
        spread = 1 + n * g * scale**2
        likelihood = -math.log(spread) / 2 - n / 2 * math.log1p(t * t / (spread * degrees))
        prior = -(math.log(2 * math.pi) + log_g + 1 / g) / 2
        return likelihood + prior - null

    # Below, exp(-1 / 2g) is 0 in double precision; above, 1 / g times the likelihood is.
    low, high = -7.0, 100 + 2 * math.log1p(abs(t))
    grid = np.linspace(low, high, 1001)
    heights = [log_integrand(float(u)) for u in grid]
    peak = int(np.argmax(heights))
    highest = heights[peak]
    area, _ = integrate.quad(
        lambda u: math.exp(log_integrand(u) - highest),
        low,
        high,
        points=[float(grid[peak])],
        limit=400,
        epsabs=0,
        epsrel=1e-12,
    )
    log_factor = highest + math.log(area)
    return math.exp(log_factor) if log_factor < _LARGEST else math.inf


_LARGEST = math.log(np.finfo(np.float64).max)
