"""How many seeds confirm: planned from the tuning seeds, before any confirmation runs."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from msstab import evidence, rules, store
from msstab.study import Study


class Plan(NamedTuple):
    """The number of pairs for the primary comparison, and what it rests on.

    `sd` is that of the log ratio of paired validation errors over `tuning_seeds` seeds, `effect`
    the smallest of interest on that scale, `needed` the pairs that detect it at `level` with the
    wanted `power`, and `seeds` the pairs that run: as many as needed, the cap, or, where the
    Study names a number, that one. `reason` says which. `power_planned` is what `seeds` pairs
    have.
    """

    sd: float
    tuning_seeds: int
    effect: float
    level: float
    power: float
    needed: int
    seeds: int
    power_planned: float
    reason: str


def plan(study: Study, baseline: ArrayLike, idea: ArrayLike) -> Plan:
    """Plan a Study's confirmation from validation errors of its tuning seeds, paired (n,).

    The power is that of the two-sided paired t test on log ratios (evidence.power), for an effect
    of `evidence.log_margin(study.sesoi)` either way. Source: Cohen (1988).
    """
    sd = float(np.std(evidence.log_ratios(baseline, idea), ddof=1))
    effect = evidence.log_margin(study.sesoi)
    needed = evidence.pairs_needed(effect, sd, study.power, study.alpha)
    if study.seeds:
        seeds, reason = study.seeds, "the Study names the number"
    elif needed <= study.max_seeds:
        seeds, reason = needed, "as many as needed"
    else:
        seeds, reason = study.max_seeds, f"capped at max_seeds = {study.max_seeds}"
    planned = evidence.power(effect, sd, seeds, study.alpha)
    return Plan(
        sd, study.tuning_seeds, effect, study.alpha, study.power, needed, seeds, planned, reason
    )


def record(study: Study, made: Plan, choices: dict[str, Any]) -> dict[str, Any]:
    """Return what is fixed before confirmation, as JSON holds it: plan, choices, rules, limits."""
    return {
        "study_key": study.key,
        "study": study.model_dump(mode="json"),
        "plan": made._asdict(),
        "configurations": choices,
        "smallest_effect_of_interest": study.sesoi,
        "level": study.alpha,
        "rules": {
            "R1": {
                "slope_within": rules.SLOPE_TOLERANCE,
                "largest_log_rmse": rules.LARGEST_LOG_RMSE,
                "smallest_correlation": rules.SMALLEST_CORRELATION,
                "placebo_factor": rules.PLACEBO_FACTOR,
            },
            "R2": {
                "slopes": list(rules.CHANGE_SLOPES),
                "smallest_sign_agreement": rules.SMALLEST_SIGN_AGREEMENT,
            },
            "R3": {"excess_ratios": list(rules.EXCESS_RATIOS)},
            "R4": {"largest_growth_error": rules.LARGEST_GROWTH_ERROR},
            "fewest_variants": rules.FEWEST_VARIANTS,
            "fewest_seeds": rules.FEWEST_SEEDS,
        },
    }


def write(content: dict[str, Any]) -> Path:
    """Keep a plan beside the trials, in one step, and return its file."""
    path = store.cache_folder() / "plans" / f"{content['study_key']}.json"
    store.replace(path, f"{json.dumps(content, indent=1)}\n".encode())
    return path
