"""What a build hands out besides its pages: bench report, table of runs, landing page."""

import json
import platform
from importlib.metadata import version
from pathlib import Path

from msstab import experiment, figures, landing, planning, provenance, svg
from msstab.landing import FreeRun
from msstab.report import Arm, Asked, Report, build_report, write_report
from msstab.results import Results, limitations, mechanism_clause, signatures
from msstab.tuning import Configuration


def write(results: Results, directory: Path, free_run: FreeRun | None = None) -> str:
    """Write every download and the landing page's parts; return the verdict's sentence.

    `free_run` as for `report`.
    """
    write_report(report(results, free_run), directory / "bench_report.json")
    results.table.to_csv(directory / "trials.csv", index=False, lineterminator="\n")
    runs = results.experiment
    choices = {"selected": runs.chosen, "penalised": runs.penalised, "robust": runs.robust}
    plan = json.dumps(planning.record(results.study, runs.plan, choices), indent=1)
    (directory / "plan.json").write_text(plan + "\n", encoding="utf-8")
    numbers = json.dumps(landing.texts(results, free_run), indent=1, sort_keys=True)
    (directory / "numbers.json").write_text(numbers + "\n", encoding="utf-8")
    asked = landing.questions(results, free_run)
    picture = figures.effects(asked, results.study.sesoi)
    page = f'<div class="msstab-figure">{picture.svg}</div>\n'
    (directory / "effect.html").write_text(page, encoding="utf-8")
    (directory / "effect.svg").write_text(svg.standalone(picture), encoding="utf-8")
    card = figures.card(landing.answer(results), asked, results.study.sesoi)
    (directory / "card.png").write_bytes(card)
    return results.verdict


def report(results: Results, free_run: FreeRun | None = None) -> Report:
    """Return the bench report in the original's schema; `free_run` answers its third question."""
    s, rule = results.study, results.mechanism
    questions = {"Q1": (s.track, results.clean), "Q2": (s.track, results.noisy)}
    if free_run is not None:
        questions["Q3"] = free_run
    row = signatures(results).query("role == 'penalised' and arm == @results.idea").iloc[0]
    return build_report(
        track=s.track,
        model=f"{s.cell}_{s.hidden}" + (f"_{s.layers}" if s.layers > 1 else ""),
        study=s.model_dump(mode="json"),
        study_key=s.key,
        versions={"Python": platform.python_version()}
        | {name: version(name) for name in ("msstab", "torch", "numpy", "scipy")},
        baseline=_report_arm(results, "baseline"),
        idea=_report_arm(results, results.idea),
        evidence=results.clean.evidence,
        signature={
            "noise_sigma": s.sigma_test,
            "predicted_lifted_rho_mean": float(row.predicted),
            "observed_hidden_second_moment_ratio_mean": float(row.observed),
            "relative_error": float(row.relative_error),
            "relative_to": "predicted",
            "confirmed": bool(row.confirmed),
            "source": f"penalised {s.cell} networks on {s.track} test sequences",
        },
        mechanism_ok=rule.confirmed,
        mechanism_reason=mechanism_clause(rule),
        how_to_run=provenance.rerun_command(s, "full"),
        files=("bench_report.json", "trials.csv"),
        limitations=" ".join(limitations(results)),
        questions={
            name: Asked(compared.title, track, compared.evidence)
            for name, (track, compared) in questions.items()
        },
    )


def _report_arm(results: Results, arm: str) -> Arm:
    runs = results.experiment
    tuning = runs.table[(runs.table.role == "tuning") & (runs.table.arm == arm)]
    judged = arm == results.idea
    sweep = [
        (
            _report_configuration(configuration),
            float(rows.test_mse.mean()),
            float(rows.validation_mse.mean()),
            int(rows.diverged.sum()),
        )
        for configuration, rows in experiment.by_configuration(tuning).items()
    ]
    best = results.idea_configuration if judged else results.baseline_configuration
    errors = results.clean.idea if judged else results.clean.baseline
    return Arm(_report_configuration(best), sweep, errors)


def _report_configuration(configuration: Configuration) -> dict[str, float]:
    return {"lr": configuration.learning_rate, "penalty": configuration.strength}
