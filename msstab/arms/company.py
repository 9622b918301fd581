"""The same numbers for a model on its own as in a stack."""

import functools
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from msstab.arms.registry import Penalty, Step


def never_alone(penalise: Callable[[Step], Penalty]) -> Callable[[Step], Penalty]:
    """Evaluate the penalty of a single model as that of a stack of two (a decorator).

    Sums over one of several dimensions, as in the gradient of whatever is broadcast, add up in
    another order where the stack has one model only. The copy's penalty is dropped, so that it
    adds nothing to gradients.
    """

    @functools.wraps(penalise)
    def in_company(step: Step) -> Penalty:
        if len(step.streams) != 1:
            return penalise(step)
        penalty = penalise(
            step._replace(
                parameters=step.parameters.like(map(_twice, step.parameters)),
                inputs=_twice(step.inputs, 1),
                targets=_twice(step.targets),
                states=_twice(step.states, 1),
                outputs=_twice(step.outputs),
                streams=[*step.streams, np.random.default_rng(0)],
            )
        )
        return Penalty(penalty.value[:1], penalty.active[:1])

    return in_company


def _twice(tensor: Tensor, dim: int = 0) -> Tensor:
    return torch.cat([tensor, tensor], dim)
