from itertools import product
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from msstab import selections
from msstab.experiment import Experiment
from msstab.results import Results
from msstab.study import Study
from msstab.tuning import Configuration, Grid

LOW, MIDDLE, HIGH = (Configuration(0.01, s) for s in (1.0, 2.0, 3.0))
PLAIN, OTHER, OFF = Configuration(0.01, 0.0), Configuration(0.05, 0.0), Configuration(0.02, 0.0)

# By mean: HIGH, MIDDLE, LOW. By mean logarithm: LOW. By median: MIDDLE.
VALIDATION = {
    LOW: [0.01, 3.0, 3.0, 6.0],
    MIDDLE: [1.0, 1.0, 1.0, 7.0],
    HIGH: [2.0, 2.0, 2.0, 2.0],
}


def rows(
    arm: str, role: str, c: Configuration, validation: list[float], test: list[float]
) -> list[dict[str, Any]]:
    return [
        {
            "arm": arm,
            "role": role,
            "seed": seed,
            "learning_rate": c.learning_rate,
            "strength": c.strength,
            "validation_mse": v,
            "noisy_validation_mse": 10 - v,
            "test_mse": t,
            "noisy_mse": 2 * t,
        }
        for seed, (v, t) in enumerate(zip(validation, test, strict=True))
    ]


ERRORS = np.random.default_rng(0).uniform(0.9, 1.1, 12)
NOISE = np.random.default_rng(1).normal(0, 0.01, 12)


def made(*confirmed: tuple[str, str, Configuration, Any]) -> Experiment:
    """An experiment in which the baseline and `idea` were tuned, and these were confirmed."""
    table = [
        *rows("baseline", "tuning", PLAIN, [1.0, 1.0, 1.0, 1.0], [1.0] * 4),
        *rows("baseline", "tuning", OTHER, [4.0, 4.0, 4.0, 4.0], [1.0] * 4),
        *rows("idea", "tuning", OFF, [0.5, 0.5, 0.5, 0.5], [1.0] * 4),
    ]
    for c, validation in VALIDATION.items():
        table += rows("idea", "tuning", c, validation, [1.0] * 4)
    for arm, role, c, errors in confirmed:
        # Not in the order of seeds.
        table += rows(arm, role, c, [np.nan] * len(errors), list(errors))[::-1]
    nothing = cast(Any, None)
    return Experiment(
        Study(), pd.DataFrame(table), Grid((0.01,), {}), {}, {}, {}, bracketed=True, plan=nothing
    )


def by_rule(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    return {str(row["rule"]): {**row} for row in frame.to_dict("records")}  # type: ignore[dict-item]


def test_each_rule_chooses_by_its_own_summary_of_the_validation_errors() -> None:
    found = by_rule(selections.vary(made(), "idea"))
    assert {name: row["idea"] for name, row in found.items()} == {
        "lowest mean": HIGH,
        "lowest mean of the logarithm": LOW,
        "lowest median": MIDDLE,
        "lowest mean, strength 0 allowed": OFF,
        "second lowest mean": MIDDLE,
    }
    baseline = {name: row["baseline"] for name, row in found.items()}
    assert baseline.pop("second lowest mean") == OTHER
    assert set(baseline.values()) == {PLAIN}
    assert [name for name, row in found.items() if row["same"]] == ["lowest mean"]


def test_the_second_question_chooses_and_compares_under_noise() -> None:
    worse = 1.3 * ERRORS + NOISE
    runs = made(("baseline", "robust", OTHER, ERRORS), ("idea", "robust", LOW, worse))
    found = by_rule(selections.vary(runs, "idea", "Q2"))
    # 10 - v: the order of the means is turned round.
    assert found["lowest mean"]["idea"] == LOW
    assert found["lowest mean"]["baseline"] == OTHER
    assert found["lowest mean"]["pairs"] == 12
    assert found["lowest mean"]["outcome"] == "worse"
    effect = np.exp(np.mean(np.log(2 * worse) - np.log(2 * ERRORS))) - 1
    assert found["lowest mean"]["effect"] == pytest.approx(effect, rel=1e-12)


def test_the_outcome_is_of_the_networks_that_were_confirmed_and_of_no_others() -> None:
    runs = made(
        ("baseline", "selected", PLAIN, ERRORS),
        ("baseline", "robust", PLAIN, 5 * ERRORS[:3]),
        ("idea", "penalised", HIGH, 0.8 * ERRORS + NOISE),
        # The other arm of that configuration is another arm's.
        ("weight_decay", "penalised", LOW, ERRORS),
        # Of fewer seeds.
        ("idea", "robust", MIDDLE, ERRORS[:8] * (1.2 + NOISE[:8])),
        # Strength 0, whoever ran it.
        ("idea", "selected", OFF, ERRORS * (1 + NOISE / 10)),
    )
    found = by_rule(selections.vary(runs, "idea"))
    assert [(row["pairs"], row["outcome"]) for row in found.values()] == [
        (12, "better"),
        (0, ""),
        (8, "worse"),
        (12, "equivalent"),
        (0, ""),
    ]
    assert np.isnan(found["second lowest mean"]["effect"])
    ratio = np.exp(np.mean(np.log(1.2 + NOISE[:8])))
    assert found["lowest median"]["effect"] == pytest.approx(ratio - 1, rel=1e-12)


def test_the_first_rule_gives_the_comparison_that_is_judged(tiny_results: Results) -> None:
    for question, compared in (("Q1", tiny_results.clean), ("Q2", tiny_results.noisy)):
        frame = selections.vary(tiny_results.experiment, tiny_results.idea, question)
        assert frame.outcome[0] == compared.decision.outcome.value
        assert frame.pairs[0] == compared.evidence.n
        assert frame.effect[0] == compared.evidence.judged.effect
        assert list(frame.rule) == list(selections.RULES)


def test_a_sentence_says_what_stays_changes_and_is_not_known() -> None:
    judged = {"rule": "lowest mean", "same": True, "pairs": 64, "outcome": "worse"}

    def said(*others: tuple[str, bool, int, str]) -> str:
        names = ("rule", "same", "pairs", "outcome")
        more = [dict(zip(names, other, strict=True)) for other in others]
        return selections.sentence(pd.DataFrame([judged, *more]))

    assert said(("median", True, 64, "worse"), ("logarithm", True, 64, "worse")) == (
        "The configurations, and so the outcome, are the same by the median and the logarithm."
    )
    assert said(("median", False, 8, "worse")) == (
        "By the median other configurations are chosen, on whose 8 pairs the outcome stays worse."
    )
    assert "the outcome would be better." in said(("median", False, 8, "better"))
    assert said(("median", False, 0, "")) == (
        "By the median configurations are chosen that were not confirmed, so that the outcome "
        "there is not known."
    )


def test_an_unknown_question_is_refused() -> None:
    with pytest.raises(KeyError, match="Q4"):
        selections.vary(made(), "idea", "Q4")


def test_every_rule_can_be_spoken() -> None:
    for same, pairs in product((True, False), (0, 5)):
        frame = pd.DataFrame(
            [
                {"rule": name, "same": same, "pairs": pairs, "outcome": "worse"}
                for name in selections.RULES
            ]
        )
        assert all(name in selections.sentence(frame) for name in list(selections.RULES)[1:])
