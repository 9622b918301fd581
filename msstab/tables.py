"""One function for each table of the book: results in, a frame of texts ready to show out."""

import html
import math
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from msstab import mechanism, results
from msstab.experiment import by_configuration
from msstab.report import Report
from msstab.results import Comparison, Results
from msstab.verdict import p_text

Kind = Literal["words", "numbers", "prose"]


@dataclass(frozen=True, repr=False)
class Shown:
    """A frame of texts as a page shows it: with a caption, without an index."""

    frame: pd.DataFrame
    caption: str
    kind: Kind

    def __repr__(self) -> str:
        """Return the table as plain text."""
        return f"{self.caption}\n{self.frame.to_string(index=False)}"

    def _repr_html_(self) -> str:
        caption = html.escape(self.caption)
        table = self.frame.to_html(index=False, border=0, justify="unset")
        table = table.replace("<th>", '<th scope="col">')
        # The box scrolls, on a phone, and the keyboard can reach what scrolls.
        return (
            f'<figure class="msstab-table msstab-{self.kind}"><figcaption>{caption}</figcaption>'
            f'<div class="msstab-scroll" tabindex="0" role="region" aria-label="{caption}">'
            f"{table}</div></figure>"
        )


def show(frame: pd.DataFrame, caption: str, kind: Kind = "words") -> Shown:
    """Return a table for a page.

    `numbers` aligns all columns but the first to the right; `prose` gives the last one room.
    """
    return Shown(frame, caption, kind)


def number(value: float, digits: int = 3) -> str:
    """Write a number with so many significant digits, and without an exponent where readable."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinite"
    return f"{value:.{digits}g}" if 1e-4 <= abs(value) < 1e6 or value == 0 else f"{value:.2e}"


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


def tuning(found: Results) -> pd.DataFrame:
    """What each arm's tuning tried and chose."""
    runs = found.experiment
    rows = []
    for arm in found.study.arms:
        tried = runs.table[(runs.table.role == "tuning") & (runs.table.arm == arm)]
        choices = {"best": runs.chosen[arm]}
        if arm in runs.penalised:
            choices["best of positive strength"] = runs.penalised[arm]
        errors = by_configuration(tried)
        for what, c in choices.items():
            rows.append(
                {
                    "Arm": arm.replace("_", " "),
                    "Choice": what,
                    "Configurations tried": str(len(errors)),
                    "Learning rate": f"{c.learning_rate:g}",
                    "Strength": f"{c.strength:g}",
                    "Validation error": number(errors[c].validation_mse.mean()),
                    "Diverged": f"{tried.diverged.sum()} of {len(tried)}",
                }
            )
    return pd.DataFrame(rows)


def comparisons(compared: list[Comparison]) -> pd.DataFrame:
    """Each comparison's evidence and outcome; `80% power` is the effect detected with it."""
    return pd.DataFrame([_comparison(c) for c in compared])


def _comparison(c: Comparison) -> dict[str, str]:
    e = c.evidence
    low, high = (e.percent(bound) for bound in e.interval)
    return {
        "Comparison": c.title,
        "Outcome": c.decision.outcome.value,
        "Change": f"{e.percent(e.mean_difference):+.1f}%",
        f"{100 * (1 - e.alpha):g}% interval": f"{low:+.1f}% to {high:+.1f}%",
        "Sign-flip test": p_text(e.p_value),
        "Wins": f"{e.wins} of {e.n}",
        "Baseline": number(e.mean_baseline),
        "Penalised": number(e.mean_idea),
        "80% power": f"{e.percent(e.mde_power80):.1f}%",
    }


def signatures(found: Results) -> pd.DataFrame:
    """The original's mechanism check, for every group of networks."""
    frame = results.signatures(found)
    role = frame.role.where(frame.role != "untrained", "")
    return pd.DataFrame(
        {
            "Networks": frame.arm.str.replace("_", " ")
            + role.map(lambda r: f" ({r})" if r else ""),
            "Number": frame.networks.astype(str),
            "Predicted growth": frame.predicted.map(lambda v: f"{v:.3f}"),
            "Observed ratio": frame.observed.map(lambda v: f"{v:.4f}"),
            "Relative error": frame.relative_error.map(lambda v: f"{v:.2%}"),
            "The original's check": frame.confirmed.map({True: "passes", False: "fails"}),
            "Error of “ratio = 1”": frame.trivial_error.map(lambda v: f"{v:.2%}"),
            "Error in log growth": frame.log_growth_error.map(lambda v: f"{v:.0%}"),
        }
    )


def rule(found: Results) -> pd.DataFrame:
    """Rule R1's figures beside their limits, and the placebo's."""
    test = found.mechanism
    columns = [test.prediction, test.placebo, test.everywhere]

    def row(figure: str, values: list[str], limit: str = "") -> list[str]:
        return [figure, *values, limit]

    factor = test.placebo.log_rmse / test.prediction.log_rmse
    rows = [
        row(
            "Slope of log observed on log predicted",
            [f"{c.slope:.3f}" for c in columns],
            f"within {mechanism.SLOPE_TOLERANCE:g} of 1",
        ),
        row(
            "Correlation",
            [f"{c.correlation:.4f}" for c in columns],
            f"at least {mechanism.SMALLEST_CORRELATION:g}",
        ),
        row(
            "Log-rmse",
            [f"{c.log_rmse:.3f}" for c in columns],
            f"at most {mechanism.LARGEST_LOG_RMSE:g}",
        ),
        row(
            "Placebo's log-rmse over the prediction's",
            [f"{factor:.1f}", "", ""],
            f"at least {mechanism.PLACEBO_FACTOR:g}",
        ),
        row(
            "Variants (arm and configuration)",
            [str(test.n_variants), "", ""],
            f"at least {mechanism.FEWEST_VARIANTS}",
        ),
        row("Seeds", [str(found.study.tuning_seeds), "", ""], f"at least {mechanism.FEWEST_SEEDS}"),
        row("Networks compared", [str(c.n) for c in columns]),
        row("Networks not comparable", [str(c.n_unusable) for c in columns]),
    ]
    header = ["Figure", "Prediction", "Swapped Jacobians", "All networks", "Rule R1 asks"]
    return pd.DataFrame(rows, columns=header)


def verdict(report: Report) -> pd.DataFrame:
    """The verdict's fields, as the downloadable report holds them."""
    answers = {
        "Did it work?": "yes" if report.worked else "no",
        "Outcome on clean error": report.practical_verdict,
        "Mechanism confirmed?": "yes" if report.mechanism_ok else "no",
        "Claim as a whole": report.system_verdict,
        "Confidence, 0 to 10": str(report.confidence),
    }
    return pd.DataFrame(list(answers.items()), columns=["Question", "Answer"])
