"""One function for each figure: data in, a Picture with its alt text out."""

from msstab.figures.across import forest, performance_profile
from msstab.figures.calibrating import calibration
from msstab.figures.comparison import effects, frontiers, levels, paired
from msstab.figures.deciding import decision_tree
from msstab.figures.mechanism import (
    breakdown,
    changes,
    forced_variance,
    operator_control,
    signature,
)
from msstab.figures.planning import power_curve
from msstab.figures.rollouts import attractors, error_growth, free_trajectories, growth
from msstab.figures.solving import solvers
from msstab.figures.training import (
    budget_curves,
    hinge_activity,
    learning_curves,
    sequences,
    tuning_curves,
    tuning_panels,
)

__all__ = [
    "attractors",
    "breakdown",
    "budget_curves",
    "calibration",
    "changes",
    "decision_tree",
    "effects",
    "error_growth",
    "forced_variance",
    "forest",
    "free_trajectories",
    "frontiers",
    "growth",
    "hinge_activity",
    "learning_curves",
    "levels",
    "operator_control",
    "paired",
    "performance_profile",
    "power_curve",
    "sequences",
    "signature",
    "solvers",
    "tuning_curves",
    "tuning_panels",
]
