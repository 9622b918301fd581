"""Measure what the solvers of a second-moment operator's spectral radius cost, and how exact.

Jacobians are those of untrained gated recurrent units at random states. Times are processor
times on one core, medians over the repetitions, for the radius with both eigenmatrices; errors
are relative to the dense Kronecker lift where that is affordable (N <= 32 with --dense, else 16)
and beyond it to Arnoldi iteration. The bar: at N = 32 the reduced problem is 1000 times as fast
as the dense lift at an error below 1e-10. A batch of 64 is solved matrix by matrix, which
saves no more than what every call costs, whatever its size.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from msstab import cells, spectral
from msstab.noise import NOISES
from msstab.operators import Operator

SIZES = (8, 16, 32, 64, 128)
STRUCTURES = ("unit", "gain", "weight", "quantisation")
STRENGTH, BATCH, SPEED_UP, LARGEST_ERROR = 0.2, 64, 1000.0, 1e-10


def operators_of(name: str, hidden: int, batch: int) -> Operator:
    rng = np.random.default_rng([0, hidden])
    parameters = cells.initial_parameters(
        [np.random.default_rng([1, hidden])], hidden, 1, 1, gain=2.0, dtype=torch.float64
    )
    state = torch.as_tensor(np.tanh(rng.normal(size=(1, hidden, batch))))
    inputs = torch.as_tensor(rng.normal(size=(1, 1, batch)))
    return NOISES[name].operator(cells.linearise(parameters, state, inputs), STRENGTH)


def milliseconds(work: Callable[[], Tensor], repetitions: int) -> tuple[float, Tensor]:
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        found = work()
        times.append(time.process_time() - start)
    return 1000 * float(np.median(times)), found


def measure(name: str, hidden: int, repetitions: int, largest_dense: int) -> dict[str, float]:
    """Print a line for one structure and size; return its figures."""
    one = operators_of(name, hidden, 1)
    spectral.eigenmatrices(one, "reduced")  # the first call is slower
    reduced, found = milliseconds(lambda: spectral.eigenmatrices(one, "reduced").radius, 10)
    arnoldi, other = milliseconds(lambda: spectral.eigenmatrices(one, "arnoldi").radius, 3)
    dense, exact = float("nan"), other
    if hidden <= largest_dense:
        dense, exact = milliseconds(lambda: spectral.eigenmatrices(one, "dense").radius, 1)
    many = operators_of(name, hidden, BATCH if hidden <= 64 else 8)
    count = many.jacobian.shape[1]
    batched, _ = milliseconds(lambda: spectral.eigenmatrices(many, "reduced").radius, repetitions)
    figures = {
        "dense": dense,
        "reduced": reduced,
        "batched": batched / count,
        "error": float((found / exact - 1).abs().max()),
    }
    print(
        f"{name:>12} {hidden:4} {dense:10.1f} {arnoldi:10.2f} {reduced:10.2f} "
        f"{figures['batched']:10.3f} {reduced / figures['batched']:8.1f} "
        f"{figures['error']:10.1e} {float((other / exact - 1).abs().max()):10.1e}",
        flush=True,
    )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repetitions", type=int, default=3, help="of the batched solver")
    parser.add_argument("--dense", action="store_true", help="the oracle at N = 32 too: a minute")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    largest_dense = 32 if arguments.dense else 16
    print(f"torch {torch.__version__}, one thread; milliseconds a matrix, batches of {BATCH}")
    columns = ("structure", "N", "dense", "arnoldi", "reduced", "batched", "ratio", "error")
    print("{:>12} {:>4} {:>10} {:>10} {:>10} {:>10} {:>8} {:>10}".format(*columns), "  arnoldi's")
    figures = {
        (name, hidden): measure(name, hidden, arguments.repetitions, largest_dense)
        for name in STRUCTURES
        for hidden in SIZES
    }
    at_bar = [figures[name, 32] for name in STRUCTURES]
    speed_up = min(f["dense"] / f["reduced"] for f in at_bar)
    error = max(f["error"] for f in at_bar)
    batch_speed_up = min(f["reduced"] / f["batched"] for f in at_bar)
    print(f"at N = 32: {speed_up:.0f} times as fast as dense (bar {SPEED_UP:g}; nan: --dense)")
    print(f"           error {error:.1e} (bar {LARGEST_ERROR:g})")
    print(f"           {batch_speed_up:.1f} times as fast in a batch of {BATCH} (lowest)")


if __name__ == "__main__":
    main()
