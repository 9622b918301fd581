"""Memory for whole sequences, whatever the cell."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from msstab.cells.layout import Parameters


class Workspace(ABC):
    """Memory for one forward and backward pass over a sequence, reused from step to step.

    A later forward pass overwrites an earlier one's intermediate values, so a backward pass
    after that raises RuntimeError.
    """

    def __init__(self, length: int, parameters: Parameters, batch: int, rows: int) -> None:
        models, _, n_inputs = parameters.weight_ih.shape
        hidden = parameters.hidden
        width = hidden + 1 + n_inputs
        self.length, self.hidden, self.generation = length, hidden, 0
        self.template = parameters.weight_ih.detach()
        # What drives step t, in rows: the state before it, a constant 1 for the biases, inputs.
        self.drive = self.zeros(length + 1, models, width, batch)
        self.drive[:, :, hidden] = 1
        # One product of these two gives all pre-activations.
        self.weight = self.zeros(models, rows, width)
        self.gates = self.zeros(length, models, rows, batch)
        self.d_gates = self.zeros(models, rows, batch)
        self.d_state = self.zeros(models, hidden, batch)
        self.d_weight = self.zeros(models, width, rows)

    def zeros(self, *shape: int) -> Tensor:
        """Return memory in the parameters' precision and on their device."""
        return self.template.new_zeros(shape)

    @abstractmethod
    def forward(
        self,
        inputs: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor,
        bias_hh: Tensor,
        factors: Tensor | None = None,
    ) -> Tensor:
        """Return the states after each step (T, M, S, B), in memory of their own.

        Factors (T, M, S, B) multiply the state before each step.
        """

    @abstractmethod
    def backward(
        self, d_states: Tensor | None, d_last: Tensor | None, factors: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the gradients of the four weights.

        From those of the states after each step (T, M, S, B), and of the last one again (M, S, B);
        None stands for zeros. Factors are those of the forward pass.
        """


def fill(
    space: Workspace,
    inputs: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor,
    bias_hh: Tensor,
) -> None:
    """Lay out inputs and weights for gates to which state and inputs contribute alike."""
    h = space.hidden
    space.drive[: space.length, :, h + 1 :] = inputs
    space.weight[:, :, :h] = weight_hh
    torch.add(bias_hh, bias_ih, out=space.weight[:, :, h])
    space.weight[:, :, h + 1 :] = weight_ih


def weight_gradients(space: Workspace) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of the four weights that `fill` laid out."""
    h = space.hidden
    d_rows = space.d_weight.transpose(1, 2)
    d_bias = d_rows[:, :, h].contiguous()
    return d_rows[:, :, h + 1 :].contiguous(), d_rows[:, :, :h].contiguous(), d_bias, d_bias.clone()
