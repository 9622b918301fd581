import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from plain import jacobian, modules, networks, normal, states, step, weights
from torch import Tensor

from msstab import cells
from msstab.cells import Parameters

SHAPES = [(1, 1, 1, 1, 1), (3, 5, 2, 2, 7), (2, 32, 1, 1, 16), (4, 8, 3, 1, 33)]
"""Models, hidden units, inputs, outputs, sequences."""

every_cell = pytest.mark.parametrize("cell", cells.CELLS)
every_network = pytest.mark.parametrize(
    ("cell", "layers"), [(cell, layers) for cell in cells.CELLS for layers in (1, 2, 3)]
)


def assert_close(found: Tensor, expected: Tensor, tolerance: float = 1e-12) -> None:
    assert found.shape == expected.shape
    assert float((found - expected).detach().abs().max()) <= tolerance


def biased(parameters: Parameters, errors: Tensor) -> Parameters:
    """Add errors (..., LGH), the top layer's first, to the layers' recurrent biases."""
    own = dict(cells.named(parameters))
    for k, error in enumerate(errors.chunk(parameters.layers, dim=-1)[::-1]):
        name = f"bias_hh_l{k}" if k else "bias_hh"
        own[name] = own[name] + error
    return parameters.like(own.values())


# ---- whole sequences


@every_network
@pytest.mark.parametrize(("models", "hidden", "n_inputs", "n_outputs", "batch"), SHAPES)
def test_states_outputs_and_gradients_are_those_of_torch(
    cell: str, layers: int, models: int, hidden: int, n_inputs: int, n_outputs: int, batch: int
) -> None:
    parameters = networks(
        models, hidden, n_inputs, n_outputs, cell=cell, layers=layers, gain=2.0
    ).require_grad()
    inputs = normal(9, models, n_inputs, batch)
    found, outputs = cells.run(parameters, inputs)
    state_weight, output_weight = normal(*found.shape, seed=1), normal(*outputs.shape, seed=2)
    loss = (state_weight * found).sum() + (output_weight * outputs).sum()
    gradients = torch.autograd.grad(loss, list(parameters))
    for model in range(models):
        recurrent, linear = modules(parameters, model)
        own_states = states(recurrent, inputs[:, model].transpose(1, 2))
        shown, _ = recurrent(inputs[:, model].transpose(1, 2))
        own_outputs = linear(shown[-1])
        assert_close(found[:, model].transpose(1, 2), own_states)
        assert_close(found[:, model, :hidden].transpose(1, 2), shown)
        assert_close(outputs[model].T, own_outputs)
        own_loss = (state_weight[:, model].transpose(1, 2) * own_states).sum()
        own_loss = own_loss + (output_weight[model].T * own_outputs).sum()
        own_gradients = torch.autograd.grad(own_loss, weights(recurrent, linear))
        for gradient, expected in zip(gradients, own_gradients, strict=True):
            scale = max(1.0, float(expected.abs().max()))
            assert_close(gradient[model], expected, 1e-12 * scale)


@every_network
@pytest.mark.parametrize("hidden", [2, 3])
def test_gradients_match_finite_differences(cell: str, layers: int, hidden: int) -> None:
    parameters = networks(2, hidden, 2, 2, cell=cell, layers=layers, gain=2.0).require_grad()
    inputs = normal(4, 2, 2, 3)

    def sequence(*tensors: Tensor) -> tuple[Tensor, Tensor]:
        return cells.run(parameters.like(tensors), inputs)

    assert torch.autograd.gradcheck(sequence, tuple(parameters))


@every_cell
def test_saturated_gates_stay_exact(cell: str) -> None:
    # Large recurrent weights would be chaotic: they make last bits as large as the state.
    parameters = networks(2, 4, cell=cell)
    parameters.weight_ih.mul_(1000)
    inputs = normal(12, 2, 1, 5)
    found, _ = cells.run(parameters, inputs)
    for model in range(2):
        expected = states(modules(parameters, model)[0], inputs[:, model].transpose(1, 2))
        assert_close(found[:, model].transpose(1, 2), expected.detach())


