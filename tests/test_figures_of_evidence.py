"""The figures of planning, of all arms and of the decision say what the evidence says."""

import dataclasses
import io

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from outcomes import BASELINE, evidence_for

from msstab import figures
from msstab.evidence import expected_best, log_margin, power
from msstab.families import holm_across
from msstab.results import ArmComparison, Comparison, compare
from msstab.verdict import TREE, Outcome, branch_taken


def arm(name: str, shift: float, seed: int) -> ArmComparison:
    def question(title: str, factor: float) -> Comparison:
        noise = np.random.default_rng(seed).normal(0, 0.02, 10)
        idea = BASELINE * np.exp(factor * shift + noise)
        return compare(title, BASELINE, idea, alpha=0.05, sesoi=0.05)

    return ArmComparison(name, question("clean", 1), question("noisy", -2), question("price", 1))


ARMS = {a.arm: a for a in (arm("first", 0, 1), arm("second_arm", 0.2, 2), arm("third", 0.012, 3))}


# ---- budgets


def test_budgets_count_a_configuration_once_with_its_mean() -> None:
    tuning = pd.DataFrame(
        {
            "arm": 4 * ["baseline"] + 4 * ["idea"],
            "learning_rate": [0.1, 0.1, 0.2, 0.2] + 4 * [0.1],
            "strength": 4 * [0.0] + [0.0, 0.0, 1.0, 1.0],
            "validation_mse": [1.0, 3.0, 4.0, 6.0, 1.0, 1.0, 7.0, 9.0],
        }
    )
    alt = figures.budget_curves(tuning).alt
    first, last = expected_best([2.0, 5.0], [1, 2])
    assert f"baseline {first:.2g} with one configuration, {last:.2g} with all 2" in alt
    assert "idea 4.5 with one configuration, 1 with all 2" in alt


# ---- power


def test_the_power_figure_marks_the_plan_and_what_came_of_it() -> None:
    alt = figures.power_curve(
        0.4, 600, [0.02, 0.05, 0.2], 0.05, sesoi=0.05, n_achieved=200, sd_planned=0.3
    ).alt
    planned, achieved = power(log_margin(0.05), 0.3, 600), power(log_margin(0.05), 0.4, 200)
    assert f"600 planned pairs were to give {planned:.0%}, and 200 gave {achieved:.0%}" in alt
    assert f"2% {power(log_margin(0.02), 0.4, 200):.0%}" in alt
    assert f"20% {power(log_margin(0.2), 0.4, 200):.0%}" in alt


def test_a_plan_that_was_kept_needs_no_second_number() -> None:
    alt = figures.power_curve(0.3, 100, [], sesoi=0.1).alt
    share = f"{power(log_margin(0.1), 0.3, 100):.0%}"
    assert f"100 planned pairs were to give {share}, and 100 gave {share}" in alt
    assert "effects of no other" in alt


# ---- all arms


def test_the_forest_begins_with_the_judged_arm_and_marks_what_survives_adjustment() -> None:
    alt = figures.forest(ARMS, "second_arm", 0.05).alt
    clean, noisy = alt.split("error under noise: ")
    for text, question in ((clean, "clean"), (noisy, "noisy")):
        assert text.index("second arm") < text.index("first") < text.index("third")
        compared = {name: getattr(a, question) for name, a in ARMS.items()}
        for name, p in holm_across(compared).items():
            r = compared[name].evidence.ratios
            low, high = r.interval
            differs = ", differs" if p <= 0.05 else ""
            spoken = name.replace("_", " ")
            assert f"{spoken} {r.ratio:.3g} ({low:.3g} to {high:.3g}{differs})" in text
    assert ", differs" in clean
    assert clean.count(", differs") < len(ARMS)


def test_the_forests_marks_are_of_the_ratios_it_shows() -> None:
    def undecided(c: Comparison) -> Comparison:
        return c._replace(evidence=dataclasses.replace(c.evidence, p_value=1.0))

    arms = {
        name: a._replace(clean=undecided(a.clean), noisy=undecided(a.noisy))
        for name, a in ARMS.items()
    }
    assert figures.forest(arms, "first", 0.05).alt == figures.forest(ARMS, "first", 0.05).alt


def test_an_arm_that_was_not_run_cannot_be_judged() -> None:
    with pytest.raises(ValueError, match="judged = fourth: the arms are first, second_arm, third"):
        figures.forest(ARMS, "fourth", 0.05)


def test_the_profile_says_how_often_each_arm_is_the_best() -> None:
    errors = {"baseline": [1.0, 2.0, 3.0, 4.0], "weight_decay": [2.0, 1.0, 6.0, 8.0]}
    alt = figures.performance_profile(errors).alt
    assert "4 networks" in alt
    assert "baseline best on 75%" in alt
    assert "weight decay best on 25%" in alt


def test_a_profile_of_equal_arms_or_of_failures_can_be_drawn() -> None:
    same = figures.performance_profile({"a": [1.0, 2.0], "b": [1.0, 2.0]})
    assert "a best on 100%" in same.alt
    failed = figures.performance_profile({"a": [1.0, np.nan], "b": [1.0, np.inf]})
    assert "a best on 50%" in failed.alt


def test_profiles_need_the_same_problems_and_an_error() -> None:
    with pytest.raises(ValueError, match=r"same problems; got \{'a': 2, 'b': 1\}"):
        figures.performance_profile({"a": [1.0, 2.0], "b": [1.0]})
    with pytest.raises(ValueError, match="no arm has a finite error"):
        figures.performance_profile({"a": [np.nan], "b": [np.inf]})


# ---- the decision


@pytest.mark.parametrize("outcome", Outcome)
def test_the_tree_shows_the_path_with_the_figures_of_each_question_asked(outcome: Outcome) -> None:
    e = evidence_for(outcome).judged
    taken = branch_taken(e)
    alt = figures.decision_tree(e).alt
    assert alt.endswith(f"Here: {outcome.value}.")
    for row, branch in enumerate(TREE[:-1]):
        assert f"{branch.question} " in alt
        answer = "yes" if row == taken else "no"
        assert (f"({branch.reading(e)}: {answer})" in alt) is (row <= taken)


def test_without_evidence_the_tree_has_no_path() -> None:
    plain, taken = (
        figures.decision_tree(),
        figures.decision_tree(evidence_for(Outcome.WORSE).judged),
    )
    assert "Here" not in plain.alt
    assert plain.svg.count("stroke-width: 2.5") == 0
    # All four questions, the arrows down between them and to the last box, and that box.
    assert taken.svg.count("stroke-width: 2.5") >= 9


# ---- the picture that announces the book


@pytest.mark.parametrize("shift", [-0.7, 0.0, 0.7])
def test_the_card_has_the_size_that_sites_ask_for_and_cuts_nothing_off(shift: float) -> None:
    noise = np.random.default_rng(0).normal(0, 0.02, 10)
    idea = BASELINE * np.exp(shift + noise)
    title = "Q3: free-run error over one window"
    asked = [compare(title, BASELINE, idea, alpha=0.05, sesoi=0.05)] * 3
    answer = (
        "Without noise, these runs cannot tell whether the penalty changes the test error. " * 3
    )
    card = figures.card(answer, asked, 0.05)
    assert card == figures.card(answer, asked, 0.05)
    pixels = plt.imread(io.BytesIO(card))[..., :3]
    assert pixels.shape == (630, 1200, 3)
    edges = [pixels[:10], pixels[-10:], pixels[:, :20], pixels[:, -20:]]
    assert all((edge == 1).all() for edge in edges)
    assert (pixels < 0.5).any()
