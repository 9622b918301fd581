"""Tables of the mechanism test."""

import pandas as pd

from msstab import judgement, results, rules
from msstab.results import Results
from msstab.tables.shown import number, spoken


def signatures(found: Results) -> pd.DataFrame:
    """The original's mechanism check, for every group of networks."""
    frame = results.signatures(found)
    role = frame.role.where(frame.role != "untrained", "")
    return pd.DataFrame(
        {
            "Networks": frame.arm.map(spoken) + role.map(lambda r: f" ({r})" if r else ""),
            "Number": frame.networks.astype(str),
            "Predicted growth": frame.predicted.map(lambda v: f"{v:.3f}"),
            "Observed ratio": frame.observed.map(lambda v: f"{v:.4f}"),
            "Relative error": frame.relative_error.map(lambda v: f"{v:.2%}"),
            "The original's check": frame.confirmed.map({True: "passes", False: "fails"}),
            "Error of “ratio = 1”": frame.trivial_error.map(lambda v: f"{v:.2%}"),
            "Error in log growth": frame.log_growth_error.map(lambda v: f"{v:.0%}"),
        }
    )


def prediction(found: Results) -> pd.DataFrame:
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
            f"within {rules.SLOPE_TOLERANCE:g} of 1",
        ),
        row(
            "Correlation",
            [f"{c.correlation:.4f}" for c in columns],
            f"at least {rules.SMALLEST_CORRELATION:g}",
        ),
        row(
            "Log-rmse",
            [f"{c.log_rmse:.3f}" for c in columns],
            f"at most {rules.LARGEST_LOG_RMSE:g}",
        ),
        row(
            "Placebo's log-rmse over the prediction's",
            [f"{factor:.1f}", "", ""],
            f"at least {rules.PLACEBO_FACTOR:g}",
        ),
        row(
            "Variants (arm and configuration)",
            [str(test.n_variants), "", ""],
            f"at least {rules.FEWEST_VARIANTS}",
        ),
        row("Seeds", [str(found.study.tuning_seeds), "", ""], f"at least {rules.FEWEST_SEEDS}"),
        row("Networks compared", [str(c.n) for c in columns]),
        row("Networks not comparable", [str(c.n_unusable) for c in columns]),
    ]
    header = ["Figure", "Prediction", "Swapped Jacobians", "All networks", "Rule R1 asks"]
    return pd.DataFrame(rows, columns=header)


def findings(found: Results) -> pd.DataFrame:
    """Every rule's question, limits, outcome and figures."""
    low, high = rules.CHANGE_SLOPES
    first, last = rules.EXCESS_RATIOS
    limits = {
        "R1": (
            f"slope within {rules.SLOPE_TOLERANCE:g} of 1, r at least "
            f"{rules.SMALLEST_CORRELATION:g}, log-rmse at most {rules.LARGEST_LOG_RMSE:g}, the "
            f"placebo's {rules.PLACEBO_FACTOR:g} times larger"
        ),
        "R2": (
            f"slope {low:g} to {high:g}, signs equal in {rules.SMALLEST_SIGN_AGREEMENT:.0%}, the "
            "placebo outside"
        ),
        "R3": (f"median of excess error over it {first:g} to {last:g}, the placebo's outside"),
        "R4": (
            f"error at most {rules.LARGEST_GROWTH_ERROR:g} a step on both sides of the stability "
            "boundary, without noise larger"
        ),
    }
    return pd.DataFrame(
        [
            {
                "Rule": f"{name}. {rules.QUESTIONS[name]}",
                "Limits": limits[name],
                "Outcome": finding.rule.value,
                "Figures": finding.figures,
            }
            for name, finding in found.mechanism.findings.items()
        ]
    )


def mediators(found: Results) -> pd.DataFrame:
    """What moves with the error under noise, from the most to the least."""
    made = judgement.mediators(found.experiment)
    level = f"{100 * (1 - found.study.alpha):g}% interval"
    return pd.DataFrame(
        [
            {
                "Candidate": name,
                "Share of variance explained": f"{m.explained:.0%}",
                f"{level}": _range(m.explained_interval, ".0%"),
                "Rank correlation": f"{m.correlation:+.2f}",
                f"Its {level}": _range(m.correlation_interval, "+.2f"),
                "Networks": str(m.n),
            }
            for name, m in sorted(made.items(), key=lambda pair: -pair[1].explained)
        ]
    )


def _range(bounds: tuple[float, float], style: str) -> str:
    return f"{bounds[0]:{style}} to {bounds[1]:{style}}"


def breakdown(found: Results) -> pd.DataFrame:
    """The prediction's slope and error by noise level, for trained and untrained networks."""
    rows = []
    for name, by_level in judgement.breakdown(found.experiment).items():
        cells = {
            f"Noise {level:g}": f"{number(a.log_rmse, 2)} ({number(a.slope, 2)})"
            for level, a in by_level.items()
        }
        networks = str(next(iter(by_level.values())).n)
        rows.append({"Networks": name, "Number": networks, **cells})
    return pd.DataFrame(rows)


def operator_control(found: Results) -> pd.DataFrame:
    """The control of rule R4, one row for each gain of the recurrent weights."""
    made = found.mechanism.control
    return pd.DataFrame(
        {
            "Gain": [f"{gain:.2f}" for gain in made.gains],
            "Predicted growth": [f"{value:+.4f}" for value in made.predicted],
            "Simulated growth": [f"{value:+.4f}" for value in made.simulated],
            "Standard error": [f"{value:.4f}" for value in made.standard_error],
            "Predicted without noise": [f"{value:+.4f}" for value in made.without_noise],
        }
    )
