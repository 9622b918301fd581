"""One function for each figure: data in, a Picture with its alt text out."""

from msstab.figures.calibrating import calibration
from msstab.figures.comparison import effects, frontiers, levels, paired
from msstab.figures.mechanism import (
    breakdown,
    changes,
    forced_variance,
    operator_control,
    signature,
)
from msstab.figures.solving import solvers
from msstab.figures.training import (
    hinge_activity,
    learning_curves,
    sequences,
    tuning_curves,
    tuning_panels,
)

__all__ = [
    "breakdown",
    "calibration",
    "changes",
    "effects",
    "forced_variance",
    "frontiers",
    "hinge_activity",
    "learning_curves",
    "levels",
    "operator_control",
    "paired",
    "sequences",
    "signature",
    "solvers",
    "tuning_curves",
    "tuning_panels",
]
