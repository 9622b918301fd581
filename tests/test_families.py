import numpy as np
import pytest

from msstab.families import holm_across
from msstab.results import Comparison, compare

BASELINE = np.random.default_rng(0).uniform(0.9, 1.1, 10)


def compared(shift: float, spread: float = 0.05) -> Comparison:
    noise = np.random.default_rng(1).normal(0, spread, 10)
    return compare("error", BASELINE, BASELINE + shift + noise, alpha=0.05, sesoi=0.05)


def test_p_values_are_adjusted_over_the_arms_of_the_question() -> None:
    arms = {"a": compared(0.0), "b": compared(-0.5), "c": compared(0.03)}
    p = {arm: c.evidence.ratios.p_value for arm, c in arms.items()}
    assert p["b"] < p["c"] < p["a"]
    assert holm_across(arms) == {
        "a": max(p["a"], 2 * p["c"]),
        "b": 3 * p["b"],
        "c": 2 * p["c"],
    }


def test_the_tests_are_those_that_decide() -> None:
    # One large difference at a small error: the two scales weigh the pairs otherwise.
    baseline = np.array([0.1, 1, 1.1, 1.2, 0.9, 1.3, 0.8, 1.4])
    idea = baseline + np.array([0.3, -0.1, -0.1, -0.15, -0.1, -0.2, -0.1, 0.05])
    e = compare("error", baseline, idea, alpha=0.05, sesoi=0.05)
    assert e.evidence.p_value != e.evidence.ratios.p_value
    assert holm_across({"a": e}) == {"a": e.evidence.ratios.p_value}
    zero = compare("error", [1.0, 2.0, 3.0], [0.0, 1.0, 2.0], alpha=0.05, sesoi=0.05)
    assert holm_across({"a": zero}) == {"a": zero.evidence.p_value}


def test_no_comparisons_are_refused() -> None:
    with pytest.raises(ValueError, match="p values"):
        holm_across({})
