"""Chapter 9: what rounding to few bits does to a Study's networks, and whether an arm buys bits."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msstab import bits_bought, evidence, experiment, measures, results, surveys, under_rounding
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

Case = tuple[str, str, int]
"""What is rounded, what has a step of its own ("tensor" or "channel"), and bits."""


Key = tuple[str, str, str, str, int]
"""What networks were tuned for, an arm, and a case."""


class Fit(NamedTuple):
    """Measured over predicted mean squared deviations, one ratio for each network.

    `ratio` is their mean, for an expectation is predicted; `low` and `high` the 5th and 95th
    percentiles; `within` the share within `TOLERANCE` of 1. All over `n` networks; of
    `n_unusable` the ratio is not finite or not positive.
    """

    ratio: float
    low: float
    high: float
    within: float
    n: int
    n_unusable: int

    @property
    def holds(self) -> bool:
        """Whether the mean is within `TOLERANCE` of 1."""
        return abs(self.ratio - 1) <= TOLERANCE


class Quantised(NamedTuple):
    """What the chapter shows.

    `table` has a row for each network and case: `tuned_for`, `arm`, `seed`; `rounded`, `per`,
    `bits`; `clean` and `error`, the test errors without rounding and to nearest; `nearest` and
    `random`, the mean squared deviation of an output on the first test sequences, rounded to
    nearest, and the mean of `ROUNDINGS` at random, with its `standard_error`; `predicted_nearest`
    and `predicted_random`; `diverged`, by the rule of `scores.score`, which also says what error
    then counts. `network` is the trained network's name.
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


def fits(found: Quantised, kind: str) -> dict[Case, Fit]:
    """Return by case how measured deviations compare with predicted ones; `nearest` or `random`."""
    rows = found.networks.assign(ratio=lambda t: t[kind] / t[f"predicted_{kind}"])
    return {case: _fit(rows[_are(rows, case)].ratio) for case in cases(found)}


def _fit(ratios: "pd.Series[float]") -> Fit:
    usable = ratios[np.isfinite(ratios) & (ratios > 0)]
    if usable.empty:
        return Fit(np.nan, np.nan, np.nan, np.nan, 0, len(ratios))
    low, high = usable.quantile([0.05, 0.95])
    return Fit(
        float(usable.mean()),
        float(low),
        float(high),
        float(((usable - 1).abs() <= TOLERANCE).mean()),
        len(usable),
        len(ratios) - len(usable),
    )


def monte_carlo_error(found: Quantised) -> dict[Case, float]:
    """Return by case the median standard error of deviations measured at random, as a share."""
    rows = found.networks.assign(share=lambda t: t.standard_error / t.random)
    return {case: float(rows[_are(rows, case)].share.median()) for case in cases(found)}


def comparisons(found: Quantised) -> dict[Key, Comparison]:
    """Compare each arm's test error with the baseline's at the same bits, seed by seed."""
    s = found.study
    return {
        (tuned_for, arm, *case): results.compare(
            f"{case[0]}, {case[2]} bits per {case[1]}",
            *(_errors(found, tuned_for, name, case) for name in (BASELINE, arm)),
            alpha=s.alpha,
            sesoi=s.sesoi,
        )
        for tuned_for in SELECTIONS
        for arm in found.arms
        for case in cases(found)
    }


def differing(compared: Mapping[Key, Comparison], tuned_for: str) -> dict[Key, Comparison]:
    """Return the comparisons of a selection that differ, after Holm's rule over all of them.

    By the sign-flip test of the log ratios, at the comparisons' own level.
    """
    family = {key: c for key, c in compared.items() if key[0] == tuned_for}
    adjusted = evidence.holm([c.evidence.ratios.p_value for c in family.values()])
    pairs = zip(family.items(), adjusted, strict=True)
    return {key: c for (key, c), p in pairs if p <= c.evidence.alpha}


def bought(found: Quantised) -> dict[Key, Bought]:
    """Return at how many fewer bits each arm reaches the baseline's error, at each number of bits.

    The error is the geometric mean over the seeds.
    """
    bits, by_key = sorted(found.study.bits), {}
    for tuned_for, arm, part, per in itertools.product(SELECTIONS, found.arms, PARTS, PER):
        curves = [
            np.log([_errors(found, tuned_for, name, (part, per, b)) for b in bits]).T
            for name in (BASELINE, arm)
        ]
        own = bits_bought.bits_bought(bits, *curves, level=1 - found.study.alpha)
        for b, one in zip(bits, own, strict=True):
            by_key[tuned_for, arm, part, per, b] = one
    return by_key


def errors(found: Quantised, tuned_for: str) -> pd.DataFrame:
    """Return each arm's geometric mean `error` in each case, and `clean`, without rounding."""
    rows = found.table[found.table.tuned_for == tuned_for]
    logs = rows.assign(error=np.log(rows.error), clean=np.log(rows.clean))
    means = logs.groupby(["arm", "rounded", "per", "bits"], sort=False)[["error", "clean"]].mean()
    return means.apply(np.exp).reset_index()


def _errors(found: Quantised, tuned_for: str, arm: str, case: Case) -> NDArray[np.float64]:
    t = found.table
    own = t[(t.tuned_for == tuned_for) & (t.arm == arm) & _are(t, case)]
    return np.asarray(own.sort_values("seed").error, dtype=np.float64)


def _are(table: pd.DataFrame, case: Case) -> "pd.Series[bool]":
    part, per, bits = case
    return (table.rounded == part) & (table["per"] == per) & (table.bits == bits)