@every_network
@pytest.mark.parametrize("hidden", [4, 5])
def test_steps_add_up_to_the_sequence(cell: str, layers: int, hidden: int) -> None:
    parameters = networks(3, hidden, 2, cell=cell, layers=layers)
    inputs = normal(7, 3, 2, 5)
    found, outputs = cells.run(parameters, inputs)
    state = torch.zeros(3, parameters.state_size, 5, dtype=torch.float64)
    for x, after in zip(inputs, found, strict=True):
        state = cells.step(parameters, state, x)
        assert_close(state, after, 1e-14)
    assert_close(cells.readout(parameters, state), outputs, 1e-14)


@every_network
def test_a_step_from_any_state_is_torchs(cell: str, layers: int) -> None:
    parameters = networks(2, 6, 2, cell=cell, layers=layers, gain=3.0)
    state, inputs = normal(2, parameters.state_size, 4), normal(2, 2, 4, seed=1)
    after = cells.step(parameters, state, inputs)
    for m in range(2):
        for b in range(4):
            assert_close(after[m, :, b], step(parameters, m, state[m, :, b], inputs[m, :, b]))


@every_network
@pytest.mark.parametrize(("hidden", "unit"), [(4, 16), (32, 16), (5, 32)])
def test_padding_does_not_show(cell: str, layers: int, hidden: int, unit: int) -> None:
    parameters = networks(2, hidden, cell=cell, layers=layers).require_grad()
    inputs = normal(6, 2, 1, unit)
    whole, whole_outputs = cells.run(parameters, inputs)
    found, outputs = cells.run(parameters, inputs[..., :3])
    # The same memory layout and the same numbers, to the bit, whatever fills the other columns.
    assert found.shape == (6, 2, parameters.state_size, 3)
    assert torch.equal(found, whole[..., :3])
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


# ---- factors on the states


def stepwise(parameters: Parameters, inputs: Tensor, factors: Tensor) -> tuple[Tensor, Tensor]:
    """A sequence step by step by automatic differentiation, each state multiplied before it."""
    state = torch.zeros_like(factors[0])
    seen = []
    for x, factor in zip(inputs, factors, strict=True):
        state = cells.step(parameters, factor * state, x)
        seen.append(state)
    return torch.stack(seen), cells.readout(parameters, state)


def factors_of(parameters: Parameters, inputs: Tensor) -> Tensor:
    length, models, _, batch = inputs.shape
    return 1 + 0.5 * normal(length, models, parameters.state_size, batch, seed=3)


