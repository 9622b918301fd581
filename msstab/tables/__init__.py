"""One function for each table of the book: results in, a frame of texts ready to show out."""

from msstab.tables.changes import (
    changes_of_verdict,
    diverged_runs,
    diverged_scoring,
    selection_rules,
)
from msstab.tables.comparison import (
    clean_errors,
    comparisons,
    interventions,
    levels,
    noisy_errors,
    questions,
    verdict,
)
from msstab.tables.evidence import evidence
from msstab.tables.mechanism import (
    breakdown,
    findings,
    mediators,
    operator_control,
    prediction,
    signatures,
)
from msstab.tables.quantisation import (
    bits_bought,
    rounded_errors,
    rounding_divergence,
    rounding_predictions,
)
from msstab.tables.rollouts import (
    attractor_distances,
    fates_of_runs,
    free_exponents,
    free_growth,
    horizons,
)
from msstab.tables.shown import Kind, Shown, number, show, spoken
from msstab.tables.sizes import size_effects, size_mechanism, size_plan, size_trends
from msstab.tables.structures import (
    frozen_errors,
    structure_benefits,
    structure_predictions,
    structure_strengths,
    structure_transfer,
)
from msstab.tables.tracks import track_comparisons, track_list, track_predictions, track_skill
from msstab.tables.training import arms, forecasters, learning_rates, solvers, tuning

__all__ = [
    "Kind",
    "Shown",
    "arms",
    "attractor_distances",
    "bits_bought",
    "breakdown",
    "changes_of_verdict",
    "clean_errors",
    "comparisons",
    "diverged_runs",
    "diverged_scoring",
    "evidence",
    "fates_of_runs",
    "findings",
    "forecasters",
    "free_exponents",
    "free_growth",
    "frozen_errors",
    "horizons",
    "interventions",
    "learning_rates",
    "levels",
    "mediators",
    "noisy_errors",
    "number",
    "operator_control",
    "prediction",
    "questions",
    "rounded_errors",
    "rounding_divergence",
    "rounding_predictions",
    "selection_rules",
    "show",
    "signatures",
    "size_effects",
    "size_mechanism",
    "size_plan",
    "size_trends",
    "solvers",
    "spoken",
    "structure_benefits",
    "structure_predictions",
    "structure_strengths",
    "structure_transfer",
    "track_comparisons",
    "track_list",
    "track_predictions",
    "track_skill",
    "tuning",
    "verdict",
]
