import numpy as np
import pandas as pd
import pytest
import scipy.stats

from msstab import planning
from msstab.experiment import Experiment
from msstab.frontiers import frontiers
from msstab.study import Study
from msstab.tuning import Configuration, Grid

SEEDS, STRENGTHS, RATES = 6, (0.0, 1.0, 2.0), (0.01, 0.1)


@pytest.fixture
def runs() -> Experiment:
    """An arm whose best learning rate on validation data is 0.1 at strength 1 alone."""
    rng = np.random.default_rng(0)
    rows = []
    for arm in ("baseline", "idea"):
        for rate in RATES:
            for strength in STRENGTHS if arm == "idea" else (0.0,):
                wanted = rate == (0.1 if strength == 1 else 0.01)
                rows += [
                    {
                        "arm": arm,
                        "role": "tuning",
                        "seed": seed,
                        "learning_rate": rate,
                        "strength": strength,
                        "validation_mse": 1.0 if wanted else 2.0,
                        "test_mse": float(rng.lognormal()),
                        "noisy_mse": float(rng.lognormal()),
                    }
                    for seed in range(SEEDS)
                ]
    table = pd.DataFrame(rows).sample(frac=1, random_state=0)
    chosen = {"baseline": Configuration(0.01, 0.0)}
    plan = planning.plan(Study(), [1.0, 2.0, 3.0], [1.0, 2.0, 2.0])
    grid = Grid(RATES, {"idea": STRENGTHS})
    return Experiment(Study(), table, grid, chosen, {}, {}, True, plan)


def test_a_frontier_has_each_strength_at_its_best_learning_rate(runs: Experiment) -> None:
    found = frontiers(runs)
    assert found.arm.unique().tolist() == ["idea"]
    assert found.strength.tolist() == list(STRENGTHS)
    assert found.learning_rate.tolist() == [0.01, 0.1, 0.01]


@pytest.mark.parametrize(("name", "score"), [("clean", "test_mse"), ("noisy", "noisy_mse")])
def test_ratios_and_intervals_are_those_of_scipy(runs: Experiment, name: str, score: str) -> None:
    found = frontiers(runs).set_index("strength")
    by_seed = runs.table.set_index(["arm", "learning_rate", "strength", "seed"])[score].sort_index()
    own = by_seed["idea", 0.1, 1.0]
    reference = by_seed["baseline", 0.01, 0.0]
    logs = np.log(own) - np.log(reference)
    interval = scipy.stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    row = found.loc[1.0]
    assert row[name] == pytest.approx(scipy.stats.gmean(own) / scipy.stats.gmean(reference))
    assert row[f"{name}_low"] == pytest.approx(np.exp(interval.low))
    assert row[f"{name}_high"] == pytest.approx(np.exp(interval.high))
