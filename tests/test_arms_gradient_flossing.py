import numpy as np
import pytest
import torch
from plain import jacobian, networks, normal, step_of
from torch import Tensor

from msstab import cells
from msstab.arms import Penalty, Step, gradient_flossing
from msstab.arms.gradient_flossing import (
    EVERY,
    N_EXPONENTS,
    ORTHONORMALISE_EVERY,
    lyapunov_exponents,
)
from msstab.arms.sampling import sample_sequences

every_cell = pytest.mark.parametrize("cell", cells.CELLS)


def once(step: Step) -> Penalty:
    """The penalty of an evaluation, whose weight makes up for the steps without one."""
    found = gradient_flossing(step)
    return Penalty(found.value / EVERY, found.active)


def eye(size: int, columns: int) -> Tensor:
    return torch.eye(size, dtype=torch.float64)[:, :columns].expand(1, 1, size, columns)


# ---- the exponents


def test_those_of_a_constant_diagonal_are_the_logarithms_of_its_entries() -> None:
    diagonal = torch.tensor([1.5, -0.9, 0.4, 0.01], dtype=torch.float64)
    found = lyapunov_exponents([torch.diag(diagonal)[None, None]] * 13, eye(4, 3))
    torch.testing.assert_close(found[0, 0], diagonal[:3].abs().log(), rtol=1e-12, atol=1e-12)


def test_those_of_a_constant_matrix_are_soon_the_logarithms_of_its_eigenvalues() -> None:
    values = torch.tensor([1.2, 0.8, 0.5, 0.2, 0.1], dtype=torch.float64)
    vectors = normal(5, 5)
    matrix = vectors @ torch.diag(values) @ torch.linalg.inv(vectors)
    found = lyapunov_exponents([matrix[None, None]] * 4000, normal(1, 1, 5, 4, seed=1))
    torch.testing.assert_close(found[0, 0], values[:4].log(), rtol=0, atol=2e-3)


@pytest.mark.parametrize("length", [1, 6, 7, 20])
def test_they_are_those_of_a_decomposition_after_every_step(length: int) -> None:
    jacobians = 0.6 * normal(length, 2, 3, 5, 5)
    start = normal(2, 3, 5, 4, seed=1)
    found = lyapunov_exponents(list(jacobians), start)
    basis, _ = torch.linalg.qr(start)
    total = torch.zeros(2, 3, 4, dtype=torch.float64)
    for matrix in jacobians:
        basis, upper = torch.linalg.qr(matrix @ basis)
        total += upper.diagonal(dim1=-2, dim2=-1).abs().log()
    torch.testing.assert_close(found, total / length, rtol=1e-10, atol=1e-10)


def test_all_of_them_add_up_to_the_logarithm_of_the_volume() -> None:
    jacobians = normal(9, 1, 1, 4, 4)
    found = lyapunov_exponents(list(jacobians), normal(1, 1, 4, 4, seed=1)).sum()
    expected = torch.linalg.slogdet(jacobians).logabsdet.mean()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_their_gradient_matches_finite_differences() -> None:
    jacobians = normal(8, 1, 2, 4, 4).requires_grad_()
    start = normal(1, 2, 4, 3, seed=1)

    def exponents(matrices: Tensor) -> Tensor:
        return lyapunov_exponents(list(matrices), start)

    assert torch.autograd.gradcheck(exponents, jacobians)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_directions_that_vanish_count_as_very_small_and_have_no_gradient(
    dtype: torch.dtype,
) -> None:
    left, right = normal(4, 2, dtype=dtype), normal(2, 4, seed=1, dtype=dtype)
    for rank in (0, 1, 2):
        matrix = (left[:, :rank] @ right[:rank]).requires_grad_()
        found = lyapunov_exponents([matrix[None, None]] * 9, normal(1, 1, 4, 4).to(dtype))[0, 0]
        assert torch.isfinite(found).all()
        assert (found[rank:] < -1.2).all()
        (gradient,) = torch.autograd.grad(found[rank:].sum(), matrix, retain_graph=True)
        assert not gradient.any()
        (gradient,) = torch.autograd.grad(found.sum(), matrix)
        assert torch.isfinite(gradient).all()


