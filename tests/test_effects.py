import itertools

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from msstab import effects

RNG = np.random.default_rng(3)
BASELINE = np.exp(RNG.normal(0, 0.5, 12))
IDEA = BASELINE * np.exp(RNG.normal(-0.2, 0.3, 12))


def test_an_effect_is_the_geometric_mean_ratio_with_students_interval() -> None:
    found = effects.effect(BASELINE, IDEA, 0.1)
    assert found.ratio == pytest.approx(stats.gmean(IDEA) / stats.gmean(BASELINE))
    expected = stats.ttest_1samp(np.log(IDEA / BASELINE), 0).confidence_interval(0.9)
    assert found.interval == pytest.approx((np.exp(expected.low), np.exp(expected.high)))
    assert found.n == 12


def test_its_p_is_that_of_the_exact_sign_flip_test_of_the_logarithms() -> None:
    logs = np.log(IDEA / BASELINE)
    signs = np.array(list(itertools.product([-1, 1], repeat=logs.size)))
    sums = np.abs(signs @ logs)
    expected = np.mean(sums >= abs(logs.sum()) * (1 - 1e-12))
    assert effects.effect(BASELINE, IDEA, 0.05).p == pytest.approx(expected)


def test_percentages_are_changes() -> None:
    found = effects.effect([1.0, 2.0, 4.0], [0.5, 1.0, 2.0], 0.05)
    assert found.percent == pytest.approx((-50, -50, -50))


def test_holm_adjusts_over_all_effects_and_keeps_their_names() -> None:
    made = {
        shift: effects.of_logs(RNG.normal(shift, 0.3, 10), 0.05) for shift in (0.0, 0.2, 0.5, -0.4)
    }
    _, expected, _, _ = multipletests([e.p for e in made.values()], method="holm")
    assert effects.holm(made) == pytest.approx(dict(zip(made, expected, strict=True)))
    empty: dict[str, effects.Effect] = {}
    assert effects.holm(empty) == {}


def test_errors_without_a_logarithm_are_refused() -> None:
    with pytest.raises(ValueError, match="positive errors"):
        effects.effect([1.0, 0.0], [1.0, 1.0], 0.05)
