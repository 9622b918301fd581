"""One function for each figure: data in, a Picture with its alt text out."""

from msstab.figures.across import forest, performance_profile
from msstab.figures.calibrating import calibration
from msstab.figures.comparison import effects, frontiers, levels, paired
from msstab.figures.deciding import decision_tree
from msstab.figures.inspecting import inspection
from msstab.figures.mechanism import (
    breakdown,
    changes,
    forced_variance,
    operator_control,
    signature,
    variances_by_level,
)
from msstab.figures.planning import power_curve
from msstab.figures.quantisation import rounded_errors, rounding_predictions
from msstab.figures.rollouts import attractors, error_growth, free_trajectories, growth
from msstab.figures.sharing import card
from msstab.figures.sizes import agreement_by_size, effects_by_size, theory_by_size
from msstab.figures.solving import solvers
from msstab.figures.structures import (
    frozen_errors,
    structure_benefits,
    structure_harm,
    structure_predictions,
    structure_transfer,
)
from msstab.figures.tracks import track_forest, track_pairs, track_predictions, track_sequences
from msstab.figures.training import (
    budget_curves,
    hinge_activity,
    learning_curves,
    sequences,
    tuning_curves,
    tuning_panels,
)

__all__ = [
    "agreement_by_size",
    "attractors",
    "breakdown",
    "budget_curves",
    "calibration",
    "card",
    "changes",
    "decision_tree",
    "effects",
    "effects_by_size",
    "error_growth",
    "forced_variance",
    "forest",
    "free_trajectories",
    "frontiers",
    "frozen_errors",
    "growth",
    "hinge_activity",
    "inspection",
    "learning_curves",
    "levels",
    "operator_control",
    "paired",
    "performance_profile",
    "power_curve",
    "rounded_errors",
    "rounding_predictions",
    "sequences",
    "signature",
    "solvers",
    "structure_benefits",
    "structure_harm",
    "structure_predictions",
    "structure_transfer",
    "theory_by_size",
    "track_forest",
    "track_pairs",
    "track_predictions",
    "track_sequences",
    "tuning_curves",
    "tuning_panels",
    "variances_by_level",
]