def test_a_direction_that_has_vanished_stays_so() -> None:
    """What rounding leaves of it must not grow into a direction again, with a huge gradient."""
    jacobians = normal(12, 1, 1, 4, 4)
    jacobians[ORTHONORMALISE_EVERY - 1] = normal(4, 1, seed=1) @ normal(1, 4, seed=2)
    jacobians.requires_grad_()
    found = lyapunov_exponents(list(jacobians), normal(1, 1, 4, 3, seed=3))[0, 0]
    assert found[0] > -1 > -10 > found[1]
    (gradient,) = torch.autograd.grad(found.sum(), jacobians)
    assert gradient.abs().max() < 100
    (gradient,) = torch.autograd.grad(
        lyapunov_exponents(list(jacobians), normal(1, 1, 4, 3, seed=3))[0, 0, 1:].sum(), jacobians
    )
    assert not gradient[ORTHONORMALISE_EVERY:].any()


# ---- the arm


@every_cell
def test_the_penalty_is_the_mean_of_the_squared_leading_exponents(cell: str) -> None:
    parameters = networks(3, 4, 2, cell=cell, gain=2.0)
    penalty = once(step_of(parameters, length=9))
    step = step_of(parameters, length=9)
    sequences = sample_sequences(step, 1)
    size = parameters.state_size
    for m, stream in enumerate(step.streams):
        start = torch.as_tensor(stream.standard_normal((1, size, N_EXPONENTS)))
        basis, _ = torch.linalg.qr(start[0])
        total = torch.zeros(N_EXPONENTS, dtype=torch.float64)
        for state, inputs in zip(sequences.before, sequences.inputs, strict=True):
            found = jacobian(parameters, m, state[m, :, 0], inputs[m, :, 0])
            basis, upper = torch.linalg.qr(found @ basis)
            total += upper.diagonal().abs().log()
        expected = (total / 9).square().mean()
        assert float(penalty.value[m]) == pytest.approx(float(expected), rel=1e-6)
    assert torch.equal(penalty.active, torch.ones(3, dtype=torch.float64))


def test_a_linear_network_that_keeps_all_it_has_has_no_penalty() -> None:
    """An orthogonal matrix has exponents of zero; where inputs are zero, tanh is linear."""
    parameters = networks(1, 5, cell="rnn")
    for tensor in parameters:
        tensor.zero_()
    parameters.weight_hh[0] = torch.linalg.qr(normal(5, 5)).Q
    value = once(step_of(parameters)).value
    assert float(value) < 1e-28
    parameters.weight_hh.mul_(0.7)
    value = once(step_of(parameters)).value
    assert float(value) == pytest.approx(np.log(0.7) ** 2, rel=1e-12)


@every_cell
def test_gradients_reach_the_weights_through_jacobians_and_states(cell: str) -> None:
    parameters = networks(2, 3, 2, cell=cell, gain=2.0).require_grad()
    inputs = normal(4, 2, 2, 5)

    def penalty(*tensors: Tensor) -> Tensor:
        return once(step_of(parameters.like(tensors), inputs=inputs)).value

    assert torch.autograd.gradcheck(penalty, tuple(parameters))


def test_a_saturated_model_has_a_finite_penalty_and_no_gradient() -> None:
    parameters = networks(2, 3, cell="rnn")
    parameters.bias_hh[0] = 1e3
    parameters = parameters.require_grad()
    penalty = once(step_of(parameters))
    assert torch.isfinite(penalty.value).all()
    for gradient in torch.autograd.grad(penalty.value.sum(), list(parameters)[:4]):
        assert not gradient[0].any()
        assert torch.isfinite(gradient).all()


def test_it_acts_now_and_then() -> None:
    step = step_of(networks(2, 4))
    acts = [bool(once(step).value.any()) for _ in range(2 * EVERY + 1)]
    assert acts == [turn % EVERY == 0 for turn in range(2 * EVERY + 1)]
