from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import plain
import pytest
import torch
from plain import networks, normal
from torch import Tensor
from torch.ao.quantization.observer import MinMaxObserver, PerChannelMinMaxObserver

from msstab import cells, evaluation, moments, quantisation, sensitivities, trials
from msstab.cells import Parameters
from msstab.noise import NOISES
from msstab.quantisation import Grid
from msstab.sensitivities import Sensitivity
from msstab.study import Study
from msstab.trials import Trial

BITS = (8, 6, 4, 3)
KINDS = [("gru", 1), ("lstm", 1), ("rnn", 1), ("gru", 2), ("lstm", 2)]
kinds = pytest.mark.parametrize(("cell", "layers"), KINDS)


# ---- rounding


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("per_channel", [False, True])
def test_weights_are_rounded_as_torch_does_it(bits: int, per_channel: bool) -> None:
    grid, weights = Grid(bits, per_channel), normal(3, 6, 5).float()
    largest = 2 ** (bits - 1) - 1
    rounded = quantisation.to_nearest(weights, quantisation.weight_step(weights, grid), grid)
    for own, found in zip(weights, rounded, strict=True):
        limits = {"dtype": torch.qint8, "quant_min": -largest, "quant_max": largest}
        if per_channel:
            observer = PerChannelMinMaxObserver(0, qscheme=torch.per_channel_symmetric, **limits)
            observer(own)
            scale, zero = observer.calculate_qparams()
            expected = torch.fake_quantize_per_channel_affine(
                own, scale, zero.int(), 0, -largest, largest
            )
        else:
            observer = MinMaxObserver(qscheme=torch.per_tensor_symmetric, **limits)
            observer(own)
            scale, _ = observer.calculate_qparams()
            expected = torch.fake_quantize_per_tensor_affine(
                own, float(scale), 0, -largest, largest
            )
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)


def test_values_beyond_the_largest_multiple_become_it() -> None:
    values = torch.tensor([[[-3.0, 0.2, 5.0]]])
    step = torch.tensor([[[0.5]]])
    assert quantisation.to_nearest(values, step, Grid(3, False)).tolist() == [[[-1.5, 0.0, 1.5]]]
    at_random = quantisation.at_random(values, step, Grid(3, False), torch.tensor(0.999))
    assert at_random.tolist() == [[[-1.5, 0.5, 1.5]]]


def test_rounding_at_random_keeps_the_mean_and_has_the_stated_variance() -> None:
    # One copy of the network for each rounding; half a million draws of each value.
    values = torch.tensor([[[-1.0, -0.31, 0.0, 0.02, 0.77]]])
    grid = Grid(4, False)
    step = quantisation.weight_step(values, grid)
    uniform = torch.as_tensor(np.random.default_rng(0).random((500_000, 1, 5)))
    drawn = quantisation.at_random(values.double(), step, grid, uniform)
    fraction = (values.double() * 7) % 1
    expected = (fraction * (1 - fraction) / 49)[0, 0]
    np.testing.assert_allclose(drawn.mean(0)[0], values[0, 0].double(), atol=4e-4)
    np.testing.assert_allclose(drawn.var(0)[0], expected, rtol=0.01, atol=1e-7)
    assert ((drawn - values).abs() < step).all()


@kinds
def test_matrices_of_all_layers_are_rounded_and_biases_are_not(cell: str, layers: int) -> None:
    given, grid = networks(1, 6, cell=cell, layers=layers), Grid(3, False)
    for found in (
        quantisation.weights_to_nearest(given, grid),
        quantisation.weights_at_random(given, grid, 1, np.random.default_rng(0)),
    ):
        for before, after in zip(given, found, strict=True):
            if before.dim() == 2:
                assert torch.equal(before, after)
            else:
                steps = (3 / before.abs().max() * after).round(decimals=4)
                assert torch.equal(steps, steps.round())
                assert not torch.equal(before, after)


