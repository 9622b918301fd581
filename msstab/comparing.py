"""Two reports beside each other: what differs in parameters, effects and verdict."""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msstab import evidence, verdict
from msstab.books import BookError
from msstab.evidence import PairedEvidence, Scale
from msstab.report import BenchReport, Report

if TYPE_CHECKING:
    from msstab.svg import Picture

ALPHA, SESOI = 0.05, 0.05
"""The level and the smallest effect of interest, a share, where a report states none."""

NOT_RECORDED = "not recorded"
MOST_LISTED = 8

Group = Literal["parameter", "effect", "verdict"]
GROUPS: tuple[Group, ...] = ("parameter", "effect", "verdict")


class Row(NamedTuple):
    """One quantity of both reports, None where one does not record it."""

    group: Group
    quantity: str
    first: Any
    second: Any

    @property
    def changed(self) -> bool:
        """Whether the reports differ."""
        return bool(self.first != self.second)


def compare(first: Report, second: Report) -> list[Row]:
    """Return the parameters that differ, and every effect and verdict.

    Effects are recomputed from the values by seed. Raises BookError for values that cannot be
    compared.
    """
    pair = [_facts(report) for report in (first, second)]
    if None in (first.bench_report.study, second.bench_report.study):
        # A report without its parameters would make a row of every one of the other's.
        for facts, report in zip(pair, (first, second), strict=True):
            facts["parameter"] = _named(report.bench_report)
    rows: list[Row] = []
    for group in GROUPS:
        a, b = (facts[group] for facts in pair)
        named = [Row(group, name, a.get(name), b.get(name)) for name in {**a, **b}]
        rows += [row for row in named if row.changed or group != "parameter"]
    return rows


def sentence(rows: list[Row]) -> str:
    """Say in a sentence whether the answer differs, and what was asked differently."""
    asked = [row.quantity for row in rows if row.group == "parameter"]
    outcome = next(row for row in rows if row.quantity == "outcome")
    answer = (
        f"The outcome changes from {outcome.first} to {outcome.second}"
        if outcome.changed
        else f"Both come out {outcome.first}"
    )
    if not asked:
        return f"{answer}; no recorded parameter differs."
    listed = ", ".join(asked[:MOST_LISTED]) + (", and more" if len(asked) > MOST_LISTED else "")
    verb = "differs" if len(asked) == 1 else "differ"
    return f"{answer}; {len(asked)} parameter{'s' * (len(asked) > 1)} {verb}: {listed}."


def to_json(rows: list[Row]) -> dict[str, Any]:
    """Return the rows for programs."""
    return {
        "sentence": sentence(rows),
        "rows": [
            {
                "group": row.group,
                "quantity": row.quantity,
                "first": _plain(row.first),
                "second": _plain(row.second),
                "changed": row.changed,
            }
            for row in rows
        ],
    }


def to_texts(rows: list[Row]) -> Iterator[tuple[str, str, str, str]]:
    """Yield each row as a terminal shows it: quantity, both values, and whether they differ."""
    for row in rows:
        first, second = (_text(value) for value in (row.first, row.second))
        yield row.quantity, first, second, "yes" if row.changed else ""


def paired(report: Report) -> PairedEvidence:
    """Return the evidence of a report, recomputed from its values by seed; raise BookError."""
    bench, stated = report.bench_report, report.bench_report.comparison
    baseline = bench.baseline.full.per_seed
    mean = sum(baseline) / len(baseline)
    try:
        return evidence.summarise(
            baseline,
            bench.idea.per_seed,
            margin=stated.margin or SESOI * mean,
            alpha=stated.alpha or ALPHA,
        )
    except ValueError as error:
        raise BookError(f"the values by seed cannot be compared: {error}") from None


def picture(reports: Mapping[str, Report]) -> "Picture":
    """Draw the effect of each report, by its title, with its interval; raise BookError.

    The band is the smallest effect of interest of the first.
    """
    from msstab import figures, results  # these load torch, which no table needs

    compared = []
    for title, report in reports.items():
        found = paired(report)
        bench = report.bench_report
        shares = {"alpha": found.alpha, "sesoi": found.margin / found.mean_baseline}
        errors = (bench.baseline.full.per_seed, bench.idea.per_seed)
        compared.append(results.compare(title, *errors, **shares))
    first = compared[0].evidence
    return figures.effects(compared, first.margin / first.mean_baseline)


def _facts(report: Report) -> dict[Group, dict[str, Any]]:
    """Return what a report says, by group and quantity."""
    bench = report.bench_report
    found = paired(report)
    judged = found.judged
    # A report that does not say on which scale it decided did so on differences.
    decided = bench.comparison.outcome or verdict.decide(found.on(Scale.DIFFERENCES)).outcome.value
    unit, factor = ("% of the baseline's error", 100) if judged.relative else ("absolute", 1)
    effects = {
        "pairs": found.n,
        "baseline's error": found.mean_baseline,
        "idea's error": found.mean_idea,
        "compared by": judged.scale.value,
        f"effect, {unit}": factor * judged.effect,
        "interval, from": factor * judged.interval.low,
        "interval, to": factor * judged.interval.high,
        "p value": judged.p_value,
        "idea better in": found.wins,
    }
    verdicts = {
        "outcome": decided,
        "mechanism confirmed": bool(report.mechanism_ok),
        "worked": report.worked,
        "confidence": report.confidence,
        "verdict": report.verdict,
    }
    for name, question in (report.questions or {}).items():
        verdicts[f"{name}: outcome"] = question.outcome
        verdicts[f"{name}: effect, % of the baseline's error"] = 100 * question.decided_on.effect
    return {"parameter": _parameters(bench), "effect": effects, "verdict": verdicts}


def _parameters(bench: BenchReport) -> dict[str, Any]:
    """Return what was asked, as far as it is recorded."""
    return {"model": bench.model, "track": bench.track, **(bench.study or {})}


def _named(bench: BenchReport) -> dict[str, Any]:
    """Return what every report records of what was asked, and the study's key."""
    return {"model": bench.model, "track": bench.track, "study": bench.study_key}


def _plain(value: Any) -> Any:
    """Return null for a number that JSON cannot hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: Any) -> str:
    if value is None:
        return NOT_RECORDED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
