"""Half the sum of squares of the weights, the penalty that everybody knows."""

import torch

from msstab.arms.registry import Penalty, Step, arm


@arm(strengths=(0.0, 1e-4, 1e-3))
def weight_decay(step: Step) -> Penalty:
    """Half the sum of squares of the weight matrices: input, recurrent and readout, no biases.

    Its gradient at strength 1 is the weights themselves. Added to the loss, and so rescaled by
    Adam as any penalty's gradient is, unlike decoupled decay (Loshchilov & Hutter 2019).
    """
    matrices = [tensor for tensor in step.parameters if tensor.dim() == 3]
    squares = [tensor.square().sum(dim=(1, 2)) for tensor in matrices]
    value = torch.stack(squares).sum(0) / 2
    return Penalty(value, torch.ones_like(value))