def test_roundings_differ_and_equal_streams_round_alike() -> None:
    given, grid = networks(1, 6), Grid(4, True)
    one, same = (
        quantisation.weights_at_random(given, grid, 2, np.random.default_rng(3)) for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    assert not torch.equal(one.weight_hh[0], one.weight_hh[1])


def test_a_tensor_of_zeros_stays_one() -> None:
    nothing = torch.zeros(1, 3, 2)
    for grid in (Grid(8, False), Grid(3, True)):
        step = quantisation.weight_step(nothing, grid)
        assert torch.equal(quantisation.to_nearest(nothing, step, grid), nothing)


# ---- states


def test_a_layers_memory_has_a_step_of_its_own() -> None:
    states = torch.zeros(2, 1, 8, 3)
    states[1, 0, :, 2] = -torch.arange(1.0, 9.0)
    per_tensor = quantisation.state_step(states, 2, Grid(3, False))
    assert (3 * per_tensor).flatten().tolist() == pytest.approx([2, 2, 4, 4, 6, 6, 8, 8])
    per_unit = quantisation.state_step(states, 2, Grid(3, True))
    assert (3 * per_unit).flatten().tolist() == pytest.approx(list(range(1, 9)))


def run(
    parameters: Parameters,
    inputs: Tensor,
    count: int = 1,
    change: Callable[[int, int, Tensor], Tensor] = lambda t, sequence, state: state,
) -> Tensor:
    """Return the last outputs (1, KO, B) by torch's own cells, one sequence after the other.

    `change(t, sequence, state)` is what becomes of each state (S,).
    """
    found = []
    for sequence in range(inputs.shape[3]):
        state = inputs.new_zeros(parameters.state_size)
        shown = []
        for t, x in enumerate(inputs[:, 0, :, sequence]):
            state = change(t, sequence, plain.step(parameters, 0, state, x))
            units = state[: parameters.hidden]
            shown.append(parameters.weight_out[0] @ units + parameters.bias_out[0])
        found.append(torch.cat(shown[-count:]))
    return torch.stack(found, dim=1)[None]


@kinds
@pytest.mark.parametrize("per_channel", [False, True])
def test_states_are_rounded_after_every_step_and_before_the_readout(
    cell: str, layers: int, per_channel: bool
) -> None:
    parameters = networks(1, 4, 2, 2, cell=cell, layers=layers, gain=2)
    inputs, grid = normal(6, 1, 2, 5, seed=1), Grid(4, per_channel)
    states, exact = cells.run(parameters, inputs)
    step = quantisation.state_step(states, 4, grid)
    found = quantisation.states_to_nearest(parameters, inputs, step, grid)

    def rounded(t: int, sequence: int, state: Tensor) -> Tensor:
        units = zip(state, step.flatten(), strict=True)
        k = grid.largest
        return torch.stack(
            [torch.fake_quantize_per_tensor_affine(h, float(d), 0, -k, k) for h, d in units]
        )

    torch.testing.assert_close(found, run(parameters, inputs, 1, rounded))
    assert not torch.allclose(found, exact, atol=1e-3)


def test_outputs_after_several_steps_come_in_their_order() -> None:
    parameters, inputs, grid = networks(1, 4, 2, 2), normal(6, 1, 2, 5, seed=1), Grid(4, False)
    step = quantisation.state_step(cells.run(parameters, inputs)[0], 4, grid)
    found = quantisation.states_to_nearest(parameters, inputs, step, grid, 3)
    one_by_one = [
        quantisation.states_to_nearest(parameters, inputs[:length], step, grid)
        for length in (4, 5, 6)
    ]
    torch.testing.assert_close(found, torch.cat(one_by_one, dim=1))


# ---- predictions


@kinds
@pytest.mark.parametrize("count", [1, 3])
def test_sensitivities_are_those_of_a_dense_jacobian(cell: str, layers: int, count: int) -> None:
    parameters = networks(1, 3, 2, 2, cell=cell, layers=layers, gain=2)
    inputs = normal(5, 1, 2, 4, seed=1)
    found = sensitivities.sensitivity(parameters, inputs, np.random.default_rng(0), count)

    def of_weights(*tensors: Tensor) -> Tensor:
        return run(parameters.like(tensors), inputs, count)

    def of_states(added: Tensor) -> Tensor:
        return run(parameters, inputs, count, lambda t, b, state: state + added[t, 0, :, b])

    # (1, KO, B, *shape): every output of every sequence by every weight.
    tensors = tuple(parameters)
    jacobians = torch.func.jacrev(of_weights, tuple(range(len(tensors))))(*tensors)
    for jacobian, own in zip(jacobians, found.weights, strict=True):
        torch.testing.assert_close(own, jacobian[0].square().mean((0, 1)))
    nothing = torch.zeros(5, 1, parameters.state_size, 4, dtype=inputs.dtype)
    jacobian = torch.func.jacrev(of_states)(nothing)
    squares = jacobian[0].square().mean(0)
    each = torch.stack([squares[b, ..., b] for b in range(4)], dim=-1) / 4
    torch.testing.assert_close(found.states, each)


def test_random_sums_of_many_outputs_have_the_right_mean() -> None:
    parameters, inputs = networks(1, 3, 1, 2, gain=2), normal(8, 1, 1, 3, seed=1)
    streams = [np.random.default_rng(seed) for seed in range(100)]
    drawn = [sensitivities.sensitivity(parameters, inputs, rng, 8) for rng in streams]
    assert sensitivities.MOST_OUTPUTS < 8 * 2

    def of_recurrent(weight: Tensor) -> Tensor:
        first, _, *rest = parameters
        return run(parameters.like([first, weight, *rest]), inputs, 8)

    jacobian = torch.func.jacrev(of_recurrent)(parameters.weight_hh)
    exact = jacobian[0].square().mean((0, 1)).sum()
    values = torch.stack([one.weights.weight_hh.sum() for one in drawn])
    error = values.std() / len(values) ** 0.5
    assert error < 0.05 * exact
    assert abs(values.mean() - exact) < 4 * error


@kinds
def test_the_recurrent_part_is_that_of_frozen_weight_noise(cell: str, layers: int) -> None:
    parameters = networks(1, 4, 2, 2, cell=cell, layers=layers, gain=2)
    inputs = normal(5, 1, 2, 6, seed=1)
    states, _ = cells.run(parameters, inputs)
    found = sensitivities.sensitivity(parameters, inputs, np.random.default_rng(0)).weights
    variance = moments.frozen_output_variance(
        parameters, inputs, states, NOISES["quantisation"], 0.3
    )
    ours = 0.3**2 / 12 * sum(float(tensor.sum()) for tensor in found.recurrent)
    assert ours == pytest.approx(float(variance.mean() / 2))


class Trained(NamedTuple):
    """A network trained for real, on its first test sequences, with validation states."""

    network: Parameters
    inputs: Tensor
    exact: Tensor
    states: Tensor
    calibration: Tensor
    sensitivity: Sensitivity


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    trial = Trial(
        "dynamics", "gru", 16, 1, 12, 32, 400, "baseline", 0.02, 0.0, "unit", 0.0, 1.0,
        "confirmation", 0, 0, "float32", "cpu",
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MSSTAB_CACHE", str(tmp_path_factory.mktemp("trained")))
        network = trials.load_trained(trial).parameters
    data = trials.draw_data(
        Study(n_validation=64, n_test=32, mechanism_sequences=32), "confirmation", 0
    )
    inputs, targets = evaluation.stack(data.test, network.weight_ih)
    others, _ = evaluation.stack(data.validation, network.weight_ih)
    states, exact = cells.run(network, inputs)
    assert float((exact - targets).square().mean()) < 0.01
    answer = sensitivities.sensitivity(network, inputs, np.random.default_rng(0))
    return Trained(network, inputs, exact, states, cells.run(network, others)[0], answer)


@pytest.mark.parametrize("bits", [8, 6, 4])
@pytest.mark.parametrize("per_channel", [False, True])
def test_the_effect_of_weights_rounded_at_random_is_predicted(
    trained: Trained, bits: int, per_channel: bool
) -> None:
    grid, rng = Grid(bits, per_channel), np.random.default_rng(1)
    rounded = quantisation.weights_at_random(trained.network, grid, 1024, rng)
    outputs = cells.forecast(rounded, trained.inputs.expand(-1, 1024, -1, -1).contiguous())
    each = (outputs - trained.exact).double().square().mean((1, 2))
    predicted = quantisation.weights_at_random_variance(trained.sensitivity, trained.network, grid)
    assert each.std() / 1024**0.5 < 0.05 * each.mean()
    assert float(each.mean()) == pytest.approx(predicted, rel=0.15)


@pytest.mark.parametrize("bits", [8, 6])
@pytest.mark.parametrize("per_channel", [False, True])
def test_the_effect_of_states_rounded_at_random_is_predicted(
    trained: Trained, bits: int, per_channel: bool
) -> None:
    grid = Grid(bits, per_channel)
    step = quantisation.state_step(trained.calibration, 16, grid)
    outputs = quantisation.states_at_random(
        trained.network, trained.inputs.repeat(1, 1, 1, 64), step, grid, np.random.default_rng(1)
    )
    found = float((outputs - trained.exact.repeat(1, 1, 64)).double().square().mean())
    predicted = quantisation.states_at_random_variance(trained.sensitivity, trained.states, step)
    assert found == pytest.approx(predicted, rel=0.15)


def test_the_errors_of_fine_rounding_of_states_are_nearly_white(trained: Trained) -> None:
    # To nearest, chance is in the sequences alone, so there must be many.
    data, grid = trials.draw_data(Study(n_test=1024), "confirmation", 0), Grid(10, False)
    inputs, _ = evaluation.stack(data.test, trained.network.weight_ih)
    step = quantisation.state_step(trained.calibration, 16, grid)
    outputs = quantisation.states_to_nearest(trained.network, inputs, step, grid)
    exact = cells.forecast(trained.network, inputs)
    found = float((outputs - exact).double().square().mean())
    answer = sensitivities.sensitivity(trained.network, inputs, np.random.default_rng(0))
    predicted = quantisation.states_to_nearest_variance(answer, step)
    assert found == pytest.approx(predicted, rel=0.2)


def test_uniform_errors_of_all_weights_but_the_largest_do_what_is_expected_to_nearest(
    trained: Trained,
) -> None:
    grid, rng = Grid(8, True), np.random.default_rng(2)
    many = trained.network.select([0] * 1024)
    moved = []
    for tensor in many:
        error = torch.zeros_like(tensor)
        if tensor.dim() == 3:
            largest = tensor.abs().amax(2, keepdim=True)
            error = torch.as_tensor(rng.uniform(-0.5, 0.5, tensor.shape)) * largest / 127
            error[tensor.abs() == largest] = 0
        moved.append((tensor + error).float())
    inputs = trained.inputs.expand(-1, 1024, -1, -1).contiguous()
    found = (cells.forecast(many.like(moved), inputs) - trained.exact).double().square().mean()
    predicted = quantisation.weights_to_nearest_variance(trained.sensitivity, trained.network, grid)
    assert float(found) == pytest.approx(predicted, rel=0.12)


def test_a_network_without_numbers_has_predictions_without(trained: Trained) -> None:
    broken = trained.network.like(torch.full_like(t, torch.nan) for t in trained.network)
    grid, rng = Grid(8, False), np.random.default_rng(0)
    assert quantisation.weights_to_nearest(broken, grid).weight_hh.isnan().all()
    answer = sensitivities.sensitivity(broken, trained.inputs, rng)
    assert np.isnan(quantisation.weights_at_random_variance(answer, broken, grid))
    step = quantisation.state_step(cells.run(broken, trained.inputs)[0], 16, grid)
    assert quantisation.states_to_nearest(broken, trained.inputs, step, grid).isnan().all()
