"""Plain recurrent networks with tanh (Elman 1990), the simplest cell there is."""

import torch
from torch import Tensor

from msstab.cells import layout, sequence
from msstab.cells.layout import Cell, Parameters, pad
from msstab.cells.linear import Linearisation, diagonals, through


def step(
    parameters: Parameters, state: Tensor, inputs: Tensor, disturbance: Tensor | None = None
) -> Tensor:
    """Advance every model by one step: state (M, H, B), inputs (M, D, B) -> next state (M, H, B).

    A `disturbance` (M, H, B) is added to the recurrent pre-activations W_hh h + b_hh.
    Source: Elman (1990) in torch's form, with two biases.
    """
    from_input = torch.baddbmm(parameters.bias_ih[:, :, None], parameters.weight_ih, inputs)
    from_state = torch.baddbmm(parameters.bias_hh[:, :, None], parameters.weight_hh, state)
    if disturbance is not None:
        from_state = from_state + disturbance
    return torch.tanh(from_input + from_state)


def linearise(parameters: Parameters, state: Tensor, inputs: Tensor) -> Linearisation:
    """Return the exact derivatives of a step: state (M, H, B), inputs (M, D, B).

    Source: theory page, equation (11), J = diag(1 - h'^2) W_hh, J_x = diag(1 - h'^2) W_ih.
    """
    _, hidden, batch = state.shape
    after = step(parameters, pad(state, hidden), pad(inputs, hidden))
    slopes = [(1 - after * after)[..., :batch].transpose(1, 2)]
    jacobian = through(slopes, parameters.weight_hh)
    return Linearisation(
        jacobian,
        diagonals(slopes),
        through(slopes, parameters.weight_ih),
        parameters.weight_hh[:, None, None],
        jacobian,
    )


class Workspace(sequence.Workspace):
    """Memory for whole sequences of plain recurrent networks, and the passes over it."""

    def __init__(self, length: int, parameters: Parameters, batch: int) -> None:
        super().__init__(length, parameters, batch, parameters.hidden)
        # Views made once: making them anew at every step would cost as much as the arithmetic.
        self.views = list(zip(self.drive[:-1], self.gates, self.shown, strict=True))

    def forward(
        self,
        inputs: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor,
        bias_hh: Tensor,
    ) -> None:
        """Go through the sequence, after which `shown` are the hidden units (T, M, H, B)."""
        sequence.fill(self, inputs, weight_ih, weight_hh, bias_ih, bias_hh)
        for t, (drive, gates, after) in enumerate(self.views):
            torch.bmm(self.weight, drive, out=gates)
            after.copy_(gates.tanh_())
            self.go_on(t)

    def backward(
        self, d_states: Tensor | None, d_last: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the gradients of the four weights."""
        d_gates, d_state, d_weight = self.d_gates, self.d_state, self.d_weight
        d_gates_t = d_gates.transpose(1, 2)
        weight_t = self.weight[:, :, : self.hidden].transpose(1, 2)
        d_weight.zero_()
        d_state.zero_()
        if d_last is not None:
            d_state += d_last
        tanh_backward = torch.ops.aten.tanh_backward.grad_input
        for t in range(self.length - 1, -1, -1):
            drive, state, _ = self.views[t]
            if d_states is not None:
                d_state += d_states[t]
            tanh_backward(d_state, state, grad_input=d_gates)
            d_weight.baddbmm_(drive, d_gates_t)
            self.pass_down(t)
            if t:
                torch.bmm(weight_t, d_gates, out=d_state)
                self.go_back(t)
        return sequence.weight_gradients(self)


layout.add("rnn", Cell(gates=1, parts=1, step=step, linearise=linearise, workspace=Workspace))
