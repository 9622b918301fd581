"""Penalties that cost much, evaluated at some steps of training only."""

import functools
from collections.abc import Callable

import torch

from msstab.arms.registry import Penalty, Step

EVERY = 4
"""Steps of training for each evaluation of a costly penalty."""


def lazily(penalise: Callable[[Step], Penalty]) -> Callable[[Step], Penalty]:
    """Evaluate a penalty at every `EVERY`-th step, the first included, `EVERY` times as strongly.

    A decorator. The mean over the steps stays the same; in between the penalty is zero and counts
    as active where it last was. Source: lazy regularisation (Karras et al. 2020, Analyzing and
    Improving the Image Quality of StyleGAN, appendix B).
    """

    @functools.wraps(penalise)
    def at_some_steps(step: Step) -> Penalty:
        turn = step.memory.setdefault("turn", torch.zeros((), dtype=torch.int64))
        due = int(turn) % EVERY == 0
        turn += 1
        if due:
            penalty = penalise(step)
            step.memory["active"] = penalty.active.detach()
            return Penalty(EVERY * penalty.value, penalty.active)
        active = step.memory["active"]
        return Penalty(torch.zeros_like(active), active)

    return at_some_steps
