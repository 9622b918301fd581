"""One function for each table of the book: results in, a frame of texts ready to show out."""

from msstab.tables.comparison import (
    clean_errors,
    comparisons,
    interventions,
    levels,
    noisy_errors,
    spoken,
    verdict,
)
from msstab.tables.mechanism import rule, signatures
from msstab.tables.shown import Kind, Shown, number, show
from msstab.tables.training import forecasters, learning_rates, tuning

__all__ = [
    "Kind",
    "Shown",
    "clean_errors",
    "comparisons",
    "forecasters",
    "interventions",
    "learning_rates",
    "levels",
    "noisy_errors",
    "number",
    "rule",
    "show",
    "signatures",
    "spoken",
    "tuning",
    "verdict",
]
