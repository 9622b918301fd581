import dataclasses

import numpy as np
import pytest
import torch
from plain import jacobian, networks, normal
from torch import Tensor

from msstab import cells, evaluation, moments, noise, operators
from msstab.cells import Parameters
from msstab.noise import NOISES, Noise
from msstab.noisy import noisy_step
from msstab.operators import Operator

UNIT = NOISES["unit"]

every_cell = pytest.mark.parametrize("cell", cells.CELLS)
every_network = pytest.mark.parametrize(
    ("cell", "layers"), [(cell, layers) for cell in cells.CELLS for layers in (1, 2)]
)


def clean_states(parameters: Parameters, inputs: Tensor) -> Tensor:
    states, _ = cells.run(parameters, inputs)
    return states


def dense_unit(moment: Tensor, jacobian: Tensor, state: Tensor, sigma: float) -> Tensor:
    """(J kron J) (I + s^2 E) vec P + s^2 (J kron J) vec diag(h^2); E keeps the diagonal of P."""
    n = len(state)
    lift = torch.kron(jacobian, jacobian)
    selector = torch.diag(torch.eye(n, dtype=moment.dtype).flatten())
    forcing = torch.diag(state**2).flatten()
    vector = lift @ (torch.eye(n * n, dtype=moment.dtype) + sigma**2 * selector) @ moment.flatten()
    return (vector + sigma**2 * lift @ forcing).view(n, n)


# ---- along a trajectory


@every_network
def test_the_forced_moment_takes_each_steps_jacobian_and_the_state_before_it(
    cell: str, layers: int
) -> None:
    parameters = networks(2, 4, 2, cell=cell, layers=layers, gain=2.0)
    inputs = normal(6, 2, 2, 3)
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


@pytest.mark.parametrize(
    ("structure", "strength"),
    [
        (NOISES["gain"], 0.05),
        (NOISES["weight"], 0.05),
        (NOISES["quantisation"], 0.05),
        (noise.total([(NOISES["unit"], 1.0), (NOISES["weight"], 1.0)]), 0.05),
    ],
    ids=["gain", "weight", "quantisation", "sum"],
)
def test_the_output_varies_as_predicted_under_every_structure(
    structure: Noise, strength: float
) -> None:
    parameters, inputs = networks(1, 8, gain=2.2), normal(12, 1, 1, 2)
    states = clean_states(parameters, inputs)
    moment = moments.forced_second_moment(parameters, inputs, states, structure, strength)
    predicted = moments.output_variance(parameters, moment).mean()
    rng = np.random.default_rng(0)
    run = evaluation.noisy_run(
        parameters, inputs, torch.zeros(1, 1, 2).double(), structure, strength, 20_000, rng
    )
    assert float(run.output_variance) == pytest.approx(float(predicted), rel=0.05)


# ---- forecasts fed back


def closed_loop_step(parameters: Parameters, m: int, state: Tensor) -> Tensor:
    """One step on the readout of the state before it."""
    own = parameters.select([m])
    h = state[None, :, None]
    return cells.step(own, h, cells.readout(own, h))[0, :, 0]


def test_the_closed_loops_jacobian_is_that_of_automatic_differentiation() -> None:
    parameters = networks(2, 5, 2, 2, gain=2.0)
    state = 0.3 * normal(2, 5, 3)
    states = torch.stack([state, state])
    inputs = torch.stack([torch.zeros(2, 2, 3).double(), cells.readout(parameters, state)])
    *_, found = moments.linearisations(parameters, inputs, states, closed_loop=True)
    *_, opened = moments.linearisations(parameters, inputs, states)
    for m in range(2):
        for b in range(3):
            expected = torch.func.jacrev(lambda h, m=m: closed_loop_step(parameters, m, h))(
                state[m, :, b]
            )
            assert (found.jacobian[m, b] - expected).abs().max() < 1e-12
    assert torch.equal(found.entry, opened.jacobian)


def test_outputs_that_are_not_inputs_cannot_be_fed_back() -> None:
    parameters, inputs = networks(1, 4, 2), normal(3, 1, 2, 1)
    states = clean_states(parameters, inputs)
    with pytest.raises(ValueError, match="1 outputs cannot be fed back as 2 inputs"):
        next(iter(moments.linearisations(parameters, inputs, states, closed_loop=True)))


