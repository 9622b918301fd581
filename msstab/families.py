"""Tests that are read together: p values of many comparisons, adjusted for their number."""

from collections.abc import Mapping

from msstab import evidence
from msstab.results import Comparison


def holm_across(compared: Mapping[str, Comparison]) -> dict[str, float]:
    """Return each comparison's sign-flip p, adjusted by Holm's rule over all of them.

    The tests are those that decide. Comparisons whose adjusted p is at most alpha contain a false
    one with at most that probability, however their tests depend on each other. Raises ValueError
    for no comparisons.
    """
    p_values = [c.evidence.judged.p_value for c in compared.values()]
    return dict(zip(compared, evidence.holm(p_values).tolist(), strict=True))
