"""Tables of the mechanism test."""

import pandas as pd

from msstab import mechanism, results
from msstab.results import Results


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
