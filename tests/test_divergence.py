import numpy as np
import pandas as pd
import pytest

from msstab import divergence
from msstab.results import Comparison, Results, compare
from msstab.scores import DIVERGED

ERRORS = np.random.default_rng(0).uniform(0.9, 1.1, 10)
NOISE = np.random.default_rng(1).normal(0, 0.01, 10)
CONSTANT = 3.0


def compared(idea_lost: list[int]) -> tuple[Comparison, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Arms that differ by 10% for the better, but for runs of the idea that diverged."""
    idea = 0.9 * ERRORS + NOISE
    lost = np.isin(np.arange(10), idea_lost)
    idea[lost] = CONSTANT
    return compare("error", ERRORS, idea, alpha=0.05, sesoi=0.05), lost


def rows(idea_lost: list[int]) -> pd.DataFrame:
    made, lost = compared(idea_lost)
    frame = divergence.vary_comparison(made, np.zeros(10, dtype=np.bool_), lost, sesoi=0.05)
    return frame.assign(question="Q1")


def test_every_way_to_score_a_diverged_run_is_decided() -> None:
    frame = rows([2, 5]).set_index("scored")
    made, lost = compared([2, 5])
    assert (frame.diverged == 2).all()
    assert frame.outcome[divergence.AS_JUDGED] == made.decision.outcome.value == "inconclusive"
    assert frame.effect[divergence.AS_JUDGED] == made.evidence.judged.effect
    assert frame.outcome[divergence.LEFT_OUT] == "better"
    assert frame.pairs[divergence.LEFT_OUT] == 8
    logs = np.log((0.9 * ERRORS + NOISE) / ERRORS)[~lost]
    assert frame.effect[divergence.LEFT_OUT] == pytest.approx(np.exp(logs.mean()) - 1, rel=1e-12)
    worst = np.append(logs, np.log(DIVERGED * CONSTANT / ERRORS[lost]))
    assert frame.effect[divergence.WORST] == pytest.approx(np.exp(worst.mean()) - 1, rel=1e-12)
    assert frame.pairs[divergence.WORST] == 10


def test_a_pair_is_left_out_whichever_arm_diverged() -> None:
    made, lost = compared([2])
    baseline = np.isin(np.arange(10), [2, 7])
    frame = divergence.vary_comparison(made, baseline, lost, sesoi=0.05).set_index("scored")
    assert frame.pairs[divergence.LEFT_OUT] == 8
    assert (frame.diverged == 3).all()


def test_runs_that_leave_fewer_than_two_pairs_decide_nothing() -> None:
    frame = rows(list(range(9)))
    assert frame.pairs[1] == 1
    assert frame.outcome[1] == ""
    assert f"{divergence.UNDECIDED} if they are left out" in divergence.sentence(frame)


def test_a_sentence_says_whether_the_scoring_decides() -> None:
    assert divergence.sentence(rows([])) == "Q1: none of the runs compared diverged."
    said = divergence.sentence(rows([2, 5]))
    assert said.startswith("Q1: 2 of the runs compared diverged. The outcome is inconclusive if ")
    assert "better if they are left out with their pairs" in said
    same = rows([2, 5]).assign(outcome="worse")
    assert divergence.sentence(same) == (
        "Q1: 2 of the runs compared diverged. The outcome is worse whether they are scored as the "
        "constant forecast, left out with their pairs or scored as the worst that has not diverged "
        "could be."
    )


def test_runs_that_diverged_are_looked_up_for_the_networks_of_each_question(
    tiny_results: Results,
) -> None:
    runs, idea = tiny_results.experiment, tiny_results.idea
    table = runs.table.copy()
    lost = {("baseline", "selected"): [1], (idea, "penalised"): [0, 3], (idea, "robust"): [4]}
    for (arm, role), seeds in lost.items():
        own = (table.arm == arm) & (table.role == role) & table.seed.isin(seeds)
        table.loc[own, "diverged"] = True
    frame = divergence.vary(
        tiny_results._replace(experiment=runs._replace(table=table.sample(frac=1, random_state=0)))
    )
    assert list(frame.question.unique()) == [tiny_results.clean.title, tiny_results.noisy.title]
    assert list(frame.diverged) == 3 * [3] + 3 * [1]
    assert list(frame.pairs) == [6, 3, 6, 6, 5, 6]
    left_out = np.array([2, 4, 5])
    ratios = tiny_results.clean.idea[left_out] / tiny_results.clean.baseline[left_out]
    assert frame.effect[1] == pytest.approx(np.exp(np.log(ratios).mean()) - 1, rel=1e-9)


def test_every_role_is_counted_and_a_network_once() -> None:
    table = pd.DataFrame(
        [
            ("baseline", "tuning", 0.0, True),
            ("baseline", "tuning", 0.0, False),
            ("baseline", "robust", 0.0, True),
            ("idea", "tuning", 0.0, True),  # the baseline's own
            ("idea", "tuning", 1.0, False),
            ("idea", "penalised", 1.0, True),
            ("idea", "penalised", 1.0, True),
            ("untrained, gain 1", "untrained", 0.0, False),
        ],
        columns=["arm", "role", "strength", "diverged"],
    )
    found = divergence.counts(table).set_index(["arm", "role"])
    assert {name: tuple(row) for name, row in found.iterrows()} == {
        ("baseline", "tuning"): (1, 2),
        ("baseline", "robust"): (1, 1),
        ("idea", "tuning"): (0, 1),
        ("idea", "penalised"): (2, 2),
        ("untrained, gain 1", "untrained"): (0, 1),
    }
