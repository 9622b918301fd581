"""Whether both arms were tuned alike, within their grids, and on other seeds than they confirm."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from msstab.audit.facts import ARMS, Facts, Values
from msstab.audit.reading import Trial
from msstab.audit.rows import (
    DIGITS_OF_A_MEASUREMENT,
    Row,
    concern,
    digits,
    same,
    stated,
    unchecked,
)

LEARNING_RATES = ("lr", "learning_rate")
STRENGTHS = ("penalty", "strength")


def check(facts: Facts) -> Iterator[Row]:
    """Yield the rows on the tuning budgets and on each arm's sweep."""
    yield _budget(facts)
    for name in ARMS:
        arm = facts.arm(name)
        if not arm.sweep:
            why = "without the sweep, neither its edges nor its seeds can be checked"
            yield unchecked(f"{name}: sweep", why, said=_name(arm.best_cfg))
            continue
        chosen = _chosen(arm.sweep, arm.best_cfg, facts.sign)
        active = [trial for trial in arm.sweep if _active(trial.cfg)]
        if chosen and not _matches(chosen, arm.best_cfg) and _active(arm.best_cfg):
            # With strength 0 the idea is the baseline, so leaving it out flatters nobody.
            chosen = _chosen(active, arm.best_cfg, facts.sign)
        yield _best(name, arm.best_cfg, chosen, len(arm.sweep))
        best = arm.best_cfg or (chosen.cfg if chosen else None)
        yield from _edges(name, arm.sweep, best)
        yield _reuse(name, arm.sweep, best, facts.values[name])


def _budget(facts: Facts) -> Row:
    counts = {name: len(facts.arm(name).sweep or ()) for name in ARMS}
    said, other = (float(counts[n]) if counts[n] else "not recorded" for n in ARMS)
    missing = [name for name in ARMS if not counts[name]]
    if missing:
        arms = "the idea's sweep" if missing == ["idea"] else f"the sweep of {' or '.join(missing)}"
        why = f"without {arms} nobody can check that both arms had the same budget"
        return concern("tuning budget", said, other, False, why)
    why = "configurations tried for the baseline and for the idea"
    return concern("tuning budget", said, other, said == other, why)


def _chosen(sweep: Sequence[Trial], best: Mapping[str, Any] | None, sign: int) -> Trial | None:
    """Return the trial with the best score; of equals, the one that the report chose.

    None where a trial lacks its configuration or the score that the others have.
    """
    validated = any(trial.validation_mean is not None for trial in sweep)
    scores = [trial.validation_mean if validated else trial.mean for trial in sweep]
    known = [sign * score for score in scores if score is not None]
    if not sweep or len(known) < len(sweep) or any(trial.cfg is None for trial in sweep):
        return None
    ties = [trial for score, trial in zip(known, sweep, strict=True) if score == min(known)]
    return next((t for t in ties if _matches(t, best)), ties[0])


def _active(cfg: Mapping[str, Any] | None) -> bool:
    strengths = [cfg[key] for key in STRENGTHS if key in cfg] if cfg else []
    return any(_is_number(strength) and strength > 0 for strength in strengths)


def _matches(trial: Trial | None, best: Mapping[str, Any] | None) -> bool:
    if not best or trial is None or not trial.cfg:
        return False
    return all(best[key] == trial.cfg.get(key, best[key]) for key in best)


def _best(arm: str, best: Mapping[str, Any] | None, chosen: Trial | None, trials: int) -> Row:
    name = f"{arm}: best trial"
    if chosen is None:
        return unchecked(name, "configurations or their scores are not recorded", said=_name(best))
    if best is None:
        return unchecked(name, "the chosen configuration is not recorded", _name(chosen.cfg))
    data, score = "validation", chosen.validation_mean
    if score is None:
        data, score = "test", chosen.mean
    why = f"the best {data} score of {trials} trials, {score:.3g}"
    return stated(name, _name(best), _name(chosen.cfg), _matches(chosen, best), why)


def _edges(arm: str, sweep: Sequence[Trial], best: Mapping[str, Any] | None) -> Iterator[Row]:
    if not best:
        yield unchecked(f"{arm}: learning rate", "the chosen configuration is not recorded")
        return
    for key, value in best.items():
        rate = key in LEARNING_RATES
        found = [t.cfg[key] for t in sweep if t.cfg and _is_number(t.cfg.get(key))]
        if _is_number(value) and found and (rate or len(set(found)) > 1):
            yield _edge(arm, "learning rate" if rate else key, value, min(found), max(found))
    if not set(LEARNING_RATES) & best.keys():
        yield unchecked(f"{arm}: learning rate", "the chosen one is not recorded")


def _edge(arm: str, name: str, best: float, low: float, high: float) -> Row:
    # Nothing lies below 0, so that edge hides no better value.
    bracketed = (low < best or low == 0) and best < high
    why = "lies between others" if bracketed else "on the grid's edge: better ones may lie beyond"
    return concern(f"{arm}: {name}", float(best), f"{low:g} to {high:g}", bracketed, why)


def _reuse(
    arm: str, sweep: Sequence[Trial], best: Mapping[str, Any] | None, values: Values | None
) -> Row:
    name = f"{arm}: tuning seeds"
    shared = set() if values is None else set(values.tolist())
    shared &= {value for trial in sweep for value in trial.per_seed or ()}
    if shared:
        why = f"{len(shared)} values of the sweep are values of the confirmation as well"
        return concern(name, None, float(len(shared)), False, why)
    tuned = next((t.mean for t in sweep if t.mean is not None and _matches(t, best)), None)
    if tuned is None or values is None:
        return unchecked(name, "the best trial's mean or the values by seed are not recorded")
    means = np.cumsum(values) / np.arange(1, values.size + 1)
    nearest = int(np.argmin(np.abs(means - tuned)))
    # Numbers of few digits coincide by chance.
    reused = digits(tuned) >= DIGITS_OF_A_MEASUREMENT and same(tuned, float(means[nearest]))
    why = (
        f"the sweep's mean is that of the first {nearest + 1} seeds of the confirmation: the "
        "configuration was chosen on errors it is then judged by"
        if reused
        else "the sweep's mean is not that of the first seeds of the confirmation, however many"
    )
    return concern(name, tuned, float(means[nearest]), not reused, why)


def _is_number(value: Any) -> bool:
    # JSON's whole numbers may be too long for any arithmetic.
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**15
    return whole or (isinstance(value, float) and math.isfinite(value))


def _name(cfg: Mapping[str, Any] | None) -> str | None:
    if not cfg:
        return None
    return ", ".join(f"{k} {v:g}" if _is_number(v) else f"{k} {v}" for k, v in cfg.items())
