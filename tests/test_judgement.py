import numpy as np
import pandas as pd
import pytest

from msstab import control, judgement, planning, rules
from msstab.experiment import Experiment
from msstab.judgement import MechanismTest
from msstab.results import Results
from msstab.rules import Rule
from msstab.study import Study
from msstab.tuning import Configuration, Grid

SEEDS = 5


def synthetic(variants: int, *, learnt: int, bias: float = 1.0) -> Experiment:
    """Runs of variants of which the first `learnt` beat the ridge autoregression.

    Of these the theory predicts the output variance, of the others `bias` times as much.
    """
    rng = np.random.default_rng(0)
    parts = []
    for k in range(variants):
        observed = np.exp(rng.normal(size=SEEDS))
        parts.append(
            pd.DataFrame(
                {
                    "arm": "baseline",
                    "role": "tuning",
                    "seed": range(SEEDS),
                    "learning_rate": 0.001 * (k + 1),
                    "strength": 0.0,
                    "test_mse": 0.001 if k < learnt else 0.5,
                    "ridge_mse": 0.01,
                    "clean_mse": 0.001,
                    "noisy_mse": 0.001 + observed,
                    "observed_variance": observed,
                    "predicted_variance": observed * (1.0 if k < learnt else bias),
                    "placebo_variance": 20 * np.exp(rng.normal(size=SEEDS)),
                    "radius": np.exp(rng.normal(size=SEEDS)),
                    "growth_rate": rng.normal(size=SEEDS),
                    "proxy_radius": observed**-0.5 * np.exp(0.3 * rng.normal(size=SEEDS)),
                }
            )
        )
    table = pd.concat(parts, ignore_index=True)
    chosen = {"baseline": Configuration(0.001, 0.0)}
    study = Study(tuning_seeds=SEEDS)
    plan = planning.plan(study, [1.0, 2.0, 3.0], [1.0, 2.0, 2.0])
    return Experiment(study, table, Grid((0.1, 0.2), {}), chosen, {}, {}, True, plan)


@pytest.fixture(autouse=True)
def kept(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cache for all tests, so that the control of rule R4 is simulated once."""
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path_factory.getbasetemp() / "judgement"))


def outcomes(test: MechanismTest) -> dict[str, Rule]:
    return {name: finding.rule for name, finding in test.findings.items()}


def test_variants_that_learnt_the_track_are_judged_and_the_others_shown() -> None:
    test = judgement.judge(synthetic(12, learnt=10, bias=3.0))
    assert (test.n_variants, len(test.networks), len(test.others)) == (10, 50, 10)
    assert test.prediction.log_rmse == pytest.approx(0, abs=1e-12)
    assert test.everywhere.n == 60
    assert test.everywhere.log_rmse == pytest.approx(np.log(3) * np.sqrt(10 / 60))
    assert outcomes(test) == dict.fromkeys(("R1", "R2", "R3", "R4"), Rule.CONFIRMED)
    assert test.confirmed


def test_too_few_variants_do_not_discriminate() -> None:
    # Rule R4 has a control of its own.
    found = outcomes(judgement.judge(synthetic(12, learnt=rules.FEWEST_VARIANTS - 1)))
    assert {name for name, rule in found.items() if rule is Rule.NOT_DISCRIMINATING} == {
        *("R1", "R2", "R3")
    }


def test_an_arm_at_strength_0_does_not_count_its_networks_twice() -> None:
    runs = synthetic(10, learnt=10)
    twin = runs.table.assign(arm="spectral_proxy")
    doubled = runs._replace(table=pd.concat([runs.table, twin], ignore_index=True))
    assert judgement.judge(doubled).prediction.n == 50


def test_changes_are_those_against_the_tuned_baseline_of_the_same_seed() -> None:
    runs = synthetic(10, learnt=10)
    shuffled = runs._replace(table=runs.table.sample(frac=1, random_state=1))
    changes = judgement.judge(shuffled).changes
    table = runs.table.set_index(["learning_rate", "seed"]).sort_index()
    for k, seed in ((3, 2), (9, 0), (0, 4)):
        ratio = (
            table.observed_variance[0.001 * (k + 1), seed] / table.observed_variance[0.001, seed]
        )
        assert changes.observed[k, seed] == pytest.approx(np.log(ratio), abs=1e-12)
        assert changes.predicted[k, seed] == pytest.approx(np.log(ratio), abs=1e-12)
    assert changes.placebo.shape == (10, SEEDS)
    assert abs(changes.placebo - changes.observed).max() > 1


def test_the_mediator_that_carries_the_benefit_is_found() -> None:
    found = judgement.mediators(synthetic(12, learnt=12))
    assert list(found) == list(judgement.MEDIATORS)
    assert found["predicted output variance"].explained > 0.99
    assert found["the original's spectral-norm bound"].correlation < -0.5
    assert found["growth rate along trajectories"].explained < 0.2


def test_the_breakdown_compares_prediction_and_observation_level_by_level(
    tiny_results: Results,
) -> None:
    found = judgement.breakdown(tiny_results.experiment)
    assert list(found) == ["trained", "untrained, gain 1", "untrained, gain 2.2"]
    for by_level in found.values():
        assert list(by_level) == list(tiny_results.study.sigma_grid)
    untrained = tiny_results.table[tiny_results.table.arm == "untrained, gain 1"]
    ratio = np.log(untrained["predicted_variance@0.1"] / untrained["observed_variance@0.1"])
    rmse = float(np.sqrt(np.mean(ratio**2)))
    assert found["untrained, gain 1"][0.1].log_rmse == pytest.approx(rmse)


def test_the_control_is_kept_and_depends_on_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    first = judgement.operator_control(Study())
    monkeypatch.setattr(control, "operator_control", lambda *_: pytest.fail("made again"))
    again = judgement.operator_control(Study(seeds=2))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(pytest.fail.Exception, match="made again"):
        judgement.operator_control(Study(cell="rnn"))
