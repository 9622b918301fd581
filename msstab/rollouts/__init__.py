"""Free runs: forecasts fed back as inputs, how they go wrong, and what their growth predicts."""

from msstab.rollouts.collected import (
    FreeRuns,
    by_horizon,
    by_valid_time,
    closed_tracks,
    collect,
    collect_track,
    errors,
    free_run_comparison,
    plan,
    spoken_windows,
    valid_times,
)
from msstab.rollouts.deviations import SATURATION, THRESHOLD
from msstab.rollouts.summaries import (
    Attractor,
    Fates,
    GrowthAgreement,
    Growths,
    attractor,
    exponents,
    fates,
    growth_agreement,
    growth_and_error,
    growths,
)

__all__ = [
    "SATURATION",
    "THRESHOLD",
    "Attractor",
    "Fates",
    "FreeRuns",
    "GrowthAgreement",
    "Growths",
    "attractor",
    "by_horizon",
    "by_valid_time",
    "closed_tracks",
    "collect",
    "collect_track",
    "errors",
    "exponents",
    "fates",
    "free_run_comparison",
    "growth_agreement",
    "growth_and_error",
    "growths",
    "plan",
    "spoken_windows",
    "valid_times",
]