@every_cell
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(("models", "hidden", "n_inputs", "n_outputs", "batch"), SHAPES)
def test_factors_multiply_the_states_before_each_step(
    cell: str, models: int, hidden: int, n_inputs: int, n_outputs: int, batch: int, layers: int
) -> None:
    parameters = networks(
        models, hidden, n_inputs, n_outputs, cell=cell, layers=layers, gain=2.0
    ).require_grad()
    inputs = normal(7, models, n_inputs, batch)
    factors = factors_of(parameters, inputs)
    found, outputs = cells.run(parameters, inputs, None, factors)
    own_states, own_outputs = stepwise(parameters, inputs, factors)
    assert_close(found, own_states)
    assert_close(outputs, own_outputs)
    state_weight, output_weight = normal(*found.shape, seed=1), normal(*outputs.shape, seed=2)

    def gradients(run: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        loss = (state_weight * run[0]).sum() + (output_weight * run[1]).sum()
        return torch.autograd.grad(loss, list(parameters))

    expected = gradients((own_states, own_outputs))
    for gradient, own in zip(gradients((found, outputs)), expected, strict=True):
        assert_close(gradient, own, 1e-12 * max(1.0, float(own.abs().max())))


@every_cell
def test_gradients_under_factors_match_finite_differences(cell: str) -> None:
    parameters = networks(2, 2, 2, 2, cell=cell, gain=2.0).require_grad()
    inputs = normal(4, 2, 2, 3)
    factors = factors_of(parameters, inputs)

    def sequence(*tensors: Tensor) -> tuple[Tensor, Tensor]:
        return cells.run(parameters.like(tensors), inputs, None, factors)

    assert torch.autograd.gradcheck(sequence, tuple(parameters))


@every_cell
def test_factors_of_one_change_no_number_and_leave_nothing_behind(cell: str) -> None:
    parameters = networks(2, 4, cell=cell).require_grad()
    space = cells.workspace(6, parameters, 16)
    inputs = normal(6, 2, 1, 9)
    others = factors_of(parameters, inputs)
    expected = numbers_of(parameters, cells.run(parameters, inputs))
    for factors in (torch.ones_like(others), others, None):
        found = numbers_of(parameters, cells.run(parameters, inputs, space, factors))
        same = [torch.equal(a, b) for a, b in zip(found, expected, strict=True)]
        assert all(same) if factors is not others else not any(same[:4])


@every_cell
def test_the_first_factors_meet_a_state_of_zeros(cell: str) -> None:
    parameters = networks(2, 4, cell=cell)
    inputs = normal(6, 2, 1, 9)
    factors = factors_of(parameters, inputs)
    expected, _ = cells.run(parameters, inputs, None, factors)
    factors[0] = -7
    assert torch.equal(cells.run(parameters, inputs, None, factors)[0], expected)


def numbers_of(parameters: Parameters, run: tuple[Tensor, Tensor]) -> list[Tensor]:
    """A run's states, outputs and gradients."""
    states, outputs = run
    loss = states.square().sum() + outputs.sum()
    return [states, outputs, *torch.autograd.grad(loss, list(parameters)[:4])]


# ---- the workspace


@every_network
def test_a_workspace_changes_no_number(cell: str, layers: int) -> None:
    parameters = networks(2, 4, cell=cell, layers=layers).require_grad()
    space = cells.workspace(6, parameters, 16)
    for seed in range(3):
        inputs = normal(6, 2, 1, 9, seed=seed)
        fresh, _ = cells.run(parameters, inputs)
        found, _ = cells.run(parameters, inputs, space)
        assert torch.equal(found, fresh)
        for gradient, expected in zip(
            torch.autograd.grad(found.square().sum(), list(parameters)[:4]),
            torch.autograd.grad(fresh.square().sum(), list(parameters)[:4]),
            strict=True,
        ):
            assert torch.equal(gradient, expected)


@every_network
def test_a_forecast_is_the_run_without_its_states(cell: str, layers: int) -> None:
    parameters = networks(2, 5, 2, 3, cell=cell, layers=layers).require_grad()
    space = cells.workspace(6, parameters, 32)
    for seed in range(2):
        inputs = normal(6, 2, 2, 9, seed=seed)
        _, expected = cells.run(parameters, inputs)
        for found in (
            cells.forecast(parameters, inputs),
            cells.forecast(parameters, inputs, space),
        ):
            assert torch.equal(found, expected)
            for gradient, own in zip(
                torch.autograd.grad(found.square().sum(), list(parameters)),
                torch.autograd.grad(expected.square().sum(), list(parameters), retain_graph=True),
                strict=True,
            ):
                assert torch.equal(gradient, own)


@every_network
@pytest.mark.parametrize("disturbed", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 6])
def test_several_outputs_are_the_readouts_of_the_last_states(
    cell: str, layers: int, disturbed: bool, steps: int
) -> None:
    parameters = networks(2, 5, 2, 3, cell=cell, layers=layers).require_grad()
    inputs = normal(6, 2, 2, 9)
    factors = factors_of(parameters, inputs) if disturbed else None
    states, outputs = cells.run(parameters, inputs, None, factors, steps)
    forecast = cells.forecast(parameters, inputs, None, factors, steps)
    expected = torch.cat([cells.readout(parameters, state) for state in states[-steps:]], dim=1)
    assert cells.output_steps(parameters, outputs) == steps
    weight = normal(*expected.shape, seed=3)
    own = torch.autograd.grad((weight * expected).sum(), list(parameters), retain_graph=True)
    for found in (outputs, forecast):
        assert_close(found, expected)
        for gradient, oracle in zip(
            torch.autograd.grad((weight * found).sum(), list(parameters)), own, strict=True
        ):
            assert_close(gradient, oracle, 1e-12 * max(1.0, float(oracle.abs().max())))


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("later", [cells.run, cells.forecast])
def test_a_pass_overwritten_by_a_later_one_cannot_be_differentiated(
    layers: int, later: Callable[..., object]
) -> None:
    parameters = networks(1, 4, layers=layers).require_grad()
    space = cells.workspace(6, parameters, 16)
    _, early = cells.run(parameters, normal(6, 1, 1, 3), space)
    later(parameters, normal(6, 1, 1, 3, seed=1), space)
    with pytest.raises(RuntimeError, match="overwritten"):
        early.sum().backward()  # type: ignore[no-untyped-call]
    _, late = cells.run(parameters, normal(6, 1, 1, 3, seed=1), space)
    late.sum().backward()  # type: ignore[no-untyped-call]
    assert parameters.weight_hh.grad is not None


