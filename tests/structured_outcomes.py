"""What chapter 8 shows, made up, so that tests know what should come out."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from msstab.structured import Structured
from msstab.study import Study

PAIRS = 12
FACTORS = {"unit": 4.0, "gain": 8.0, "weight": 2.0, "weight, frozen": 1.5}
"""By which each structure raises the error."""

ARMS = {"baseline": 1.0, "spectral_proxy": 0.8, "output_variance": 0.5}
"""Each arm's error over the baseline's."""


def made(
    factors: Mapping[str, float] = FACTORS,
    arms: Mapping[str, float] = ARMS,
    *,
    own: float = 0.7,
    wrong: float = 1.02,
    noise: float = 0.05,
) -> Structured:
    """Results in which every ratio is known up to a little noise that differs from pair to pair.

    `own`: error when trained for the tested structure over that when trained for another;
    `wrong`: the predicted variance over the observed one, 3 for the theory of fresh noise.
    """
    rng = np.random.default_rng(0)
    clean = np.exp(rng.normal(-5, 0.5, PAIRS))
    rows, crossed = [], []
    named = [name for name in factors if "frozen" not in name]
    for arm, benefit in arms.items():
        for name, factor in factors.items():
            error = clean * benefit * factor * np.exp(rng.normal(0, noise, PAIRS))
            observed = error - 0.5 * clean * benefit
            rows.append(
                pd.DataFrame(
                    {
                        "arm": arm,
                        "seed": range(PAIRS),
                        "structure": name,
                        "clean": clean * benefit,
                        "error": error,
                        "observed": observed,
                        "predicted": wrong * observed,
                        "white": (3 if "frozen" in name else wrong) * observed,
                        "placebo": observed * np.exp(rng.normal(0, 1.5, PAIRS)),
                        "diverged": False,
                    }
                )
            )
        for trained in named:
            for tested in named:
                matching = own if trained == tested and arm != "baseline" else 1.0
                error = clean * benefit * matching * np.exp(rng.normal(0, noise, PAIRS))
                crossed.append(
                    pd.DataFrame(
                        {
                            "arm": arm,
                            "trained": trained,
                            "structure": tested,
                            "seed": range(PAIRS),
                            "error": error,
                            "diverged": False,
                        }
                    )
                )
    strengths = {name: 0.1 * (k + 1) for k, name in enumerate(named)}
    return Structured(
        Study(survey_structures=("unit", "gain", "weight")),
        strengths,
        dict.fromkeys(strengths, 0.03),
        pd.concat(rows, ignore_index=True),
        pd.concat(crossed, ignore_index=True),
    )
