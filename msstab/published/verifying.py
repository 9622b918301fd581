"""Run a sample of the published trials again, and compare."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib.externals.loky import get_reusable_executor

from msstab import experiment
from msstab.published.agreement import WHICH, Agreement, agreement
from msstab.published.folder import Published, PublishedError, reusing


class Verification(NamedTuple):
    """A sample of the published trials, run again: which networks, and how both came out."""

    trials: pd.DataFrame
    found: Agreement


def verify(
    published: Published,
    sample: int,
    *,
    seed: int | None = None,
    jobs: int = 1,
    progress: experiment.Progress | None = None,
) -> Verification:
    """Train and score `sample` random networks of the published study, and compare every score.

    Nothing that is kept is read, and nothing is kept. `seed` chooses the same sample again; by
    default it is another one each time. Raises PublishedError if the results lack a trial of their
    own study, and ValueError for a sample of fewer than 2.
    """
    if sample < 2:
        raise ValueError(f"sample = {sample}: at least 2 networks are needed")
    study = published.study
    with _empty_cache():
        with reusing(published):
            lacking = experiment.foresee(study).to_score
            if lacking:
                raise PublishedError(
                    f"{published.folder} lacks {lacking} scores that its study now asks for; check "
                    "out the version of the project that wrote it"
                )
            runs = experiment.run(study)
        table = published.table
        if not table[WHICH].equals(runs.table[WHICH]):
            raise PublishedError(f"{published.folder}: trials.csv and kept.npz are of other runs")
        chosen = np.random.default_rng(seed).choice(
            len(table), size=min(sample, len(table)), replace=False
        )
        rows = [int(row) for row in np.sort(chosen)]
        with reusing(None):
            scorings = [runs.scorings[row] for row in rows]
            scored = experiment.score(scorings, jobs=jobs, progress=progress)
    sampled = table.iloc[rows].reset_index(drop=True)
    again = pd.concat([sampled[WHICH], pd.DataFrame(scored)], axis="columns")
    return Verification(sampled, agreement(sampled, again))


def to_json(verification: Verification) -> dict[str, Any]:
    """Return a verification for programs: its numbers, and which networks were run again."""
    found = verification.found
    numbers = {n: None if v != v else v for n, v in found._asdict().items()}
    trials = json.loads(verification.trials[WHICH].to_json(orient="records", double_precision=15))
    return {**numbers, "agrees": found.agrees, "trials": trials}


@contextmanager
def _empty_cache() -> Iterator[None]:
    """Keep results in a folder that is removed at the end, in every process."""
    before = os.environ.get("MSSTAB_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MSSTAB_CACHE"] = folder
        # Processes that wait for work since before know another cache.
        get_reusable_executor().shutdown(wait=True)
        try:
            yield
        finally:
            get_reusable_executor().shutdown(wait=True)
            del os.environ["MSSTAB_CACHE"]
            if before is not None:
                os.environ["MSSTAB_CACHE"] = before
