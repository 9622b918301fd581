"""The output variance that noise causes, as the theory predicts it: what robustness needs small."""

import torch

from msstab import cells, operators
from msstab.arms.registry import Penalty, Step, arm
from msstab.arms.sampling import sample_sequences
from msstab.arms.trajectory import operators_along

SEQUENCES, WINDOW = 1, 7
"""Sequences of each model and their last steps that a step of training looks at."""


@arm(strengths=(0.0, 0.1, 1.0))
def output_variance(step: Step) -> Penalty:
    """The output's variance under noise of the last few steps, as the theory predicts it.

    E[tr W_o P_T W_o^T], with P' = L_t(P) + Q_t from P = 0 before the last `WINDOW` steps. The
    expectation is over sampled sequences, and over the outputs that count if these are several,
    but for those that come before `WINDOW` steps have passed. Gradients flow through Jacobians and
    states into the parameters. There is no hinge. Source: theory page, equation (41).
    """
    ends = cells.output_steps(step.parameters, step.targets)
    drawn = sample_sequences(step, SEQUENCES, WINDOW, ends)
    along = operators_along(step, drawn)
    _, models, size, count = drawn.states.shape
    room = along[0].jacobian.shape[-1] - size
    states = torch.nn.functional.pad(drawn.before.mT, (0, room))
    moment = states.new_zeros(models, count, size + room, size + room)
    for operator, state in zip(along, states, strict=True):
        moment = operators.propagate(operator, moment, state)
    weights = step.parameters.weight_out
    readout = torch.nn.functional.pad(weights, (0, size + room - weights.shape[-1]))
    # Row by row, for products of few rows could depend on a model's place in the stack.
    shown = [
        (row[:, None, :, None] * moment * row[:, None, None, :]).sum((-2, -1))
        for row in readout.unbind(1)
    ]
    value = torch.stack(shown).sum(0).mean(1)
    return Penalty(value, torch.ones_like(value).detach())
