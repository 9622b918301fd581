"""Tables of free runs."""

import numpy as np
import pandas as pd

from msstab.results import Comparison
from msstab.rollouts import (
    FreeRuns,
    attractor,
    by_horizon,
    by_valid_time,
    exponents,
    fates,
    growth_agreement,
    growths,
    spoken_windows,
)
from msstab.tables.shown import number, spoken


def horizons(found: FreeRuns) -> pd.DataFrame:
    """Each arm's free-run error relative to the baseline's at each horizon, and its valid time."""
    rows = []
    for noisy in (False, True):
        for arm in found.arms[1:]:
            compared = by_horizon(found, arm, noisy=noisy)
            rows.append(
                {
                    "Arm": spoken(arm),
                    "Noise": f"{found.study.sigma_test:g}" if noisy else "none",
                    **{
                        f"Error over {spoken_windows(times)}": _ratio(c)
                        for times, c in compared.items()
                    },
                    "One over the valid time": _ratio(by_valid_time(found, arm, noisy=noisy)),
                    "Pairs": str(next(iter(compared.values())).evidence.n),
                }
            )
    return pd.DataFrame(rows)


def _ratio(c: Comparison) -> str:
    low, high = c.evidence.ratio_interval
    return f"{c.evidence.ratio:.2f} [{low:.2f}, {high:.2f}], {c.decision.outcome.value}"


def fates_of_runs(found: FreeRuns) -> pd.DataFrame:
    """What becomes of each arm's free runs, without noise and under it."""
    rows = []
    for noisy in (False, True):
        for arm in found.arms:
            made = fates(found, arm, noisy=noisy)
            unit = found.lyapunov_time
            times = {"Lyapunov times": f"{made.valid / unit:.2f}"} if unit else {}
            rows.append(
                {
                    "Arm": spoken(arm),
                    "Noise": f"{found.study.sigma_test:g}" if noisy else "none",
                    "Runs": str(made.runs),
                    "Valid time, steps": f"{made.valid:.1f}",
                    **times,
                    "Valid to the end": f"{made.throughout:.1%}",
                    "Leave the range": f"{made.left:.1%}",
                    "Not finite": f"{made.not_finite:.1%}",
                    "Stand still": f"{made.still:.1%}",
                }
            )
    return pd.DataFrame(rows)


def attractor_distances(found: FreeRuns) -> pd.DataFrame:
    """Median distances of each arm's free runs from true trajectories, beside the floor."""
    rows = []
    for noisy in (False, True):
        for arm in found.arms:
            made = attractor(found, arm, noisy=noisy)
            rows.append(
                {
                    "Trajectories": spoken(arm),
                    "Noise": f"{found.study.sigma_test:g}" if noisy else "none",
                    "Distance of values": number(float(np.median(made.histogram)), 2),
                    "Distance of spectra": number(float(np.median(made.spectrum)), 2),
                }
            )
    floor = attractor(found, found.arms[0])
    rows.append(
        {
            "Trajectories": "true ones",
            "Noise": "none",
            "Distance of values": number(float(np.median(floor.histogram_floor)), 2),
            "Distance of spectra": number(float(np.median(floor.spectrum_floor)), 2),
        }
    )
    return pd.DataFrame(rows)


def free_growth(found: FreeRuns) -> pd.DataFrame:
    """How well growth in free runs is predicted, without noise and at each level of it."""
    rows = []
    for level, own in growths(found).items():
        made = growth_agreement(own)
        rows.append(
            {
                "Noise": f"{level:g}" if level else "none",
                "Error of the prediction": f"{number(made.rmse, 2)}",
                "With another network's Jacobians": f"{number(made.placebo_rmse, 2)}",
                "Correlation": f"{made.correlation:.3f}",
                "Networks": str(made.n),
                "Without finite growth": str(made.n_unusable),
            }
        )
    return pd.DataFrame(rows)


def free_exponents(found: FreeRuns) -> pd.DataFrame:
    """Largest Lyapunov exponents of each arm's networks in free run, beside the true system's."""
    rows = []
    for arm in found.arms:
        own = exponents(found, arm)
        low, middle, high = np.nanquantile(own, (0.25, 0.5, 0.75))
        spread = f"{low:+.4f} to {high:+.4f}"
        rows.append([spoken(arm), f"{middle:+.4f}", spread, str(own.size)])
    if found.exponent is not None:
        rate, error = found.exponent
        rows.append(["the true system", f"{rate:+.4f}", f"standard error {error:.4f}", ""])
    return pd.DataFrame(rows, columns=["Trajectories", "Median exponent", "Quartiles", "Networks"])
