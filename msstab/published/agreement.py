"""This run against the published run: to the last bit, or how far apart."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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

if TYPE_CHECKING:
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
    that of the t test that it is 0; NaN where all are identical. `between` is the standard
    deviation of log errors between the networks.
    """

    networks: int
    identical: int
    log_ratio: float
    spread: float
    p_value: float
    between: float

    @property
    def agrees(self) -> bool:
        """Whether all are identical, or differ without direction and less than other networks do.

        Rounding differs between platforms and versions, and training makes more of it.
        """
        if self.identical == self.networks:
            return True
        return self.p_value >= LEVEL and self.spread < self.between


def agreement(first: pd.DataFrame, second: pd.DataFrame) -> Agreement:
    """Compare two tables of trials on the networks they share.

    A network that diverged counts in the ratios with the error it is scored with. Raises ValueError
    if they share fewer than 2.
    """
    both = first.merge(second, on=WHICH, suffixes=("_first", "_second"))
    if len(both) < 2:
        raise ValueError(f"the tables share {len(both)} networks; at least 2 are needed")
    scores = [name for name in first.columns if name not in (*WHICH, UNMEASURED)]
    same = np.all(
        [_same(both[f"{n}_first"], both[f"{n}_second"]) for n in scores if n in second], axis=0
    )
    errors = (both[f"test_mse_{side}"].to_numpy(np.float64) for side in ("first", "second"))
    first_log, second_log = map(np.log, errors)
    ratios = second_log - first_log
    p_value = float("nan") if same.all() else _p_value(ratios)
    spread, between = (float(np.std(values, ddof=1)) for values in (ratios, first_log))
    return Agreement(len(both), int(same.sum()), float(ratios.mean()), spread, p_value, between)


def sentences(found: "Results", report: Report, folder: Path = DEFAULT) -> list[str]:
    """Say how this run compares with the published one, each part in a sentence."""
    if not folder.is_dir():
        return ["There are no published results beside this project to compare with."]
    try:
        return list(_sentences(found, report, open_results(folder)))
    except PublishedError as error:
        return [f"There is nothing to compare with: {error}."]


def _sentences(found: "Results", report: Report, published: Published) -> Iterator[str]:
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
            "read from the published results and not run again; "
            f"{reused_networks(found.experiment, exactly=True):,} of these are what this very code "
            "and these versions would make, as their names say."
        )
    if theirs["study_key"] == found.study.key:
        # What was read agrees with itself, and says nothing.
        ran = [not store.is_reused("score", s.key) for s in found.experiment.scorings]
        if sum(ran) > 1:
            compared = agreement(published.table, found.table[ran])
            yield agreement_sentence(compared, differs(published))
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
    if found.agrees:
        verdict = "so they differ as rounding makes them differ, and in no direction"
    elif found.p_value < LEVEL:
        verdict = "which is a systematic difference"
    else:
        verdict = "so they differ as much as other networks do"
    return (
        f"Of {found.networks:,} networks {found.identical:,} came out identical to the last bit"
        f"{because}; test errors differ by a factor of {np.exp(found.log_ratio):.4f} in the "
        f"geometric mean (standard deviation of its logarithm {found.spread:.2g}, between networks "
        f"{found.between:.2g}; p = {found.p_value:.2g}), {verdict}."
    )


def differs(published: Published) -> str:
    """Return a clause that names what else differs from the published run, if anything does."""
    theirs = published.manifest
    here = {**provenance.versions(published.folder.parent), **platform_here()}
    said = {**theirs["versions"], **theirs["platform"]}
    changed = [name for name, text in said.items() if here.get(name) != text and name != "commit"]
    return f" ({', '.join(changed)} differ from the published run's)" if changed else ""


def reused_networks(runs: Experiment, *, exactly: bool = False) -> int:
    """Return how many of an experiment's networks were read from published results.

    `exactly`: how many of those the same code and versions have made.
    """
    return sum(store.is_reused("score", s.key, exactly=exactly) for s in runs.scorings)


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
