import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from plain import jacobian, modules, networks, normal, step, weights
from torch import Tensor

from msstab import cells
from msstab.cells import Parameters

SHAPES = [(1, 1, 1, 1, 1), (3, 5, 2, 2, 7), (2, 32, 1, 1, 16), (4, 8, 3, 1, 33)]
"""Models, hidden units, inputs, outputs, sequences."""


def assert_close(found: Tensor, expected: Tensor, tolerance: float = 1e-12) -> None:
    assert found.shape == expected.shape
    assert float((found - expected).detach().abs().max()) <= tolerance


# ---- whole sequences


@pytest.mark.parametrize(("models", "hidden", "n_inputs", "n_outputs", "batch"), SHAPES)
def test_states_outputs_and_gradients_are_those_of_torch(
    models: int, hidden: int, n_inputs: int, n_outputs: int, batch: int
) -> None:
    parameters = networks(models, hidden, n_inputs, n_outputs, gain=2.0).require_grad()
    inputs = normal(9, models, n_inputs, batch)
    states, outputs = cells.run(parameters, inputs)
    state_weight, output_weight = normal(*states.shape, seed=1), normal(*outputs.shape, seed=2)
    loss = (state_weight * states).sum() + (output_weight * outputs).sum()
    gradients = torch.autograd.grad(loss, list(parameters))
    for model in range(models):
        gru, linear = modules(parameters, model)
        own_states, _ = gru(inputs[:, model].transpose(1, 2))
        own_outputs = linear(own_states[-1])
        assert_close(states[:, model].transpose(1, 2), own_states)
        assert_close(outputs[model].T, own_outputs)
        own_loss = (state_weight[:, model].transpose(1, 2) * own_states).sum()
        own_loss = own_loss + (output_weight[model].T * own_outputs).sum()
        own_gradients = torch.autograd.grad(own_loss, weights(gru, linear))
        for gradient, expected in zip(gradients, own_gradients, strict=True):
            scale = max(1.0, float(expected.abs().max()))
            assert_close(gradient[model], expected, 1e-12 * scale)


@pytest.mark.parametrize("hidden", [2, 3])
def test_gradients_match_finite_differences(hidden: int) -> None:
    parameters = networks(2, hidden, 2, 2, gain=2.0).require_grad()
    inputs = normal(4, 2, 2, 3)

    def sequence(*tensors: Tensor) -> tuple[Tensor, Tensor]:
        return cells.run(Parameters(*tensors), inputs)

    assert torch.autograd.gradcheck(sequence, tuple(parameters))


def test_saturated_gates_stay_exact() -> None:
    parameters = networks(2, 4, gain=300.0)
    inputs = normal(12, 2, 1, 5)
    states, _ = cells.run(parameters, inputs)
    for model in range(2):
        expected, _ = modules(parameters, model)[0](inputs[:, model].transpose(1, 2))
        assert_close(states[:, model].transpose(1, 2), expected)


@pytest.mark.parametrize("hidden", [4, 5])
def test_steps_add_up_to_the_sequence(hidden: int) -> None:
    parameters = networks(3, hidden, 2)
    inputs = normal(7, 3, 2, 5)
    states, outputs = cells.run(parameters, inputs)
    state = torch.zeros(3, hidden, 5, dtype=torch.float64)
    for x, after in zip(inputs, states, strict=True):
        state = cells.step(parameters, state, x)
        assert_close(state, after, 1e-14)
    assert_close(cells.readout(parameters, state), outputs, 1e-14)


def test_a_step_from_any_state_is_torchs() -> None:
    parameters = networks(2, 6, 2, gain=3.0)
    state, inputs = normal(2, 6, 4), normal(2, 2, 4, seed=1)
    after = cells.step(parameters, state, inputs)
    for m in range(2):
        for b in range(4):
            assert_close(after[m, :, b], step(parameters, m, state[m, :, b], inputs[m, :, b]))


