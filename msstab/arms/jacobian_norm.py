"""Half the mean squared Frobenius norm of the Jacobian at states of the clean run."""

import torch

from msstab import cells
from msstab.arms.registry import Penalty, Step, arm
from msstab.arms.sampling import sample_states

N_STATES = 3
"""Places drawn for each model at each step: as many as time allows."""


@arm(strengths=(0.0, 0.001, 0.03))
def jacobian_norm(step: Step) -> Penalty:
    """Half the mean squared Frobenius norm of the Jacobian at sampled states.

        Source: Hoffman, Roberts & Yaida, "Robust learning with Jacobian regularization" (2019), who
    estimate the norm of a whole network's Jacobian by random projections; that of one step is
    small enough to be exact.
    """
    jacobian = cells.jacobian(step.parameters, *sample_states(step, N_STATES))
    value = jacobian.square().sum(dim=(2, 3)).mean(dim=1) / 2
    return Penalty(value, torch.ones_like(value))
