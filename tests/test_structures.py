import numpy as np
import pytest
import torch
from plain import networks, normal

from msstab import cells, noise, structures
from msstab.noise import NOISES
from msstab.noisy import noisy_step, normal_numbers

NAMES = ("unit", "gain", "weight", "quantisation")
SHAPES = [("gru", 1), ("lstm", 1), ("rnn", 2)]


@pytest.mark.parametrize(("cell", "layers"), SHAPES)
def test_the_disturbance_of_a_step_is_what_its_simulation_shows(cell: str, layers: int) -> None:
    """Every step from the clean state, many times, under noise and without."""
    network = networks(1, 4, cell=cell, layers=layers, gain=2.0)
    inputs, strength, draws = normal(6, 1, 1, 2), 1e-3, 6_000
    states, _ = cells.run(network, inputs)
    before = torch.cat([torch.zeros_like(states[:1]), states[:-1]])
    for name, structure in structures.white_structures(network, NAMES).items():
        found = structures.disturbance(network, inputs, structure)
        numbers = normal_numbers(network, structure)
        moved = []
        for k, (x, state) in enumerate(zip(inputs, before, strict=True)):
            many, same = (t.repeat_interleave(draws, dim=-1) for t in (x, state))
            drawn = normal(numbers, many.shape[-1], seed=k)
            after = noisy_step(network, same, many, structure, strength, drawn)
            moved.append((after - cells.step(network, same, many)).square().sum(1).mean())
        assert float(found) == pytest.approx(
            float(torch.stack(moved).mean()) / strength**2, rel=0.05
        ), name


def test_at_matched_strength_every_structure_disturbs_alike() -> None:
    network, inputs = networks(1, 6, gain=2.0), normal(8, 1, 1, 3)
    made = structures.white_structures(network, NAMES)
    unmatched = {
        name: float(structures.disturbance(network, inputs, s)) for name, s in made.items()
    }
    assert max(unmatched.values()) > 2 * min(unmatched.values())
    strengths = structures.matched(unmatched, "gain", 0.3)
    assert strengths["gain"] == 0.3
    aim = 0.3**2 * unmatched["gain"]
    for name, value in unmatched.items():
        # Three digits of a strength are known to half a percent, its square to one.
        assert strengths[name] ** 2 * value == pytest.approx(aim, rel=0.011)


def test_strengths_can_be_given_by_hand() -> None:
    assert structures.matched({"a": 1.0, "b": 7.0}, "a", 0.2) == {"a": 0.2, "b": 0.0756}


def test_noise_that_disturbs_nothing_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="b: no strength matches"):
        structures.matched({"a": 1.0, "b": 0.0}, "a", 0.2)


def test_each_gate_has_a_structure_of_its_own_rows() -> None:
    network = networks(1, 3)
    made = structures.white_structures(network, ["unit"])
    state, normals = normal(1, 3, 5), torch.ones(1, 9, 5, dtype=torch.float64)
    touched = []
    for gate in ("reset gate", "update gate", "candidate"):
        moved = made[f"weight, {gate}"].disturb(state, network.weight_hh, normals, 1.0)
        assert moved is not None
        touched.append((moved != 0).any(-1)[0].tolist())
    assert touched == np.repeat(np.eye(3, dtype=bool), 3, axis=1).tolist()


@pytest.mark.parametrize(("cell", "gates"), [("gru", 3), ("lstm", 4), ("rnn", 0)])
def test_a_cell_has_as_many_structures_of_one_gate_as_it_has_gates(cell: str, gates: int) -> None:
    made = structures.white_structures(networks(1, 4, cell=cell), ["unit"])
    assert sum(name.startswith("weight, ") for name in made) == gates + 1
    assert len(structures.GATES.get(cell, ())) in (0, cells.CELLS[cell].gates)


@pytest.mark.parametrize(("cell", "layers"), SHAPES)
def test_groups_share_their_noise_and_every_unit_is_in_one(cell: str, layers: int) -> None:
    network = networks(1, 6, cell=cell, layers=layers)
    size = network.state_size
    grouped = structures.white_structures(network, ["unit"])["gain, 4 groups"]
    assert grouped.state_numbers(size) == 4
    factor = grouped.factor(torch.arange(1.0, 5)[:, None], 1.0, size)
    assert factor is not None
    values, counts = np.unique((factor - 1).numpy(), return_counts=True)
    assert values.tolist() == [1, 2, 3, 4]
    assert counts.max() - counts.min() <= 1


def test_noise_on_every_second_unit_leaves_the_others_alone() -> None:
    half = structures.white_structures(networks(1, 4), ["unit"])["unit, every second"]
    factor = half.factor(torch.ones(4, 1), 0.5, 4)
    assert factor is not None
    assert factor.ravel().tolist() == [1.5, 1.0, 1.5, 1.0]


def test_a_structure_is_the_same_for_all_networks_of_a_shape() -> None:
    first, second = (
        structures.white_structures(networks(1, 5, seed=seed), ["unit"])["weight, rank one"]
        for seed in (0, 1)
    )
    state, weight, drawn = normal(1, 5, 2), normal(1, 15, 5), normal(1, 1, 2)
    moved, again = (s.disturb(state, weight, drawn, 1.0) for s in (first, second))
    assert moved is not None
    assert again is not None
    assert torch.equal(moved, again)
    assert torch.linalg.matrix_rank(moved[0]) == 1


def test_errors_of_weights_alone_can_be_frozen() -> None:
    made = structures.frozen_structures(NAMES)
    assert list(made) == ["weight, frozen", "quantisation, frozen"]
    assert made["weight, frozen"].frozen is NOISES["weight"].frozen
    assert isinstance(made["weight, frozen"], noise.Noise)
