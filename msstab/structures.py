"""Noise structures that are compared: what each is for a network's shape, and at which strength.

The strengths are matched, so that the structures differ in where noise enters and what it shares,
not in how much of it there is: each one's single step disturbs the state by the same mean square.
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from msstab import cells, moments, noise, operators
from msstab.cells import Parameters
from msstab.noise import NOISES, Noise
from msstab.seeding import generator

GATES = {
    "gru": ("reset gate", "update gate", "candidate"),
    "lstm": ("input gate", "forget gate", "candidate", "output gate"),
}
"""What the blocks of rows of the recurrent weights are, in cells that have more than one."""

GROUPS = 4
"""Groups of units that share their noise."""

DIGITS = 3
"""Significant digits of a matched strength, so that it can be given by hand and found again."""

FROZEN = ", frozen"
"""How the name of a structure ends whose errors are drawn once for a whole run."""


def white_structures(parameters: Parameters, names: Sequence[str]) -> dict[str, Noise]:
    """Return the named structures and those made of patterns and sums, by name.

    For networks of the shape of `parameters`: noise on every second unit, noise that groups of
    units share, errors of the recurrent weights of one gate, of rank one in a random direction,
    and the sum of independent unit and weight noise. Strengths are relative to each other only
    once they are matched. Raises KeyError for a name that is not in `NOISES`.
    """
    size, hidden, rows = parameters.state_size, parameters.hidden, parameters.weight_hh.shape[1]
    second = torch.zeros(size, dtype=torch.float64)
    second[::2] = 1
    member = torch.arange(size) * min(GROUPS, size) // size
    groups = torch.nn.functional.one_hot(member).double().T
    gates = GATES.get(parameters.cell, ())
    by_gate = {
        f"weight, {gate}": noise.weight(noise.rows_of_gates([k], hidden, len(gates)))
        for k, gate in enumerate(gates)
    }
    # One direction for all networks of a shape: a structure is not fitted to a network.
    rng = generator(0, "structures", "rank one", rows, hidden)
    left, right = (torch.as_tensor(rng.standard_normal(n) / np.sqrt(n)) for n in (rows, hidden))
    return {
        **{name: NOISES[name] for name in names},
        "unit, every second": noise.unit(second),
        f"gain, {len(groups)} groups": noise.gain(groups),
        **by_gate,
        "weight, rank one": noise.low_rank(left, right),
        "unit + weight": noise.total([(NOISES["unit"], 1.0), (NOISES["weight"], 1.0)]),
    }


def frozen_structures(names: Sequence[str]) -> dict[str, Noise]:
    """Return those of the named structures whose errors can be drawn once for a whole run."""
    return {f"{name}{FROZEN}": NOISES[name] for name in names if NOISES[name].frozen is not None}


def disturbance(parameters: Parameters, inputs: Tensor, structure: Noise) -> Tensor:
    """Return the mean square by which one step's noise of strength 1 moves the state: (M,).

    Inputs (T, M, D, B). tr Q along the clean run from a zero state, averaged over steps and
    sequences; at strength s it is s^2 times that, to second order in the noise. The state is all
    of it, the memory of an LSTM too. Source: theory page, equation (2).
    """
    states, _ = cells.run(parameters, inputs)
    before = itertools.chain([torch.zeros_like(states[0])], states[:-1])
    found = []
    for step, state in zip(moments.linearisations(parameters, inputs, states), before, strict=True):
        h = state.mT[..., None]
        forced = operators.added(structure.operator(step, 1.0), h @ h.mT)
        found.append(torch.diagonal(forced, dim1=-2, dim2=-1).sum(-1).mean(-1))
    return torch.stack(found).double().mean(0)


def matched(disturbances: Mapping[str, float], reference: str, strength: float) -> dict[str, float]:
    """Return the strength at which each structure disturbs as much as the reference does.

    `disturbances` are mean squares at strength 1, `strength` is the reference's, which keeps it;
    the others' have `DIGITS` significant digits. Raises ValueError for a structure that disturbs
    nothing, as noise in proportion to units that are all zero.
    """
    silent = [name for name, value in disturbances.items() if not value > 0]
    if silent:
        raise ValueError(f"{', '.join(silent)}: no strength matches noise that disturbs nothing")
    aim = disturbances[reference]
    return {
        name: strength
        if name == reference
        else float(f"{strength * np.sqrt(aim / value):.{DIGITS}g}")
        for name, value in disturbances.items()
    }
