"""Memory for whole sequences, whatever the cell."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from msstab.cells.layout import Parameters


class Workspace(ABC):
    """Memory of a layer for a forward and backward pass over a sequence, reused from step to step.

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
        self.after = self.drive[1:, :, :hidden]
        # One product of these two gives all pre-activations.
        self.weight = self.zeros(models, rows, width)
        # The largest part by far, and written before it is read: filling it would take time.
        self.gates = self.template.new_empty(length, models, rows, batch)
        self.d_gates = self.zeros(models, rows, batch)
        self.d_state = self.zeros(models, hidden, batch)
        self.d_weight = self.zeros(models, width, rows)
        # Where the gradients of the inputs go, in passes that have a use for them.
        self.d_inputs: Tensor | None = None
        self.inputs_weight_t = self.weight[:, :, hidden + 1 :].transpose(1, 2)
        # What multiplies the state before each step, and where the states are kept meanwhile.
        self.factors: tuple[Tensor, ...] | None = None
        self.kept: Tensor | None = None

    def zeros(self, *shape: int) -> Tensor:
        """Return memory in the parameters' precision and on their device."""
        return self.template.new_zeros(shape)

    @property
    def shown(self) -> Tensor:
        """The hidden units after each step (T, M, H, B), which a later pass overwrites."""
        return self.after if self.kept is None else self.kept[:, :, : self.hidden]

    def multiply(self, factors: Tensor | None, *, keep: bool) -> None:
        """Let factors (T, M, S, B) multiply the state before each step of the next passes.

        With `keep`, the states after the steps are kept as well, before they are multiplied.
        """
        self.factors = None if factors is None else factors.unbind(0)
        self.kept = torch.empty_like(factors) if factors is not None and keep else None

    def go_on(self, t: int) -> None:
        """Turn the state after a step into the one before the next, if factors multiply it."""
        if self.factors is not None:
            after = self.after[t]
            if self.kept is not None:
                self.kept[t].copy_(after)
            if t + 1 < self.length:
                after.mul_(self.factors[t + 1])

    def go_back(self, t: int) -> None:
        """Turn the gradient of the state before a step into that of the one after the last."""
        if self.factors is not None:
            self.d_state.mul_(self.factors[t])

    def pass_down(self, t: int) -> None:
        """Turn the gradients of a step's pre-activations into those of its inputs, if wanted."""
        if self.d_inputs is not None:
            torch.bmm(self.inputs_weight_t, self.d_gates, out=self.d_inputs[t])

    def states(self) -> Tensor:
        """Return the states after each step (T, M, S, B), in memory of their own."""
        return self.after.clone() if self.kept is None else self.kept

    @abstractmethod
    def forward(
        self,
        inputs: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor,
        bias_hh: Tensor,
    ) -> None:
        """Go through the sequence, after which `shown` are the hidden units (T, M, H, B)."""

    @abstractmethod
    def backward(
        self, d_states: Tensor | None, d_last: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the gradients of the four weights, and put those of the inputs into `d_inputs`.

        From those of the states after each step (T, M, S, B) or their hidden units (T, M, H, B),
        and of the last hidden units again (M, H, B); None stands for zeros.
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
