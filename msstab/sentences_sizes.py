"""Sentences of chapter 7 whose words, and not only numbers, depend on the results."""

from collections.abc import Sequence

import numpy as np

from msstab import evidence, rules, sizes
from msstab.evidence import Trend
from msstab.sizes import QUESTIONS, Sizes
from msstab.tables import spoken


def grows_or_shrinks(line: Trend, ends: Sequence[int], p: float, alpha: float) -> str:
    """Say what becomes of an effect from the smallest to the largest size, on the fitted line.

    `p` is the trend's, adjusted if need be.
    """
    first, last = line.intercept + line.slope * np.log2([ends[0], ends[-1]])
    figures = f"{np.expm1(first):+.0%} at {ends[0]} to {np.expm1(last):+.0%} at {ends[-1]} units"
    if p > alpha:
        return f"shows no trend ({figures} on the line)"
    if first * last < 0:
        return f"changes sign ({figures})"
    return f"{'grows' if abs(last) > abs(first) else 'shrinks'} ({figures})"


def trends(found: Sizes, arms: Sequence[str] = ()) -> str:
    """Say for every arm, error and cell whether the effect grows or shrinks with the size.

    `arms` are those that are spoken of, by default all; p values are adjusted over all.
    """
    fitted = {
        (arm, question, cell): line
        for arm in found.arms
        for question in QUESTIONS
        for cell, line in sizes.trends(found, arm, question).items()
    }
    if not fitted:
        return "One size alone was run, which shows no trend."
    adjusted = dict(
        zip(fitted, evidence.holm([line.p for line in fitted.values()]).tolist(), strict=True)
    )
    parts = []
    for arm in arms or found.arms:
        for question, title in QUESTIONS.items():
            said = [
                f"in the {cell.upper()} it "
                + grows_or_shrinks(
                    line,
                    found.cells[cell],
                    adjusted[arm, question, cell],
                    found.study.alpha,
                )
                for (a, q, cell), line in fitted.items()
                if (a, q) == (arm, question)
            ]
            parts.append(f"The effect of {spoken(arm)} on the {title}: {'; '.join(said)}.")
    return " ".join(parts)


def everywhere(found: Sizes) -> str:
    """Say at how many places each arm lowers or raises either error."""
    parts = []
    for arm in found.arms:
        for question, title in QUESTIONS.items():
            compared = sizes.comparisons(found, arm, question).values()
            ratios = [c.evidence.ratios for c in compared]
            lower = sum(r.interval.high < 1 for r in ratios)
            higher = sum(r.interval.low > 1 for r in ratios)
            parts.append(
                f"{spoken(arm)} lowers the {title} at {lower} and raises it at {higher} of "
                f"{len(ratios)} combinations of cell and size"
            )
    return f"By the interval of each alone, {'; '.join(parts)}."


def prediction(found: Sizes) -> str:
    """Say where the theory predicts the output's variance within rule R1's limits."""
    agreed = {place: own["predicted"] for place, own in sizes.predictions(found).items()}
    outside = [place for place, real in agreed.items() if not rules.fits(real)]
    lead = (
        f"At {len(agreed) - len(outside)} of {len(agreed)} combinations the predicted variance is "
        "within the limits that rule R1 sets for slope, correlation and log-rmse"
    )
    if not outside:
        return f"{lead}."
    named = ", ".join(f"{cell.upper()} of {size}" for cell, size in outside)
    return f"{lead}; outside are {named}."


def simulation_error(found: Sizes) -> str:
    """Say how exactly the simulated variances are known, which is the least a log-rmse can be."""
    counts = {s.study.draws * s.study.mechanism_sequences for s in found.surveys.values()}
    return (
        f"A simulated variance rests on {_range(counts)} runs, so that it would err by about "
        f"{np.sqrt(2 / min(counts)):.0%} of itself if deviations were normal: no log-rmse can be "
        "expected to be much smaller."
    )


def left_out(found: Sizes) -> str:
    """Say which combinations are too large to be run, if any."""
    if not found.left_out:
        return "Every combination of cell and size was run."
    named = ", ".join(f"{cell.upper()} of {size} units" for cell, size in found.left_out)
    return (
        f"Not run: {named}. Their states have more than {sizes.LARGEST_STATE} rows, an LSTM's two "
        "for each hidden unit, and the time that second moments take grows with the cube of those."
    )


def _range(counts: set[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"