@pytest.mark.parametrize(("hidden", "unit"), [(4, 16), (32, 16), (5, 32)])
def test_padding_does_not_show(hidden: int, unit: int) -> None:
    parameters = networks(2, hidden).require_grad()
    inputs = normal(6, 2, 1, unit)
    whole, whole_outputs = cells.run(parameters, inputs)
    states, outputs = cells.run(parameters, inputs[..., :3])
    # The same memory layout and the same numbers, to the bit, whatever fills the other columns.
    assert states.shape == (6, 2, hidden, 3)
    assert torch.equal(states, whole[..., :3])
    assert torch.equal(outputs, whole_outputs[..., :3])
    some = torch.autograd.grad(outputs.sum(), list(parameters))
    masked = (whole_outputs * (torch.arange(unit) < 3)).sum()
    for gradient, expected in zip(some, torch.autograd.grad(masked, list(parameters)), strict=True):
        assert_close(gradient, expected)


@pytest.mark.parametrize(
    ("batch", "hidden", "expected"),
    [(1, 4, 16), (16, 4, 16), (17, 4, 32), (1, 5, 32), (33, 5, 64), (48, 32, 48)],
)
def test_batches_are_filled_up_to_whole_vectors(batch: int, hidden: int, expected: int) -> None:
    assert cells.padded(batch, hidden) == expected
    filled = cells.pad(torch.ones(2, batch), hidden)
    assert filled.shape == (2, expected)
    assert float(filled.sum()) == 2 * batch
    assert filled.is_contiguous()


# ---- the workspace


def test_a_workspace_changes_no_number() -> None:
    parameters = networks(2, 4).require_grad()
    space = cells.Workspace(6, parameters, 16)
    for seed in range(3):
        inputs = normal(6, 2, 1, 9, seed=seed)
        fresh, _ = cells.run(parameters, inputs)
        states, _ = cells.run(parameters, inputs, space)
        assert torch.equal(states, fresh)
        for gradient, expected in zip(
            torch.autograd.grad(states.square().sum(), list(parameters)[:4]),
            torch.autograd.grad(fresh.square().sum(), list(parameters)[:4]),
            strict=True,
        ):
            assert torch.equal(gradient, expected)


def test_a_pass_overwritten_by_a_later_one_cannot_be_differentiated() -> None:
    parameters = networks(1, 4).require_grad()
    space = cells.Workspace(6, parameters, 16)
    _, early = cells.run(parameters, normal(6, 1, 1, 3), space)
    _, late = cells.run(parameters, normal(6, 1, 1, 3, seed=1), space)
    with pytest.raises(RuntimeError, match="overwritten"):
        early.sum().backward()  # type: ignore[no-untyped-call]
    late.sum().backward()  # type: ignore[no-untyped-call]
    assert parameters.weight_hh.grad is not None


def test_earlier_states_survive_a_later_pass() -> None:
    parameters = networks(1, 4)
    space = cells.Workspace(6, parameters, 16)
    states, outputs = cells.run(parameters, normal(6, 1, 1, 3), space)
    before = states.clone(), outputs.clone()
    cells.run(parameters, normal(6, 1, 1, 3, seed=1), space)
    assert torch.equal(states, before[0])
    assert torch.equal(outputs, before[1])


# ---- Jacobians


@pytest.mark.parametrize("gain", [1.0, 2.2, 10.0])
@pytest.mark.parametrize(("hidden", "batch"), [(1, 1), (5, 4), (16, 3)])
def test_jacobians_are_those_of_automatic_differentiation(
    gain: float, hidden: int, batch: int
) -> None:
    for seed in range(3):
        parameters = networks(2, hidden, 2, gain=gain, seed=seed)
        state, inputs = normal(2, hidden, batch, seed=seed), normal(2, 2, batch, seed=seed + 9)
        found = cells.jacobian(parameters, state, inputs)
        assert found.shape == (2, batch, hidden, hidden)
        for m in range(2):
            for b in range(batch):
                expected = jacobian(parameters, m, state[m, :, b], inputs[m, :, b])
                assert_close(found[m, b], expected)


