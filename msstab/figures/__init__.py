"""One function for each figure: data in, a Picture with its alt text out."""

from msstab.figures.comparison import effects, frontiers, levels, paired
from msstab.figures.mechanism import forced_variance, signature
from msstab.figures.solving import solvers
from msstab.figures.training import (
    hinge_activity,
    learning_curves,
    sequences,
    tuning_curves,
    tuning_panels,
)

__all__ = [
    "effects",
    "forced_variance",
    "frontiers",
    "hinge_activity",
    "learning_curves",
    "levels",
    "paired",
    "sequences",
    "signature",
    "solvers",
    "tuning_curves",
    "tuning_panels",
]
