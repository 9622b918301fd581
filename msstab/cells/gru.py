"""Gated recurrent units in torch's form; gates r, z, n: reset, update, candidate."""

import torch
from torch import Tensor

from msstab.cells import layout, sequence
from msstab.cells.layout import Cell, Parameters, pad
from msstab.cells.linear import Linearisation, diagonals, through


def step(
    parameters: Parameters, state: Tensor, inputs: Tensor, disturbance: Tensor | None = None
) -> Tensor:
    """Advance every model by one step: state (M, H, B), inputs (M, D, B) -> next state (M, H, B).

    A `disturbance` (M, 3H, B) is added to the recurrent pre-activations W_hh h + b_hh.
    Source: theory page, equation (6): Cho et al. (2014) in torch's form, where the reset gate acts
    after the product.
    """
    _, update, candidate, _ = _gates(parameters, state, inputs, disturbance)
    return torch.lerp(candidate, state, update)


def linearise(parameters: Parameters, state: Tensor, inputs: Tensor) -> Linearisation:
    """Return the exact derivatives of a step: state (M, H, B), inputs (M, D, B).

    Source: theory page, equation (8). J = diag(z) + diag(g_r) W_hr + diag(g_z) W_hz +
    diag(g_n) W_hn, J_x = diag(g_r) W_ir + diag(g_z) W_iz + diag(g) W_in with g = (1-z)(1-n^2),
    and the pre-activations' derivative [diag(g_r) diag(g_z) diag(g_n)].
    """
    _, hidden, batch = state.shape
    state, inputs = pad(state, hidden), pad(inputs, hidden)
    reset, update, candidate, recurrent = _gates(parameters, state, inputs)
    outer = (1 - update) * (1 - candidate * candidate)
    by_reset = outer * recurrent * reset * (1 - reset)
    by_update = (state - candidate) * update * (1 - update)
    slopes = [by_reset, by_update, outer * reset, outer, update]
    g_r, g_z, g_n, g, z = (slope[..., :batch].transpose(1, 2) for slope in slopes)
    jacobian = through([g_r, g_z, g_n], parameters.weight_hh) + torch.diag_embed(z)
    return Linearisation(
        jacobian,
        diagonals([g_r, g_z, g_n]),
        through([g_r, g_z, g], parameters.weight_ih),
        parameters.weight_hh[:, None, None],
        jacobian,
    )


