"""What arms that look at whole sequences share: their turns, and the Jacobians on the way."""

import torch
from torch import Tensor

from msstab import cells
from msstab.arms.registry import Penalty, Step
from msstab.arms.sampling import Sequences

EVERY = 6
"""Steps of the optimiser from one turn to the next: a whole sequence's Jacobians take long."""
AT_ONCE = 6
"""Jacobians formed in one go: more do not fit into fast memory."""


def is_due(step: Step) -> bool:
    """Say whether it is an arm's turn: at its first step, and at every sixth from then on."""
    past = step.memory.get("steps", torch.zeros((), dtype=torch.int64))
    step.memory["steps"] = past + 1
    return int(past) % EVERY == 0


def pause(step: Step) -> Penalty:
    """Return the penalty between turns: nothing, and active nowhere."""
    nothing = step.outputs.new_zeros(len(step.outputs))
    return Penalty(nothing, nothing)


def jacobians_along(step: Step, sequences: Sequences) -> list[Tensor]:
    """Return the Jacobian of each step of the sequences: W times (M, K, S, S)."""
    _, models, size, count = sequences.before.shape
    found: list[Tensor] = []
    for first in range(0, len(sequences.before), AT_ONCE):
        before, inputs, states = (part[first : first + AT_ONCE] for part in sequences[:3])
        some = Sequences(before, inputs, states, sequences.drawn)
        jacobians = cells.jacobian(step.parameters, *some.flat())
        found += jacobians.view(models, -1, count, size, size).unbind(1)
    return found
