from collections.abc import Sequence

import numpy as np
import pytest
import torch
from plain import networks, normal
from torch import Tensor

from msstab import cells, noise, training
from msstab.arms import ARMS, Forward, noise_injection
from msstab.arms.noise_injection import noisy_run
from msstab.cells import Parameters
from msstab.noise import NOISES, Noise
from msstab.noisy import noisy_step

HALVES = torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]], dtype=torch.float64)
STRUCTURES: dict[str, Noise] = {
    **NOISES,
    "groups": noise.gain(HALVES),
    "weights of one unit": noise.weight(torch.tensor([1.0, 0.0, 0.0, 0.0])),
    "states alone": noise.total([(NOISES["unit"], 0.5), (NOISES["gain"], 0.7)]),
    "every kind": noise.total(
        [
            (noise.gain(HALVES), 0.4),
            (NOISES["weight"], 0.3),
            (noise.low_rank(normal(12, seed=7), normal(4, seed=8)), 0.2),
            (NOISES["unit"], 0.5),
            (NOISES["quantisation"], 0.6),
        ]
    ),
}
every_structure = pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
every_cell = pytest.mark.parametrize("cell", cells.CELLS)


def forward(
    parameters: Parameters,
    inputs: Tensor,
    structure: Noise = NOISES["unit"],
    *,
    sigma: float = 0.4,
    strengths: Sequence[float] = (1.0, 0.5, 0.25),
    seed: int = 0,
    first: int = 0,
    steps: int = 1,
) -> Forward:
    """What the arm is given, with the streams of the models from `first` on."""
    length, models, _, batch = inputs.shape
    return Forward(
        parameters,
        inputs,
        cells.workspace(length, parameters, cells.padded(batch, parameters.hidden)),
        structure,
        sigma,
        torch.tensor(strengths, dtype=torch.float64),
        [np.random.default_rng([seed, model]) for model in range(first, first + models)],
        steps,
    )


def drawn(given: Forward, numbers: int) -> Tensor:
    """The standard normal numbers of a run: (T, M, numbers, B)."""
    length, _, _, batch = given.inputs.shape
    found = []
    for stream in given.streams:
        generator = torch.Generator()
        generator.manual_seed(int(stream.integers(2**32)))
        shape = (length, numbers, batch)
        found.append(torch.empty(shape, dtype=given.inputs.dtype).normal_(generator=generator))
    return torch.stack(found, dim=1)


@every_structure
@pytest.mark.parametrize("steps", [1, 4])
def test_the_run_takes_noisy_steps_of_strength_times_sigma(structure: Noise, steps: int) -> None:
    parameters = networks(3, 4, 2, gain=2.0).require_grad()
    inputs = normal(6, 3, 2, 5)
    given = forward(parameters, inputs, structure, steps=steps)
    outputs = noisy_run(given)
    numbers = drawn(
        forward(parameters, inputs), structure.state_numbers(4) + structure.weight_numbers(12)
    )
    gradients = torch.autograd.grad(outputs.square().sum(), list(parameters))
    for m, strength in enumerate((1.0, 0.5, 0.25)):
        own = parameters.select([m])
        state = torch.zeros(1, 4, 5, dtype=torch.float64)
        states = []
        for t in range(6):
            normals = numbers[t, m]
            if t == 0:  # nothing acts on a state of zeros
                state = cells.step(own, state, inputs[t, [m]])
            else:
                level = 0.4 * strength
                state = noisy_step(own, state, inputs[t, [m]], structure, level, normals)
            states.append(state)
        readouts = [cells.readout(own, state) for state in states[-steps:]]
        expected_outputs = torch.cat(readouts, dim=1)
        torch.testing.assert_close(outputs[[m]], expected_outputs, rtol=0, atol=1e-13)
        expected = torch.autograd.grad(expected_outputs.square().sum(), list(parameters))
        for gradient, oracle in zip(gradients, expected, strict=True):
            assert torch.isfinite(gradient[m]).all()
            scale = max(1.0, float(oracle.abs().max()))
            torch.testing.assert_close(gradient[m], oracle[m], rtol=0, atol=1e-11 * scale)


@every_cell
@pytest.mark.parametrize("name", NOISES)
def test_without_strength_the_run_is_the_clean_one(cell: str, name: str) -> None:
    parameters = networks(3, 4, cell=cell).require_grad()
    inputs = normal(6, 3, 1, 5)
    found = noisy_run(forward(parameters, inputs, NOISES[name], strengths=(0.0, 0.0, 0.0)))
    torch.testing.assert_close(found, cells.forecast(parameters, inputs), rtol=0, atol=1e-15)
    for gradient in torch.autograd.grad(found.sum(), list(parameters)):
        assert torch.isfinite(gradient).all()


