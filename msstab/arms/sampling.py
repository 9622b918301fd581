"""Where on the clean run an arm looks: a few states or whole sequences, drawn for each model.

A model's draws come from its own stream and its numbers are gathered, not computed, so that
neither depends on the company. Nothing is drawn twice. Gradients flow back into the states.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from msstab.arms.registry import Step


class Samples(NamedTuple):
    """K places on the clean run of each model, in the layout that `cells.linearise` takes.

    `states` (M, S, K) are those before a step, zero before the first; `inputs` (M, D, K) those of
    that step.
    """

    states: Tensor
    inputs: Tensor


class Sequences(NamedTuple):
    """K sequences of each model over the last W steps: one `Samples` for each step.

    `before` (W, M, S, K) the states before the steps, zero before the first of a whole sequence;
    `inputs` (W, M, D, K). `states` (W, M, S, K) are those after the steps, and `drawn` (M, K) says
    which sequences of the batch these are.
    """

    before: Tensor
    inputs: Tensor
    states: Tensor
    drawn: Tensor

    def flat(self) -> Samples:
        """Return all steps as W K places, the step varying slowest."""
        return Samples(*(_merged(tensor) for tensor in (self.before, self.inputs)))


def sample_states(step: Step, count: int) -> Samples:
    """Draw `count` pairs of a time and a sequence for each model, or all there are if fewer."""
    length, models, _, batch = step.inputs.shape
    drawn = _draw(step.streams, length * batch, count).to(step.inputs.device)
    times, sequences = drawn // batch, drawn % batch
    every = torch.arange(models, device=drawn.device)[:, None]
    before = step.states[(times - 1).clamp_min(0), every, :, sequences]
    before = torch.where((times > 0)[..., None], before, torch.zeros_like(before))
    inputs = step.inputs[times, every, :, sequences]
    return Samples(before.mT.contiguous(), inputs.mT.contiguous())


def sample_sequences(step: Step, count: int, window: int | None = None, ends: int = 1) -> Sequences:
    """Draw `count` sequences for each model, or all if fewer, and return W steps of each.

    `window` W; None, or more steps than there are, stands for all of them. They are the last ones,
    or with `ends` end with one that is drawn among so many last ones that have W - 1 before them.
    """
    length, models, _, batch = step.inputs.shape
    window = length if window is None else min(window, length)
    drawn = _draw(step.streams, batch, count).to(step.inputs.device)
    every = torch.arange(models, device=drawn.device)[:, None]
    ends = min(ends, length - window + 1)
    if ends > 1:
        return _ending_anywhere(step, drawn, window, ends)

    def chosen(tensor: Tensor, start: int) -> Tensor:
        return tensor[start:, every, :, drawn].permute(2, 0, 3, 1).contiguous()

    inputs = chosen(step.inputs, length - window)
    if window < length:
        run = chosen(step.states, length - window - 1)
    else:
        states = chosen(step.states, 0)
        run = torch.cat([torch.zeros_like(states[:1]), states])
    return Sequences(run[:-1], inputs, run[1:], drawn)


def _ending_anywhere(step: Step, drawn: Tensor, window: int, ends: int) -> Sequences:
    """Return W steps of the sequences drawn, each ending with one of the last `ends` steps."""
    length, models, _, _ = step.inputs.shape
    count = drawn.shape[1]
    before_end = np.stack([rng.integers(ends, size=count) for rng in step.streams])
    start = length - window - torch.as_tensor(before_end).to(drawn.device)
    times = start + torch.arange(window, device=drawn.device)[:, None, None]
    every = torch.arange(models, device=drawn.device)[:, None]

    def chosen(tensor: Tensor, at: Tensor) -> Tensor:
        return tensor[at.clamp_min(0), every, :, drawn].transpose(2, 3).contiguous()

    before = chosen(step.states, times - 1)
    before = torch.where((times > 0)[:, :, None], before, torch.zeros_like(before))
    return Sequences(before, chosen(step.inputs, times), chosen(step.states, times), drawn)


def _draw(streams: Sequence[np.random.Generator], among: int, count: int) -> Tensor:
    """Draw different numbers below `among` for each model: (M, K)."""
    count = min(count, among)
    drawn = [rng.choice(among, size=count, replace=False) for rng in streams]
    return torch.as_tensor(np.stack(drawn))


def _merged(tensor: Tensor) -> Tensor:
    """Return (W, M, N, K) as (M, N, W K)."""
    return tensor.permute(1, 2, 0, 3).flatten(2)
