import pytest
import torch
from plain import networks, step_of

from msstab import cells
from msstab.arms import weight_decay


@pytest.mark.parametrize("cell", cells.CELLS)
def test_the_penalty_is_half_the_sum_of_squares_of_the_weights(cell: str) -> None:
    parameters = networks(3, 4, 2, 2, cell=cell).require_grad()
    penalty = weight_decay(step_of(parameters))
    assert torch.equal(penalty.active, torch.ones(3, dtype=torch.float64))
    matrices = (parameters.weight_ih, parameters.weight_hh, parameters.weight_out)
    for m in range(3):
        own = torch.cat([matrix[m].detach().flatten() for matrix in matrices])
        assert float(penalty.value[m].detach()) == pytest.approx(float(own @ own) / 2, rel=1e-12)
    gradients = torch.autograd.grad(penalty.value.sum(), list(parameters), allow_unused=True)
    for gradient, tensor in zip(gradients, parameters, strict=True):
        if tensor.dim() == 2:
            assert gradient is None
        else:
            assert torch.equal(gradient, tensor)
