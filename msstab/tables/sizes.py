"""Tables of how effects and theory go with the size of a network, cell by cell."""

import numpy as np
import pandas as pd

from msstab import evidence, sizes
from msstab.families import holm_across
from msstab.sizes import QUESTIONS, Sizes
from msstab.tables.shown import number, spoken
from msstab.verdict import p_text


def size_plan(found: Sizes) -> pd.DataFrame:
    """What was run at every size: the same pairs for all arms."""
    return pd.DataFrame(
        [
            {
                "Cell": cell.upper(),
                "Hidden units": str(size),
                "Pairs": str(survey.study.seeds),
                "Tuning seeds": str(survey.study.tuning_seeds),
                "Sequences": str(survey.study.mechanism_sequences),
                "Noise draws": str(survey.study.draws),
                "Choices bracketed": "yes" if survey.experiment.bracketed else "no",
                "Diverged": f"{survey.experiment.table.diverged.sum()} of "
                f"{len(survey.experiment.table)}",
            }
            for (cell, size), survey in found.surveys.items()
        ]
    )


def size_effects(found: Sizes) -> pd.DataFrame:
    """Every arm's effect on both questions at every size, each question adjusted as a whole."""
    adjusted = {
        question: holm_across(
            {
                f"{arm} {place}": compared
                for arm in found.arms
                for place, compared in sizes.comparisons(found, arm, question).items()
            }
        )
        for question in QUESTIONS
    }
    rows = []
    for (cell, size), survey in found.surveys.items():
        for arm, compared in survey.arms.items():
            row = {
                "Cell": cell.upper(),
                "Hidden units": str(size),
                "Arm": spoken(arm),
                "Pairs": str(compared.clean.evidence.n),
            }
            for question, title in QUESTIONS.items():
                r = getattr(compared, question).evidence.ratios
                row[title.capitalize()] = _ratio(r.ratio, r.interval)
                row[f"p, Holm ({title})"] = _bare(adjusted[question][f"{arm} {(cell, size)}"])
            price = compared.price.evidence.ratios
            row["Price in clean error"] = _ratio(price.ratio, price.interval)
            rows.append(row)
    return pd.DataFrame(rows)


def size_trends(found: Sizes) -> pd.DataFrame:
    """How each arm's effect goes with the size: the factor by which a doubling multiplies it."""
    fitted = {
        (arm, question, cell): line
        for arm in found.arms
        for question in QUESTIONS
        for cell, line in sizes.trends(found, arm, question).items()
    }
    if not fitted:
        return pd.DataFrame()
    adjusted = evidence.holm([line.p for line in fitted.values()])
    rows = []
    for ((arm, question, cell), line), p in zip(fitted.items(), adjusted, strict=True):
        first, last = found.cells[cell][0], found.cells[cell][-1]
        ends = np.exp(line.intercept + line.slope * np.log2([first, last]))
        rows.append(
            {
                "Arm": spoken(arm),
                "Error": QUESTIONS[question],
                "Cell": cell.upper(),
                f"Ratio on the line, {first} units": number(ends[0]),
                "Largest": f"{number(ends[1])} at {last}",
                "A doubling multiplies it by": f"{np.exp(line.slope):.3f} "
                f"[{np.exp(line.interval.low):.3f}, {np.exp(line.interval.high):.3f}]",
                "p, Holm": _bare(float(p)),
                "Seeds": str(line.seeds),
            }
        )
    return pd.DataFrame(rows)


def size_mechanism(found: Sizes) -> pd.DataFrame:
    """What theory says of the baseline's networks at every size, and how right it is."""
    agreed, frame = sizes.predictions(found), sizes.mechanism(found)
    baseline = {
        (row["cell"], row["size"]): row for row in frame[frame.arm == "baseline"].to_dict("records")
    }
    rows = []
    for (cell, size), own in agreed.items():
        real, placebo = own["predicted"], own["placebo"]
        medians = baseline[cell, size]
        rows.append(
            {
                "Cell": cell.upper(),
                "Hidden units": str(size),
                "Radius": number(medians["radius"]),
                "Growth a step": f"{medians['growth_rate']:+.3f}",
                "Predicted variance": number(medians["predicted_variance"]),
                "Log-rmse": number(real.log_rmse, 2),
                "Slope": number(real.slope),
                "Correlation": f"{real.correlation:.3f}",
                "Placebo's log-rmse": number(placebo.log_rmse, 2),
                "Networks compared": str(real.n),
            }
        )
    return pd.DataFrame(rows)


def _ratio(ratio: float, interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{100 * (ratio - 1):+.0f}% [{100 * (low - 1):+.0f}, {100 * (high - 1):+.0f}]"


def _bare(p: float) -> str:
    return p_text(p).removeprefix("p ").removeprefix("= ")
