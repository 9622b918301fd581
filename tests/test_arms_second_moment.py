"""The arms that rest on second moments, and what they share."""

import importlib
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from plain import networks, normal, of_models, step_of
from torch import Tensor

from msstab import arms, cells, moments, operators, spectral
from msstab.arms import Arm, Penalty, Step
from msstab.arms.lazily import lazily
from msstab.arms.sampling import sample_sequences, sample_states
from msstab.cells import CELLS, Parameters
from msstab.noise import NOISES

# The package's own names for these are the arms.
lifted = importlib.import_module("msstab.arms.lifted_radius")
growth = importlib.import_module("msstab.arms.moment_growth")
variance = importlib.import_module("msstab.arms.output_variance")

ARMS = ("lifted_radius", "moment_growth", "moment_growth_closed", "output_variance")
every_arm = pytest.mark.parametrize("name", ARMS)
every_noise = pytest.mark.parametrize("noise", NOISES)
every_cell = pytest.mark.parametrize("cell", CELLS)
OPEN = 1e-3
"""A target below all radii here."""


def penalty_of(name: str, step: Step) -> Penalty:
    arm = arms.find(name)
    assert isinstance(arm, Arm)
    return arm(step)


def gradients(parameters: Parameters, penalty: Tensor) -> list[Tensor]:
    found = torch.autograd.grad(penalty.sum(), list(parameters), allow_unused=True)
    return [
        g if g is not None else torch.zeros_like(p) for g, p in zip(found, parameters, strict=True)
    ]


def between(values: Tensor) -> float:
    """A number that about half of the values exceed, and none equals."""
    ordered = values.flatten().sort().values
    middle = len(ordered) // 2
    return float(ordered[middle - 1 : middle + 1].mean())


@pytest.fixture
def look_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the arms look at all states and whole sequences."""
    monkeypatch.setattr(lifted, "SAMPLES", 10**6)
    for module in (growth, variance):
        monkeypatch.setattr(module, "SEQUENCES", 10**6)
        monkeypatch.setattr(module, "WINDOW", 10**6)


# ---- sampling


def test_all_states_of_a_run_can_be_drawn_each_once() -> None:
    parameters = networks(3, 4, 2)
    step = step_of(parameters, batch=3, length=4)
    drawn = sample_states(step, 100)
    assert drawn.states.shape == (3, 4, 12)
    assert drawn.inputs.shape == (3, 2, 12)
    for model in range(3):
        expected = {}
        for b in range(3):
            state = torch.zeros(4, dtype=torch.float64)
            for t in range(4):
                expected[tuple(step.inputs[t, model, :, b].tolist())] = state
                state = step.states[t, model, :, b]
        found = dict(
            zip(map(tuple, drawn.inputs[model].T.tolist()), drawn.states[model].T, strict=True)
        )
        assert set(found) == set(expected)
        for key, state in expected.items():
            assert torch.equal(found[key], state)


def test_a_drawn_state_leads_to_the_next_one_of_the_run() -> None:
    parameters = networks(2, 4)
    step = step_of(parameters)
    drawn = sample_states(step, 7)
    after = cells.step(parameters, cells.pad(drawn.states, 4), cells.pad(drawn.inputs, 4))[..., :7]
    for model in range(2):
        run = step.states[:, model].permute(0, 2, 1).reshape(-1, 4)
        for k in range(7):
            assert float((run - after[model, :, k]).abs().amax(1).min()) < 1e-12


@pytest.mark.parametrize("window", [None, 1, 3, 5, 9])
def test_sequences_are_the_ends_of_the_runs(window: int | None) -> None:
    step = step_of(networks(3, 4, 2), batch=4, length=5)
    drawn = sample_sequences(step, 2, window)
    length = min(window or 5, 5)
    assert drawn.states.shape == (length, 3, 4, 2)
    before = torch.cat([torch.zeros_like(step.states[:1]), step.states[:-1]])
    for model in range(3):
        seen = set()
        for k in range(2):
            matches = [
                b
                for b in range(4)
                if torch.equal(drawn.states[:, model, :, k], step.states[-length:, model, :, b])
            ]
            (b,) = matches
            seen.add(b)
            assert torch.equal(drawn.before[:, model, :, k], before[-length:, model, :, b])
            assert torch.equal(drawn.inputs[:, model, :, k], step.inputs[-length:, model, :, b])
        assert len(seen) == 2
    flat = drawn.flat()
    assert torch.equal(flat.states[1, :, 2 * (length - 1)], drawn.before[-1, 1, :, 0])
    assert torch.equal(flat.inputs[2, :, 1], drawn.inputs[0, 2, :, 1])


# ---- values


@every_noise
@every_cell
@pytest.mark.usefixtures("look_everywhere")
def test_output_variance_is_that_of_the_forced_second_moment(noise: str, cell: str) -> None:
    parameters = networks(2, 3, 2, 2, cell=cell, gain=1.8)
    step = step_of(parameters, noise=noise, sigma=0.3)
    moment = moments.forced_second_moment(parameters, step.inputs, step.states, NOISES[noise], 0.3)
    expected = moments.output_variance(parameters, moment).mean(1)
    penalty = penalty_of("output_variance", step)
    torch.testing.assert_close(penalty.value, expected, rtol=1e-12, atol=0)
    assert torch.equal(penalty.active, torch.ones(2).double())


def test_output_variance_looks_at_a_window_before_the_last_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Against the dense Kronecker lift, from P = 0 at the window's start."""
    monkeypatch.setattr(variance, "WINDOW", 3)
    parameters = networks(1, 3, gain=1.8)
    step = step_of(parameters, batch=1, length=7)
    vector = np.zeros(9)
    for t in range(4, 7):
        state = step.states[t - 1]
        operator = NOISES["unit"].operator(cells.linearise(parameters, state, step.inputs[t]), 0.2)
        j = operator.jacobian[0, 0].numpy()
        h = state[0, :, 0].numpy()
        forcing = 0.04 * j @ np.diag(h**2) @ j.T
        vector = operators.matrix(operator)[0, 0].numpy() @ vector + forcing.ravel()
    w = parameters.weight_out[0].numpy()
    expected = float((w @ vector.reshape(3, 3) @ w.T).item())
    assert float(penalty_of("output_variance", step).value) == pytest.approx(expected, rel=1e-12)


