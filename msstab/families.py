"""Tests that are read together: p values of all arms on one question, adjusted for their number."""

from collections.abc import Mapping
from typing import Literal

from msstab import evidence
from msstab.results import Comparison

Scale = Literal["differences", "ratios"]


def holm_across(
    compared: Mapping[str, Comparison], scale: Scale = "differences"
) -> dict[str, float]:
    """Return each arm's sign-flip p on one question, adjusted by Holm's rule over all the arms.

    The tests of differences are those the verdict rests on; those of ratios are of their
    logarithms. Arms whose adjusted p is at most alpha contain a false one with at most that
    probability, however the arms' tests depend on each other. Raises ValueError for no arms, and
    on ratios for an error that is not positive.
    """
    p_values = [
        c.evidence.p_value if scale == "differences" else c.evidence.ratios.p_value
        for c in compared.values()
    ]
    return dict(zip(compared, evidence.holm(p_values).tolist(), strict=True))
