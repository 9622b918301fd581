"""Measure how much faster an ensemble trains than the plain loop over torch's own modules.

Trains M networks for one epoch in two ways on one core: `msstab.training.train`, all at once, and
a loop over the networks, each an `nn.GRU`, or what `--cell` and `--layers` ask for, and an
`nn.Linear` with `torch.optim.Adam`. The two take turns within each repetition, so that whatever
else the machine does falls on both, and the clock is that of the processor's time; the figures are
medians over the repetitions. The last network of both is compared, to show that they did the same
work. The bar is a ratio of 4 at the two larger shapes, for the GRU; the third shape is that of the
`dynamics` track. An `nn.LSTM` is fused into one call on a processor, so that less is to be won.
"""

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from msstab import cells, training
from msstab.cells import Parameters

BAR = 4.0
HIDDEN, SEQUENCES, RATE = 32, 400, 0.003
MODULES: dict[str, Callable[..., nn.RNNBase]] = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn": nn.RNN}


class Shape(NamedTuple):
    """Sequences of one input and one target, in batches; `bar` says whether the bar applies."""

    length: int
    batch: int
    bar: bool


SHAPES = [Shape(50, 48, True), Shape(50, 64, True), Shape(24, 32, False)]


class Task(NamedTuple):
    """What M networks train on in one epoch."""

    initial: Parameters
    inputs: Tensor
    targets: Tensor
    orders: Tensor
    batch: int


def task(models: int, shape: Shape, cell: str, layers: int) -> Task:
    streams = [np.random.default_rng([0, model]) for model in range(models)]
    initial = cells.initial_parameters(streams, HIDDEN, 1, 1, cell=cell, layers=layers)
    inputs = torch.as_tensor(
        np.stack([rng.normal(size=(SEQUENCES, shape.length, 1)) for rng in streams])
    )
    orders = torch.as_tensor(np.stack([[rng.permutation(SEQUENCES)] for rng in streams]))
    return Task(initial, inputs.float(), inputs[:, :, -1:].float(), orders, shape.batch)


def ensemble(given: Task) -> Tensor:
    """Train all networks at once; return the last one's recurrent weights."""
    trained = training.train(
        given.initial,
        given.inputs,
        given.targets,
        given.orders,
        torch.full((len(given.orders),), RATE),
        batch=given.batch,
    )
    return trained.parameters.weight_hh[-1]


def plain_loop(given: Task) -> Tensor:
    """Train one network after the other; return the last one's recurrent weights."""
    for model in range(len(given.orders)):
        module, layers = MODULES[given.initial.cell], given.initial.layers
        recurrent, linear = module(1, HIDDEN, layers, batch_first=True), nn.Linear(HIDDEN, 1)
        weights = list(recurrent.parameters())
        tensors = [*weights[:4], *linear.parameters(), *weights[4:]]
        with torch.no_grad():
            for to, start in zip(tensors, given.initial, strict=True):
                to.copy_(start[model])
        adam = torch.optim.Adam(tensors, lr=RATE)
        for chosen in torch.split(given.orders[model, 0], given.batch):
            states, _ = recurrent(given.inputs[model, chosen])
            loss = nn.functional.mse_loss(linear(states[:, -1]), given.targets[model, chosen, 0])
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
    return tensors[1].detach()


def seconds(work: Callable[[Task], Tensor], given: Task) -> float:
    start = time.process_time()
    work(given)
    return time.process_time() - start


def measure(models: int, shape: Shape, cell: str, layers: int, repetitions: int) -> float:
    """Print a line for one shape; return the ratio of the medians."""
    given = task(models, shape, cell, layers)
    # Also the first, slower call of both.
    difference = float((ensemble(given) - plain_loop(given)).abs().max())
    pairs = [(seconds(plain_loop, given), seconds(ensemble, given)) for _ in range(repetitions)]
    plain, stacked = (float(np.median(times)) for times in zip(*pairs, strict=True))
    ratios = sorted(a / b for a, b in pairs)
    print(
        f"{models:6} {shape.length:6} {shape.batch:6} {models / plain:12.1f} "
        f"{models / stacked:12.1f} {plain / stacked:8.2f}  {ratios[0]:5.2f} to {ratios[-1]:5.2f} "
        f"{difference:12.1e}",
        flush=True,
    )
    return plain / stacked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repetitions", type=int, default=5, help="at least 5 for stable medians")
    parser.add_argument("--cell", choices=MODULES, default="gru", help="default: gru")
    parser.add_argument("--layers", type=int, default=1, help="default: 1")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread")
    of = f"{given.layers} x {HIDDEN}" if given.layers > 1 else f"{HIDDEN}"
    print(f"{given.cell} of {of} hidden units, {SEQUENCES} sequences")
    print("networks trained for one epoch per second, medians:")
    print("models length  batch   plain loop     ensemble    ratio  lowest, highest   difference")
    results = [
        (shape.bar, measure(models, shape, given.cell, given.layers, given.repetitions))
        for shape in SHAPES
        for models in (16, 32)
    ]
    if given.cell == "gru" and given.layers == 1:
        lowest = min(ratio for bar, ratio in results if bar)
        verdict = "holds" if lowest >= BAR else "does not hold"
        print(
            f"the bar, a ratio of {BAR:g} at length 50, {verdict}: the lowest ratio is {lowest:.2f}"
        )


if __name__ == "__main__":
    main()