def test_output_variance_is_the_mean_over_the_outputs_that_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over all but those that come before a window has passed, each as if it were the last."""
    monkeypatch.setattr(variance, "WINDOW", 3)
    parameters = networks(2, 3, gain=1.8)
    step = step_of(parameters, batch=1, length=7, steps=6)
    alone = [
        penalty_of(
            "output_variance",
            step._replace(
                inputs=step.inputs[:end], states=step.states[:end], targets=step.targets[:, :1]
            ),
        ).value
        for end in range(3, 8)
    ]
    seen = [penalty_of("output_variance", step).value for _ in range(200)]
    for model in range(2):
        values = {round(float(value[model]), 14) for value in seen}
        assert values == {round(float(value[model]), 14) for value in alone}
    mean, expected = torch.stack(seen).mean(0), torch.stack(alone).mean(0)
    torch.testing.assert_close(mean, expected, rtol=0.1, atol=0)


@every_noise
def test_without_noise_no_output_varies(noise: str) -> None:
    step = step_of(networks(2, 3), noise=noise, sigma=0.0)
    assert torch.equal(penalty_of("output_variance", step).value, torch.zeros(2).double())


@every_noise
@every_cell
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.usefixtures("look_everywhere")
def test_growth_is_that_of_the_moments_along_the_runs(
    noise: str, cell: str, closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "SETTLE", 2)
    parameters = networks(2, 3, 2, 2, cell=cell, gain=1.8)
    step = step_of(parameters, noise=noise, sigma=0.3, length=6)
    linearised = moments.linearisations(parameters, step.inputs, step.states, closed_loop=closed)
    rates = moments.growth_rate((NOISES[noise].operator(k, 0.3) for k in linearised), 2)
    for target in (OPEN, math.exp(between(rates))):
        own = step._replace(target=target, memory={})
        penalty = penalty_of("moment_growth_closed" if closed else "moment_growth", own)
        excess = (rates - math.log(target)).clamp_min(0)
        expected = growth.EVERY * excess.mean(1)
        torch.testing.assert_close(penalty.value, expected, rtol=1e-10, atol=1e-13)
        torch.testing.assert_close(penalty.active, (excess > 1e-12).double().mean(1))


def test_outputs_that_are_no_inputs_are_not_fed_back() -> None:
    with pytest.raises(ValueError, match="2 outputs cannot be fed back as 1 inputs"):
        penalty_of("moment_growth_closed", step_of(networks(1, 3, 1, 2)))


@every_noise
@every_cell
@pytest.mark.usefixtures("look_everywhere")
def test_radii_are_those_of_the_dense_lift_at_all_states(noise: str, cell: str) -> None:
    hidden = 2 if cell == "lstm" else 3
    parameters = networks(2, hidden, cell=cell, gain=2.2)
    step = step_of(parameters, noise=noise, sigma=0.4, batch=2, length=3)
    radii = torch.cat(
        [
            spectral.spectral_radius(NOISES[noise].operator(linearised, 0.4), "dense")
            for linearised in moments.linearisations(parameters, step.inputs, step.states)
        ],
        dim=1,
    )
    for target in (OPEN, between(radii)):
        own = step._replace(target=target, memory={})
        penalty = penalty_of("lifted_radius", own)
        excess = (radii / target).log().clamp_min(0)
        expected = excess.mean(1)
        torch.testing.assert_close(penalty.value, expected, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(penalty.active, (excess > 1e-9).double().mean(1))


@pytest.mark.parametrize("target", [0.1, 0.5, 0.99])
def test_the_bound_that_spares_solutions_closes_no_open_hinge(target: float) -> None:
    step = step_of(networks(1, 4, gain=1.5), batch=30, length=8, target=target)
    drawn = sample_states(step, 200)
    operator = NOISES["unit"].operator(cells.linearise(step.parameters, *drawn), 0.2)
    perhaps, broken = lifted._perhaps_open(operator, target)
    above = spectral.spectral_radius(operator) > target
    assert not (above & ~perhaps).any()
    assert not broken.any()
    spared = float((~perhaps).double().sum() / (~above).double().sum().clamp_min(1))
    assert spared > 0.5 or bool(above.all())


# ---- gradients


@every_arm
@every_noise
@every_cell
def test_gradients_reach_the_weights_through_jacobians_and_states(
    name: str, noise: str, cell: str
) -> None:
    hidden = 2 if cell == "lstm" else 3
    parameters = networks(1, hidden, cell=cell, gain=2.0).require_grad()
    inputs = normal(4, 1, 1, 2)

    def penalty(*tensors: Tensor) -> Tensor:
        own = Parameters(*tensors, cell=cell)
        step = step_of(own, noise=noise, sigma=0.5, target=OPEN, inputs=inputs)
        return penalty_of(name, step).value

    assert float(penalty(*parameters).detach()) > 0
    assert torch.autograd.gradcheck(penalty, tuple(parameters), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ["lifted_radius", "moment_growth", "moment_growth_closed"])
def test_a_closed_hinge_has_exactly_no_gradient(name: str) -> None:
    parameters = networks(3, 6).require_grad()
    penalty = penalty_of(name, step_of(parameters, target=1e3))
    assert torch.equal(penalty.value.detach(), torch.zeros(3).double())
    assert torch.equal(penalty.active, torch.zeros(3).double())
    if penalty.value.requires_grad:
        for gradient in gradients(parameters, penalty.value):
            assert not gradient.any()


@every_arm
@every_noise
def test_single_precision_is_enough(name: str, noise: str) -> None:
    found = []
    for dtype in (torch.float64, torch.float32):
        parameters = networks(3, 16, gain=2.0, dtype=dtype).require_grad()
        step = step_of(parameters, noise=noise, target=OPEN, length=12)
        penalty = penalty_of(name, step).value
        assert penalty.dtype == dtype
        found.append([penalty.double(), *(g.double() for g in gradients(parameters, penalty))])
    for double, single in zip(*found, strict=True):
        assert (single - double).abs().max() <= 2e-5 * double.abs().max()


# ---- company


def found_alone_and_together(
    name: str, parameters: Parameters, step: Callable[[Parameters], Step]
) -> None:
    together = parameters.require_grad()
    whole = step(together)
    penalty = penalty_of(name, whole)
    whole_gradients = gradients(together, penalty.value)
    models = len(parameters.weight_hh)
    # A model of its own is trained with a copy, see `training.train`.
    for chosen in [[0, 0], [2, 1], list(range(1, models))]:
        own = parameters.select(chosen).require_grad()
        alone = penalty_of(name, of_models(whole, own, chosen))
        assert torch.equal(alone.value, penalty.value[chosen])
        assert torch.equal(alone.active, penalty.active[chosen])
        for one, all_of_them in zip(gradients(own, alone.value), whole_gradients, strict=True):
            assert torch.equal(one, all_of_them[chosen])


@every_arm
@every_noise
@pytest.mark.parametrize("hidden", [5, 8, 32])
def test_a_models_numbers_do_not_depend_on_the_others(name: str, noise: str, hidden: int) -> None:
    parameters = networks(7, hidden, gain=2.0, dtype=torch.float32)
    found_alone_and_together(
        name, parameters, lambda own: step_of(own, noise=noise, sigma=0.3, target=0.3)
    )


@every_arm
@every_noise
@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
def test_a_diverged_model_stays_so_and_alone(name: str, noise: str, broken: float) -> None:
    parameters = networks(3, 6, gain=2.2, dtype=torch.float32)
    clean = penalty_of(name, step_of(parameters, noise=noise, target=OPEN))
    parameters.weight_hh[1, 0, 0] = broken
    if not math.isnan(broken):
        # Gates saturate rather than break, so that the readout must too.
        parameters.weight_out[1] = broken
        parameters.bias_ih[1] = torch.nan
    parameters = parameters.require_grad()
    penalty = penalty_of(name, step_of(parameters, noise=noise, target=OPEN))
    assert torch.equal(penalty.value[[0, 2]], clean.value[[0, 2]])
    assert torch.isnan(penalty.value[1])
    for gradient in gradients(parameters, penalty.value):
        assert torch.isfinite(gradient[[0, 2]]).all()


@every_arm
@every_noise
def test_a_saturated_model_has_a_finite_penalty_without_gradient(name: str, noise: str) -> None:
    """Its slopes are zero and so is its Jacobian, of which the logarithm is minus infinity."""
    parameters = networks(2, 3, cell="rnn", gain=2.0)
    parameters.bias_hh[0] = 1e3
    parameters = parameters.require_grad()
    penalty = penalty_of(name, step_of(parameters, noise=noise, target=OPEN))
    assert penalty.value[0] == 0 < penalty.value[1]
    for gradient in gradients(parameters, penalty.value):
        assert not gradient[0].any()
        assert gradient[1].isfinite().all()


def test_a_defective_radius_is_left_out() -> None:
    """At rest and without noise on it, J is a Jordan block, whose radius has no gradient."""
    parameters = networks(2, 2, cell="rnn", gain=2.0)
    for tensor in (parameters.bias_hh, parameters.bias_ih, parameters.weight_ih):
        tensor[0] = 0
    parameters.weight_hh[0] = torch.tensor([[0.5, 1.0], [0.0, 0.5]])
    parameters = parameters.require_grad()
    penalty = penalty_of("lifted_radius", step_of(parameters, sigma=0.0, target=0.01))
    assert penalty.active.tolist() == [0, 1]
    for gradient in gradients(parameters, penalty.value):
        assert gradient.isfinite().all()
        assert not gradient[0].any()


def test_quick_eigenmatrices_are_the_usual_ones_or_not_a_number() -> None:
    parameters = networks(4, 5, gain=2.0)
    step = cells.linearise(parameters, torch.tanh(normal(4, 5, 1)), normal(4, 1, 1))
    operator = NOISES["unit"].operator(step, 0.3)
    flat = operator._replace(
        jacobian=operator.jacobian[:, 0].clone(),
        directions=operator.directions[:, 0].clone(),
        weights=operator.weights,
    )
    expected = spectral.eigenmatrices(flat)
    flat.jacobian[2, 0, 0] = torch.nan
    found = spectral.quick_eigenmatrices(flat)
    for new, old in zip(found, expected, strict=True):
        torch.testing.assert_close(new[[0, 1, 3]], old[[0, 1, 3]], rtol=0, atol=1e-12)
        assert torch.isnan(new[2]).all()


# ---- lazy evaluation


def test_costly_penalties_are_evaluated_now_and_then() -> None:
    @lazily(4)
    def one(step: Step) -> Penalty:
        calls.append(1)
        return Penalty(torch.ones(2), torch.tensor([0.0, 1.0]))

    calls: list[int] = []
    step = step_of(networks(2, 3))
    values = []
    for _ in range(3 * 4):
        penalty = one(step)
        values.append(penalty.value)
        assert penalty.active.tolist() == [0, 1]
    assert len(calls) == 3
    assert torch.equal(torch.stack(values).mean(0), torch.ones(2))
    assert values[0][0] == 4
    assert one(step).value[0] == 4
    assert one.__name__ == "one"


def test_the_arms_are_registered() -> None:
    for name in ARMS:
        assert isinstance(arms.find(name), Arm)
