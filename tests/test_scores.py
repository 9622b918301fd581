from typing import Any

import numpy as np
import pytest
import torch
from plain import jacobian, networks, normal

from msstab import cells, evaluation, experiment, moments, scores, trials  # noqa: F401  (names)
from msstab.cells import Parameters
from msstab.noise import NOISES
from msstab.seeding import generator
from msstab.study import Study

STUDY: dict[str, Any] = {
    "hidden": 6,
    "n_train": 40,
    "batch": 8,
    "n_validation": 24,
    "n_test": 16,
    "draws": 8,
    "mechanism_sequences": 12,
}
LEVELS = (0.05, 0.1, 0.2, 0.4)


def scored(
    parameters: Parameters | None = None, *, tuning: bool = True, **changes: Any
) -> dict[str, float]:
    study = Study(**{**STUDY, **changes})
    own = networks(1, 6, gain=1.5) if parameters is None else parameters
    return scores.score(
        own,
        networks(2, 6, gain=1.5).select([1]),
        trials.draw_data(study, "tuning", 0),
        study,
        lambda use: generator(0, use),
        tuning=tuning,
    )


def test_the_tests_own_level_is_not_simulated_twice() -> None:
    found = scored()
    for name in ("noisy_mse", "observed_variance", "predicted_variance"):
        assert found[f"{name}@0.2"] == found[name]


def test_every_level_of_the_grid_is_scored_and_no_other() -> None:
    grid = (0.03, 0.3)
    found = scored(sigma_grid=grid)
    names = [name for name in found if "@" in name]
    stems = ("noisy_mse", "observed_variance", "predicted_variance")
    assert names == [f"{name}@{s:g}" for s in grid for name in stems]
    assert "noisy_mse" in found


@pytest.mark.parametrize("sigma_test", [0.0, 0.1, 0.25])
def test_a_levels_scores_depend_on_no_other_level(sigma_test: float) -> None:
    whole, one = scored(sigma_test=0.2), scored(sigma_test=sigma_test, sigma_grid=(0.05,))
    for name in ("noisy_mse", "observed_variance", "predicted_variance"):
        assert one[f"{name}@0.05"] == whole[f"{name}@0.05"]


def test_levels_meet_the_same_noise() -> None:
    """So small noise has four times the effect at twice the level, draw by draw."""
    found = scored(sigma_grid=(1e-4, 2e-4))
    assert found["observed_variance@0.0002"] / found["observed_variance@0.0001"] == pytest.approx(
        4, rel=1e-3
    )


def test_prediction_meets_observation_at_small_levels() -> None:
    found = scored(draws=800, sigma_test=0.3)
    for level in LEVELS[:2]:
        observed, predicted = (found[f"{k}_variance@{level:g}"] for k in ("observed", "predicted"))
        assert observed == pytest.approx(predicted, rel=0.1)
    by_level = [found[f"observed_variance@{level:g}"] for level in LEVELS]
    assert (np.diff(by_level) > 0).all()


def test_prediction_meets_observation_where_every_step_counts() -> None:
    found = scored(track="duffing", draws=800, sigma_test=0.05, sigma_grid=(0.05,))
    predicted, observed = found["predicted_variance"], found["observed_variance"]
    assert observed == pytest.approx(predicted, rel=0.1)
    # The last step alone varies otherwise than the mean over all.
    study = Study(**{**STUDY, "track": "duffing"})
    parameters, data = networks(1, 6, gain=1.5), trials.draw_data(study, "tuning", 0)
    inputs = evaluation.stack(data.test, parameters.weight_ih)[0][..., :12]
    states, _ = cells.run(parameters, inputs)
    moment = moments.forced_second_moment(parameters, inputs, states, NOISES["unit"], 0.05)
    last = float(moments.output_variance(parameters, moment).mean())
    assert abs(last / predicted - 1) > 0.05
    # What drives a system is no forecast of what it does.
    assert np.isnan(found["persistence_mse"])
    assert np.isfinite(found["ridge_mse"])


def test_the_validation_error_under_noise_has_its_own_sequences_and_noise() -> None:
    found = scored(sigma_test=0.3)
    data = trials.draw_data(Study(**STUDY), "tuning", 0)
    few = data.validation._replace(
        inputs=data.validation.inputs[:12], targets=data.validation.targets[:12]
    )
    parameters = networks(1, 6, gain=1.5)
    expected = evaluation.noisy_run(
        parameters, *evaluation.stack(few, parameters.weight_ih), NOISES["unit"], 0.3,
        8 // scores.FEWER_DRAWS, generator(0, "validation noise"),
    )  # fmt: skip
    assert found["noisy_validation_mse"] == float(expected.squared_error)
    assert np.isnan(scored(tuning=False)["noisy_validation_mse"])
    rest = {k: v for k, v in scored().items() if k != "noisy_validation_mse"}
    assert rest == {k: v for k, v in scored(tuning=False).items() if k != "noisy_validation_mse"}


@pytest.mark.parametrize("cell", cells.CELLS)
def test_radius_and_growth_are_those_of_torchs_jacobians(cell: str) -> None:
    parameters = networks(1, 3, cell=cell, gain=2.0)
    inputs = normal(7, 1, 1, 5)
    states, _ = cells.run(parameters, inputs)
    size, sigma = parameters.state_size, 0.3
    reads = np.diag(np.eye(size).reshape(-1))
    before = torch.cat([torch.zeros_like(states[:1]), states[:-1]])

    def lift(step: int, sequence: int) -> Any:
        at = before[step, 0, :, sequence], inputs[step, 0, :, sequence]
        j = jacobian(parameters, 0, *at).numpy()
        return np.kron(j, j) @ (np.eye(size**2) + sigma**2 * reads)

    steps = [6 * k // 4 for k in (1, 2, 3, 4)]
    radii = [np.abs(np.linalg.eigvals(lift(t, k))).max() for k, t in enumerate(steps)]
    found = scores.radius(parameters, inputs, states, NOISES["unit"], sigma)
    assert found == pytest.approx(np.median(radii), rel=1e-8)

    trace = np.eye(size).reshape(-1)
    rates = []
    for sequence in range(5):
        moment = trace / size
        for step in range(7):
            moment = lift(step, sequence) @ moment
        rates.append(np.log(trace @ moment) / 7)
    found = scores.growth_rate(parameters, inputs, states, NOISES["unit"], sigma)
    assert found == pytest.approx(np.mean(rates), rel=1e-9)


@pytest.mark.parametrize("spoilt", [np.nan, np.inf, 1e30])
def test_a_diverged_network_falls_back_at_every_level_and_raises_nothing(spoilt: float) -> None:
    parameters = networks(1, 6)
    (parameters.weight_out if spoilt == 1e30 else parameters.weight_hh).fill_(spoilt)
    found = scored(parameters)
    assert found["diverged"] == 1
    assert found["test_mse"] == found["constant_mse"]
    errors = [found[f"noisy_mse@{level:g}"] for level in LEVELS]
    assert errors == 4 * [found["noisy_mse"]] == 4 * [found["clean_mse"]]
    assert np.isfinite(found["noisy_validation_mse"])
    if spoilt != 1e30:
        assert np.isnan([found["growth_rate"], found["radius"]]).all()


def test_a_short_or_lone_sequence_still_has_a_radius() -> None:
    parameters = networks(1, 4)
    for inputs in (normal(2, 1, 1, 1), normal(2, 1, 1, 9), normal(30, 1, 1, 1)):
        states, _ = cells.run(parameters, inputs)
        assert scores.radius(parameters, inputs, states, NOISES["unit"], 0.2) > 0