def test_a_workspace_for_other_layers_is_refused() -> None:
    two, inputs = networks(1, 4, layers=2), normal(6, 1, 1, 3)
    for layers in (1, 3):
        space = cells.workspace(6, networks(1, 4, layers=layers), 16)
        with pytest.raises(ValueError, match=f"a workspace of {layers} layers for 2"):
            cells.run(two, inputs, space)


@every_network
def test_earlier_states_survive_a_later_pass(cell: str, layers: int) -> None:
    parameters = networks(1, 4, cell=cell, layers=layers)
    space = cells.workspace(6, parameters, 16)
    found, outputs = cells.run(parameters, normal(6, 1, 1, 3), space)
    before = found.clone(), outputs.clone()
    cells.run(parameters, normal(6, 1, 1, 3, seed=1), space)
    assert torch.equal(found, before[0])
    assert torch.equal(outputs, before[1])


# ---- Jacobians


@every_network
@pytest.mark.parametrize("gain", [1.0, 2.2, 10.0])
@pytest.mark.parametrize(("hidden", "batch"), [(1, 1), (5, 4), (16, 3)])
def test_jacobians_are_those_of_automatic_differentiation(
    cell: str, layers: int, gain: float, hidden: int, batch: int
) -> None:
    for seed in range(3):
        parameters = networks(2, hidden, 2, cell=cell, layers=layers, gain=gain, seed=seed)
        size = parameters.state_size
        state, inputs = normal(2, size, batch, seed=seed), normal(2, 2, batch, seed=seed + 9)
        found = cells.jacobian(parameters, state, inputs)
        assert found.shape == (2, batch, size, size)
        for m in range(2):
            for b in range(batch):
                expected = jacobian(parameters, m, state[m, :, b], inputs[m, :, b])
                assert_close(found[m, b], expected)


@every_network
@pytest.mark.parametrize("gain", [1.0, 2.2, 10.0])
@pytest.mark.parametrize(("hidden", "batch"), [(1, 1), (5, 4), (16, 3)])
def test_a_linearised_step_has_the_derivatives_of_automatic_differentiation(
    cell: str, layers: int, gain: float, hidden: int, batch: int
) -> None:
    parameters = networks(2, hidden, 2, cell=cell, layers=layers, gain=gain)
    state, inputs = normal(2, parameters.state_size, batch), normal(2, 2, batch, seed=9)
    found = cells.linearise(parameters, state, inputs)
    assert torch.equal(found.jacobian, cells.jacobian(parameters, state, inputs))
    assert torch.equal(found.entry, found.jacobian)
    for m in range(2):
        own = parameters.select([m])
        expected = torch.zeros_like(found.weight[m, 0])
        for k, name in enumerate(reversed(["weight_hh", "weight_hh_l1", "weight_hh_l2"][:layers])):
            weight = cells.named(parameters)[name]
            assert torch.equal(parameters.recurrent[k], weight)
            rows = slice(k * weight.shape[1], (k + 1) * weight.shape[1])
            expected[rows, k * hidden : (k + 1) * hidden] = weight[m]
        assert torch.equal(found.weight[m, 0], expected)
        for b in range(batch):
            h, x = state[m, :, b], inputs[m, :, b]

            def moved(error: Tensor, own: Parameters = own, h: Tensor = h, x: Tensor = x) -> Tensor:
                return step(biased(own, error), 0, h, x)

            by_bias = torch.func.jacrev(moved)(h.new_zeros(found.recurrent.shape[-1]))
            assert_close(found.recurrent[m, b], by_bias)
            by_inputs = torch.func.jacrev(lambda x, own=own, h=h: step(own, 0, h, x))(x)
            assert_close(found.inputs[m, b], by_inputs)