@every_cell
def test_noise_has_the_level_asked_for(cell: str) -> None:
    """Two steps from zero carry noise once: the state before the second one is known."""
    parameters = networks(1, 4, cell=cell)
    inputs = normal(2, 1, 1, 1).expand(2, 1, 1, 4000)
    given = forward(parameters, inputs, sigma=0.02, strengths=(0.5,))
    outputs = noisy_run(given)
    clean, _ = cells.run(parameters, inputs[..., :1])
    jacobian = cells.jacobian(parameters, clean[0], inputs[1, ..., :1])[0, 0]
    swing = parameters.weight_out[0] @ jacobian[: parameters.hidden]
    variance = swing.square() @ (0.01 * clean[0, 0, :, 0]).square()
    torch.testing.assert_close(outputs[0].var(dim=1), variance, rtol=0.1, atol=0)


@pytest.mark.parametrize("name", NOISES)
def test_noise_is_fresh_at_every_call_and_for_every_model(name: str) -> None:
    parameters = networks(1, 4).select([0, 0])
    inputs = normal(6, 1, 1, 5).expand(6, 2, 1, 5)
    given = forward(parameters, inputs, NOISES[name], strengths=(1.0, 1.0))
    first, second = noisy_run(given), noisy_run(given)
    assert (first - second).abs().min() > 0
    assert (first[0] - first[1]).abs().min() > 0
    alike = inputs[..., :1].expand(6, 2, 1, 5)
    columns = noisy_run(forward(parameters, alike, NOISES[name], strengths=(1.0, 1.0)))
    assert len(set(columns[0, 0].tolist())) == 5


@every_cell
@pytest.mark.parametrize("name", NOISES)
def test_a_models_numbers_do_not_depend_on_its_company(cell: str, name: str) -> None:
    parameters = networks(3, 6, 2, cell=cell, gain=2.0, dtype=torch.float32).require_grad()
    inputs = normal(6, 3, 2, 9, dtype=torch.float32)

    def numbers(own: Parameters, given: Forward) -> list[Tensor]:
        outputs = noisy_run(given)
        return [outputs, *torch.autograd.grad(outputs.square().sum(), list(own))]

    together = numbers(parameters, forward(parameters, inputs, NOISES[name]))
    for m, strength in enumerate((1.0, 0.5, 0.25)):
        own = parameters.select([m]).require_grad()
        structure = NOISES[name]
        given = forward(own, inputs[:, [m]], structure, strengths=(strength,), first=m)
        for a, b in zip(numbers(own, given), together, strict=True):
            assert torch.equal(a[0], b[m])


@pytest.mark.parametrize("name", ["unit", "weight"])
def test_a_diverged_model_stays_so_and_alone(name: str) -> None:
    parameters = networks(3, 6, dtype=torch.float32)
    inputs = normal(6, 3, 1, 9, dtype=torch.float32)
    clean = noisy_run(forward(parameters, inputs, NOISES[name]))
    parameters.weight_hh[1, 0, 0] = torch.nan
    parameters = parameters.require_grad()
    outputs = noisy_run(forward(parameters, inputs, NOISES[name]))
    assert torch.equal(outputs[[0, 2]], clean[[0, 2]])
    assert torch.isnan(outputs[1]).all()
    for gradient in torch.autograd.grad(outputs.sum(), list(parameters)):
        assert torch.isfinite(gradient[[0, 2]]).all()


@pytest.mark.parametrize(("name", "sigma"), [("unit", 0.5), ("quantisation", 2.0)])
def test_training_under_noise_lowers_the_error_under_noise(name: str, sigma: float) -> None:
    inputs = normal(2, 64, 8, 1, dtype=torch.float32)
    targets = inputs.mean(dim=2)
    orders = torch.stack([torch.stack([torch.randperm(64) for _ in range(60)])] * 2)
    initial = networks(1, 8, dtype=torch.float32).select([0, 0])

    def trained(strength: float) -> float:
        result = training.train(
            initial,
            inputs[[0, 0]],
            targets[[0, 0]],
            orders,
            torch.tensor([0.01, 0.01]),
            batch=32,
            arm=ARMS["noise_injection"],
            strengths=torch.tensor([strength, strength]),
            noise=NOISES[name],
            sigma=sigma,
            streams=[np.random.default_rng([m]) for m in range(2)],
        )
        given = forward(
            result.parameters,
            inputs[[0, 0]].permute(2, 0, 3, 1),
            NOISES[name],
            sigma=sigma,
            strengths=(1.0, 1.0),
        )
        outputs = noisy_run(given)
        assert (result.active == 1).all()
        return float((outputs - targets[[0, 0]].mT).square().mean())

    assert trained(1.0) < 0.8 * trained(0.0)


def test_the_arm_is_a_run_and_no_penalty() -> None:
    assert noise_injection is ARMS["noise_injection"]
    assert noise_injection.run is noisy_run
    assert noise_injection.penalise is None
