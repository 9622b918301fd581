import numpy as np
import pytest
import torch
from plain import jacobian, networks, normal
from torch import Tensor

from msstab import cells, moments
from msstab.cells import Parameters
from msstab.noise import NOISES, Noise

UNIT = NOISES["unit"]

every_cell = pytest.mark.parametrize("cell", cells.CELLS)


def clean_states(parameters: Parameters, inputs: Tensor) -> Tensor:
    states, _ = cells.run(parameters, inputs)
    return states


# ---- one step of a noise structure


def dense_unit(moment: Tensor, jacobian: Tensor, state: Tensor, sigma: float) -> Tensor:
    """(J kron J) (I + s^2 E) vec P + s^2 (J kron J) vec diag(h^2); E keeps the diagonal of P."""
    n = len(state)
    lift = torch.kron(jacobian, jacobian)
    selector = torch.diag(torch.eye(n, dtype=moment.dtype).flatten())
    forcing = torch.diag(state**2).flatten()
    vector = lift @ (torch.eye(n * n, dtype=moment.dtype) + sigma**2 * selector) @ moment.flatten()
    return (vector + sigma**2 * lift @ forcing).view(n, n)


@pytest.mark.parametrize("n", [1, 3, 8])
@pytest.mark.parametrize("sigma", [0.0, 0.2, 1.5])
def test_unit_noise_propagates_as_the_dense_lifted_operator_says(n: int, sigma: float) -> None:
    factor, jacobians, states = normal(4, n, n), normal(4, n, n, seed=1), normal(4, n, seed=2)
    moment = factor @ factor.mT
    found = UNIT.propagate(moment, jacobians, states, sigma)
    for k in range(4):
        expected = dense_unit(moment[k], jacobians[k], states[k], sigma)
        torch.testing.assert_close(
            found[k], expected, rtol=0, atol=1e-12 * float(expected.abs().max())
        )


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_what_is_simulated_is_what_is_predicted(noise: Noise) -> None:
    """One linear step from a random deviation, by the sampler and by the propagation."""
    n, draws, sigma = 3, 400_000, 0.5
    factor, j, state = normal(n, n), normal(n, n, seed=1), normal(n, seed=2)
    deviation = factor @ normal(n, draws, seed=3)
    noisy = noise.perturb(state[:, None] + deviation, normal(n, draws, seed=4), sigma)
    after = j @ (noisy - state[:, None])
    expected = noise.propagate(factor @ factor.T, j, state, sigma)
    # An entry of a covariance from 400 000 draws errs by less than 0.5% of the largest.
    assert (after @ after.T / draws - expected).abs().max() < 0.01 * expected.abs().max()


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_no_noise_perturbs_nothing(noise: Noise) -> None:
    state = normal(2, 3, 4)
    assert torch.equal(noise.perturb(state, normal(2, 3, 4, seed=1), 0.0), state)


# ---- along a trajectory


@every_cell
def test_the_forced_moment_takes_each_steps_jacobian_and_the_state_before_it(cell: str) -> None:
    parameters, inputs = networks(2, 4, 2, cell=cell, gain=2.0), normal(6, 2, 2, 3)
    size = parameters.state_size
    states = clean_states(parameters, inputs)
    found = moments.forced_second_moment(parameters, inputs, states, UNIT, 0.3)
    assert found.shape == (2, 3, size, size)
    for m in range(2):
        for b in range(3):
            moment = torch.zeros(size, size, dtype=torch.float64)
            state = torch.zeros(size, dtype=torch.float64)
            for t in range(6):
                j = jacobian(parameters, m, state, inputs[t, m, :, b])
                moment = dense_unit(moment, j, state, 0.3)
                state = states[t, m, :, b]
            torch.testing.assert_close(found[m, b], moment, rtol=0, atol=1e-12)


def nearly_linear(seed: int) -> tuple[Parameters, Tensor, Tensor, Tensor]:
    """A GRU of constant gates at so small an amplitude that h' = A h + B x to 1e-8 of itself."""
    parameters = networks(1, 5, 2, gain=2.5, seed=seed)
    for tensor in (parameters.weight_ih, parameters.weight_hh, parameters.bias_ih):
        tensor[:, :10] = 0
    parameters.bias_ih[:, 10:] = 0
    parameters.bias_hh[:, 10:] = 0
    gates = torch.sigmoid(parameters.bias_hh[0, :10])
    reset, update = gates[:5, None], gates[5:, None]
    to_state = torch.diag(update[:, 0]) + (1 - update) * reset * parameters.weight_hh[0, 10:]
    from_input = (1 - update) * parameters.weight_ih[0, 10:]
    return parameters, to_state, from_input, 1e-5 * normal(9, 1, 2, 3, seed=seed)