@every_network
def test_a_disturbance_adds_to_the_recurrent_pre_activations(cell: str, layers: int) -> None:
    parameters = networks(2, 4, 2, cell=cell, layers=layers, gain=2.0)
    state, inputs = normal(2, parameters.state_size, 16), normal(2, 2, 16)
    disturbance = normal(2, layers * parameters.weight_hh.shape[1], 16, seed=1)
    found = cells.step(parameters, state, inputs, disturbance)
    for b in range(16):
        other = biased(parameters, disturbance[:, :, b])
        for m in range(2):
            assert_close(found[m, :, b], step(other, m, state[m, :, b], inputs[m, :, b]))
    nothing = cells.step(parameters, state, inputs, torch.zeros_like(disturbance))
    assert torch.equal(nothing, cells.step(parameters, state, inputs))


@every_network
def test_jacobians_are_differentiable_in_weights_and_state(cell: str, layers: int) -> None:
    parameters = networks(1, 4 - layers, cell=cell, layers=layers, gain=2.0).require_grad()
    state, inputs = normal(1, parameters.state_size, 2).requires_grad_(), normal(1, 1, 2)

    def of(state: Tensor, *tensors: Tensor) -> Tensor:
        return cells.jacobian(parameters.like(tensors), state, inputs)

    assert torch.autograd.gradcheck(of, (state, *parameters))


# ---- initial weights


@pytest.mark.parametrize(("cell", "gates"), [("gru", 3), ("lstm", 4), ("rnn", 1)])
def test_initial_weights_have_torchs_shapes(cell: str, gates: int) -> None:
    parameters = networks(2, 5, 2, 3, cell=cell)
    shapes = [tuple(tensor[0].shape) for tensor in parameters]
    rows = gates * 5
    assert shapes == [(rows, 2), (rows, 5), (rows,), (rows,), (3, 5), (3,)]
    assert shapes == [tuple(tensor.shape) for tensor in weights(*modules(parameters))]


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
@every_network
def test_selected_models_keep_their_numbers(
    cell: str, layers: int, choose: Callable[[Parameters], Parameters]
) -> None:
    parameters = networks(3, 4, cell=cell, layers=layers)
    chosen = choose(parameters)
    assert chosen.cell == cell
    first = 2 if len(chosen.bias_out) == 2 else 0
    assert all(np.array_equal(a[0], b[first]) for a, b in zip(chosen, parameters, strict=True))


@pytest.mark.parametrize("hidden", [1, 4])
def test_weights_of_another_cell_are_refused(hidden: int) -> None:
    gru = networks(2, hidden)
    with pytest.raises(ValueError, match=rf"{2 * hidden} rows are not the 3 x {hidden} of gru"):
        gru.like([gru.weight_ih, gru.weight_hh[:, hidden:], *list(gru)[2:]])


# ---- layers


@every_network
def test_gradients_reach_the_inputs(cell: str, layers: int) -> None:
    parameters = networks(2, 3, 2, 2, cell=cell, layers=layers, gain=2.0)
    inputs = normal(4, 2, 2, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda inputs: cells.run(parameters, inputs), (inputs,))


@every_cell
def test_a_stack_is_one_layer_on_the_hidden_units_of_another(cell: str) -> None:
    both, inputs = networks(2, 4, 2, 3, cell=cell, layers=2), normal(6, 2, 2, 5)
    found, outputs = cells.run(both, inputs)
    below, _ = cells.run(both.layer(0), inputs)
    above, expected = cells.run(both.layer(1), below[:, :, :4])
    assert torch.equal(outputs, expected)
    # Hidden units before memory, the upper layer's before the lower's.
    parts = [
        part
        for pair in zip(torch.split(above, 4, 2), torch.split(below, 4, 2), strict=True)
        for part in pair
    ]
    assert torch.equal(found, torch.cat(parts, dim=2))


