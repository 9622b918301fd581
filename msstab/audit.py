"""What a bench report says, recomputed from its own values by seed."""

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from msstab.evidence import PairedEvidence, power, summarise
from msstab.report import Config, Report, SweepEntry
from msstab.verdict import Decision, combine, decide

RELATIVE_TOLERANCE = 1e-9
"""Far above rounding, far below a digit that was mistyped."""

PLAUSIBLE_RESAMPLES = [m * 10**k for k in (2, 3, 4, 5) for m in (1, 2, 4, 5)] + [10**6]
MECHANISM_TOLERANCE = 0.1
"""The relative error within which the first such report called a mechanism confirmed."""


class Kind(StrEnum):
    """How a row reads: a number reproduced, one that isn't, or a concern about the design."""

    AGREES = "agrees"
    DIFFERS = "differs"
    FINDING = "finding"


_AGREES = {Kind.AGREES: "yes", Kind.DIFFERS: "no", Kind.FINDING: "finding"}

Value = float | str | None


class Row(NamedTuple):
    """One checked quantity; for a concern about design, `agrees` means there is none."""

    quantity: str
    stated: Value
    recomputed: Value
    agrees: bool
    why: str
    about_design: bool = False

    @property
    def kind(self) -> Kind:
        """The row's colour in a table."""
        if self.agrees:
            return Kind.AGREES
        return Kind.FINDING if self.about_design else Kind.DIFFERS


def audit(report: Report, *, alpha: float = 0.05, sesoi: float = 0.05) -> list[Row]:
    """Recompute every figure of a report that its values by seed determine, and question the rest.

    alpha and sesoi, the smallest effect of interest as a share of the baseline's mean, apply
    where the report does not state its own. Raises ValueError for a report whose values cannot
    be compared (see `summarise`).
    """
    bench = report.bench_report
    baseline = np.array(bench.baseline.full.per_seed)
    comparison = bench.comparison
    evidence = summarise(
        baseline,
        bench.idea.per_seed,
        alpha=comparison.alpha or alpha,
        margin=comparison.margin or sesoi * abs(float(baseline.mean())),
    )
    return [
        *_scores(report, evidence),
        *_differences(report, evidence),
        *_effects(report, evidence),
        *_mechanism(report),
        *_tuning(report),
        *_verdict(report, evidence, decide(evidence)),
    ]


