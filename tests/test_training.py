import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from plain import jacobian, modules, networks, normal, states, weights
from torch import Tensor, nn

from msstab import cells, tracks, training
from msstab.arms import Arm, Penalty, Step, spectral_proxy
from msstab.cells import Parameters
from msstab.training import Trained

RATES = (0.001, 0.003, 0.01, 0.03)
STRENGTHS = (0.0, 0.1, 1.0, 0.3)

every_cell = pytest.mark.parametrize("cell", cells.CELLS)
every_network = pytest.mark.parametrize(
    ("cell", "layers"), [(cell, layers) for cell in cells.CELLS for layers in (1, 2)]
)


class Task(NamedTuple):
    """What M models train on, each on data of its own."""

    initial: Parameters
    inputs: Tensor
    targets: Tensor
    orders: Tensor
    rates: Tensor
    strengths: Tensor
    batch: int

    def select(self, models: Sequence[int]) -> "Task":
        own = list(models)
        inputs, targets, orders, rates, strengths = (tensor[own] for tensor in self[1:6])
        initial = self.initial.select(own)
        return Task(initial, inputs, targets, orders, rates, strengths, self.batch)

    def train(self, arm: Arm | None = None, target: float = 0.5) -> Trained:
        return training.train(
            self.initial,
            self.inputs,
            self.targets,
            self.orders,
            self.rates,
            batch=self.batch,
            arm=arm,
            strengths=self.strengths if arm else None,
            sigma=0.2,
            target=target,
            streams=[np.random.default_rng([3, model]) for model in range(len(self.orders))],
        )


