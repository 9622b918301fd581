"""Measure what each arm costs in training, as a ratio to the baseline.

Trains M networks for one epoch with each arm on one core, at the shape of the `dynamics` track.
The arms take turns within each repetition, so that whatever else the machine does falls on all,
and the clock is that of the processor's time; the figures are medians over the repetitions. What
an arm with a hinge costs depends on how often it is open: where it must solve for the radius only
then, as `lifted_radius`, the cost is given for the target of a Study and for one below all radii.
"""

import argparse
import time

import numpy as np
import torch
from training import Shape, Task, task

from msstab import training
from msstab.arms import ARMS

MODELS, SIGMA, SHAPE = 32, 0.2, Shape(24, 32, False)
TARGETS = (1.0, 1e-3)
OTHERS_BAR = 1.5
BARS = {
    "output_variance": 2.0,
    "lifted_radius": 2.5,
}
"""Highest ratios at the target of a Study."""


def seconds(name: str, given: Task, target: float) -> tuple[float, float]:
    """Train with an arm; return the processor time and the share of samples with active hinges."""
    models = len(given.orders)
    start = time.process_time()
    trained = training.train(
        given.initial,
        given.inputs,
        given.targets,
        given.orders,
        torch.full((models,), 0.003),
        batch=given.batch,
        arm=ARMS[name],
        strengths=torch.full((models,), 1e-3),
        sigma=SIGMA,
        target=target,
        streams=[np.random.default_rng([1, model]) for model in range(models)],
    )
    return time.process_time() - start, float(trained.active.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repetitions", type=int, default=7, help="at least 5 for stable medians")
    parser.add_argument("--cell", choices=["gru", "lstm", "rnn"], default="gru")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    given = task(MODELS, SHAPE, arguments.cell, 1)
    steps = MODELS * -(-given.orders.shape[2] // given.batch)
    cases = [(name, target) for name in ARMS for target in TARGETS]
    times: dict[tuple[str, float], list[float]] = {case: [] for case in cases}
    # The first call of each is slower.
    active = {case: seconds(case[0], given, case[1])[1] for case in cases}
    for _ in range(arguments.repetitions):
        for case in cases:
            times[case].append(seconds(case[0], given, case[1])[0])
    medians = {case: float(np.median(found)) for case, found in times.items()}
    print(f"torch {torch.__version__}, one thread; {MODELS} models, {arguments.cell}")
    print(f"{'arm':>22} {'target':>8} {'active':>7} {'ms a step':>10} {'ratio':>6} {'bar':>5}")
    for (name, target), median in medians.items():
        ratio = median / medians["baseline", target]
        bar = BARS.get(name, OTHERS_BAR) if target == TARGETS[0] else float("nan")
        print(
            f"{name:>22} {target:8g} {active[name, target]:7.2f} {1000 * median / steps:10.3f} "
            f"{ratio:6.2f} {bar:5.1f}"
        )


if __name__ == "__main__":
    main()
