"""What the free runs on a track come to, arm by arm, and how well their growth is predicted."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from msstab import rules
from msstab.agreements import floats
from msstab.rollouts.collected import LEVELS, FreeRuns, Network, errors, valid_times
from msstab.rollouts.deviations import Array


class Fates(NamedTuple):
    """What becomes of an arm's free runs: their number, shares of them, and the mean valid time.

    `not_finite` have a value that is no finite number, `left` leave the signal's range, those
    included, `still` stand still in the end, and `throughout` are valid to the last step.
    """

    runs: int
    valid: float
    not_finite: float
    left: float
    still: float
    throughout: float


class Attractor(NamedTuple):
    """An arm's distances (n,) from the true attractor, and the floors (n,) of the same seeds."""

    histogram: Array
    spectrum: Array
    histogram_floor: Array
    spectrum_floor: Array


class GrowthAgreement(NamedTuple):
    """How well predicted growth matches that observed, in nats a step, over n networks.

    `rmse` and `correlation` of the prediction, `placebo_rmse` of that with another network's
    Jacobians. `n_unusable` networks have no finite growth.
    """

    rmse: float
    correlation: float
    placebo_rmse: float
    n: int
    n_unusable: int

    @property
    def holds(self) -> bool:
        """Whether the placebo errs so much more that the agreement is the network's own."""
        return self.placebo_rmse >= rules.PLACEBO_FACTOR * self.rmse


class Growths(NamedTuple):
    """Growth in nats a step, one entry for each network of all arms: predicted, observed, placebo.

    The placebo is the prediction for the next seed's network of the same arm.
    """

    predicted: Array
    observed: Array
    placebo: Array


def fates(found: FreeRuns, arm: str, *, noisy: bool = False) -> Fates:
    """Return what becomes of an arm's free runs."""
    own, prefix = found.of(arm, noisy=noisy), "noisy_" if noisy else ""
    times = np.concatenate([network[f"{prefix}valid"] for network in own])
    return Fates(
        runs=times.size,
        valid=float(valid_times(own, noisy=noisy).mean()),
        not_finite=float(_means(own, f"{prefix}not_finite").mean()),
        left=float(_means(own, f"{prefix}left").mean()),
        still=float(_means(own, f"{prefix}still").mean()),
        throughout=float(np.mean(times > found.longest)),
    )


def attractor(found: FreeRuns, arm: str, *, noisy: bool = False) -> Attractor:
    """Return how far from the true attractor an arm's free runs end up."""
    own = found.of(arm, noisy=noisy)
    prefixes = ("noisy_" if noisy else "", "floor_")
    return Attractor(
        *(_means(own, f"{prefix}{name}") for prefix in prefixes for name in _DISTANCES)
    )


_DISTANCES = ("histogram", "spectrum")


def growths(found: FreeRuns) -> dict[float, Growths]:
    """Return predicted and observed growth by noise level, 0 first."""
    levels = [share * found.study.sigma_test for share in LEVELS]
    made = {0.0: _growths(found, "exponent", None)}
    return made | {level: _growths(found, "moment", k) for k, level in enumerate(levels)}


def growth_agreement(own: Growths) -> GrowthAgreement:
    """Compare predicted and observed growth, and the placebo's, over all networks."""
    p, o, q = floats(own.predicted), floats(own.observed), floats(own.placebo)
    usable = np.isfinite(p) & np.isfinite(o) & np.isfinite(q)
    p, o, q = p[usable], o[usable], q[usable]
    n_unusable = int((~usable).sum())
    if p.size < 3:
        return GrowthAgreement(np.nan, np.nan, np.nan, p.size, n_unusable)
    varied = np.ptp(p) > 0 and np.ptp(o) > 0
    correlation = float(np.corrcoef(p, o)[0, 1]) if varied else np.nan
    return GrowthAgreement(_rms(p - o), correlation, _rms(q - o), p.size, n_unusable)


def exponents(found: FreeRuns, arm: str) -> Array:
    """Return the largest Lyapunov exponent of each of an arm's networks, in nats a step."""
    return _means(found.growth[arm], "exponent")


def growth_and_error(found: FreeRuns) -> tuple[float, int]:
    """Return the rank correlation of growth with the free-run error, and the number of networks.

    Of the growth that the Jacobians predict over the first window at the lowest noise level, and
    the error at the shortest horizon, over the networks of all arms. Not a number where either is
    the same for all.
    """
    shortest = min(found.lengths.values())
    grown = [float(one["moment"][0]) for own in found.growth.values() for one in own]
    wrong = np.concatenate([errors(found.of(arm), shortest) for arm in found.growth])
    usable = np.isfinite(grown)
    x, y = np.array(grown)[usable], wrong[usable]
    if x.size < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan"), x.size
    return float(stats.spearmanr(x, y).statistic), x.size


def _growths(found: FreeRuns, name: str, level: int | None) -> Growths:
    by_arm = []
    for own in found.growth.values():
        predicted, observed = (
            np.array([network[kind] if level is None else network[kind][level] for network in own])
            for kind in (name, f"observed_{name}")
        )
        by_arm.append((predicted, observed, np.roll(predicted, -1)))
    return Growths(*(np.concatenate(part) for part in zip(*by_arm, strict=True)))


def _means(networks: list[Network], name: str) -> NDArray[np.float64]:
    return np.array([float(network[name]) for network in networks])


def _rms(values: ArrayLike) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