@pytest.mark.parametrize("gain", [1.0, 2.2, 10.0])
@pytest.mark.parametrize(("hidden", "batch"), [(1, 1), (5, 4), (16, 3)])
def test_a_linearised_step_has_the_derivatives_of_automatic_differentiation(
    gain: float, hidden: int, batch: int
) -> None:
    parameters = networks(2, hidden, 2, gain=gain)
    state, inputs = normal(2, hidden, batch), normal(2, 2, batch, seed=9)
    found = cells.linearise(parameters, state, inputs)
    assert torch.equal(found.jacobian, cells.jacobian(parameters, state, inputs))
    assert torch.equal(found.entry, found.jacobian)
    assert torch.equal(found.weight[:, 0], parameters.weight_hh)
    for m in range(2):
        own = parameters.select([m])
        for b in range(batch):
            h, x = state[m, :, b], inputs[m, :, b]

            def moved(error: Tensor, m: int = m, h: Tensor = h, x: Tensor = x) -> Tensor:
                changed = parameters._replace(bias_hh=parameters.bias_hh + error)
                return step(changed, m, h, x)

            by_bias = torch.func.jacrev(moved)(torch.zeros(3 * hidden, dtype=h.dtype))
            assert_close(found.recurrent[m, b], by_bias)
            by_inputs = torch.func.jacrev(lambda x, own=own, h=h: step(own, 0, h, x))(x)
            assert_close(found.inputs[m, b], by_inputs)


def test_a_disturbance_adds_to_the_recurrent_pre_activations() -> None:
    parameters, state, inputs = networks(2, 4, 2, gain=2.0), normal(2, 4, 16), normal(2, 2, 16)
    disturbance = normal(2, 12, 16, seed=1)
    found = cells.step(parameters, state, inputs, disturbance)
    for m in range(2):
        for b in range(16):
            biased = parameters._replace(bias_hh=parameters.bias_hh + disturbance[:, :, b])
            assert_close(found[m, :, b], step(biased, m, state[m, :, b], inputs[m, :, b]))
    nothing = cells.step(parameters, state, inputs, torch.zeros_like(disturbance))
    assert torch.equal(nothing, cells.step(parameters, state, inputs))


def test_jacobians_are_differentiable_in_weights_and_state() -> None:
    parameters = networks(1, 3, gain=2.0).require_grad()
    state, inputs = normal(1, 3, 2).requires_grad_(), normal(1, 1, 2)

    def of(state: Tensor, *tensors: Tensor) -> Tensor:
        return cells.jacobian(Parameters(*tensors), state, inputs)

    assert torch.autograd.gradcheck(of, (state, *parameters))


# ---- initial weights


@pytest.mark.parametrize("gain", [1.0, 2.2])
def test_initial_weights_are_uniform_within_torchs_bounds(gain: float) -> None:
    hidden = 25
    bound = gain / math.sqrt(hidden)
    parameters = networks(8, hidden, 2, 3, gain=gain)
    shapes = [tuple(tensor.shape) for tensor in parameters]
    assert shapes == [(8, 75, 2), (8, 75, 25), (8, 75), (8, 75), (8, 3, 25), (8, 3)]
    for tensor in parameters:
        assert float(tensor.abs().max()) <= bound
    weight = parameters.weight_hh
    assert float(weight.abs().max()) > 0.99 * bound
    # 15 000 uniform numbers: their mean square is bound^2 / 3 within 5 deviations.
    assert float(weight.square().mean()) == pytest.approx(bound**2 / 3, rel=0.04)
    assert abs(float(weight.mean())) < 5 * bound / math.sqrt(3 * weight.numel())


def test_initial_weights_depend_on_the_models_own_stream_alone() -> None:
    three, one = networks(3, 6), networks(1, 6)
    assert all(torch.equal(a[:1], b) for a, b in zip(three, one, strict=True))
    assert not torch.equal(three.weight_hh[0], three.weight_hh[1])
    assert not torch.equal(three.weight_ih[0, :, 0], three.bias_ih[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_initial_weights_come_in_the_precision_asked_for(dtype: torch.dtype) -> None:
    rounded = networks(1, 6, dtype=dtype).weight_hh
    assert rounded.dtype == dtype
    assert torch.equal(rounded, networks(1, 6).weight_hh.to(dtype))


@pytest.mark.parametrize("choose", [lambda p: p.select([2, 0]), lambda p: p.select(slice(0, 1))])
def test_selected_models_keep_their_numbers(choose: Callable[[Parameters], Parameters]) -> None:
    parameters = networks(3, 4)
    chosen = choose(parameters)
    first = 2 if len(chosen.bias_out) == 2 else 0
    assert all(np.array_equal(a[0], b[first]) for a, b in zip(chosen, parameters, strict=True))