@pytest.mark.parametrize("sigma", [0.2, 1.0])
def test_a_linear_network_has_its_exact_second_moment(sigma: float) -> None:
    """Where the network is linear, E[h h^T] obeys a recursion of its own, for any noise."""
    parameters, to_state, from_input, inputs = nearly_linear(seed=4)
    states = clean_states(parameters, inputs)
    found = moments.forced_second_moment(parameters, inputs, states, UNIT, sigma)
    for b in range(3):
        mean, raw = torch.zeros(5, dtype=torch.float64), torch.zeros(5, 5, dtype=torch.float64)
        for x in inputs[:, 0, :, b]:
            drive = from_input @ x
            spread = raw + sigma**2 * torch.diag(torch.diag(raw))
            mean_after = to_state @ mean
            cross = torch.outer(mean_after, drive)
            raw = to_state @ spread @ to_state.T + cross + cross.T + torch.outer(drive, drive)
            mean = mean_after + drive
        torch.testing.assert_close(mean, states[-1, 0, :, b], rtol=1e-6, atol=0)
        expected = raw - torch.outer(mean, mean)
        torch.testing.assert_close(
            found[0, b], expected, rtol=0, atol=1e-6 * float(expected.abs().max())
        )


@pytest.mark.parametrize(
    ("cell", "gain"), [("gru", 1.0), ("gru", 2.2), ("lstm", 2.2), ("rnn", 1.0)]
)
def test_the_forced_moment_is_what_simulation_shows(cell: str, gain: float) -> None:
    sigma, draws = 0.1, 20_000
    parameters, inputs = networks(1, 8, cell=cell, gain=gain), normal(12, 1, 1, 2)
    size = parameters.state_size
    states = clean_states(parameters, inputs)
    found = moments.forced_second_moment(parameters, inputs, states, UNIT, sigma)
    for b in range(2):
        state = torch.zeros(1, size, draws, dtype=torch.float64)
        for t, x in enumerate(inputs[..., [b]]):
            noisy = UNIT.perturb(state, normal(1, size, draws, seed=t), sigma)
            state = cells.step(parameters, noisy, x.expand(-1, -1, draws))
        deviation = state[0] - states[-1, 0, :, [b]]
        observed = deviation @ deviation.T / draws
        assert (found[0, b] - observed).abs().max() < 0.04 * observed.abs().max()
        assert float(found[0, b].trace()) == pytest.approx(float(observed.trace()), rel=0.03)


def test_without_noise_nothing_is_forced() -> None:
    parameters, inputs = networks(1, 4), normal(5, 1, 1, 2)
    found = moments.forced_second_moment(
        parameters, inputs, clean_states(parameters, inputs), UNIT, 0.0
    )
    assert not found.any()


def test_the_placebo_has_another_networks_jacobians_and_nothing_else() -> None:
    parameters, other = networks(1, 4, gain=2.0), networks(1, 4, gain=2.0, seed=1)
    inputs = normal(6, 1, 1, 3)
    states, other_states = clean_states(parameters, inputs), clean_states(other, inputs)
    args = (parameters, inputs, states, UNIT, 0.3)
    real = moments.forced_second_moment(*args)
    placebo = moments.forced_second_moment(*args, jacobian_of=(other, other_states))
    itself = moments.forced_second_moment(*args, jacobian_of=(parameters, states))
    assert torch.equal(itself, real)
    for b in range(3):
        moment = torch.zeros(4, 4, dtype=torch.float64)
        for t in range(6):
            before = slice(t - 1, t)
            state, other_state = (
                s[before, 0, :, b].sum(0) if t else torch.zeros(4, dtype=torch.float64)
                for s in (states, other_states)
            )
            j = jacobian(other, 0, other_state, inputs[t, 0, :, b])
            moment = dense_unit(moment, j, state, 0.3)
        torch.testing.assert_close(placebo[0, b], moment, rtol=0, atol=1e-12)
    assert ((placebo - real).abs().amax((1, 2, 3)) > 0.1 * real.abs().amax((1, 2, 3))).all()


def test_output_variance_is_that_of_the_readout() -> None:
    parameters = networks(3, 5, n_outputs=2)
    factor = normal(3, 4, 5, 5)
    moment = factor @ factor.mT
    found = moments.output_variance(parameters, moment)
    w = parameters.weight_out.numpy()
    expected = np.einsum("moi,mbij,moj->mb", w, moment.numpy(), w)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13)


def test_output_variance_is_that_of_the_hidden_units_alone() -> None:
    parameters = networks(3, 5, n_outputs=2, cell="lstm")
    factor = normal(3, 4, 10, 10)
    moment = factor @ factor.mT
    found = moments.output_variance(parameters, moment)
    w, shown = parameters.weight_out.numpy(), moment[..., :5, :5].numpy()
    np.testing.assert_allclose(found, np.einsum("moi,mbij,moj->mb", w, shown, w), rtol=1e-13)
