import numpy as np
import pytest
import torch
from plain import modules, networks, normal

from msstab import cells, frozen, moments
from msstab.noise import NOISES, Frozen


def frozen_form(name: str) -> Frozen:
    found = NOISES[name].frozen
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("cell", "layers", "steps"), [("gru", 1, 1), ("lstm", 2, 1), ("gru", 1, 3)]
)
@torch.no_grad()
def test_every_sequence_is_run_with_wrong_weights_of_its_own(
    cell: str, layers: int, steps: int
) -> None:
    """Beside torch's own layers, one network, sequence and draw after the other."""
    network = networks(1, 4, 1, 2, cell=cell, layers=layers, gain=2.0)
    inputs, targets, draws = normal(5, 1, 1, 3), normal(1, 2 * steps, 3, seed=1), 2
    errors, strength = frozen_form("weight"), 0.3
    found = frozen.frozen_run(
        network, inputs, targets, errors, strength, draws, np.random.default_rng(4)
    )
    rng = np.random.default_rng(4)
    recurrent, linear = modules(network)
    clean = linear(recurrent(inputs[:, 0].mT)[0][-steps:]).transpose(0, 1).flatten(1)
    squared, moved = [], []
    for _ in range(draws):
        same = network.select([0, 0, 0])
        wrong = frozen.disturbed(same, errors, strength, rng)
        for k in range(3):
            recurrent, linear = modules(wrong, k)
            output = linear(recurrent(inputs[:, 0, :, k])[0][-steps:]).flatten()
            squared.append((output - targets[0, :, k]).square().mean())
            moved.append((output - clean[k]).square().sum())
    assert float(found[0]) == pytest.approx(float(torch.stack(squared).mean()), rel=1e-5)
    assert float(found[1]) == pytest.approx(float(torch.stack(moved).mean()), rel=1e-5)


@pytest.mark.parametrize("layers", [1, 3])
def test_errors_are_in_the_recurrent_weights_of_every_layer_and_nowhere_else(layers: int) -> None:
    network = networks(1, 4, layers=layers)
    wrong = frozen.disturbed(network, frozen_form("quantisation"), 0.5, np.random.default_rng(0))
    changed = [not torch.equal(a, b) for a, b in zip(network, wrong, strict=True)]
    recurrent = {1, *(6 + 4 * k + 1 for k in range(layers - 1))}
    assert {k for k, own in enumerate(changed) if own} == recurrent
    largest = max(float((a - b).abs().max()) for a, b in zip(network, wrong, strict=True))
    assert 0.2 < largest <= 0.25


def test_without_errors_nothing_deviates() -> None:
    network, inputs, targets = networks(1, 4), normal(5, 1, 1, 3), normal(1, 1, 3)
    rng = np.random.default_rng(0)
    _, deviation = frozen.frozen_run(network, inputs, targets, frozen_form("weight"), 0.0, 2, rng)
    assert float(deviation) == pytest.approx(0, abs=1e-20)
    with pytest.raises(ValueError, match="noise level -1"):
        frozen.frozen_run(network, inputs, targets, frozen_form("weight"), -1, 2, rng)


@pytest.mark.parametrize(("cell", "layers"), [("gru", 1), ("lstm", 2), ("rnn", 3)])
def test_the_predicted_variance_is_that_of_automatic_differentiation(
    cell: str, layers: int
) -> None:
    network, inputs, last = (
        networks(1, 3, 1, 2, cell=cell, layers=layers, gain=2.0),
        normal(5, 1, 1, 2),
        3,
    )
    states, _ = cells.run(network, inputs)
    names = ["weight_hh", *(f"weight_hh_l{k}" for k in range(1, layers))]
    everything = cells.named(network)

    def outputs(*recurrent: torch.Tensor) -> torch.Tensor:
        tensors = {**everything, **dict(zip(names, recurrent, strict=True))}
        changed, state = network.like(tensors.values()), torch.zeros_like(states[0])
        shown = []
        for x in inputs:
            state = cells.step(changed, state, x)
            shown.append(cells.readout(changed, state))
        return torch.cat(shown[-last:], dim=1)

    own = [everything[name] for name in names]
    expected = torch.zeros(1, 2, dtype=torch.float64)
    for weight, answer in zip(
        own, torch.func.jacrev(outputs, tuple(range(layers)))(*own), strict=True
    ):
        expected += (answer.square() * (0.3 * weight).square()).sum((1, 3, 4, 5))
    found = frozen.frozen_variance(network, inputs, states, frozen_form("weight"), 0.3, last)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=0)
    alone = frozen.frozen_variance(network, inputs, states, frozen_form("weight"), 0.3)
    torch.testing.assert_close(
        alone, moments.frozen_output_variance(network, inputs, states, NOISES["weight"], 0.3)
    )
