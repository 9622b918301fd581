"""Whether the outcome depends on how configurations are chosen: other rules, the same runs."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msstab.experiment import Experiment, by_configuration
from msstab.sensitivity import again
from msstab.tuning import Configuration, Errors, ranked

Summary = Callable[[NDArray[np.float64]], float]


class SelectionRule(NamedTuple):
    """How both arms' configurations are chosen from their validation errors.

    By the `place`-th lowest `summary` of an arm's errors over the tuning seeds; `free`: a penalised
    arm may also take strength 0.
    """

    summary: Summary
    place: int = 0
    free: bool = False


def _mean_log(errors: NDArray[np.float64]) -> float:
    with np.errstate(divide="ignore"):
        return float(np.mean(np.log(errors)))


AS_JUDGED = "lowest mean"

RULES = {
    AS_JUDGED: SelectionRule(np.mean),
    "lowest mean of the logarithm": SelectionRule(_mean_log),
    "lowest median": SelectionRule(np.median),
    "lowest mean, strength 0 allowed": SelectionRule(np.mean, free=True),
    "second lowest mean": SelectionRule(np.mean, place=1),
}
"""The rules by what they look for in the validation errors; the first is that of the verdict."""

QUESTIONS = {"Q1": ("validation_mse", "test_mse"), "Q2": ("noisy_validation_mse", "noisy_mse")}
"""The error that chooses and the error that is compared, by question."""


def vary(runs: Experiment, arm: str, question: str = "Q1") -> pd.DataFrame:
    """Return what each rule of RULES chooses for the baseline and for an arm, a row each.

    Columns: `rule`, `baseline` and `idea` (configurations), `same` (as by the first rule), `pairs`
    of confirmation seeds on which networks of both were run, and the comparison on them: `outcome`,
    `effect` and `p_value` as `sensitivity.again` returns them. Where either configuration was not
    confirmed there are no pairs, for nothing is trained. Raises KeyError for an unknown question.
    """
    chooses, compared = QUESTIONS[question]
    rows: list[dict[str, object]] = []
    for name, rule in RULES.items():
        a, b = (_chosen(runs, each, chooses, rule) for each in ("baseline", arm))
        same = not rows or (a, b) == (rows[0]["baseline"], rows[0]["idea"])
        row = {"rule": name, "baseline": a, "idea": b, "same": same}
        rows.append(row | _outcome(runs, (a, b), arm, compared))
    return pd.DataFrame(rows)


def sentence(frame: pd.DataFrame) -> str:
    """Say which rules leave the outcome, which change it and which leave it open."""
    judged, others = frame.outcome[0], frame[1:]
    same, different = others[others.same], others[~others.same]
    ran = different[different.pairs > 0]
    said = []
    if len(same):
        said.append(f"The configurations, and so the outcome, are the same by {_rules(same)}.")
    for outcome, own in ran.groupby("outcome", sort=False):
        verb = "stays" if outcome == judged else "would be"
        pairs = f"{own.pairs.min()} to {own.pairs.max()}" if own.pairs.nunique() > 1 else ""
        on = f"{pairs or own.pairs.iloc[0]} pairs"
        said.append(
            f"By {_rules(own)} other configurations are chosen, on whose {on} the outcome {verb} "
            f"{outcome}."
        )
    unknown = different[different.pairs == 0]
    if len(unknown):
        said.append(
            f"By {_rules(unknown)} configurations are chosen that were not confirmed, so that the "
            "outcome there is not known."
        )
    return " ".join(said)


def _chosen(runs: Experiment, arm: str, score: str, rule: SelectionRule) -> Configuration:
    """Return an arm's configuration by a rule; the last one where there are too few."""
    tuning = runs.table[(runs.table.role == "tuning") & (runs.table.arm == arm)]
    errors: Errors = {
        configuration: own.sort_values("seed")[score].to_numpy()
        for configuration, own in by_configuration(tuning).items()
        if arm == "baseline" or rule.free or configuration.strength > 0
    }
    return ranked(errors, rule.summary)[min(rule.place, len(errors) - 1)]


def _outcome(
    runs: Experiment, chosen: tuple[Configuration, Configuration], arm: str, score: str
) -> dict[str, object]:
    a, b = (
        _confirmed(runs, name, configuration, score)
        for name, configuration in zip(("baseline", arm), chosen, strict=True)
    )
    pairs = min(len(a), len(b))
    return again(a[:pairs], b[:pairs], alpha=runs.study.alpha, sesoi=runs.study.sesoi)


def _confirmed(
    runs: Experiment, arm: str, configuration: Configuration, score: str
) -> NDArray[np.float64]:
    """Return a score of the confirmation networks of a configuration by seed; empty if none ran.

    Of several roles in which they ran, those of most seeds. At strength 0 every arm's networks are
    the baseline's.
    """
    table = runs.table[~runs.table.role.isin(["tuning", "untrained"])]
    own = (table.strength == configuration.strength) & (
        table.learning_rate == configuration.learning_rate
    )
    if configuration.strength > 0:
        own &= table.arm == arm
    by_role = [rows for _, rows in table[own].groupby(["arm", "role"])]
    most = max(by_role, key=len, default=table[:0])
    return np.asarray(most.sort_values("seed")[score], dtype=np.float64)


def _rules(rows: pd.DataFrame) -> str:
    names = [f"the {name}" for name in rows.rule]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
