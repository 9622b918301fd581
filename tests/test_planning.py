import json
import math
from pathlib import Path

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from msstab import planning
from msstab.study import Study
from msstab.tuning import Configuration

RNG = np.random.default_rng(0)
BASELINE = np.exp(RNG.normal(size=8))
IDEA = BASELINE * np.exp(0.4 * RNG.normal(size=8))
SD = float(np.std(np.log(IDEA / BASELINE), ddof=1))


def test_the_planned_pairs_are_the_fewest_with_the_wanted_power() -> None:
    made = planning.plan(Study(), BASELINE, IDEA)
    assert made.sd == pytest.approx(SD)
    assert made.effect == pytest.approx(math.log(1.05))
    assert made.seeds == made.needed < 1024
    oracle = TTestPower()
    enough, fewer = (
        oracle.power(made.effect / SD, made.needed - k, 0.05, alternative="two-sided")
        for k in (0, 1)
    )
    assert fewer < 0.9 <= enough
    assert made.power_planned == pytest.approx(enough, abs=1e-6)
    assert made.reason == "as many as needed"


def test_the_cap_holds_and_is_named() -> None:
    made = planning.plan(Study(max_seeds=20), BASELINE, IDEA)
    assert (made.seeds, made.reason) == (20, "capped at max_seeds = 20")
    assert made.needed > 20
    assert made.power_planned < 0.9


def test_a_number_that_the_study_names_is_taken() -> None:
    made = planning.plan(Study(seeds=8), BASELINE, IDEA)
    assert (made.seeds, made.reason) == (8, "the Study names the number")


@pytest.mark.parametrize("easier", [Study(sesoi=0.1), Study(alpha=0.1), Study(power=0.8)])
def test_a_less_demanding_study_plans_fewer_pairs(easier: Study) -> None:
    needed = [planning.plan(s, BASELINE, IDEA).needed for s in (Study(), easier)]
    assert needed[1] < needed[0]


def test_arms_that_never_differ_need_the_fewest_pairs_that_any_test_needs() -> None:
    made = planning.plan(Study(), BASELINE, 0.9 * BASELINE)
    assert made.needed == 6


def test_a_plan_is_kept_with_its_rules_before_it_is_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path))
    study = Study()
    made = planning.plan(study, BASELINE, IDEA)
    choices = {"selected": {"baseline": Configuration(0.01, 0.0)}}
    path = planning.write(planning.record(study, made, choices))
    assert path == tmp_path / "plans" / f"{study.key}.json"
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept["plan"]["seeds"] == made.seeds
    assert kept["configurations"] == {"selected": {"baseline": [0.01, 0.0]}}
    assert kept["rules"]["R4"] == {"largest_growth_error": 0.005}
    assert kept["study"]["sesoi"] == 0.05