def _gates(
    parameters: Parameters, state: Tensor, inputs: Tensor, disturbance: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return reset, update, candidate and the candidate's recurrent term, each (M, H, B)."""
    hidden = state.shape[1]
    from_input = torch.baddbmm(parameters.bias_ih[:, :, None], parameters.weight_ih, inputs)
    from_state = torch.baddbmm(parameters.bias_hh[:, :, None], parameters.weight_hh, state)
    if disturbance is not None:
        from_state = from_state + disturbance
    both = torch.sigmoid(from_input[:, : 2 * hidden] + from_state[:, : 2 * hidden])
    reset, update = both[:, :hidden], both[:, hidden:]
    recurrent = from_state[:, 2 * hidden :]
    candidate = torch.tanh(from_input[:, 2 * hidden :] + reset * recurrent)
    return reset, update, candidate, recurrent


class Workspace(sequence.Workspace):
    """Memory for whole sequences of gated recurrent units, and the passes over it."""

    def __init__(self, length: int, parameters: Parameters, batch: int) -> None:
        # Rows of the pre-activations: reset, update, and the candidate's recurrent and input
        # terms apart, for the reset gate acts on the recurrent one alone.
        super().__init__(length, parameters, batch, 4 * parameters.hidden)
        self.candidate = self.zeros(length, *self.d_state.shape)
        self.scratch = torch.zeros_like(self.d_state)
        # Views made once: making them anew at every step would cost as much as the arithmetic.
        self.views = [self._views(t) for t in range(length)]

    def _views(self, t: int) -> tuple[Tensor, ...]:
        drive, gates, h = self.drive[t], self.gates[t], self.hidden
        both, recurrent, from_input = gates[:, : 2 * h], gates[:, 2 * h : 3 * h], gates[:, 3 * h :]
        state, next_state = drive[:, :h], self.drive[t + 1, :, :h]
        reset, update, candidate = both[:, :h], both[:, h:], self.candidate[t]
        return (
            *(drive, state, next_state, gates, both),
            *(reset, update, recurrent, from_input, candidate),
        )

    def forward(
        self,
        inputs: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor,
        bias_hh: Tensor,
    ) -> None:
        """Go through the sequence, after which `shown` are the hidden units (T, M, H, B)."""
        h, weight = self.hidden, self.weight
        both, recurrent, from_input = slice(2 * h), slice(2 * h, 3 * h), slice(3 * h, 4 * h)
        self.drive[: self.length, :, h + 1 :] = inputs
        weight[:, : 3 * h, :h] = weight_hh
        weight[:, : 3 * h, h] = bias_hh
        weight[:, both, h] += bias_ih[:, both]
        weight[:, both, h + 1 :] = weight_ih[:, both]
        weight[:, from_input, h] = bias_ih[:, recurrent]
        weight[:, from_input, h + 1 :] = weight_ih[:, recurrent]
        for t, views in enumerate(self.views):
            drive, state, after, gates, rz, reset, update, from_state, driven, n = views
            torch.bmm(weight, drive, out=gates)
            rz.sigmoid_()
            torch.addcmul(driven, reset, from_state, out=n).tanh_()
            torch.lerp(n, state, update, out=after)
            self.go_on(t)

    def backward(
        self, d_states: Tensor | None, d_last: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the gradients of the four weights."""
        h = self.hidden
        d_gates, d_state, d_weight, scratch = (
            self.d_gates,
            self.d_state,
            self.d_weight,
            self.scratch,
        )
        d_both, d_recurrent, d_input = (
            d_gates[:, : 2 * h],
            d_gates[:, 2 * h : 3 * h],
            d_gates[:, 3 * h :],
        )
        d_reset, d_update, d_hidden = d_both[:, :h], d_both[:, h:], d_gates[:, : 3 * h]
        d_gates_t = d_gates.transpose(1, 2)
        weight_t = self.weight[:, : 3 * h, :h].transpose(1, 2)
        d_weight.zero_()
        d_state.zero_()
        if d_last is not None:
            d_state += d_last
        sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
        tanh_backward = torch.ops.aten.tanh_backward.grad_input
        for t in range(self.length - 1, -1, -1):
            drive, state, _, _, both, reset, update, recurrent, _, n = self.views[t]
            if d_states is not None:
                d_state += d_states[t]
            torch.sub(state, n, out=scratch)
            torch.mul(scratch, d_state, out=d_update)
            torch.addcmul(d_state, d_state, update, value=-1, out=scratch)
            tanh_backward(scratch, n, grad_input=d_input)
            torch.mul(d_input, recurrent, out=d_reset)
            sigmoid_backward(d_both, both, grad_input=d_both)
            torch.mul(d_input, reset, out=d_recurrent)
            d_weight.baddbmm_(drive, d_gates_t)
            self.pass_down(t)
            if t:
                d_state.mul_(update).baddbmm_(weight_t, d_hidden)
                self.go_back(t)
        d_rows = d_weight.transpose(1, 2)
        d_from_input = torch.cat([d_rows[:, : 2 * h, h:], d_rows[:, 3 * h :, h:]], 1)
        return (
            d_from_input[:, :, 1:].contiguous(),
            d_rows[:, : 3 * h, :h].contiguous(),
            d_from_input[:, :, 0].contiguous(),
            d_rows[:, : 3 * h, h].contiguous(),
        )


layout.add("gru", Cell(gates=3, parts=1, step=step, linearise=linearise, workspace=Workspace))
