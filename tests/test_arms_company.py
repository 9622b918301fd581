"""What every arm owes to the models of a stack: their numbers depend on nobody else's."""

import numpy as np
import pytest
import torch
from plain import networks, normal, of_models, step_of
from torch import Tensor

from msstab import arms, cells, training
from msstab.arms import Penalty, Step
from msstab.cells import Parameters
from msstab.noise import NOISES
from msstab.training import Trained

PENALTIES = [name for name, arm in arms.ARMS.items() if arm is not None and arm.penalise]
OPEN = 1e-3
"""A target below all radii and bounds here, so that every hinge is open."""

every_penalty = pytest.mark.parametrize("name", PENALTIES)
every_cell = pytest.mark.parametrize("cell", cells.CELLS)


def penalty_of(name: str, step: Step) -> Penalty:
    arm = arms.find(name)
    assert arm is not None
    return arm(step)


def gradients(parameters: Parameters, penalty: Tensor) -> list[Tensor]:
    found = torch.autograd.grad(penalty.sum(), list(parameters), allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for g, p in zip(found, parameters, strict=True)]


@every_penalty
@every_cell
@pytest.mark.parametrize(("hidden", "steps"), [(5, 1), (8, 1), (32, 1), (8, 3)])
def test_a_models_penalty_does_not_depend_on_the_others(
    name: str, cell: str, hidden: int, steps: int
) -> None:
    parameters = networks(4, hidden, cell=cell, gain=2.0, dtype=torch.float32).require_grad()
    step = step_of(parameters, target=OPEN, steps=steps)
    together = penalty_of(name, step)
    assert together.active.min() > 0
    whole = gradients(parameters, together.value)
    # A model of its own is trained with a copy, see `training.train`.
    for chosen in ([0, 0], [2, 1], [1, 2, 3]):
        own = parameters.select(chosen).require_grad()
        found = penalty_of(name, of_models(step, own, chosen))
        assert torch.equal(found.value, together.value[chosen])
        assert torch.equal(found.active, together.active[chosen])
        for gradient, all_of_them in zip(gradients(own, found.value), whole, strict=True):
            assert torch.equal(gradient, all_of_them[chosen])


@every_penalty
@every_cell
def test_a_diverged_model_stays_so_and_alone(name: str, cell: str) -> None:
    parameters = networks(3, 6, cell=cell, gain=2.0, dtype=torch.float32)
    clean = penalty_of(name, step_of(parameters, target=OPEN)).value
    parameters.weight_hh[1, 0, 0] = torch.nan
    parameters = parameters.require_grad()
    found = penalty_of(name, step_of(parameters, target=OPEN)).value
    assert torch.equal(found[[0, 2]], clean[[0, 2]])
    assert torch.isnan(found[1])
    for gradient in gradients(parameters, found):
        assert torch.isfinite(gradient[[0, 2]]).all()


@pytest.mark.parametrize("name", [name for name, arm in arms.ARMS.items() if arm is not None])
@pytest.mark.parametrize(("target", "steps"), [(1.0, 1), (OPEN, 1), (OPEN, 6)])
def test_training_gives_each_model_what_it_would_get_alone(
    name: str, target: float, steps: int
) -> None:
    """With one model that diverges, and a last batch of a single sequence."""
    models, sequences = 3, 9
    initial = networks(models, 5, gain=2.0, dtype=torch.float32)
    inputs = normal(models, sequences, 6, 1, dtype=torch.float32)
    orders = torch.as_tensor(
        np.array(
            [
                [np.random.default_rng([model, epoch]).permutation(sequences) for epoch in range(4)]
                for model in range(models)
            ]
        )
    )
    rates = torch.tensor([0.01, 1e30, 0.02])

    def trained(chosen: list[int]) -> Trained:
        return training.train(
            initial.select(chosen),
            inputs[chosen],
            inputs[chosen, :, -steps:],
            orders[chosen],
            rates[chosen],
            batch=4,
            arm=arms.find(name),
            strengths=torch.ones(len(chosen)),
            noise=NOISES["unit"],
            sigma=0.2,
            target=target,
            streams=[np.random.default_rng([3, model]) for model in chosen],
        )

    together = trained([0, 1, 2])
    assert not together.parameters.weight_hh[1].isfinite().all()
    for model in (0, 2):
        alone = trained([model])
        for one, all_of_them in zip(alone.parameters, together.parameters, strict=True):
            assert torch.equal(one[0], all_of_them[model])
        assert np.array_equal(alone.active[0], together.active[model])
