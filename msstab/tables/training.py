"""Tables of what was trained and how it was tuned."""

import math

import pandas as pd

from msstab.arms import find
from msstab.experiment import by_configuration
from msstab.report import Report
from msstab.results import Results
from msstab.tables.shown import number, spoken


def forecasters(found: Results) -> pd.DataFrame:
    """Test errors of forecasts that need no network, beside the baseline's, over all seeds."""
    rows = found.table[(found.table.role == "selected") & (found.table.arm == "baseline")]
    named = {
        "constant (training mean)": rows.constant_mse,
        "persistence (last value)": rows.persistence_mse,
        "ridge autoregression": rows.ridge_mse,
        f"{found.study.cell.upper()}, tuned baseline": rows.test_mse,
    }
    return pd.DataFrame(
        {
            "Forecast": list(named),
            "Test error (MSE)": [number(errors.mean()) for errors in named.values()],
            "Standard deviation over seeds": [number(errors.std()) for errors in named.values()],
        }
    )


def learning_rates(found: Results, original: Report) -> pd.DataFrame:
    """The original's sweep of learning rates beside the same sweep here."""
    stated = {entry.cfg.lr: entry.mean for entry in original.bench_report.baseline.sweep}
    tuning = found.table[(found.table.role == "tuning") & (found.table.arm == "baseline")]
    rows = []
    for configuration, runs in by_configuration(tuning).items():
        if configuration.learning_rate not in found.study.learning_rates:
            continue
        mean, theirs = runs.test_mse.mean(), stated.get(configuration.learning_rate)
        rows.append(
            {
                "Learning rate": f"{configuration.learning_rate:g}",
                "Validation error": number(runs.validation_mse.mean()),
                "Test error": number(mean),
                "The original's test error": number(theirs) if theirs else "not run",
                "Ratio": number(mean / theirs, 2) if theirs else "",
                "Diverged": f"{runs.diverged.sum()} of {len(runs)}",
            }
        )
    return pd.DataFrame(rows)


def arms(found: Results) -> pd.DataFrame:
    """What each arm adds to training, and the strengths that tuning tried."""
    tried = found.experiment.grid.strengths
    rows = []
    for name in found.arms:
        arm = find(name)
        rows.append(
            {
                "Arm": spoken(name),
                "Strengths tried": ", ".join(f"{s:g}" for s in tried[name]),
                "What it adds": arm.summary.rstrip(".") if arm else "",
            }
        )
    return pd.DataFrame(rows)


def tuning(found: Results) -> pd.DataFrame:
    """What each arm's tuning tried and chose."""
    runs = found.experiment
    rows = []
    for arm in found.study.arms:
        tried = runs.table[(runs.table.role == "tuning") & (runs.table.arm == arm)]
        choices = {"best": runs.chosen[arm]}
        if arm in runs.penalised:
            choices["best of positive strength"] = runs.penalised[arm]
        choices["best under noise"] = runs.robust[arm]
        errors = by_configuration(tried)
        for what, c in choices.items():
            rows.append(
                {
                    "Arm": spoken(arm),
                    "Choice": what,
                    "Configurations tried": str(len(errors)),
                    "Learning rate": f"{c.learning_rate:g}",
                    "Strength": f"{c.strength:g}",
                    "Validation error": number(errors[c].validation_mse.mean()),
                    "Under noise": number(errors[c].noisy_validation_mse.mean()),
                    "Diverged": f"{tried.diverged.sum()} of {len(tried)}",
                }
            )
    return pd.DataFrame(rows)


def solvers(frame: pd.DataFrame) -> pd.DataFrame:
    """Time and error of each solver, as `msstab.solvers.compare` measured them."""
    texts = [
        _time(row["seconds"]) + (f", {row['relative_error']:.0e}" if row["reference"] else "")
        for row in frame.to_dict("records")
    ]
    shown = frame.assign(text=texts)
    wide = shown.pivot_table(
        index="n", columns="method", values="text", aggfunc="first", sort=False
    ).fillna("not run")
    wide.insert(0, "States", [f"{n}" for n in wide.index])
    return wide.reset_index(drop=True).rename_axis(columns=None)


def _time(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "does not apply"
    return f"{seconds:.2g} s" if seconds >= 0.1 else f"{1000 * seconds:.2g} ms"
