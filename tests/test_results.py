from typing import Any

import numpy as np
import pandas as pd

from msstab import evidence, experiment, results
from msstab.results import Results
from msstab.rules import Rule
from msstab.tuning import Configuration


def rows(results: Results, arm: str, role: str) -> pd.DataFrame:
    table = results.table
    return table[(table.arm == arm) & (table.role == role)].sort_values("seed")


def test_the_judged_comparison_pairs_the_penalised_arm_with_the_baseline_seed_by_seed(
    tiny_results: Results,
) -> None:
    baseline = rows(tiny_results, "baseline", "selected")
    idea = rows(tiny_results, "spectral_proxy", "penalised")
    assert list(baseline.seed) == list(idea.seed) == list(range(6))
    np.testing.assert_array_equal(tiny_results.clean.baseline, baseline.test_mse)
    np.testing.assert_array_equal(tiny_results.clean.idea, idea.test_mse)
    robust = [rows(tiny_results, arm, "robust") for arm in ("baseline", "spectral_proxy")]
    noisy, price = tiny_results.noisy, tiny_results.arms["spectral_proxy"].price
    for k, own in enumerate(robust):
        np.testing.assert_array_equal((noisy.baseline, noisy.idea)[k], own.noisy_mse)
        np.testing.assert_array_equal((price.baseline, price.idea)[k], own.test_mse)
    levels = results.by_level(tiny_results, "spectral_proxy")
    assert list(levels) == list(tiny_results.study.sigma_grid)
    np.testing.assert_array_equal(levels[0.2].idea, noisy.idea)
    np.testing.assert_array_equal(levels[0.4].idea, robust[1]["noisy_mse@0.4"])
    assert tiny_results.idea_configuration.strength > 0
    expected = evidence.summarise(
        baseline.test_mse, idea.test_mse, margin=0.05 * baseline.test_mse.mean(), alpha=0.05
    )
    assert tiny_results.clean.evidence == expected


def test_configurations_are_those_of_lowest_validation_error(tiny_results: Results) -> None:
    tuning = tiny_results.table[tiny_results.table.role == "tuning"]
    for arm, positive, chosen in (
        ("baseline", False, tiny_results.baseline_configuration),
        ("spectral_proxy", False, tiny_results.free_choice),
        ("spectral_proxy", True, tiny_results.idea_configuration),
    ):
        own = tuning[(tuning.arm == arm) & ((tuning.strength > 0) | (not positive))]
        means = own.groupby(["learning_rate", "strength"]).validation_mse.mean()
        assert means.idxmin() == tuple(chosen)


def test_the_mechanisms_clause_names_every_rule_that_is_not_confirmed(
    tiny_results: Results,
) -> None:
    test = tiny_results.mechanism
    for changed in test.findings:
        outcomes = {
            name: finding._replace(rule=Rule.REFUTED if name == changed else Rule.CONFIRMED)
            for name, finding in test.findings.items()
        }
        made = test._replace(findings=outcomes)
        assert f"{changed} refuted" in results.mechanism_clause(made)
        assert not made.confirmed
        outcomes[changed] = outcomes[changed]._replace(rule=Rule.CONFIRMED)
        assert made.confirmed
        assert "passes all rules" in results.mechanism_clause(made)


def test_signatures_cover_every_arm_and_untrained_networks(tiny_results: Results) -> None:
    frame = results.signatures(tiny_results)
    assert set(zip(frame.role, frame.arm, strict=True)) == {
        ("selected", "baseline"),
        ("selected", "spectral_proxy"),
        ("penalised", "spectral_proxy"),
        ("untrained", "untrained, gain 1"),
        ("untrained", "untrained, gain 2.2"),
    }
    row: Any = frame[frame.role == "penalised"].iloc[0]
    own = rows(tiny_results, "spectral_proxy", "penalised")
    assert row.predicted == own.proxy_radius.mean()
    assert row.relative_error == abs(row.predicted - row.observed) / row.predicted
    assert row.confirmed == (row.relative_error <= 0.1)
    assert row.trivial_error == abs(1 - row.observed)


def test_curves_are_those_of_the_trained_networks(tiny_results: Results) -> None:
    study = tiny_results.study
    curves, nearest = results.learning_curves(tiny_results)
    assert nearest in curves
    assert all(curve.shape == (2, 3) for curve in curves.values())
    network = experiment.trained(study, Configuration(0.05, 0.0), "baseline", "tuning", 1)
    np.testing.assert_array_equal(curves["0.05"][1], network.losses[0])
    activity = results.hinge_activity(tiny_results)
    assert all(label.startswith("strength ") for label in activity)
    assert all(((a >= 0) & (a <= 1)).all() for a in activity.values())


def test_limitations_name_edges_and_diverged_runs(tiny_results: Results) -> None:
    runs = tiny_results.experiment
    said = " ".join(results.limitations(tiny_results))
    assert "diverged" not in said
    table = runs.table.assign(diverged=True)
    worse = tiny_results._replace(experiment=runs._replace(table=table, bracketed=False))
    said = " ".join(results.limitations(worse))
    assert f"{len(table)} runs diverged" in said
    assert "edge" in said
