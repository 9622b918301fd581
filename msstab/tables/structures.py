"""Tables of noise structures: their strengths and costs, their prediction, and who bears them."""

import pandas as pd

from msstab import effects, rules, structured, structures
from msstab.agreements import Agreement
from msstab.effects import Effect
from msstab.structured import BASELINE, Structured
from msstab.tables.shown import number, spoken
from msstab.verdict import p_text


def structure_strengths(found: Structured) -> pd.DataFrame:
    """Each structure's matched strength, and what it costs the baseline's networks."""
    cost, against = structured.harm(found), structured.against_own(found)
    adjusted = effects.holm(against)
    rows = []
    for name, e in cost.items():
        strength = found.strengths[name.removesuffix(structures.FROZEN)]
        disturbed = found.disturbances.get(name)
        rows.append(
            {
                "Structure": name,
                "Strength": f"{strength:g}",
                "Mean square of a step": number(disturbed) if disturbed else "not of one step",
                "Error over clean error": _factor(e),
                f"Over that of {found.study.noise}": _factor(against[name])
                if name in against
                else "1",
                "p, Holm": _bare(adjusted[name]) if name in against else "",
                "Networks": str(e.n),
            }
        )
    return pd.DataFrame(rows)


def structure_predictions(found: Structured) -> pd.DataFrame:
    """How well the output's variance is predicted under each structure, and by the placebo."""
    rows = []
    for name, own in structured.predictions(found).items():
        real, placebo = own["predicted"], own["placebo"]
        rows.append(
            {
                "Structure": name,
                "Log-rmse": number(real.log_rmse, 2),
                "Slope": number(real.slope, 3),
                "Correlation": f"{real.correlation:.3f}",
                "Placebo's log-rmse": number(placebo.log_rmse, 2),
                "Within rule R1's limits": _limits(real, placebo),
                "Networks": str(real.n),
                "Not comparable": str(real.n_unusable),
            }
        )
    return pd.DataFrame(rows)


def structure_benefits(found: Structured) -> pd.DataFrame:
    """Every arm's error relative to the baseline's under every structure."""
    compared = structured.benefits(found)
    adjusted = effects.holm(compared)
    rows: dict[str, dict[str, str]] = {}
    for (arm, name), e in compared.items():
        row = rows.setdefault(name, {"Structure": name})
        row[spoken(arm).capitalize()] = _change(e)
        row[f"p, Holm ({spoken(arm)})"] = _bare(adjusted[arm, name])
    lost = found.table.groupby("structure").diverged.sum()
    for name, row in rows.items():
        row["Diverged"] = str(lost[name])
    return pd.DataFrame(list(rows.values()))


def frozen_errors(found: Structured) -> pd.DataFrame:
    """Frozen errors beside fresh ones of the same size: what they cost, and which theory holds."""
    agreed, cost = structured.predictions(found), structured.freezing(found)
    adjusted = effects.holm(cost)
    rows = []
    for fresh, e in cost.items():
        own = agreed[f"{fresh}{structures.FROZEN}"]
        rows.append(
            {
                "Structure": fresh,
                f"{BASELINE.capitalize()}'s error, frozen over fresh": _factor(e),
                "p, Holm": _bare(adjusted[fresh]),
                "Log-rmse of the theory of frozen errors": number(own["predicted"].log_rmse, 2),
                "Of the theory of fresh noise": number(own["white"].log_rmse, 2),
                "Placebo's": number(own["placebo"].log_rmse, 2),
            }
        )
    return pd.DataFrame(rows)


def structure_transfer(found: Structured) -> pd.DataFrame:
    """Every arm trained for one structure and tested under another, against the baseline."""
    compared = structured.transfer(found)
    adjusted = effects.holm(compared)
    return pd.DataFrame(
        [
            {
                "Arm": spoken(arm),
                "Trained for": trained,
                "Tested under": tested,
                "Change of the error": _change(e),
                "p, Holm": _bare(adjusted[arm, trained, tested]),
                "Pairs": str(e.n),
            }
            for (arm, trained, tested), e in compared.items()
        ]
    )


def _limits(real: Agreement, placebo: Agreement) -> str:
    if not rules.fits(real):
        return "no"
    return (
        "yes"
        if rules.fails(placebo, real)
        else f"yes, but the placebo errs less than {rules.PLACEBO_FACTOR:g} times as much"
    )


def _factor(e: Effect) -> str:
    return f"{e.ratio:.3g} [{e.interval.low:.3g}, {e.interval.high:.3g}]"


def _change(e: Effect) -> str:
    change, low, high = e.percent
    return f"{change:+.0f}% [{low:+.0f}, {high:+.0f}]"


def _bare(p: float) -> str:
    return p_text(p).removeprefix("p ").removeprefix("= ")
