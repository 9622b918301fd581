"""What the solvers of a second-moment operator's spectral radius cost, and how exact they are."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from msstab import arms, cells, spectral
from msstab.cells import Linearisation
from msstab.noise import NOISES, Noise
from msstab.operators import Operator
from msstab.spectral import Method
from msstab.training import one_thread

SIZES = (8, 16, 32, 64, 128)
"""Numbers of states that are compared by default."""

SOLVERS: tuple[Method, ...] = ("dense", "reduced", "arnoldi")
PROXY = "spectral norm"
METHODS = (*SOLVERS, PROXY)
"""The solvers, and the proxy (1 + sigma^2) ||J||_2^2 that the original penalises."""

COLUMNS = ("n", "method", "matrices", "seconds", "relative_error", "reference")
"""The columns of a comparison."""

LONGEST = 1.0
"""Processor seconds after which a method is not repeated any more."""


def random_steps(hidden: int, count: int = 1, seed: int = 0) -> Linearisation:
    """Return the derivatives of an untrained gated recurrent unit at random states and inputs.

    Leading dimensions (1, count); the numbers depend on the size and the seed alone.
    """
    rng = np.random.default_rng([seed, hidden])
    stream = np.random.default_rng([seed + 1, hidden])
    parameters = cells.initial_parameters([stream], hidden, 1, 1, gain=2.0, dtype=torch.float64)
    state = torch.as_tensor(np.tanh(rng.normal(size=(1, hidden, count))))
    inputs = torch.as_tensor(rng.normal(size=(1, 1, count)))
    return cells.linearise(parameters, state, inputs)


def compare(
    steps: Iterable[Linearisation] | None = None,
    *,
    noise: Noise = NOISES["unit"],
    sigma: float = 0.2,
    repeats: int = 5,
    largest_dense: int = 32,
    methods: Iterable[str] = METHODS,
) -> pd.DataFrame:
    """Compare the solvers on stacks of linearised steps, by default a random one of each size.

    A row for each stack and method: `n` states, `matrices` in the stack, processor `seconds` a
    matrix (median of up to `repeats`; with both eigenmatrices, except for the proxy), the largest
    `relative_error` of the radius and the `reference` it is measured against. That is the dense
    solver up to `largest_dense` states, where it takes seconds; beyond it the reduced problem and
    Arnoldi iteration, which share no arithmetic, are measured against each other. Where a solver
    does not apply or finds no accurate eigenmatrices, seconds and errors are not a number. Raises
    ValueError for unknown methods.
    """
    chosen = list(methods)
    if unknown := set(chosen) - set(METHODS):
        raise ValueError(f"no method {', '.join(sorted(unknown))}; known: {', '.join(METHODS)}")
    stacks = [random_steps(n) for n in SIZES] if steps is None else list(steps)
    rows: list[dict[str, Any]] = []
    with one_thread(), torch.no_grad():
        for step in stacks:
            rows += _compare_one(step, noise, sigma, repeats, largest_dense, chosen)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _compare_one(
    step: Linearisation,
    noise: Noise,
    sigma: float,
    repeats: int,
    largest_dense: int,
    methods: list[str],
) -> list[dict[str, Any]]:
    operator = noise.operator(step, sigma)
    n = step.jacobian.shape[-1]
    matrices = step.jacobian.shape[:-2].numel()
    seconds: dict[str, float] = {}
    radii: dict[str, Tensor] = {}
    for name in methods:
        if name == "dense" and n > largest_dense:
            continue
        work = _work(name, step, operator, sigma)
        seconds[name], radii[name] = _measure(work, repeats, warm=name != "dense")
    rows = []
    for name, found in radii.items():
        reference = _reference(name, radii)
        error = float("nan")
        if reference:
            error = float((found / radii[reference] - 1).abs().max())
        rows.append(
            {
                "n": n,
                "method": name,
                "matrices": matrices,
                "seconds": seconds[name] / matrices,
                "relative_error": error,
                "reference": reference,
            }
        )
    return rows


def _reference(name: str, radii: Mapping[str, Tensor]) -> str:
    """Return what a method's radii are compared with, empty where nothing is better."""
    candidates = {"dense": (), "arnoldi": ("dense", "reduced")}.get(name, ("dense", "arnoldi"))
    return next((c for c in candidates if c in radii and radii[c].isfinite().all()), "")


def _work(name: str, step: Linearisation, operator: Operator, sigma: float) -> Callable[[], Tensor]:
    if name == PROXY:
        jacobians = step.jacobian.flatten(0, -3)
        return lambda: (1 + sigma**2) * arms.squared_spectral_norm(jacobians)
    method = next(solver for solver in SOLVERS if solver == name)
    return lambda: spectral.eigenmatrices(operator, method).radius.flatten()


def _measure(work: Callable[[], Tensor], repeats: int, *, warm: bool) -> tuple[float, Tensor]:
    """Return the median processor time of some calls, and what the last one returned."""
    times: list[float] = []
    try:
        if warm:
            work()  # the first call is slower
        while len(times) < repeats and sum(times) < LONGEST:
            start = time.process_time()
            found = work()
            times.append(time.process_time() - start)
    except ValueError:
        return float("nan"), torch.tensor(float("nan"))
    return float(np.median(times)), found
