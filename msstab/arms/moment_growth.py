"""Growth of the second moment along the network's own trajectories, held below a target."""

import math

import torch

from msstab import moments
from msstab.arms.lazily import lazily
from msstab.arms.registry import Penalty, Step, arm
from msstab.arms.sampling import sample_sequences
from msstab.arms.trajectory import operators_along

SEQUENCES, WINDOW, SETTLE = 1, 10, 2
"""Sequences of each model, their last steps that a step of training looks at, and how many of
these let P forget that it began as the identity."""

EVERY = 4
"""Steps of training for each evaluation, which costs more than a step."""


@arm(strengths=(0.0, 0.1, 1.0))
@lazily(EVERY)
def moment_growth(step: Step) -> Penalty:
    """Hinge on the growth rate of the second moment along the network's own trajectories.

    In nats a step above log(target). The rate, of tr P under P' = L_t(P), is that of
    `moments.growth_rate` along the last steps of sampled sequences; the hinge opens for each
    sequence by itself. Evaluated at every fourth step of training, see `lazily`. Gradients flow
    through Jacobians and states into the parameters. Source: theory page, equation (40).
    """
    return _hinge(step, closed_loop=False)


@arm(strengths=(0.0, 0.01, 0.1), closed=True)
@lazily(EVERY)
def moment_growth_closed(step: Step) -> Penalty:
    """Hinge on the same growth rate with forecasts fed back as inputs.

    With J_cl = J + J_x W_o in place of J; else as `moment_growth`. For tracks that forecast their
    next input.
    """
    return _hinge(step, closed_loop=True)


def _hinge(step: Step, *, closed_loop: bool) -> Penalty:
    drawn = sample_sequences(step, SEQUENCES, WINDOW)
    sizes = moments.log_traces(operators_along(step, drawn, closed_loop=closed_loop))
    settle = min(SETTLE, len(sizes) - 1)
    start = sizes[settle - 1] if settle else torch.zeros_like(sizes[0])
    vanished, limit = sizes[-1] == -torch.inf, math.log(step.target)
    rate = (sizes[-1] - start) / (len(sizes) - settle)
    # A diverged model's NaN stays one; a moment that vanishes closes the hinge.
    excess = torch.where(vanished | (rate <= limit), torch.zeros_like(rate), rate - limit)
    return Penalty(excess.mean(1), (excess > 0).to(rate).mean(1))
