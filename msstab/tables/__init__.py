"""One function for each table of the book: results in, a frame of texts ready to show out."""

from msstab.tables.comparison import (
    changes_of_verdict,
    clean_errors,
    comparisons,
    interventions,
    levels,
    noisy_errors,
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
from msstab.tables.rollouts import (
    attractor_distances,
    fates_of_runs,
    free_exponents,
    free_growth,
    horizons,
)
from msstab.tables.shown import Kind, Shown, number, show, spoken
from msstab.tables.training import arms, forecasters, learning_rates, solvers, tuning

__all__ = [
    "Kind",
    "Shown",
    "arms",
    "attractor_distances",
    "breakdown",
    "changes_of_verdict",
    "clean_errors",
    "comparisons",
    "evidence",
    "fates_of_runs",
    "findings",
    "forecasters",
    "free_exponents",
    "free_growth",
    "horizons",
    "interventions",
    "learning_rates",
    "levels",
    "mediators",
    "noisy_errors",
    "number",
    "operator_control",
    "prediction",
    "show",
    "signatures",
    "solvers",
    "spoken",
    "tuning",
    "verdict",
]
