"""Chapter 9: what rounding to few bits does to a Study's networks, and whether an arm buys bits."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msstab import bits_bought, experiment, measures, results, surveys, under_rounding
from msstab.agreements import Agreement, agreement
from msstab.bits_bought import Bought
from msstab.experiment import Progress
from msstab.results import Comparison
from msstab.scores import DIVERGED
from msstab.study import Study
from msstab.trials import Trial
from msstab.under_rounding import PARTS, PER, ROOMS

BASELINE = "baseline"
SELECTIONS = {"clean error": ("selected", "penalised"), "error under noise": ("robust", "robust")}
"""What networks were tuned for, with the roles of the baseline's and of the other arms'."""

ROUNDINGS = 32
"""Roundings at random of each network's weights, and of the states of each sequence."""

FEWEST_JUDGED, TOLERANCE = 4, 0.15
"""From so many bits on, measured deviations must lie within this share of the predicted ones."""

RESAMPLES = 10_000

Case = tuple[str, str, int]
"""What is rounded, what has a step of its own ("tensor" or "channel"), and bits."""


class Quantised(NamedTuple):
    """What the chapter shows.

    `table` has a row for each network and case: `tuned_for`, `arm`, `seed`; `rounded`, `per`,
    `bits`; `clean` and `error`, the test errors without rounding and to nearest; `nearest` and
    `random`, the mean squared deviation of an output on the first test sequences, rounded to
    nearest, and the mean of `ROUNDINGS` at random; `predicted_nearest` and `predicted_random`;
    `diverged`, by the rule of `scores.score`, which also says what error then counts.
    """

    study: Study
    table: pd.DataFrame

    @property
    def arms(self) -> list[str]:
        """The arms beside the baseline."""
        return [str(arm) for arm in self.table.arm.unique() if arm != BASELINE]

    @property
    def networks(self) -> pd.DataFrame:
        """The table with every network once, though it may have been tuned for both errors."""
        return self.table.drop_duplicates(["network", "rounded", "per", "bits"])


def collect(
    study: Study, *, jobs: int | None = None, progress: Progress | None = None
) -> Quantised:
    """Return what the chapter shows; what has been run before is read, the rest is run.

    The networks are the first `study.survey_seeds` of those that confirm the baseline, the judged
    arm and `study.survey_arms`, in each of the two selections.
    """
    jobs = jobs or joblib.cpu_count()
    runs = experiment.run(study, jobs=jobs, progress=progress)
    groups: dict[tuple[str, str], list[Trial]] = {
        (tuned_for, arm): experiment.confirmed(runs, arm, roles[arm != BASELINE])
        for tuned_for, roles in SELECTIONS.items()
        for arm in surveys.variant(study).arms
    }
    groups = {name: own[: study.survey_seeds] for name, own in groups.items()}
    networks = list({trial.key: trial for own in groups.values() for trial in own}.values())
    settings = {
        "bits": list(study.bits),
        "sequences": study.mechanism_sequences,
        "roundings": ROUNDINGS,
        "n_validation": study.n_validation,
        "n_test": study.n_test,
    }
    found = measures.measure(
        "rounding", under_rounding.measure, networks, settings, ROOMS, jobs=jobs, progress=progress
    )
    by_key = dict(zip((trial.key for trial in networks), found, strict=True))
    rows = [
        {"tuned_for": tuned_for, "arm": arm, "seed": t.index, "network": t.key, **row}
        for (tuned_for, arm), own in groups.items()
        for t in own
        for row in _rows(by_key[t.key], study.bits)
    ]
    return Quantised(study, pd.DataFrame(rows))


def _rows(found: Mapping[str, NDArray[Any]], bits: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Yield a row for each case; an error that has diverged counts as the constant forecast's."""
    constant = float(found["constant"])
    per_case = [name for name, array in found.items() if array.ndim]

    def counted(error: float) -> float:
        return error if error <= DIVERGED * constant else constant

    for i, part in enumerate(PARTS):
        for j, per in enumerate(PER):
            for k, own in enumerate(bits):
                values = {name: float(found[name][i, j, k]) for name in per_case}
                clean, error = counted(float(found["clean"])), counted(values["error"])
                diverged = error != values["error"]
                yield {
                    **{"rounded": part, "per": per, "bits": own, **values},
                    **{"clean": clean, "error": error, "diverged": diverged},
                }


# ---- what it says


def cases(found: Quantised) -> list[Case]:
    """Return all cases, in the order of the table."""
    return [(part, per, bits) for part in PARTS for per in PER for bits in found.study.bits]


def predictions(found: Quantised, kind: str) -> dict[Case, Agreement]:
    """Return by case how well predicted deviations agree with those of `nearest` or `random`."""
    groups = found.networks.groupby(["rounded", "per", "bits"])
    own = {case: groups.get_group(case) for case in cases(found)}
    return {case: agreement(rows[f"predicted_{kind}"], rows[kind]) for case, rows in own.items()}


def ratios(found: Quantised, kind: str) -> dict[Case, NDArray[np.float64]]:
    """Return by case the measured over the predicted deviation of `nearest` or `random`, (n,).

    Without the networks that have none, because a number is not finite or not positive.
    """
    rows = found.networks.assign(ratio=lambda t: t[kind] / t[f"predicted_{kind}"])
    usable = rows[np.isfinite(rows.ratio) & (rows.ratio > 0)]
    return {case: usable[_are(usable, case)].ratio.to_numpy() for case in cases(found)}


def comparisons(found: Quantised, tuned_for: str, arm: str) -> dict[Case, Comparison]:
    """Compare an arm's test error with the baseline's at the same bits, seed by seed."""
    s = found.study
    return {
        case: results.compare(
            f"{case[0]}, {case[2]} bits per {case[1]}",
            *(_errors(found, tuned_for, name, case) for name in (BASELINE, arm)),
            alpha=s.alpha,
            sesoi=s.sesoi,
        )
        for case in cases(found)
    }


def bought(found: Quantised, tuned_for: str, arm: str) -> dict[Case, Bought]:
    """Return at how many fewer bits the arm reaches the baseline's error at each number of bits."""
    bits = sorted(found.study.bits)
    by_case: dict[Case, Bought] = {}
    for part in PARTS:
        for per in PER:
            curves = [
                np.log([_errors(found, tuned_for, name, (part, per, b)) for b in bits]).T
                for name in (BASELINE, arm)
            ]
            own = bits_bought.bits_bought(
                bits, *curves, level=1 - found.study.alpha, resamples=RESAMPLES
            )
            by_case |= {(part, per, b): one for b, one in zip(bits, own, strict=True)}
    return {case: by_case[case] for case in cases(found)}


def curves(found: Quantised, tuned_for: str) -> pd.DataFrame:
    """Return each arm's geometric mean error in every case: a row for `arm` and each case."""
    rows = found.table[found.table.tuned_for == tuned_for]
    logs = rows.assign(error=np.log(rows.error)).groupby(
        ["arm", "rounded", "per", "bits"], sort=False
    )
    return logs.error.mean().apply(np.exp).reset_index()


def _errors(found: Quantised, tuned_for: str, arm: str, case: Case) -> NDArray[np.float64]:
    t = found.table
    own = t[(t.tuned_for == tuned_for) & (t.arm == arm) & _are(t, case)]
    return np.asarray(own.sort_values("seed").error, dtype=np.float64)


def _are(table: pd.DataFrame, case: Case) -> "pd.Series[bool]":
    part, per, bits = case
    return (table.rounded == part) & (table["per"] == per) & (table.bits == bits)
