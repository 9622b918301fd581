import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import TINY

from msstab import cells, evaluation, moments, structures, trials, under_noise
from msstab.experiment import confirmed, run
from msstab.noise import NOISES
from msstab.trials import Trial

SETTINGS: dict[str, Any] = {
    "names": ["unit", "weight"],
    "at": [["unit", 0.1], ["weight", 0.2], ["gain, 4 groups", 0.05], ["weight, frozen", 0.2]],
    "sequences": 8,
    "draws": 200,
    "n_validation": TINY.n_validation,
    "n_test": TINY.n_test,
    "seeds": 3,
}


@pytest.fixture
def networks(tiny_cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[Trial]:
    monkeypatch.setenv("MSSTAB_CACHE", str(tiny_cache))
    return confirmed(run(TINY, jobs=1), "baseline", "robust")[:3]


def test_variances_are_observed_as_they_are_predicted(networks: list[Trial]) -> None:
    found = under_noise.variances(networks[0], SETTINGS)
    np.testing.assert_allclose(found["observed"], found["predicted"], rtol=0.2)
    assert (found["white"][:3] == found["predicted"][:3]).all()
    assert found["white"][3] != pytest.approx(found["predicted"][3], rel=0.05)
    assert found["white"][3] == pytest.approx(found["white"][1])


def test_the_placebo_is_the_next_networks_dynamics_under_this_ones_readout(
    networks: list[Trial],
) -> None:
    own, other = (trials.load_trained(networks[k]).parameters for k in (2, 0))
    split = trials.draw_data(TINY, "confirmation", 2).test
    inputs, _ = evaluation.stack(split, own.weight_ih)
    inputs = inputs[..., :8]
    with torch.no_grad():
        states, theirs = (cells.run(p, inputs)[0] for p in (own, other))
        moment = moments.forced_second_moment(
            own, inputs, states, NOISES["unit"], 0.1, (other, theirs)
        )
        expected = float(moments.output_variance(own, moment).mean())
        swapped = dataclasses.replace(other, weight_out=own.weight_out, bias_out=own.bias_out)
        frozen = float(
            moments.frozen_output_variance(swapped, inputs, theirs, NOISES["weight"], 0.2).mean()
        )
    found = under_noise.variances(networks[2], SETTINGS)
    # The last of three networks has the first for its partner.
    assert found["placebo"][0] == pytest.approx(expected)
    assert found["placebo"][3] == pytest.approx(frozen)


def test_errors_are_those_beside_the_variances(networks: list[Trial]) -> None:
    alone, beside = (
        measure(networks[1], SETTINGS) for measure in (under_noise.errors, under_noise.variances)
    )
    assert alone["error"] == beside["error"].tolist()
    assert alone["clean"] == beside["clean"]
    split = trials.draw_data(TINY, "confirmation", 1).test
    constant = float(np.mean((split.targets[:8] - _training_mean()) ** 2))
    assert alone["constant"] == pytest.approx(constant)


def _training_mean() -> float:
    return float(trials.draw_data(TINY, "confirmation", 1).train.targets.mean())


def test_networks_of_one_seed_meet_the_same_noise_whatever_else_is_measured(
    networks: list[Trial],
) -> None:
    both = under_noise.errors(networks[0], SETTINGS)["error"]
    alone = under_noise.errors(networks[0], {**SETTINGS, "at": [["weight", 0.2]]})["error"]
    assert alone == [both[1]]
    assert under_noise.errors(networks[1], SETTINGS)["error"][1] != both[1]


def test_disturbances_are_those_of_all_white_structures(networks: list[Trial]) -> None:
    found = under_noise.disturbances(networks[0], SETTINGS)
    network = trials.load_trained(networks[0]).parameters
    made = structures.white_structures(network, ["unit", "weight"])
    assert list(found) == list(made)
    split = trials.draw_data(TINY, "confirmation", 0).test
    inputs, _ = evaluation.stack(split, network.weight_ih)
    with torch.no_grad():
        expected = structures.disturbance(network, inputs[..., :8], NOISES["unit"])
    assert found["unit"] == pytest.approx(float(expected))


@pytest.fixture
def driven(tiny_cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[Trial]:
    """Networks with a target after each of several steps, hardly trained."""
    monkeypatch.setenv("MSSTAB_CACHE", str(tiny_cache))
    trial = confirmed(run(TINY, jobs=1), "baseline", "robust")[0]
    return [dataclasses.replace(trial, track="duffing", epochs=1, index=k) for k in range(3)]


def test_variances_of_several_steps_are_observed_as_they_are_predicted(
    driven: list[Trial],
) -> None:
    found = under_noise.variances(driven[0], {**SETTINGS, "draws": 300})
    np.testing.assert_allclose(found["observed"], found["predicted"], rtol=0.2)
    assert found["placebo"] != pytest.approx(found["predicted"], rel=0.02)