def to_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return rows as a table to show, numbers with as many digits as tell them apart."""
    texts = [_texts(row) for row in rows]
    return pd.DataFrame(
        {
            "Quantity": [row.quantity for row in rows],
            "Stated": [stated for stated, _ in texts],
            "Recomputed": [recomputed for _, recomputed in texts],
            "Agrees": [_AGREES[row.kind] for row in rows],
            "Why": [row.why for row in rows],
        }
    )


def _scores(report: Report, e: PairedEvidence) -> Iterator[Row]:
    bench = report.bench_report
    counts = [bench.n_seeds, bench.baseline.full.n, bench.idea.n, bench.comparison.n_pairs]
    wrong = sum(count != e.n for count in counts)
    why = f"{e.n} values by seed in each arm; {wrong} of {len(counts)} stated counts differ"
    yield Row("number of pairs", float(bench.comparison.n_pairs), float(e.n), wrong == 0, why)
    for arm, scores in (("baseline", bench.baseline.full), ("idea", bench.idea)):
        values = np.array(scores.per_seed)
        sd = float(values.std(ddof=1))
        yield _number(f"{arm}: mean", scores.mean, float(values.mean()), "mean of the seeds")
        yield _number(f"{arm}: std", scores.std, float(values.std()), "divides by n")
        why = "divides by n - 1, as an estimate of the spread between seeds does"
        stated = scores.std if scores.std_ddof1 is None else scores.std_ddof1
        yield _number(f"{arm}: standard deviation", stated, sd, why)


def _differences(report: Report, e: PairedEvidence) -> Iterator[Row]:
    bench, comparison = report.bench_report, report.bench_report.comparison
    yield _number("mean difference", comparison.delta_mean, e.mean_difference, "idea - baseline")
    recomputed = np.subtract(bench.idea.per_seed, bench.baseline.full.per_seed)
    stated = np.array(comparison.per_seed_diffs)
    if stated.size == e.n:
        gaps = np.abs(stated - recomputed)
        worst, wrong = int(np.argmax(gaps)), ~_close(stated, recomputed)
        why = f"{np.count_nonzero(wrong)} of {e.n} differ"
        if wrong.any():
            why += f", pair {worst + 1} most, by {gaps[worst]:.2g}"
        pair = float(stated[worst]), float(recomputed[worst])
        yield Row(f"difference of pair {worst + 1}", *pair, not wrong.any(), why)
    else:
        why = f"{stated.size} differences for {e.n} pairs"
        yield Row("differences", float(stated.size), float(e.n), False, why)
    yield _number("wins of the idea", comparison.idea_wins, e.wins, "seeds with a lower error")
    yield _p_value(comparison.p_value, e)
    why = (
        f"differences vary {e.variance_ratio:.3f} times as much as between independent runs: "
        f"pairing {'gained' if e.pairing_helped else 'cost'} power"
    )
    yield Row("correlation of the pairs", None, e.correlation, e.pairing_helped, why, True)


def _p_value(stated: float, e: PairedEvidence) -> Row:
    agrees = bool(_close(stated, e.p_value))
    if not e.p_exact:
        agrees = agrees or abs(stated - e.p_value) <= 4 * math.sqrt(2) * e.p_standard_error
        why = f"from random signs, with a Monte Carlo standard error of {e.p_standard_error:.2g}"
        return Row("p value", stated, e.p_value, agrees, why)
    total = 2**e.n
    why = f"exact: {round(e.p_value * total)} of {total} arrangements of signs"
    # A share of m resamples is a multiple of 1/m, and so tells how many there may have been.
    possible = [m for m in PLAUSIBLE_RESAMPLES if abs(stated * m - round(stated * m)) < 1e-6]
    error = math.sqrt(e.p_value * (1 - e.p_value))
    if not agrees and possible and error > 0:
        guesses = [
            f"{round(stated * m)} of {m} ({(stated - e.p_value) * math.sqrt(m) / error:+.1f})"
            for m in possible[:2]
        ]
        why += f"; as a share of random ones (standard errors off): {' or '.join(guesses)}"
    return Row("p value", stated, e.p_value, agrees, why)


def _effects(report: Report, e: PairedEvidence) -> Iterator[Row]:
    comparison = report.bench_report.comparison
    error, level = e.sd_difference / math.sqrt(e.n), f"{100 * (1 - e.alpha):.3g}%"
    quantile = float(stats.t.isf(e.alpha / 2, e.n - 1))
    half_width, why = e.mde_half_width, f"half the width of a {level} interval is "
    why += f"{quantile:.6g} standard errors; stated: "
    why += f"{comparison.mde / error:.6g}" if error else "any, as differences do not vary"
    if _close(comparison.mde, round(quantile, 3) * error):
        # From a printed table of t, most likely: the right quantity all the same.
        half_width = round(quantile, 3) * error
    yield _number("mde as a half-width", comparison.mde, half_width, why)
    stated = comparison.mde if comparison.mde_power80 is None else comparison.mde_power80
    achieved = power(stated, e.sd_difference, e.n, e.alpha)
    why = (
        f"an effect of the stated size is detected with {achieved:.1%} power; one detected with "
        f"80% is {e.percent(e.mde_power80):.1f}% of the baseline"
    )
    yield _number("mde at 80% power", stated, e.mde_power80, why)
    why = "the stated mde in percent of the baseline's mean"
    yield _number("mde_rel_pct", comparison.mde_rel_pct, e.percent(comparison.mde), why)
    if comparison.interval is not None:
        for name, end, own in zip(("low", "high"), comparison.interval, e.interval, strict=True):
            yield _number(f"{level} interval: {name}", end, own, "by Student's t")
    if comparison.p_equivalence is not None:
        why = f"two one-sided t tests at a margin of {e.percent(e.margin):.3g}% of the baseline"
        yield _number("equivalence p", comparison.p_equivalence, e.p_equivalence, why)


def _mechanism(report: Report) -> Iterator[Row]:
    signature = report.bench_report.mechanism_signature
    predicted = signature.predicted_lifted_rho_mean
    observed = signature.observed_hidden_second_moment_ratio_mean
    stated, gap = signature.relative_error, abs(predicted - observed)
    errors = {"observed": gap / observed, "predicted": gap / predicted}
    used, other = "observed", "predicted"
    if _close(stated, errors[other]) and not _close(stated, errors[used]):
        used, other = other, used
    why = f"divided by the {used} value; by the {other} one it is {errors[other]:.3%}"
    yield _number("mechanism: relative error", stated, errors[used], why)
    trivial = abs(1 - observed) / observed
    better = errors["observed"] < trivial
    why = f"a ratio of 1, predicted for any network whatever, errs by {100 * trivial:.3g}%: " + (
        "more than the prediction"
        if better
        else f"{errors['observed'] / trivial:.3g} times less than the prediction"
        if trivial
        else "nothing can do better"
    )
    yield Row("mechanism: trivial prediction", stated, trivial, better, why, True)
    growth, seen = math.log(predicted), math.log(observed)
    larger = max(abs(growth), abs(seen))
    log_error = abs(growth - seen) / larger if larger else 0.0
    why = (
        f"log growth a step is predicted as {growth:.3g} and observed as {seen:.3g}; "
        f"an error up to {MECHANISM_TOLERANCE:.0%} of the larger would pass"
    )
    passes = log_error <= MECHANISM_TOLERANCE
    yield Row("mechanism: error in log growth", stated, log_error, passes, why, True)


def _tuning(report: Report) -> Iterator[Row]:
    baseline, idea = report.bench_report.baseline, report.bench_report.idea
    arms = [("baseline", baseline.best_cfg, baseline.sweep, baseline.full.per_seed)]
    if idea.sweep and idea.best_cfg:
        arms.append(("idea", idea.best_cfg, idea.sweep, idea.per_seed))
        trials, same = float(len(idea.sweep)), len(idea.sweep) == len(baseline.sweep)
        why = "configurations tried for the baseline and for the idea"
        yield Row("tuning budget", float(len(baseline.sweep)), trials, same, why, True)
    else:
        why = "without the idea's sweep nobody can check that both arms had the same budget"
        yield Row("tuning budget", float(len(baseline.sweep)), "not recorded", False, why, True)
    for arm, best, sweep, per_seed in arms:
        chosen = min(sweep, key=_selection)
        data = "test" if chosen.validation_mean is None else "validation"
        why = f"the lowest {data} error of {len(sweep)} trials, {_selection(chosen):.3g}"
        yield Row(f"{arm}: best trial", _name(best), _name(chosen.cfg), best == chosen.cfg, why)
        yield _edge(arm, "learning rate", best.lr, {trial.cfg.lr for trial in sweep})
        strengths = {trial.cfg.penalty for trial in sweep}
        if strengths != {0.0}:
            yield _edge(arm, "penalty", best.penalty, strengths)
        tuned = next((trial for trial in sweep if trial.cfg == best), chosen)
        yield _reuse(arm, tuned.mean, per_seed)


def _edge(arm: str, name: str, best: float, tried: set[float]) -> Row:
    low, high = min(tried), max(tried)
    # Nothing lies below 0, so that edge hides no better value.
    bracketed = (low < best or low == 0) and best < high
    why = "lies between others" if bracketed else "on the grid's edge: better ones may lie beyond"
    return Row(f"{arm}: {name}", best, f"{low:g} to {high:g}", bracketed, why, True)


def _reuse(arm: str, tuned: float, per_seed: Sequence[float]) -> Row:
    means = np.array([np.mean(per_seed[:k]) for k in range(1, len(per_seed) + 1)])
    nearest = int(np.argmin(np.abs(means - tuned)))
    reused = bool(np.isclose(means[nearest], tuned, rtol=1e-12, atol=0))
    why = (
        f"the sweep's mean is that of the first {nearest + 1} seeds of the confirmation: the "
        "configuration was chosen on errors it is then judged by"
        if reused
        else "the sweep's mean is not that of the first seeds of the confirmation, however many"
    )
    return Row(f"{arm}: tuning seeds", tuned, float(means[nearest]), not reused, why, True)


def _verdict(report: Report, e: PairedEvidence, decision: Decision) -> Iterator[Row]:
    judgement = combine(decision, e, bool(report.mechanism_ok))
    comparison = report.bench_report.comparison
    stated = {report.practical_verdict, comparison.outcome or report.practical_verdict}
    agrees = stated == {decision.outcome.value}
    text = " and ".join(sorted(stated))
    yield Row("verdict", text, decision.outcome.value, agrees, decision.reason)
    flags = {report.worked, comparison.system_worked}
    text = " and ".join("yes" if flag else "no" for flag in sorted(flags))
    worked = "yes" if judgement.worked else "no"
    yield Row("worked", text, worked, flags == {judgement.worked}, "yes where better is shown")
    why = "supported: better by the claimed mechanism; refuted: worse or equivalent, and without it"
    agrees = report.system_verdict == judgement.system_verdict
    yield Row("system verdict", report.system_verdict, judgement.system_verdict, agrees, why)


def _name(cfg: Config) -> str:
    return f"lr {cfg.lr:g}, penalty {cfg.penalty:g}"


def _selection(entry: SweepEntry) -> float:
    return entry.mean if entry.validation_mean is None else entry.validation_mean


def _number(quantity: str, stated: float, recomputed: float, why: str) -> Row:
    agrees = bool(_close(stated, recomputed))
    return Row(quantity, float(stated), float(recomputed), agrees, why)


def _close(a: float | NDArray[np.float64], b: float | NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(np.isclose(a, b, rtol=RELATIVE_TOLERANCE, atol=0))


def _texts(row: Row) -> tuple[str, str]:
    for digits in (6, 9, 17):
        stated, recomputed = (_text(value, digits) for value in (row.stated, row.recomputed))
        if row.agrees or stated != recomputed:
            break
    return stated, recomputed


def _text(value: Value, digits: int) -> str:
    if value is None:
        return "\N{EM DASH}"
    return value if isinstance(value, str) else f"{value:.{digits}g}"
