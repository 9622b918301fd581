"""Runs that diverged: how many there are, and whether the rule that scores them decides."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from msstab import results
from msstab.results import CLEAN_ROLES, ROBUST_ROLES, Comparison, Results
from msstab.scores import DIVERGED
from msstab.sensitivity import again

AS_JUDGED = "scored as the constant forecast"
LEFT_OUT = "left out with their pairs"
WORST = "scored as the worst that has not diverged could be"
UNDECIDED = "not decided"
"""What to say of an outcome where diverged runs leave fewer than two pairs."""


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """Return how many networks of each arm and role diverged, of how many, a row each.

    `table` is that of an Experiment. At strength 0 an arm's networks are the baseline's own, and
    count there alone.
    """
    own = table[(table.strength > 0) | (table.arm == "baseline") | (table.role == "untrained")]
    groups = own.groupby(["arm", "role"], sort=False).diverged
    return groups.agg(diverged="sum", networks="size").astype(int).reset_index()


def vary(found: Results) -> pd.DataFrame:
    """Return the judged arm's outcomes on both questions by how diverged runs are scored.

    Columns: `question`, `diverged` runs among those compared, `scored`, `pairs`, `outcome`,
    `effect` and `p_value` as `sensitivity.again` returns them. Where none diverged, all ways are
    the same.
    """
    rows = []
    for compared, roles in ((found.clean, CLEAN_ROLES), (found.noisy, ROBUST_ROLES)):
        lost = results.pairs(found.experiment, found.idea, roles, "diverged")
        own = vary_comparison(compared, *lost, sesoi=found.study.sesoi)
        own.insert(0, "question", compared.title)
        rows.append(own)
    return pd.concat(rows, ignore_index=True)


def vary_comparison(
    compared: Comparison,
    baseline_lost: ArrayLike,
    idea_lost: ArrayLike,
    *,
    sesoi: float,
) -> pd.DataFrame:
    """Return one comparison's rows of `vary`; lost: (n,) whether a run diverged, by arm.

    The worst that has not diverged errs by `scores.DIVERGED` times the constant forecast's error,
    which is what a diverged run counts with.
    """
    errors = np.stack([compared.baseline, compared.idea])
    lost = np.stack([np.asarray(arm) > 0 for arm in (baseline_lost, idea_lost)])
    scored = {
        AS_JUDGED: errors,
        LEFT_OUT: errors[:, ~lost.any(axis=0)],
        WORST: np.where(lost, DIVERGED, 1.0) * errors,
    }
    alpha, rows = compared.evidence.alpha, []
    for name, (a, b) in scored.items():
        found = again(a, b, alpha=alpha, sesoi=sesoi)
        rows.append({"diverged": int(lost.sum()), "scored": name, **found})
    return pd.DataFrame(rows)


def sentence(frame: pd.DataFrame) -> str:
    """Say whether the scoring of diverged runs decides, from a frame by `vary`."""
    said = []
    for question, rows in frame.groupby("question", sort=False):
        lost, outcomes = int(rows.diverged.iloc[0]), rows.outcome.replace("", UNDECIDED)
        if not lost:
            said.append(f"{question}: none of the runs compared diverged.")
            continue
        if outcomes.nunique() == 1:
            ways = f"{outcomes.iloc[0]} whether they are {', '.join(rows.scored[:-1])}"
            ways += f" or {rows.scored.iloc[-1]}"
        else:
            pairs = zip(outcomes, rows.scored, strict=True)
            ways = ", ".join(f"{outcome} if they are {scored}" for outcome, scored in pairs)
        said.append(f"{question}: {lost} of the runs compared diverged. The outcome is {ways}.")
    return " ".join(said)
