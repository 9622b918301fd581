import numpy as np
import pytest
import torch
from plain import networks, normal, step_of
from torch import Tensor

from msstab import cells
from msstab.arms import delta_iss
from msstab.arms.delta_iss import contraction_bound
from msstab.cells import Parameters

every_cell = pytest.mark.parametrize("cell", cells.CELLS)


def random_networks(cell: str, models: int, seed: int) -> Parameters:
    """Networks of 3 units and 2 inputs, whose blocks of weights are of very unequal sizes."""
    rng = np.random.default_rng(seed)
    parameters = networks(models, 3, 2, cell=cell)
    tensors = []
    for tensor in parameters:
        sizes = rng.choice([0.03, 0.1, 0.3, 1.0], size=(models, *[1] * (tensor.dim() - 1)))
        tensors.append(torch.as_tensor(sizes * rng.normal(size=tensor.shape)))
    return parameters.like(tensors)


def anywhere(rng: np.random.Generator, *shape: int) -> Tensor:
    """Numbers in [-1, 1], half of them at its ends."""
    uniform = rng.uniform(-1, 1, shape)
    return torch.as_tensor(np.where(rng.uniform(size=shape) < 0.5, np.sign(uniform), uniform))


def differences(parameters: Parameters, largest: Tensor, steps: int, seed: int) -> list[Tensor]:
    """Largest differences (M, B) of two runs from any states on the same inputs, in time."""
    rng = np.random.default_rng(seed)
    models, batch, size = len(parameters.bias_out), 64, parameters.state_size
    first, second = (anywhere(rng, models, size, batch) for _ in range(2))
    found = [(first - second).abs().amax(1)]
    for _ in range(steps):
        inputs = largest[:, None, None] * anywhere(rng, models, 2, batch)
        first, second = (cells.step(parameters, state, inputs) for state in (first, second))
        found.append((first - second).abs().amax(1))
    return found


@pytest.mark.parametrize("cell", ["gru", "rnn"])
def test_below_one_every_step_is_a_contraction_of_the_largest_difference(cell: str) -> None:
    parameters = random_networks(cell, 4000, seed=0)
    largest = torch.as_tensor(np.random.default_rng(1).uniform(0.2, 3, 4000))
    stable = contraction_bound(parameters, largest) < 1
    assert 200 < stable.sum() < 3800
    before, after = differences(parameters, largest, 1, seed=2)
    growth = torch.where(before == 0, 0, after / before).amax(1)
    assert growth[stable].max() < 1
    assert growth[~stable].max() > 1


def test_below_one_the_runs_of_long_short_term_memory_merge() -> None:
    parameters = random_networks("lstm", 1000, seed=0)
    largest = torch.as_tensor(np.random.default_rng(1).uniform(0.2, 3, 1000))
    stable = contraction_bound(parameters, largest) < 0.8
    assert 100 < stable.sum() < 900
    found = differences(parameters.select(stable), largest[stable], 150, seed=2)
    assert found[-1].max() < 1e-6
    assert found[1].max() > 0.1


def test_the_bound_of_a_gated_unit_is_that_of_a_calculation_by_hand() -> None:
    tensors = [
        torch.tensor([[[0.5], [-0.3], [0.7]]]),
        torch.tensor([[[0.4], [-0.2], [0.6]]]),
        torch.tensor([[0.1, 0.2, -0.3]]),
        torch.tensor([[-0.4, 0.1, 0.5]]),
        torch.zeros(1, 1, 1),
        torch.zeros(1, 1),
    ]
    parameters = Parameters(*(tensor.double() for tensor in tensors))
    reset = 1 / (1 + np.exp(-(0.5 * 2 + 0.4 + 0.3)))
    update = 1 / (1 + np.exp(-(0.3 * 2 + 0.2 + 0.3)))
    candidate = np.tanh(0.7 * 2 + 0.3 + reset * 1.1)
    expected = reset * 0.6 + 1.1 * 0.4 / 4 + (1 + candidate) * 0.2 / (4 * (1 - update))
    found = contraction_bound(parameters, torch.tensor([2.0]))
    assert float(found) == pytest.approx(expected, rel=1e-6)