@every_network
def test_initial_layers_have_torchs_shapes_and_share_what_is_below(cell: str, layers: int) -> None:
    parameters = networks(2, 5, 2, 3, cell=cell, layers=layers)
    assert parameters.layers == layers
    assert parameters.units == 5 * layers
    shapes = [tuple(tensor[0].shape) for tensor in parameters]
    assert shapes == [tuple(tensor.shape) for tensor in weights(*modules(parameters))]
    more = networks(2, 5, 2, 3, cell=cell, layers=layers + 1)
    assert all(torch.equal(a, b) for a, b in zip(parameters, more, strict=False))
    bound = 1 / math.sqrt(5)
    assert all(0.8 * bound < float(tensor.abs().max()) <= bound for tensor in more.upper)


@every_network
def test_parameters_come_back_from_named_arrays(cell: str, layers: int) -> None:
    parameters = networks(2, 3, cell=cell, layers=layers)
    stored = {name: tensor.numpy() for name, tensor in cells.named(parameters).items()}
    assert tuple(stored) == cells.tensor_names(layers)
    assert list(stored)[:6] == list(cells.TENSORS)
    own = dict(modules(parameters, 1)[0].named_parameters())
    for name in [name for name in stored if name.endswith(("_l1", "_l2"))]:
        assert np.array_equal(stored[name][1], own[name].detach())
    found = cells.from_named({**stored, "losses": np.zeros(3)}, cell=cell, layers=layers)
    assert (found.cell, found.layers) == (cell, layers)
    assert all(torch.equal(a, b) for a, b in zip(found, parameters, strict=True))


@pytest.mark.parametrize("layers", [0, -1])
def test_fewer_layers_than_one_are_refused(layers: int) -> None:
    with pytest.raises(ValueError, match=f"{layers} layers: a network has at least 1"):
        networks(1, 4, layers=layers)


@pytest.mark.parametrize(
    "change",
    [
        lambda upper: upper[:3],
        lambda upper: [upper[1][:, :, :2], *upper[1:]],
        lambda upper: [*upper[:2], upper[2][:, :4], upper[3]],
        lambda upper: [tensor[:1] for tensor in upper],
        lambda upper: networks(2, 4, layers=2, cell="lstm").upper,
    ],
)
def test_layers_that_do_not_fit_are_refused(change: Callable[[list[Tensor]], list[Tensor]]) -> None:
    parameters = networks(2, 4, layers=2)
    with pytest.raises(ValueError, match="upper layers need tensors of shapes"):
        parameters.like([*list(parameters)[:6], *change(list(parameters.upper))])


@every_network
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("hidden", "batch"), [(3, 1), (5, 3), (33, 1)])
def test_derivatives_are_the_same_bits_in_any_company(
    cell: str, layers: int, hidden: int, batch: int, dtype: torch.dtype
) -> None:
    parameters = networks(9, hidden, 2, cell=cell, layers=layers, gain=2.0, dtype=dtype)
    state = normal(9, parameters.state_size, batch, dtype=dtype)
    inputs = normal(9, 2, batch, seed=1, dtype=dtype)
    weight = normal(9, batch, parameters.state_size, parameters.state_size, dtype=dtype)

    def derive(own: list[int]) -> list[Tensor]:
        chosen, h = parameters.select(own).require_grad(), state[own].requires_grad_()
        found = cells.linearise(chosen, h, inputs[own])
        gradients = torch.autograd.grad(
            (found.jacobian * weight[own]).sum(), [*list(chosen), h], allow_unused=True
        )
        return [*found, *(gradient for gradient in gradients if gradient is not None)]

    whole = derive(list(range(9)))
    for own in ([0], [4], [8], [1, 2], [7, 3, 5], list(range(2, 9))):
        for alone, tensor in zip(derive(own), whole, strict=True):
            assert torch.equal(alone, tensor[own])
