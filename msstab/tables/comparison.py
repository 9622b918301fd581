"""Tables that compare arms with the baseline, and the verdict."""

import pandas as pd

from msstab import results
from msstab.families import holm_across
from msstab.report import Report
from msstab.results import Comparison, Results
from msstab.tables.shown import bare_p, number, spoken
from msstab.verdict import p_text


def comparisons(compared: list[Comparison]) -> pd.DataFrame:
    """Each comparison's evidence and outcome; `80% power` is the effect detected with it."""
    return pd.DataFrame([_comparison(c) for c in compared])


def _comparison(c: Comparison) -> dict[str, str]:
    e, judged = c.evidence, c.evidence.judged
    low, high = (judged.written(bound, "+", 1) for bound in judged.interval)
    return {
        "Comparison": c.title,
        "Outcome": c.decision.outcome.value,
        "Change": judged.written(judged.effect, "+", 1),
        f"{100 * (1 - e.alpha):g}% interval": f"{low} to {high}",
        "Sign-flip test": p_text(judged.p_value),
        "Wins": f"{e.wins} of {e.n}",
        "Baseline": number(e.mean_baseline),
        "Penalised": number(e.mean_idea),
        "80% power": judged.written(judged.mde_power80, "", 1),
    }


def clean_errors(found: Results) -> pd.DataFrame:
    """Q1 for every arm, whether it lowers the clean error."""
    runs, rows = found.experiment, []
    adjusted = holm_across({arm: compared.clean for arm, compared in found.arms.items()})
    for arm, compared in found.arms.items():
        free = runs.chosen[arm]
        rows.append(
            {
                "Arm": spoken(arm),
                "Learning rate": f"{runs.penalised[arm].learning_rate:g}",
                "Strength": f"{runs.penalised[arm].strength:g}",
                **_change(compared.clean, "Clean error"),
                "p, Holm": bare_p(adjusted[arm]),
                "Pairs": str(compared.clean.evidence.n),
                "Tuning, free to choose": f"strength {free.strength:g}" if free.strength else "off",
            }
        )
    return pd.DataFrame(rows)


def noisy_errors(found: Results) -> pd.DataFrame:
    """Q2 for every arm, whether it lowers the error under noise, and its clean price."""
    runs, rows = found.experiment, []
    adjusted = holm_across({arm: compared.noisy for arm, compared in found.arms.items()})
    for arm, compared in found.arms.items():
        rows.append(
            {
                "Arm": spoken(arm),
                "Learning rate": f"{runs.robust[arm].learning_rate:g}",
                "Strength": f"{runs.robust[arm].strength:g}",
                **_change(compared.noisy, "Error under noise"),
                "p, Holm": bare_p(adjusted[arm]),
                **_change(compared.price, "Clean error"),
                "Pairs": str(compared.noisy.evidence.n),
            }
        )
    return pd.DataFrame(rows)


def levels(found: Results) -> pd.DataFrame:
    """Change of the error under noise for every arm at every noise level, with its interval."""
    rows = []
    for arm in found.arms:
        by_level = results.by_level(found, arm)
        cells = {f"Noise {level:g}": _interval(c) for level, c in by_level.items()}
        rows.append({"Arm": spoken(arm), **cells})
    return pd.DataFrame(rows)


def interventions(found: Results) -> pd.DataFrame:
    """What each arm did to training: how often it was active, what it cost, what diverged."""
    tuning = found.table[found.table.role == "tuning"]
    plain = tuning[tuning.arm == "baseline"]
    rows = []
    for arm in found.arms:
        own = tuning[(tuning.arm == arm) & (tuning.strength > 0)]
        lost = found.table[(found.table.arm == arm) & (found.table.strength > 0)].diverged
        judged = found.table[(found.table.arm == arm) & (found.table.role == "penalised")]
        ended = tuning[(tuning.arm == arm)].groupby("strength").radius.median()
        rows.append(
            {
                "Arm": spoken(arm),
                "Active (judged networks)": f"{judged.hinge_active.mean():.0%}",
                "Active (all strengths)": f"{own.hinge_active.mean():.0%}",
                "Time of a training step": f"{own.seconds.median() / plain.seconds.median():.1f}",
                "Radius, strength 0 to highest": f"{ended.iloc[0]:.2f} to {ended.iloc[-1]:.2f}",
                "Diverged": f"{lost.sum()} of {len(lost)}",
            }
        )
    return pd.DataFrame(rows)


def _change(c: Comparison, what: str) -> dict[str, str]:
    return {what: _interval(c), f"{what}: outcome": c.decision.outcome.value}


def _interval(c: Comparison) -> str:
    e = c.evidence.judged
    low, high = (e.written(bound, "+", 0).removesuffix("%") for bound in e.interval)
    return f"{e.written(e.effect, '+', 0)} [{low}, {high}]"


def verdict(report: Report) -> pd.DataFrame:
    """The verdict's fields with their reasons, as the downloadable report holds them."""
    why = report.reasons or {}
    rows = [
        ("Did it work?", "yes" if report.worked else "no", why.get("worked", "")),
        ("Outcome on clean error", report.practical_verdict, why.get("practical_verdict", "")),
        (
            "Mechanism confirmed?",
            "yes" if report.mechanism_ok else "no",
            why.get("mechanism_ok", ""),
        ),
        ("Claim as a whole", report.system_verdict, why.get("system_verdict", "")),
        ("Confidence, 0 to 10", str(report.confidence), why.get("confidence", "")),
    ]
    return pd.DataFrame(rows, columns=["Question", "Answer", "Why"])


def questions(report: Report) -> pd.DataFrame:
    """The outcome of every question that was put, as the downloadable report holds them."""
    rows = [
        {
            "Question": question.title,
            "Track": question.track,
            "Outcome": question.outcome,
            "Why": question.reason,
        }
        for question in (report.questions or {}).values()
    ]
    return pd.DataFrame(rows)
