import numpy as np
import pandas as pd
import pytest

from msstab import judgement, report, results, sentences
from msstab.mediation import Mediator
from msstab.results import Results
from msstab.tuning import Configuration
from msstab.verdict import Outcome


def with_errors(found: Results, factor: float) -> Results:
    """Return results in which every network's error is that many times the linear forecast's."""
    table = found.table.assign(test_mse=factor * found.table.ridge_mse)
    return found._replace(experiment=found.experiment._replace(table=table))


def test_skill_says_which_of_network_and_linear_forecast_is_better(tiny_results: Results) -> None:
    assert "4.0 times less" in sentences.skill(with_errors(tiny_results, 0.25))
    assert "2.0 times more" in sentences.skill(with_errors(tiny_results, 2.0))


def test_reproduction_counts_decades_and_names_ratios(tiny_results: Results) -> None:
    original = report.original_report()
    stated = original.bench_report.baseline.sweep[2]
    tuning = tiny_results.table.query("arm == 'baseline' and role == 'tuning'")
    own = tuning[tuning.learning_rate == stated.cfg.lr].test_mse.mean()
    sentence = sentences.reproduction(tiny_results, original)
    same = int(np.floor(np.log10(own)) == np.floor(np.log10(stated.mean)))
    assert sentence.startswith(f"of the 1 learning rates that the original ran too, {same} ")
    assert f"{own / stated.mean:.2g} at 0.01" in sentence


def test_both_errors_give_each_comparisons_own_outcome(tiny_results: Results) -> None:
    clean, noisy = tiny_results.clean, tiny_results.noisy
    better = noisy._replace(decision=noisy.decision._replace(outcome=Outcome.BETTER))
    worse = clean._replace(decision=clean.decision._replace(outcome=Outcome.WORSE))
    own = tiny_results.arms[tiny_results.idea]._replace(clean=worse, noisy=better)
    text = sentences.both_errors(tiny_results._replace(arms={tiny_results.idea: own}))
    assert text.index("clean error comes out worse") < text.index("noise of 0.2 better")
    for comparison in (clean, noisy):
        ratio = comparison.evidence.ratio
        assert f"{100 * (ratio - 1):+.0f}%" in text


def test_bracketing_says_how_the_ladder_grew_and_whether_that_was_enough(
    tiny_results: Results,
) -> None:
    runs = tiny_results.experiment
    began = runs._replace(grid=runs.grid._replace(rungs=tiny_results.study.learning_rates))
    same = tiny_results._replace(experiment=began._replace(bracketed=True))
    assert "began as 0.01, 0.05 and stayed so" in sentences.bracketing(same)
    assert "every choice is bracketed" in sentences.bracketing(same)
    grown = began._replace(grid=began.grid._replace(rungs=(0.01, 0.05, 0.25)), bracketed=False)
    text = sentences.bracketing(tiny_results._replace(experiment=grown))
    assert "and ended as 0.01, 0.05, 0.25" in text
    assert "a choice still lies on an edge" in text


def test_free_choice_says_whether_tuning_switched_the_penalty_off(tiny_results: Results) -> None:
    runs = tiny_results.experiment
    for strength, words in ((0.0, "switched the penalty off"), (0.5, "kept the penalty")):
        chosen = {**runs.chosen, tiny_results.idea: Configuration(0.05, strength)}
        text = sentences.free_choice(tiny_results._replace(experiment=runs._replace(chosen=chosen)))
        assert words in text
        assert f"strength {tiny_results.idea_configuration.strength:g} at a learning" in text


def test_the_check_names_the_groups_it_passes_for(tiny_results: Results) -> None:
    text = sentences.signature_check(tiny_results)
    frame = results.signatures(tiny_results)
    for row in frame.itertuples():
        name = f"“{str(row.arm).replace('_', ' ')}”"
        named = name in text if row.role == "untrained" else f"{name} ({row.role})" in text
        assert named == row.confirmed


def test_every_arms_outcome_is_counted_and_named(tiny_results: Results) -> None:
    own = tiny_results.arms[tiny_results.idea]
    for outcome, words in (
        (Outcome.BETTER, "1 lower the clean error (spectral proxy), 0 raise it,"),
        (Outcome.WORSE, "0 lower the clean error, 1 raise it (spectral proxy),"),
        (Outcome.EQUIVALENT, "1 are equivalent to the baseline and 0 inconclusive"),
        (Outcome.INCONCLUSIVE, "0 are equivalent to the baseline and 1 inconclusive"),
    ):
        decision = own.clean.decision._replace(outcome=outcome)
        changed = own._replace(clean=own.clean._replace(decision=decision))
        text = sentences.every_arm(tiny_results._replace(arms={tiny_results.idea: changed}))
        assert words in text.partition("Of 1 arms, ")[2].partition(" Of 1 arms")[0]


def test_arms_that_were_never_active_are_named(tiny_results: Results) -> None:
    assert "Every arm was active" in sentences.never_active(tiny_results)
    runs = tiny_results.experiment
    idle = runs._replace(table=runs.table.assign(hinge_active=0.0))
    text = sentences.never_active(tiny_results._replace(experiment=idle))
    assert text.startswith("Never active at any strength: spectral proxy.")


def test_the_frontiers_leader_is_named_and_the_one_at_no_price() -> None:
    frontier = pd.DataFrame(
        {
            "arm": ["a_b", "a_b", "c", "c"],
            "strength": [0.0, 1.0, 0.0, 2.0],
            "clean": [1.0, 1.5, 1.02, 1.04],
            "noisy": [1.0, 0.2, 0.9, 0.6],
        }
    )
    text = sentences.frontier_leaders(frontier, 0.05)
    assert "that of a b at strength 1: 0.20 times the baseline's, at 1.50 times" in text
    assert "it is c at strength 2, with 0.60 times" in text
    assert "Within 1% of the baseline's clean error no arm" in sentences.frontier_leaders(
        frontier[:2], 0.01
    )


def test_the_strongest_mediator_is_the_one_that_explains_most(tiny_results: Results) -> None:
    made = {
        name: Mediator(0.5, (0.0, 1.0), share, (0.0, 1.0), 40, 0)
        for name, share in (("first", 0.1), ("second", 0.9), ("third", 0.5))
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judgement, "mediators", lambda _: made)
        text = sentences.strongest_mediator(tiny_results)
        assert "the second explains 90%" in text
        assert "the first explains 10%" in text
        nothing = {name: m._replace(explained=float("nan")) for name, m in made.items()}
        patch.setattr(judgement, "mediators", lambda _: nothing)
        assert "Too few networks" in sentences.strongest_mediator(tiny_results)


def test_the_plans_sentence_gives_planned_and_achieved_power(tiny_results: Results) -> None:
    plan, ratios = tiny_results.experiment.plan, tiny_results.clean.evidence.ratios
    text = sentences.planning(tiny_results)
    assert f"takes {plan.needed} pairs. {plan.seeds} run (the Study names the number)" in text
    assert f"a planned power of {plan.power_planned:.0%}" in text
    assert f"power achieved is {ratios.power_at_margin:.0%}" in text
    assert f"an effect of {ratios.mde_power80:.1f}% is detected with 80% power" in text
