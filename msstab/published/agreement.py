"""This run against the published run: to the last bit, or how far apart."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from msstab import comparing, provenance, store
from msstab.experiment import Experiment
from msstab.published.folder import (
    DEFAULT,
    Published,
    PublishedError,
    open_results,
    platform_here,
)
from msstab.report import Report
from msstab.results import Results

WHICH = ["arm", "role", "seed", "learning_rate", "strength"]
"""Columns that say which network a row of the trial table is of."""

UNMEASURED = "seconds"
"""The column that no two runs share."""

LEVEL = 0.01
"""Of the test whether errors differ systematically between two platforms."""


class Agreement(NamedTuple):
    """How networks of the same parameters came out twice.

    Of `networks`, `identical` have every score equal to the last bit. `log_ratio` is the mean of
    the log ratio of test errors, second to first, `spread` its standard deviation, and `p_value`
    that of the t test that it is 0; NaN where all are identical.
    """

    networks: int
    identical: int
    log_ratio: float
    spread: float
    p_value: float

    @property
    def agrees(self) -> bool:
        """Whether nothing speaks against both being runs of the same code."""
        return self.identical == self.networks or self.p_value >= LEVEL


def agreement(first: pd.DataFrame, second: pd.DataFrame) -> Agreement:
    """Compare two tables of trials on the networks they share.

    Raises ValueError if there are none. A network that diverged on one side only counts in the
    ratios with the error it is scored with.
    """
    both = first.merge(second, on=WHICH, suffixes=("_first", "_second"))
    if both.empty:
        raise ValueError("the tables have no network in common")
    scores = [name for name in first.columns if name not in (*WHICH, UNMEASURED)]
    same = np.all(
        [_same(both[f"{n}_first"], both[f"{n}_second"]) for n in scores if n in second], axis=0
    )
    errors = (both[f"test_mse_{side}"].to_numpy(np.float64) for side in ("first", "second"))
    first_log, second_log = map(np.log, errors)
    ratios = second_log - first_log
    different = bool((~same).any()) and len(both) > 1
    p_value = _p_value(ratios) if different else float("nan")
    spread = float(np.std(ratios, ddof=1)) if len(both) > 1 else float("nan")
    return Agreement(len(both), int(same.sum()), float(ratios.mean()), spread, p_value)


def sentences(found: Results, report: Report, folder: Path = DEFAULT) -> list[str]:
    """Say how this run compares with the published one, each part in a sentence."""
    if not folder.is_dir():
        return ["There are no published results beside this project to compare with."]
    try:
        return list(_sentences(found, report, open_results(folder)))
    except PublishedError as error:
        return [f"There is nothing to compare with: {error}."]


def _sentences(found: Results, report: Report, published: Published) -> Iterator[str]:
    theirs, here = published.manifest, platform_here()
    versions = ", ".join(f"{name} {text}" for name, text in theirs["versions"].items())
    yield (
        f"The published run is study `{theirs['study_key'][:12]}`, of {theirs['built'][:10]}, made "
        f"with {versions}, on {' '.join(theirs['platform'].values())}."
    )
    if reused := reused_networks(found.experiment):
        total = len(found.experiment.scorings)
        yield (
            f"The scores of {reused:,} of the {total:,} networks of the primary comparison were "
            "read from the published results and not run again."
        )
    if theirs["study_key"] == found.study.key:
        if reused < len(found.experiment.scorings):
            yield agreement_sentence(agreement(published.table, found.table), differs(published))
    else:
        yield "This run asks something else, so that its networks are not the published ones."
    yield f"Published: {_outcome(published.report)}. Here: {_outcome(report)}."
    rows = comparing.compare(published.report, report)
    if asked := [row.quantity for row in rows if row.group == "parameter"]:
        yield f"Parameters that differ: {', '.join(asked)}."
    if theirs["platform"] != here:
        yield f"This run is on {' '.join(here.values())}."


def agreement_sentence(found: Agreement, because: str = "") -> str:
    """Say whether networks came out identical, and if not, how far apart."""
    if found.identical == found.networks:
        return f"All {found.networks:,} networks came out identical, to the last bit of each score."
    verdict = (
        "which is no systematic difference" if found.agrees else "which is a systematic difference"
    )
    known = np.isfinite(found.p_value)
    return (
        f"Of {found.networks:,} networks {found.identical:,} came out identical to the last bit"
        f"{because}; test errors differ by a factor of {np.exp(found.log_ratio):.4f} in the "
        "geometric mean"
        + (
            f" (standard deviation of its logarithm {found.spread:.2g}, p = {found.p_value:.2g}), "
            f"{verdict}."
            if known
            else "."
        )
    )


def differs(published: Published) -> str:
    """Return a clause that names what else differs from the published run, if anything does."""
    theirs = published.manifest
    here = {**provenance.versions(published.folder.parent), **platform_here()}
    said = {**theirs["versions"], **theirs["platform"]}
    changed = [name for name, text in said.items() if here.get(name) != text and name != "commit"]
    return f" ({', '.join(changed)} differ from the published run's)" if changed else ""


def reused_networks(runs: Experiment) -> int:
    """Return how many of an experiment's networks were read from published results."""
    return sum(store.is_reused("score", scoring.key) for scoring in runs.scorings)


def _outcome(report: Report) -> str:
    """Return the effect on the first question, its interval and the outcome."""
    compared = report.bench_report.comparison
    on = compared.decided_on
    if on is None:
        return str(compared.outcome)
    low, high = on.interval
    return f"{on.effect:+.1%} [{low:+.1%}, {high:+.1%}] of the clean error, {compared.outcome}"


def _same(first: pd.Series, second: pd.Series) -> NDArray[np.bool_]:
    a, b = (np.asarray(side, dtype=np.float64) for side in (first, second))
    return np.isclose(a, b, rtol=0, atol=0, equal_nan=True)


def _p_value(ratios: NDArray[np.float64]) -> float:
    if not np.isfinite(ratios).all():
        return 0.0
    if np.ptp(ratios) == 0:
        return float(ratios[0] == 0)
    return float(stats.ttest_1samp(ratios, 0.0).pvalue)
