"""Penalties that cost much, evaluated at some steps of training only."""

import functools
from collections.abc import Callable

import torch

from msstab.arms.registry import Penalty, Step

Penalise = Callable[[Step], Penalty]


def lazily(every: int) -> Callable[[Penalise], Penalise]:
    """Evaluate a penalty at every so many steps, the first included, as many times as strongly.

    A decorator. The mean over the steps stays the same; in between the penalty is zero and counts
    as active where it last was. Source: lazy regularisation (Karras et al. 2020, Analyzing and
    Improving the Image Quality of StyleGAN, appendix B).
    """

    def decorate(penalise: Penalise) -> Penalise:
        @functools.wraps(penalise)
        def at_some_steps(step: Step) -> Penalty:
            turn = step.memory.setdefault("turn", torch.zeros((), dtype=torch.int64))
            due = int(turn) % every == 0
            turn += 1
            if due:
                penalty = penalise(step)
                step.memory["active"] = penalty.active.detach()
                return Penalty(every * penalty.value, penalty.active)
            active = step.memory["active"]
            return Penalty(torch.zeros_like(active), active)

        return at_some_steps

    return decorate