@pytest.mark.parametrize("name", NOISES)
def test_a_free_run_varies_as_the_closed_loop_predicts(name: str) -> None:
    structure, strength, draws, steps = NOISES[name], 0.03, 20_000, 8
    parameters = networks(1, 6, gain=2.2)
    parameters = dataclasses.replace(parameters, weight_out=4 * parameters.weight_out)
    count = structure.state_numbers(6) + structure.weight_numbers(18)
    state = torch.zeros(1, 6, 1, dtype=torch.float64)
    noisy = state.expand(1, 6, draws)
    states, inputs = [], []
    for t in range(steps):
        inputs.append(cells.readout(parameters, state))
        fed_back = cells.readout(parameters, noisy)
        state = cells.step(parameters, state, inputs[-1])
        normals = normal(count, draws, seed=t)
        noisy = noisy_step(parameters, noisy, fed_back, structure, strength, normals)
        states.append(state)
    args = (parameters, torch.stack(inputs), torch.stack(states), structure, strength)
    moment = moments.forced_second_moment(*args, closed_loop=True)
    opened = moments.forced_second_moment(*args)
    observed = (noisy - state).square().sum(1).mean()
    assert float(observed) == pytest.approx(float(moment[0, 0].trace()), rel=0.05)
    # The feedback must matter for the comparison to say anything about it.
    assert abs(float(moment[0, 0].trace() / opened[0, 0].trace()) - 1) > 0.2


# ---- noise drawn once for a whole run


@every_network
@pytest.mark.parametrize("closed_loop", [False, True])
def test_frozen_sensitivities_are_those_of_automatic_differentiation(
    cell: str, layers: int, closed_loop: bool
) -> None:
    parameters = networks(2, 3, 2, 2, cell=cell, layers=layers, gain=2.0)
    inputs = normal(5, 2, 2, 3)
    if closed_loop:
        states, fed = free_run(parameters, normal(2, 2, 3), 5)
        inputs = fed
    else:
        states = clean_states(parameters, inputs)
    structure = noise.total([(NOISES["weight"], 1.0), (NOISES["quantisation"], 0.5)])
    found = moments.frozen_output_variance(
        parameters, inputs, states, structure, 0.3, closed_loop=closed_loop
    )

    names = ["weight_hh", "weight_hh_l1"][:layers]
    everything = cells.named(parameters)

    def outputs(*recurrent: Tensor) -> Tensor:
        changed = parameters.like(
            {**everything, **dict(zip(names, recurrent, strict=True))}.values()
        )
        if closed_loop:
            after, _ = free_run(changed, inputs[0], 5)
        else:
            state = torch.zeros_like(states[0])
            for x in inputs:
                state = cells.step(changed, state, x)
            after = state[None]
        return cells.readout(changed, after[-1])

    own = [everything[name] for name in names]
    expected = torch.zeros_like(found)
    for k, sensitivity in enumerate(torch.func.jacrev(outputs, tuple(range(layers)))(*own)):
        variance = (0.3 * own[k]).square() + 0.15**2 / 12
        for m in range(2):
            expected[m] += (sensitivity[m, :, :, m].square() * variance[m]).sum((0, 2, 3))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=0)