def test_the_bound_of_long_short_term_memory_is_that_of_a_calculation_by_hand() -> None:
    tensors = [
        torch.tensor([[[0.5], [-0.3], [0.7], [0.2]]]),
        torch.tensor([[[0.4], [-0.2], [0.6], [-0.8]]]),
        torch.tensor([[0.1, 0.2, -0.3, 0.0]]),
        torch.tensor([[-0.4, 0.1, 0.5, 0.6]]),
        torch.zeros(1, 1, 1),
        torch.zeros(1, 1),
    ]
    parameters = Parameters(*(tensor.double() for tensor in tensors), cell="lstm")
    i, f, o = (1 / (1 + np.exp(-peak)) for peak in (1.0 + 0.4 + 0.3, 0.6 + 0.2 + 0.3, 1.8))
    g = np.tanh(1.4 + 0.6 + 0.2)
    memory = i * g / (1 - f)
    slope = 0.2 * memory / 4 + i * 0.6 + 0.4 * g / 4
    matrix = np.array([[f, slope], [o * f, o * slope + np.tanh(memory) * 0.8 / 4]])
    expected = o * slope / (1 - f) + np.tanh(memory) * 0.8 / 4
    found = contraction_bound(parameters, torch.tensor([2.0]))
    assert float(found) == pytest.approx(expected, rel=1e-6)
    assert (expected < 1) == (np.abs(np.linalg.eigvals(matrix)).max() < 1)


@every_cell
@pytest.mark.parametrize("target", [0.05, 1.0, 1e6])
def test_the_arm_is_a_hinge_on_the_bound_for_the_batchs_largest_input(
    cell: str, target: float
) -> None:
    parameters = networks(3, 4, 2, cell=cell)
    step = step_of(parameters, target=target)
    penalty = delta_iss(step)
    largest = step.inputs.abs().transpose(0, 1).flatten(1).max(1).values
    excess = (contraction_bound(parameters, largest) / target).log()
    torch.testing.assert_close(penalty.value, excess.clamp_min(0), rtol=1e-12, atol=0)
    assert torch.equal(penalty.active, (excess > 0).double())


@every_cell
def test_gradients_match_finite_differences(cell: str) -> None:
    parameters = networks(2, 3, 2, cell=cell, gain=0.5).require_grad()
    inputs = normal(4, 2, 2, 5)

    def penalty(*tensors: Tensor) -> Tensor:
        return delta_iss(step_of(parameters.like(tensors), target=0.01, inputs=inputs)).value

    assert (penalty(*parameters) > 0).all()
    assert torch.autograd.gradcheck(penalty, tuple(parameters))


@every_cell
def test_large_weights_overflow_nothing_and_none_have_no_gradient(cell: str) -> None:
    parameters = networks(2, 4, cell=cell, dtype=torch.float32)
    parameters = parameters.like(
        torch.stack([100 * tensor[0], 0 * tensor[1]]) for tensor in parameters
    ).require_grad()
    penalty = delta_iss(step_of(parameters, target=0.5))
    assert penalty.active.tolist() == [1, 0]
    for gradient in torch.autograd.grad(
        penalty.value.sum(), list(parameters)[:4], allow_unused=True
    ):
        if gradient is not None:
            assert torch.isfinite(gradient).all()
            assert not gradient[1].any()


@every_cell
def test_layers_are_stable_where_each_of_them_is(cell: str) -> None:
    stacked = networks(3, 3, 2, cell=cell, layers=2, gain=3.0)
    largest = torch.tensor([0.2, 1.0, 5.0])
    alone = [
        contraction_bound(stacked.layer(0), largest),
        contraction_bound(stacked.layer(1), torch.ones(3)),
    ]
    assert torch.equal(contraction_bound(stacked, largest), torch.stack(alone).amax(0))
