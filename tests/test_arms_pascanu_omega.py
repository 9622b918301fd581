import pytest
import torch
from plain import jacobian, networks, normal, step_of
from torch import Tensor

from msstab import cells
from msstab.arms import Penalty, Step, pascanu_omega
from msstab.arms.pascanu_omega import EVERY
from msstab.arms.sampling import sample_sequences
from msstab.cells import Parameters

every_cell = pytest.mark.parametrize("cell", cells.CELLS)


def once(step: Step) -> Penalty:
    """The penalty of an evaluation, whose weight makes up for the steps without one."""
    found = pascanu_omega(step)
    return Penalty(found.value / EVERY, found.active)


def error_gradients(step: Step, m: int, sequence: int) -> list[Tensor]:
    """dE/dh after each step of one sequence, by back-propagation through torch's own cells."""
    parameters = step.parameters.like(tensor.detach() for tensor in step.parameters)
    state = torch.zeros(1, parameters.state_size, 1, dtype=torch.float64).requires_grad_()
    states = []
    for x in step.inputs[:, [m]]:
        state = cells.step(parameters.select([m]), state, x[:, :, [sequence]])
        states.append(state)
    steps = cells.output_steps(parameters, step.targets)
    outputs = torch.cat([cells.readout(parameters.select([m]), own) for own in states[-steps:]], 1)
    error = (outputs - step.targets[[m], :, sequence, None]).square().mean()
    return [g[0, :, 0] for g in torch.autograd.grad(error, states)]


@every_cell
@pytest.mark.parametrize("steps", [1, 3, 7])
def test_the_penalty_is_that_of_the_paper(cell: str, steps: int) -> None:
    parameters = networks(3, 4, 2, 2, cell=cell, gain=2.0)
    value = once(step_of(parameters, length=7, steps=steps)).value
    step = step_of(parameters, length=7, steps=steps)
    sequences = sample_sequences(step, 1)
    for m in range(3):
        gradients = error_gradients(step, m, int(sequences.drawn[m, 0]))
        expected = 0.0
        for t, after in enumerate(gradients):
            state, inputs = sequences.before[t, m, :, 0], sequences.inputs[t, m, :, 0]
            pulled = after @ jacobian(parameters, m, state, inputs)
            expected += float(pulled.norm() / after.norm() - 1) ** 2
        assert float(value[m]) == pytest.approx(expected, rel=1e-10)


@every_cell
def test_gradients_flow_through_jacobians_and_states_but_not_the_error(cell: str) -> None:
    parameters = networks(2, 3, 2, 2, cell=cell, gain=2.0).require_grad()
    inputs = normal(4, 2, 2, 5)
    fixed = step_of(parameters, inputs=inputs)
    sequences = sample_sequences(fixed, 1)
    drawn = [int(sequences.drawn[m, 0]) for m in range(2)]
    gradients = [error_gradients(step_of(parameters, inputs=inputs), m, drawn[m]) for m in range(2)]

    def oracle(own: Parameters) -> Tensor:
        states, _ = cells.run(own, inputs)
        total = torch.zeros((), dtype=torch.float64)
        for m in range(2):
            before = torch.zeros(own.state_size, dtype=torch.float64)
            for t, after in enumerate(gradients[m]):
                pulled = after @ jacobian(own, m, before, inputs[t, m, :, drawn[m]])
                total = total + (pulled.norm() / after.norm() - 1).square()
                before = states[t, m, :, drawn[m]]
        return total

    expected = torch.autograd.grad(oracle(parameters), list(parameters)[:4])
    value = once(step_of(parameters, inputs=inputs)).value.sum()
    found = torch.autograd.grad(value, list(parameters), allow_unused=True)
    assert found[4] is found[5] is None
    for gradient, own in zip(found[:4], expected, strict=True):
        assert gradient is not None
        torch.testing.assert_close(gradient, own, rtol=1e-9, atol=1e-11)


def test_no_gradient_at_all_has_no_penalty() -> None:
    parameters = networks(2, 3)
    parameters.weight_out[0] = 0
    parameters = parameters.require_grad()
    value = once(step_of(parameters)).value
    assert value[0] == 0 < value[1]
    for gradient in torch.autograd.grad(value.sum(), list(parameters)[:4]):
        assert not gradient[0].any()
        assert torch.isfinite(gradient).all()


def test_a_gradient_that_vanishes_altogether_counts_one_and_cannot_be_helped() -> None:
    parameters = networks(2, 3, cell="rnn")
    parameters.bias_hh[0] = 1e3
    parameters = parameters.require_grad()
    value = once(step_of(parameters)).value
    assert value[0] == 1
    for gradient in torch.autograd.grad(value.sum(), list(parameters)[:4]):
        assert not gradient[0].any()
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("scale", [1e-30, 1e15])
def test_the_size_of_the_error_does_not_matter(scale: float) -> None:
    parameters = networks(2, 4, dtype=torch.float32)
    expected = once(step_of(parameters)).value
    parameters.weight_out.mul_(scale)
    parameters.bias_out.zero_()
    torch.testing.assert_close(once(step_of(parameters)).value, expected)


@pytest.mark.parametrize("gain", [0.0, 1e-6, 1e6])
def test_a_long_way_back_is_no_trouble_where_the_error_enters_at_every_step(gain: float) -> None:
    parameters = networks(2, 4, cell="rnn", dtype=torch.float32)
    parameters.weight_hh.mul_(gain)
    value = once(step_of(parameters, length=40, steps=40)).value
    assert torch.isfinite(value).all()


def test_it_acts_now_and_then() -> None:
    step = step_of(networks(2, 4))
    acts = [bool(once(step).value.any()) for _ in range(2 * EVERY + 1)]
    assert acts == [turn % EVERY == 0 for turn in range(2 * EVERY + 1)]
