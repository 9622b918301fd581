"""Tables of what would change the verdict: limits, seeds, selection, diverged runs."""

from collections.abc import Callable

import pandas as pd

from msstab import divergence, selections, sensitivity
from msstab.results import Comparison, Results
from msstab.tables.shown import bare_p, spoken
from msstab.tuning import Configuration

_ROLES = {
    "tuning": "Tuning",
    "selected": "Free choice",
    "penalised": "Clean error",
    "robust": "Under noise",
    "untrained": "Untrained",
}


def changes_of_verdict(compared: Comparison) -> pd.DataFrame:
    """The outcome as judged and after one change at a time; seeds left out are counted."""
    frame = sensitivity.vary(compared)
    rows = [
        {
            "What is changed": _spoken_change(row["varied"], row["value"]),
            "Outcome": row["outcome"],
            "Change of the error": f"{row['effect']:+.1%}",
            "p, no difference": bare_p(row["p_value"]),
            "p, difference beyond the margin": bare_p(row["p_equivalence"]),
        }
        for row in frame[frame.varied != sensitivity.SEED].to_dict("records")
    ]
    seeds = frame[frame.varied == sensitivity.SEED]
    for outcome, own in seeds.groupby("outcome", sort=False):
        rows.append(
            {
                "What is changed": f"one seed left out ({len(own)} of {len(seeds)})",
                "Outcome": outcome,
                "Change of the error": _ends(own.effect, "{:+.1%}".format),
                "p, no difference": _ends(own.p_value, bare_p),
                "p, difference beyond the margin": _ends(own.p_equivalence, bare_p),
            }
        )
    return pd.DataFrame(rows)


def _spoken_change(varied: str, value: float) -> str:
    if varied == sensitivity.MARGIN:
        return f"{varied} {100 * value:.3g}%"
    if varied == sensitivity.SCALE:
        return "scale: differences"
    return f"nothing ({varied})" if varied == sensitivity.AS_JUDGED else f"{varied} {value:g}"


def _ends(values: pd.Series, write: Callable[[float], str]) -> str:
    low, high = write(values.min()), write(values.max())
    return low if low == high else f"{low} to {high}"


def selection_rules(found: Results) -> pd.DataFrame:
    """The judged arm's outcome by rule of selection, on both questions."""
    rows = []
    for question in selections.QUESTIONS:
        for row in selections.vary(found.experiment, found.idea, question).to_dict("records"):
            ran = row["pairs"] > 0
            rows.append(
                {
                    "Question": question,
                    "Chosen by": row["rule"],
                    "Baseline": _configuration(row["baseline"]),
                    "Penalised": _configuration(row["idea"]),
                    "Pairs": str(row["pairs"]) if ran else "not run",
                    "Outcome": row["outcome"] if ran else "not known",
                    "Change of the error": f"{row['effect']:+.1%}" if ran else "",
                    "p": bare_p(row["p_value"]) if ran else "",
                }
            )
    return pd.DataFrame(rows)


def diverged_runs(found: Results) -> pd.DataFrame:
    """How many networks of each arm diverged, in every role that was run."""
    frame = divergence.counts(found.table)
    frame["text"] = [f"{row['diverged']} of {row['networks']}" for row in frame.to_dict("records")]
    arms = frame.arm.unique()
    by_role = frame.pivot(index="arm", columns="role", values="text").fillna("")
    shown = by_role.reindex(index=arms, columns=[role for role in _ROLES if role in by_role])
    shown.insert(0, "Arm", [spoken(arm) for arm in shown.index])
    return shown.rename(columns=_ROLES).reset_index(drop=True).rename_axis(columns=None)


def diverged_scoring(found: Results) -> pd.DataFrame:
    """The judged arm's outcome by how diverged runs are scored, on both questions."""
    frame = divergence.vary(found)
    rows = []
    for row in frame.to_dict("records"):
        few = row["pairs"] < 2
        rows.append(
            {
                "Question": row["question"],
                "Diverged runs are": row["scored"],
                "Diverged": str(row["diverged"]),
                "Pairs": str(row["pairs"]),
                "Outcome": divergence.UNDECIDED if few else row["outcome"],
                "Change of the error": "" if few else f"{row['effect']:+.1%}",
                "p": "" if few else bare_p(row["p_value"]),
            }
        )
    return pd.DataFrame(rows)


def _configuration(c: Configuration) -> str:
    return f"{c.learning_rate:g}" + (f", strength {c.strength:g}" if c.strength else "")
