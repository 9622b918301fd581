import numpy as np
import pytest
import torch
from plain import jacobian, networks, normal, step_of
from torch import Tensor

from msstab import cells
from msstab.arms import jacobian_norm
from msstab.arms.jacobian_norm import N_STATES
from msstab.arms.sampling import sample_states

every_cell = pytest.mark.parametrize("cell", cells.CELLS)


@every_cell
def test_the_penalty_is_half_the_mean_squared_frobenius_norm(cell: str) -> None:
    parameters = networks(3, 4, 2, cell=cell, gain=2.0)
    penalty = jacobian_norm(step_of(parameters))
    # Equal streams draw equal places.
    states, inputs = sample_states(step_of(parameters), N_STATES)
    for m in range(3):
        found = [jacobian(parameters, m, states[m, :, k], inputs[m, :, k]) for k in range(N_STATES)]
        expected = np.mean([float(j.square().sum()) / 2 for j in found])
        assert float(penalty.value[m]) == pytest.approx(expected, rel=1e-12)
    assert torch.equal(penalty.active, torch.ones(3, dtype=torch.float64))


@every_cell
def test_gradients_reach_the_weights_through_jacobians_and_states(cell: str) -> None:
    parameters = networks(2, 3, 2, cell=cell, gain=2.0).require_grad()
    inputs = normal(4, 2, 2, 5)

    def penalty(*tensors: Tensor) -> Tensor:
        return jacobian_norm(step_of(parameters.like(tensors), inputs=inputs)).value

    assert torch.autograd.gradcheck(penalty, tuple(parameters))


def test_a_saturated_model_has_neither_penalty_nor_gradient() -> None:
    parameters = networks(2, 3, cell="rnn")
    parameters.bias_hh[0] = 1e3
    parameters = parameters.require_grad()
    penalty = jacobian_norm(step_of(parameters))
    assert penalty.value[0] == 0 < penalty.value[1]
    for gradient in torch.autograd.grad(penalty.value.sum(), list(parameters)[:4]):
        assert not gradient[0].any()
        assert torch.isfinite(gradient).all()
