"""Each arm's frontier: clean error against error under noise as its strength varies."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msstab import evidence
from msstab.experiment import Experiment, by_configuration
from msstab.tuning import Configuration, choose

MEASURES = {"clean": "test_mse", "noisy": "noisy_mse"}
"""The two axes of a frontier and the scores they show."""


def frontiers(runs: Experiment) -> pd.DataFrame:
    """Return every arm's frontier over the tuning seeds, relative to the baseline.

    One row for an arm and a strength, at the learning rate of lowest clean validation error for
    that strength; `clean` and `noisy` are geometric mean ratios of the test errors to the tuned
    baseline's of the same seeds, with t intervals on the logarithms (`clean_low` and so on).
    Tuning seeds chose the learning rates on validation data, never on these errors.
    """
    tuning = runs.table[runs.table.role == "tuning"]
    reference = _at(tuning[tuning.arm == "baseline"], runs.chosen["baseline"])
    found = []
    for arm, own in tuning[tuning.arm != "baseline"].groupby("arm", sort=False):
        for _, rows in own.groupby("strength"):
            errors = {c: at.validation_mse.to_numpy() for c, at in by_configuration(rows).items()}
            best = choose(errors)
            at_best = _at(rows, best)
            row: dict[str, object] = {"arm": arm, **best._asdict()}
            for name, score in MEASURES.items():
                logs = np.log(at_best[score].to_numpy()) - np.log(reference[score].to_numpy())
                row |= _ratio(name, logs, 1 - runs.study.alpha)
            found.append(row)
    return pd.DataFrame(found)


def _at(rows: pd.DataFrame, c: Configuration) -> pd.DataFrame:
    at = (rows.learning_rate == c.learning_rate) & (rows.strength == c.strength)
    return rows[at].sort_values("seed")


def _ratio(name: str, logs: NDArray[np.float64], level: float) -> dict[str, float]:
    low, high = evidence.mean_interval(logs, level)
    values = np.exp([logs.mean(), low, high])
    return dict(zip((name, f"{name}_low", f"{name}_high"), values.tolist(), strict=True))