def free_run(parameters: Parameters, first: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """States and inputs of a run whose forecasts are its next inputs."""
    state = first.new_zeros(len(parameters.bias_hh), parameters.state_size, first.shape[-1])
    states, inputs = [], [first]
    for _ in range(steps):
        state = cells.step(parameters, state, inputs[-1])
        states.append(state)
        inputs.append(cells.readout(parameters, state))
    return torch.stack(states), torch.stack(inputs[:-1])


@pytest.mark.parametrize(("name", "strength"), [("weight", 0.03), ("quantisation", 0.05)])
def test_networks_of_wrong_weights_vary_as_the_frozen_form_predicts(
    name: str, strength: float
) -> None:
    draws, structure = 8_000, NOISES[name]
    parameters, inputs = networks(1, 6, gain=2.0), normal(20, 1, 1, 1)
    states = clean_states(parameters, inputs)
    args = (parameters, inputs, states, structure, strength)
    predicted = float(moments.frozen_output_variance(*args))
    assert structure.frozen is not None
    many = parameters.select([0] * draws)
    errors = structure.frozen.draw(many.weight_hh, strength, np.random.default_rng(0))
    wrong = dataclasses.replace(many, weight_hh=many.weight_hh + errors)
    _, outputs = cells.run(wrong, inputs.expand(20, draws, 1, 1))
    _, clean = cells.run(parameters, inputs)
    observed = float((outputs - clean).square().mean())
    assert observed == pytest.approx(predicted, rel=0.05)
    # White noise of the same size is another thing.
    white = moments.output_variance(parameters, moments.forced_second_moment(*args))
    assert abs(float(white) / observed - 1) > 0.15


def test_noise_of_the_state_has_no_frozen_form() -> None:
    parameters, inputs = networks(1, 4), normal(3, 1, 1, 1)
    states = clean_states(parameters, inputs)
    with pytest.raises(ValueError, match="frozen"):
        moments.frozen_output_variance(parameters, inputs, states, UNIT, 0.1)


# ---- growth


def scaled(factor: float) -> Operator:
    """A rotation that grows: P -> factor P in every direction of symmetric matrices' trace."""
    rotation = torch.linalg.qr(normal(4, 4))[0]
    return operators.noiseless(factor**0.5 * rotation)


def test_growth_is_the_mean_log_factor_after_settling() -> None:
    steps = [scaled(factor) for factor in (7.0, 2.0, 3.0, 0.5)]
    found = moments.growth_rate(steps, settle=1)
    assert float(found) == pytest.approx(np.log(2 * 3 * 0.5) / 3, abs=1e-12)


def test_growth_neither_overflows_nor_vanishes_in_long_runs() -> None:
    for factor in (1e-9, 1e9):
        found = moments.growth_rate([scaled(factor)] * 500)
        assert float(found) == pytest.approx(np.log(factor), rel=1e-12)


def test_growth_is_that_of_the_product_of_the_operators() -> None:
    parameters, inputs = networks(2, 4, 2, gain=2.0), normal(6, 2, 2, 3)
    states = clean_states(parameters, inputs)
    steps = [
        NOISES["weight"].operator(s, 0.3)
        for s in moments.linearisations(parameters, inputs, states)
    ]
    found = moments.growth_rate(steps)
    product = torch.eye(16, dtype=torch.float64)
    for step in steps:
        product = operators.matrix(step) @ product
    traces = (product @ torch.eye(4).double().flatten())[..., ::5].sum(-1) / 4
    torch.testing.assert_close(found, traces.log() / 6)


@pytest.mark.parametrize(("steps", "message"), [([], "leave none"), ([scaled(0.0)], "vanishes")])
def test_growth_that_cannot_be_measured_is_an_error(steps: list[Operator], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        moments.growth_rate(steps)


@every_network
@pytest.mark.parametrize("name", [*NOISES, "low rank", "sum"])
def test_every_networks_outputs_vary_as_predicted(cell: str, layers: int, name: str) -> None:
    parameters, strength = networks(1, 6, cell=cell, layers=layers, gain=1.5), 0.03
    structure = {
        **NOISES,
        "low rank": noise.low_rank(normal(parameters.weight_hh.shape[1], seed=5), normal(6)),
        "sum": noise.total([(NOISES["weight"], 1.0), (NOISES["unit"], 1.0)]),
    }[name]
    inputs, draws = normal(12, 1, 1, 2), 20_000
    states = clean_states(parameters, inputs)
    moment = moments.forced_second_moment(parameters, inputs, states, structure, strength)
    predicted = float(moments.output_variance(parameters, moment).mean())
    targets = torch.zeros(1, 1, 2, dtype=inputs.dtype)
    rng = np.random.default_rng(0)
    run = evaluation.noisy_run(parameters, inputs, targets, structure, strength, draws, rng)
    assert float(run.output_variance) == pytest.approx(predicted, rel=0.05)


@every_network
def test_every_networks_closed_loop_feeds_the_readout_back(cell: str, layers: int) -> None:
    parameters = networks(1, 4, cell=cell, layers=layers, gain=2.0)
    inputs = normal(3, 1, 1, 2)
    states = clean_states(parameters, inputs)
    steps = moments.linearisations(parameters, inputs, states, closed_loop=True)
    before = torch.cat([torch.zeros_like(states[:1]), states[:-1]])
    for x, h, found in zip(inputs, before, steps, strict=True):
        for b in range(2):

            def fed_back(h: Tensor, x: Tensor = x, h0: Tensor = h, b: int = b) -> Tensor:
                change = parameters.weight_out[0] @ (h - h0[0, :, b])[: parameters.hidden]
                return cells.step(parameters, h[None, :, None], x[:, :, b : b + 1] + change)[
                    0, :, 0
                ]

            expected = torch.func.jacrev(fed_back)(h[0, :, b])
            np.testing.assert_allclose(found.jacobian[0, b], expected, atol=1e-12)


def test_several_outputs_vary_as_each_of_them_does() -> None:
    parameters = networks(2, 4, 2, 2, gain=1.8)
    inputs = normal(6, 2, 2, 3)
    states, _ = cells.run(parameters, inputs)
    steps = list(moments.linearisations(parameters, inputs, states))
    found = moments.output_variances(parameters, steps, states, UNIT, (0.1, 0.3), last=4)
    for level, own in zip((0.1, 0.3), found, strict=True):
        expected = sum(
            moments.output_variance(
                parameters,
                moments.forced_second_moment(parameters, inputs[:t], states[:t], UNIT, level),
            )
            for t in range(3, 7)
        )
        torch.testing.assert_close(own, expected, rtol=1e-10, atol=0)
