from typing import Any

import numpy as np
import pandas as pd
import pytest

from msstab import evidence, experiment, mechanism, results
from msstab.experiment import Experiment
from msstab.mechanism import Rule
from msstab.results import Results
from msstab.study import Study
from msstab.tuning import Configuration, Grid


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


def synthetic(variants: int, *, learnt: int, bias: float = 1.0) -> Experiment:
    """Return runs of variants of which the first `learnt` beat the ridge autoregression."""
    rng = np.random.default_rng(0)
    parts = []
    for k in range(variants):
        observed = np.exp(rng.normal(size=5))
        parts.append(
            pd.DataFrame(
                {
                    "arm": "baseline",
                    "role": "tuning",
                    "seed": range(5),
                    "learning_rate": 0.001 * (k + 1),
                    "strength": 0.0,
                    "test_mse": 0.001 if k < learnt else 0.5,
                    "ridge_mse": 0.01,
                    "observed_variance": observed,
                    "predicted_variance": observed * (1.0 if k < learnt else bias),
                    "placebo_variance": np.exp(rng.normal(size=5)),
                }
            )
        )
    table = pd.concat(parts, ignore_index=True)
    study = Study(tuning_seeds=5)
    return Experiment(study, table, Grid((0.1, 0.2), {}), {}, {}, {}, True)


def test_the_mechanism_rule_judges_variants_that_learnt_the_track_and_shows_the_others() -> None:
    test = results._test_mechanism(synthetic(12, learnt=10, bias=3.0))
    assert (test.n_variants, len(test.networks), len(test.others)) == (10, 50, 10)
    assert test.finding.rule is Rule.CONFIRMED
    assert test.prediction.log_rmse == pytest.approx(0, abs=1e-12)
    assert test.everywhere.n == 60
    assert test.everywhere.log_rmse == pytest.approx(np.log(3) * np.sqrt(10 / 60))


def test_too_few_variants_do_not_discriminate() -> None:
    few = mechanism.FEWEST_VARIANTS - 1
    assert (
        results._test_mechanism(synthetic(12, learnt=few)).finding.rule is Rule.NOT_DISCRIMINATING
    )


def test_an_arm_at_strength_0_does_not_count_its_networks_twice() -> None:
    runs = synthetic(10, learnt=10)
    twin = runs.table.assign(arm="spectral_proxy")
    doubled = runs._replace(table=pd.concat([runs.table, twin], ignore_index=True))
    assert results._test_mechanism(doubled).prediction.n == 50


@pytest.mark.parametrize("rule", Rule)
def test_the_mechanisms_clause_and_field_come_from_one_value(rule: Rule) -> None:
    test = results._test_mechanism(synthetic(10, learnt=10))
    changed = test._replace(finding=test.finding._replace(rule=rule))
    clause = results.mechanism_clause(changed)
    assert f"(rule R1 {rule.value})" in clause
    assert changed.confirmed == (rule is Rule.CONFIRMED)
    assert clause.startswith("the theory behind it predicts") == changed.confirmed


def test_signatures_cover_every_arm_and_untrained_networks(tiny_results: Results) -> None:
    frame = results.signatures(tiny_results)
    assert set(zip(frame.role, frame.arm, strict=True)) == {
        ("selected", "baseline"),
        ("selected", "spectral_proxy"),
        ("penalised", "spectral_proxy"),
        ("robust", "baseline"),
        ("robust", "spectral_proxy"),
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
