"""Train M models of one shape and one arm as a single ensemble."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from msstab import cells
from msstab.arms import Arm, Forward, Step
from msstab.cells import Parameters
from msstab.noise import NOISES, Noise


class Trained(NamedTuple):
    """M trained models: their parameters, and per model and epoch two training curves.

    `losses` (M, epochs) is the mean training loss without penalty; `active` (M, epochs) the mean
    share of samples on which the arm's penalty was active, zero without an arm.
    """

    parameters: Parameters
    losses: NDArray[np.float64]
    active: NDArray[np.float64]


def train(
    initial: Parameters,
    inputs: Tensor,
    targets: Tensor,
    orders: Tensor,
    learning_rates: Tensor,
    *,
    batch: int,
    arm: Arm | None = None,
    strengths: Tensor | None = None,
    noise: Noise = NOISES["unit"],
    sigma: float = 0.0,
    target: float = 1.0,
    streams: Sequence[np.random.Generator] = (),
) -> Trained:
    """Train each model on its own data, in its own order, at its own learning rate and strength.

    `inputs` (M, N, T, D), `targets` (M, N, K, O), `orders` (M, epochs, N) the sequence numbers in
    the order of use, `learning_rates` and `strengths` (M,). The objective of a model is the mean
    squared error of its last K outputs plus strength times the arm's penalty, for which `noise`,
    `sigma`, `target` and `streams` are meant (see `arms.Step`). A model's result
    depends on nothing but its own data; one that diverges ends with values that are not finite
    and leaves the others alone. Runs on one thread, the fastest for matrices of this size.
    """
    models, _, n_sequences = orders.shape
    if strengths is None:
        strengths = torch.zeros_like(learning_rates)
    steps = targets.shape[2]
    if models == 1 and (arm is not None or steps > 1):
        # Sums over one of several dimensions, as in the gradient of whatever is broadcast, add up
        # in another order where the stack has one model only; so it is trained with a copy.
        twice = [_twice(t) for t in (inputs, targets, orders, learning_rates)]
        trained = train(
            initial.like(map(_twice, initial)),
            *twice,
            batch=batch,
            arm=arm,
            strengths=_twice(strengths),
            noise=noise,
            sigma=sigma,
            target=target,
            streams=[*streams, np.random.default_rng(0)],
        )
        return Trained(trained.parameters.select([0]), trained.losses[:1], trained.active[:1])
    flat = _flatten(initial)
    parameters = initial.like(v.requires_grad_() for v in _views(flat, initial))
    adam = _Adam(flat, learning_rates)
    memory: dict[str, Tensor] = {}
    workspaces: dict[int, tuple[cells.Workspace, ...]] = {}
    every_model = torch.arange(models, device=flat.device)[:, None]
    losses, active = [], []
    with one_thread(), torch.enable_grad():
        for order in orders.unbind(1):
            loss_sum = active_sum = torch.zeros(models, dtype=torch.float64, device=flat.device)
            for chosen in torch.split(order, batch, dim=1):
                size = chosen.shape[1]
                x = inputs[every_model, chosen].permute(2, 0, 3, 1)
                y = targets[every_model, chosen].flatten(2).transpose(1, 2)
                if size not in workspaces:
                    room = cells.padded(size, parameters.hidden)
                    workspaces[size] = cells.workspace(x.shape[0], parameters, room)
                space = workspaces[size]
                if arm is None:
                    outputs = cells.forecast(parameters, x, space, steps=steps)
                elif arm.run is not None:
                    given = Forward(parameters, x, space, noise, sigma, strengths, streams, steps)
                    outputs = arm.run(given)
                else:
                    states, outputs = cells.run(parameters, x, space, steps=steps)
                objective = loss = (outputs - y).square().mean(dim=(1, 2))
                if arm is not None and arm.penalise is not None:
                    step = Step(
                        parameters, x, y, states, outputs, noise, sigma, target, streams, memory
                    )
                    penalty = arm.penalise(step)
                    # What is active nowhere has no gradient, which saves the way back through it.
                    if penalty.active.any() or not penalty.value.isfinite().all():
                        objective = loss + strengths * penalty.value
                    active_sum = active_sum + penalty.active.double() * size
                elif arm is not None:
                    active_sum = active_sum + size
                gradients = torch.autograd.grad(objective.sum(), list(parameters))
                adam.step(_flatten(gradients))
                loss_sum = loss_sum + loss.detach().double() * size
            losses.append(loss_sum / n_sequences)
            active.append(active_sum / n_sequences)
    final = parameters.like(view.detach().clone() for view in parameters)
    return Trained(final, _columns(losses), _columns(active))


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread in the block: faster here, and the same numbers on any machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Adam:
    """Adam (Kingma and Ba 2015) on a matrix of parameters, one learning rate for each row.

    The operations and their order are those of `torch.optim.Adam`, which has one learning rate
    for a whole tensor and so cannot train models of different rates in one.
    """

    def __init__(self, parameters: Tensor, rates: Tensor) -> None:
        self.parameters, self.rates = parameters, rates.to(parameters)[:, None]
        self.mean, self.square = torch.zeros_like(parameters), torch.zeros_like(parameters)
        self.steps = 0

    def step(self, gradient: Tensor, decay: float = 0.9, square_decay: float = 0.999) -> None:
        self.steps += 1
        self.mean.lerp_(gradient, 1 - decay)
        self.square.mul_(square_decay).addcmul_(gradient, gradient, value=1 - square_decay)
        corrected = self.square.sqrt().div_((1 - square_decay**self.steps) ** 0.5).add_(1e-8)
        update = (self.mean / corrected).mul_(self.rates / (1 - decay**self.steps))
        self.parameters.sub_(update)


def _flatten(tensors: Iterable[Tensor]) -> Tensor:
    """Lay each model's parameters out as one row, filled up to whole vectors (see `padded`)."""
    rows = torch.cat([tensor.detach().flatten(1) for tensor in tensors], dim=1)
    return torch.nn.functional.pad(rows, (0, -rows.shape[1] % 32))


def _views(flat: Tensor, like: Parameters) -> list[Tensor]:
    sizes = [tensor[0].numel() for tensor in like]
    parts = torch.split(flat[:, : sum(sizes)], sizes, dim=1)
    return [part.detach().view(t.shape) for part, t in zip(parts, like, strict=True)]


def _twice(tensor: Tensor) -> Tensor:
    return torch.cat([tensor, tensor])


def _columns(rows: list[Tensor]) -> NDArray[np.float64]:
    return torch.stack(rows, dim=1).cpu().numpy()
