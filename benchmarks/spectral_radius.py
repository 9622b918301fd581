"""Measure what the solvers of a second-moment operator's spectral radius cost, and how exact.

Jacobians are those of untrained gated recurrent units at random states (`msstab.solvers`). Times
are processor times on one core, medians over the repetitions, for the radius with both
eigenmatrices; errors are relative to the dense Kronecker lift where that is affordable (N <= 32
with --dense, else 16); beyond it the reduced problem and Arnoldi iteration are compared with each
other. The bar: at N = 32 the reduced problem is 1000 times as fast as the dense lift at an error
below 1e-10. A batch of 64 is solved matrix by matrix, which saves
no more than what every call costs, whatever its size.
"""

import argparse

import torch

from msstab import solvers
from msstab.noise import NOISES

SIZES = solvers.SIZES
STRUCTURES = ("unit", "gain", "weight", "quantisation")
STRENGTH, BATCH, SPEED_UP, LARGEST_ERROR = 0.2, 64, 1000.0, 1e-10


def measure(name: str, hidden: int, repetitions: int, largest_dense: int) -> dict[str, float]:
    """Print a line for one structure and size; return its figures."""
    noise, step = NOISES[name], solvers.random_steps(hidden)
    frame = solvers.compare(
        [step], noise=noise, sigma=STRENGTH, repeats=10, largest_dense=largest_dense,
        methods=solvers.SOLVERS,
    )  # fmt: skip
    one = frame.set_index("method").reindex(list(solvers.SOLVERS))
    dense, reduced, arnoldi = 1000 * one.seconds
    error, other = one.relative_error[["reduced", "arnoldi"]]
    many = solvers.random_steps(hidden, BATCH if hidden <= 64 else 8)
    batch = solvers.compare(
        [many], noise=noise, sigma=STRENGTH, repeats=repetitions, methods=["reduced"]
    )
    batched = 1000 * float(batch.seconds.iloc[0])
    print(
        f"{name:>12} {hidden:4} {dense:10.1f} {arnoldi:10.2f} {reduced:10.2f} "
        f"{batched:10.3f} {reduced / batched:8.1f} {error:10.1e} {other:10.1e}",
        flush=True,
    )
    return {"dense": dense, "reduced": reduced, "batched": batched, "error": error}


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