def task(
    models: int,
    hidden: int,
    *,
    n: int,
    length: int,
    batch: int,
    epochs: int,
    n_inputs: int = 1,
    n_outputs: int = 1,
    steps: int = 1,
    cell: str = "gru",
    layers: int = 1,
    gain: float = 1.0,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Task:
    inputs = normal(models, n, length, n_inputs, seed=seed, dtype=dtype)
    shown = inputs.mean(-1, keepdim=True)
    seen = shown[:, :, -steps:] * shown[:, :, -steps - 1 : -1]
    targets = seen + torch.arange(n_outputs, dtype=dtype)
    rng = np.random.default_rng(1)
    orders = [[rng.permutation(n) for _ in range(epochs)] for _ in range(models)]
    return Task(
        networks(
            models, hidden, n_inputs, n_outputs, cell=cell, layers=layers, gain=gain, dtype=dtype
        ),
        inputs,
        targets,
        torch.as_tensor(np.array(orders)),
        torch.tensor((RATES * models)[:models]),
        torch.tensor((STRENGTHS * models)[:models]),
        batch,
    )


def plain_loop(
    given: Task, model: int, *, penalised: bool = False
) -> tuple[list[Tensor], list[float]]:
    """Train one model by torch alone; return its weights and its loss in each epoch."""
    recurrent, linear = modules(given.initial, model)
    adam = torch.optim.Adam(weights(recurrent, linear), lr=float(given.rates[model]))
    inputs, targets = given.inputs[model], given.targets[model]
    losses = []
    for order in given.orders[model]:
        loss_sum = 0.0
        for chosen in torch.split(order, given.batch):
            found = states(recurrent, inputs[chosen].transpose(0, 1))
            steps = targets.shape[1]
            outputs = linear(found[-steps:, :, : linear.in_features]).transpose(0, 1)
            loss = nn.functional.mse_loss(outputs, targets[chosen])
            loss_sum += loss.item() * len(chosen)
            if penalised:
                own = given.initial.like(w[None] for w in weights(recurrent, linear))
                penalty = proxy(own, found, inputs[chosen])
                loss = loss + given.strengths[model] * penalty
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        losses.append(loss_sum / len(order))
    return weights(recurrent, linear), losses


def proxy(own: Parameters, found: Tensor, inputs: Tensor) -> Tensor:
    at_mean = jacobian(own, 0, found.mean((0, 1)), inputs.mean((0, 1)))
    radius = 1.04 * torch.linalg.matrix_norm(at_mean, ord=2) ** 2
    return torch.relu(torch.log(radius / 0.5))


def relative_difference(found: Tensor, expected: Tensor, quantile: float = 1.0) -> float:
    expected = expected.detach()
    differences = (found - expected).abs() / expected.abs().max()
    return float(differences.flatten().quantile(quantile))


def assert_same(first: Trained, second: Trained) -> None:
    for a, b in zip(first.parameters, second.parameters, strict=True):
        assert torch.equal(a.nan_to_num(nan=7e7), b.nan_to_num(nan=7e7))
    np.testing.assert_array_equal(first.losses, second.losses)
    np.testing.assert_array_equal(first.active, second.active)


def select(trained: Trained, models: Sequence[int]) -> Trained:
    own = list(models)
    return Trained(trained.parameters.select(own), trained.losses[own], trained.active[own])


# ---- the plain alternative


def check_plain(given: Task, tolerance: float, quantile: float = 1.0) -> None:
    trained = given.train()
    for model in range(len(given.rates)):
        expected, losses = plain_loop(given, model)
        for found, weight in zip(trained.parameters, expected, strict=True):
            assert relative_difference(found[model], weight, quantile) <= tolerance
        np.testing.assert_allclose(trained.losses[model], losses, rtol=10 * tolerance)
    assert not trained.active.any()


SHAPES = [
    # One step; several, with a last batch that is smaller; the dynamics track's own shape.
    {"hidden": 8, "n": 20, "length": 6, "batch": 20, "epochs": 1},
    {"hidden": 5, "n": 50, "length": 7, "batch": 16, "epochs": 12, "n_inputs": 2},
    {"hidden": 8, "n": 50, "length": 7, "batch": 16, "epochs": 12, "n_outputs": 2},
    {"hidden": 32, "n": 40, "length": 24, "batch": 32, "epochs": 12},
    # Targets after several steps.
    {"hidden": 8, "n": 50, "length": 9, "batch": 16, "epochs": 12, "n_outputs": 2, "steps": 5},
]


@every_network
@pytest.mark.parametrize("shape", SHAPES)
def test_an_ensemble_trains_as_torch_trains_each_model(
    cell: str, layers: int, shape: dict[str, Any]
) -> None:
    given = task(4, **shape, cell=cell, layers=layers, seed=5, dtype=torch.float64)
    if layers > 1 and cell == "rnn":
        # At the highest rate these blow rounding errors up from 1e-15 to 1e-8.
        given = given._replace(rates=given.rates / 3)
    check_plain(given, 1e-10)
    # It learns, so that this is not the equality of networks that stand still.
    if shape["epochs"] > 1:
        losses = given.train().losses
        assert losses[3, -1] < 0.9 * losses[3, 0]


@every_cell
@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_in_single_precision(cell: str, shape: dict[str, Any]) -> None:
    # Adam divides a gradient by its own size, so that two correct programs part in the few entries
    # where it is almost nothing, and soon everywhere at high rates: torch's own float32 and
    # float64 results by up to 1e-4 at a rate of 0.01, by up to 3e-3 at 0.03.
    given = task(4, **shape, cell=cell, seed=5)
    check_plain(given._replace(rates=0.3 * given.rates), 5e-6, quantile=0.999)


@pytest.mark.slow
def test_the_same_at_the_tracks_own_size() -> None:
    given = task(4, 32, n=400, length=24, batch=32, epochs=12, dtype=torch.float64)
    check_plain(given, 1e-10)


@every_network
def test_a_penalised_ensemble_trains_as_automatic_differentiation_would(
    cell: str, layers: int
) -> None:
    shape: dict[str, Any] = {"n": 24, "length": 5, "batch": 10, "epochs": 6}
    given = task(4, 6, **shape, cell=cell, layers=layers, gain=2.0, dtype=torch.float64)
    trained = given.train(spectral_proxy)
    unpenalised = given.train()
    for model in range(4):
        expected, losses = plain_loop(given, model, penalised=True)
        for found, weight in zip(trained.parameters, expected, strict=True):
            assert relative_difference(found[model], weight) <= 1e-8
        # The curve is the error alone.
        np.testing.assert_allclose(trained.losses[model], losses, rtol=1e-8)
        moved = not torch.equal(
            trained.parameters.weight_hh[model], unpenalised.parameters.weight_hh[model]
        )
        assert moved == (STRENGTHS[model] > 0)


def test_the_given_weights_are_left_alone() -> None:
    given = task(2, 4, n=8, length=3, batch=8, epochs=1)
    before = [tensor.clone() for tensor in given.initial]
    given.train()
    assert all(torch.equal(a, b) for a, b in zip(given.initial, before, strict=True))


def test_training_works_where_gradients_are_switched_off() -> None:
    given = task(2, 4, n=8, length=3, batch=8, epochs=2)
    expected = given.train(spectral_proxy)
    with torch.no_grad():
        assert_same(given.train(spectral_proxy), expected)
        assert not torch.is_grad_enabled()


# ---- a model's numbers do not depend on its company


def chunks(models: int, size: int, offset: int) -> list[range]:
    edges = sorted({0, *range(offset, models, size), models})
    return [range(a, b) for a, b in itertools.pairwise(edges)]


@every_cell
@pytest.mark.parametrize("arm", [None, spectral_proxy])
@pytest.mark.parametrize(
    ("layers", "hidden", "batch"),
    [(1, 4, 16), (1, 5, 7), (1, 16, 10), (1, 32, 16), (1, 33, 9), (2, 4, 16), (2, 5, 7)],
)
def test_a_model_trains_to_the_same_bits_in_any_company(
    cell: str, layers: int, hidden: int, batch: int, arm: Arm | None
) -> None:
    shape: dict[str, Any] = {"n": 23, "length": 5, "batch": batch, "epochs": 2, "n_inputs": 2}
    given = task(32, hidden, **shape, cell=cell, layers=layers, gain=2.0)
    whole = given.train(arm)
    for part in (range(1), range(13, 14), range(31, 32), range(3, 6), range(1, 17), range(15, 32)):
        assert_same(given.select(part).train(arm), select(whole, part))
    assert_same(given.select([8, 2, 29]).train(arm), select(whole, [8, 2, 29]))
    if arm:
        assert whole.active.mean() > 0


@every_cell
@pytest.mark.slow
@pytest.mark.parametrize("arm", [None, spectral_proxy])
@pytest.mark.parametrize(("hidden", "batch"), [(16, 10), (33, 9)])
def test_a_large_stack_trains_to_the_same_bits_in_any_company(
    cell: str, hidden: int, batch: int, arm: Arm | None
) -> None:
    shape: dict[str, Any] = {"n": 23, "length": 5, "batch": batch, "epochs": 2, "n_inputs": 2}
    given = task(32, hidden, **shape, cell=cell, layers=2, gain=2.0)
    whole = given.train(arm)
    for part in (range(1), range(13, 14), range(3, 6), range(15, 32)):
        assert_same(given.select(part).train(arm), select(whole, part))


@every_cell
@pytest.mark.slow
@pytest.mark.parametrize("arm", [None, spectral_proxy])
@pytest.mark.parametrize(("hidden", "batch"), [(3, 5), (8, 23), (32, 16)])
def test_a_model_trains_to_the_same_bits_in_chunks_of_every_size(
    cell: str, hidden: int, batch: int, arm: Arm | None
) -> None:
    given = task(32, hidden, n=23, length=5, batch=batch, epochs=2, cell=cell, gain=2.0, n_inputs=2)
    whole = given.train(arm)
    for size in range(1, 33):
        for offset in {0, 1, size // 2, size - 1}:
            for part in chunks(32, size, offset):
                assert_same(given.select(part).train(arm), select(whole, part))


@every_network
@pytest.mark.parametrize("arm", [None, spectral_proxy])
def test_a_diverged_model_leaves_its_neighbours_alone(
    cell: str, layers: int, arm: Arm | None
) -> None:
    given = task(5, 8, n=20, length=5, batch=8, epochs=3, cell=cell, layers=layers, gain=2.0)
    undisturbed = given.train(arm)
    given.rates[1] = 1e6
    given.rates[3] = 1e30
    given.initial.weight_hh[4] = torch.inf
    disturbed = given.train(arm)
    assert_same(select(disturbed, [0, 2]), select(undisturbed, [0, 2]))
    for model in (3, 4):
        assert not np.isfinite(disturbed.losses[model, -1])
    assert not torch.isfinite(disturbed.parameters.weight_out[4]).all()
    assert disturbed.losses[1, -1] > 1e6


@pytest.mark.parametrize("hidden", [4, 5])
def test_strength_zero_trains_the_baseline(hidden: int) -> None:
    given = task(3, hidden, n=20, length=5, batch=8, epochs=3, gain=2.0)
    given.strengths.zero_()
    without, penalised = given.train(), given.train(spectral_proxy)
    assert_same(Trained(*penalised[:2], without.active), without)
    assert penalised.active.min() > 0


@pytest.mark.parametrize(("size", "share"), [(8, 0.8), (4, 0.2)])
def test_active_shares_count_sequences_not_batches(size: int, share: float) -> None:
    """An arm that is active in batches of one size alone, of 8, 8 and 4 sequences."""

    def sized(step: Step) -> Penalty:
        nothing = step.parameters.bias_out.sum(1) * 0
        return Penalty(nothing, torch.full_like(nothing, float(step.inputs.shape[3] == size)))

    given = task(2, 4, n=20, length=3, batch=8, epochs=2)
    arm = Arm("sized", (0, 1, 2), sized)
    np.testing.assert_allclose(given.train(arm).active, share)


# ---- threads


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_threads_is_restored(threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with training.one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == threads
        with pytest.raises(ZeroDivisionError), training.one_thread():
            _ = 1 / 0
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_the_number_of_threads_changes_no_number() -> None:
    given = task(4, 32, n=64, length=10, batch=64, epochs=1)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(given.train())
    finally:
        torch.set_num_threads(before)
    assert_same(*results)


@pytest.mark.slow
def test_at_the_originals_scale_every_tensor_is_torchs_to_5e_6() -> None:
    """But for the entries, one in a thousand, in which torch's own float32 and float64 part."""
    models, sequences, epochs = 3, 400, 12
    data = [
        tracks.track("dynamics").generate(
            [np.random.default_rng([model, k]) for k in range(3)], (sequences, 0, 0)
        )
        for model in range(models)
    ]
    orders = [
        [np.random.default_rng([model, 9, e]).permutation(sequences) for e in range(epochs)]
        for model in range(models)
    ]
    given = Task(
        networks(models, 32, 1, 1, gain=1.0, dtype=torch.float32),
        torch.as_tensor(np.stack([d.train.inputs for d in data])).float(),
        torch.as_tensor(np.stack([d.train.targets for d in data])).float(),
        torch.as_tensor(np.array(orders)),
        torch.tensor([0.001, 0.003, 0.01]),
        torch.zeros(models),
        32,
    )
    check_plain(given, 5e-6, quantile=0.999)
    check_plain(given, 1e-4)
