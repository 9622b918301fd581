"""Tables that set all tracks side by side."""

from collections.abc import Mapping

import pandas as pd

from msstab import by_track
from msstab.by_track import NAIVE
from msstab.study import Study
from msstab.surveys import Survey
from msstab.tables.shown import number, spoken
from msstab.verdict import p_text


def track_list(study: Study) -> pd.DataFrame:
    """What each track is, in numbers and with its licence."""
    rows = []
    for name in by_track.named(study):
        made = by_track.definition(study, name)
        rows.append(
            {
                "Track": name,
                "One step": made.step,
                "Inputs": str(made.length),
                "Steps ahead": str(made.horizon),
                "Targets": "last step" if made.steps == 1 else f"each of {made.steps} steps",
                "Kind": _kind(made.measured, made.autonomous),
                "Licence": made.licence,
            }
        )
    return pd.DataFrame(rows)


def _kind(measured: bool, autonomous: bool) -> str:
    if measured:
        return "measured"
    return "simulated" if autonomous else "simulated, driven"


def track_skill(found: Mapping[str, Survey]) -> pd.DataFrame:
    """Mean test errors of naive forecasts and of the tuned baseline on each track."""
    rows = []
    for track, survey in found.items():
        made = by_track.skill(survey)
        ratio = made.comparison.evidence.ratios.ratio
        rows.append(
            {
                "Track": track,
                **{
                    f"{name.capitalize()} forecast": number(made.errors[name])
                    if name in made.errors
                    else "does not apply"
                    for name in NAIVE.values()
                },
                "Tuned baseline": number(made.network),
                "Ratio to the best naive": number(ratio, 2),
                "Skill": "yes" if made.skilled else "no skill",
            }
        )
    return pd.DataFrame(rows)


def track_comparisons(found: Mapping[str, Survey]) -> pd.DataFrame:
    """Each arm's ratio to the baseline on each track and question, adjusted over all of them."""
    rows = []
    named = list(dict.fromkeys(arm for survey in found.values() for arm in survey.arms))
    for arm in named:
        p_values = by_track.adjusted(found, arm)
        by_question = by_track.compared(found, arm)
        for track in by_question["clean"]:
            row = {"Arm": spoken(arm), "Track": track}
            for question, what in (("clean", "Clean error"), ("noisy", "Under noise")):
                c, p = by_question[question][track], p_values[question][track]
                r = c.evidence.ratios
                low, high = r.interval
                row[what] = f"{r.ratio:.2f} [{low:.2f}, {high:.2f}]"
                row[f"{what}: adjusted p"] = p_text(p).removeprefix("p ").removeprefix("= ")
                row[f"{what}: outcome"] = by_track.outcome(c, p).value
            rows.append(row)
    return pd.DataFrame(rows)


def track_predictions(found: Mapping[str, Survey]) -> pd.DataFrame:
    """How well predicted output variances match observed ones on each track."""
    rows = []
    for track, survey in found.items():
        a = by_track.prediction(survey)
        rows.append(
            {
                "Track": track,
                "Networks": str(a.n),
                "Log-rmse": number(a.log_rmse, 2),
                "Slope": number(a.slope, 3),
                "Correlation": number(a.correlation, 3),
                "Unusable": str(a.n_unusable),
            }
        )
    return pd.DataFrame(rows)
