"""Long short-term memory in torch's form; gates i, f, g, o: input, forget, candidate, output.

A state is the hidden units h and, below them, the memory c, as one array of 2H rows.
"""

import torch
from torch import Tensor

from msstab.cells import layout, sequence
from msstab.cells.layout import Cell, Parameters, pad
from msstab.cells.linear import Linearisation, diagonals, through


def step(
    parameters: Parameters, state: Tensor, inputs: Tensor, disturbance: Tensor | None = None
) -> Tensor:
    """Advance every model by one step: state (M, 2H, B), inputs (M, D, B) -> the next state.

    A `disturbance` (M, 4H, B) is added to the recurrent pre-activations W_hh h + b_hh.
    Source: theory page, equation (9): Hochreiter and Schmidhuber (1997) with the forget gate of
    Gers et al. (2000),
    c' = f c + i g, h' = o tanh(c').
    """
    enter, forget, candidate, output = _gates(parameters, state, inputs, disturbance)
    after = forget * state[:, parameters.hidden :] + enter * candidate
    return torch.cat([output * torch.tanh(after), after], dim=1)


def linearise(parameters: Parameters, state: Tensor, inputs: Tensor) -> Linearisation:
    """Return the exact derivatives of a step, h before c: state (M, 2H, B), inputs (M, D, B).

    Source: theory page, equation (10); dc'/dc = diag(f) and, with s = o (1 - tanh(c')^2),
    dc'/dh = diag(g i (1 - i)) W_hi + diag(c f (1 - f)) W_hf + diag(i (1 - g^2)) W_hg,
    dh'/dc = diag(s f), dh'/dh = diag(s) dc'/dh + diag(tanh(c') o (1 - o)) W_ho.
    """
    hidden, batch = parameters.hidden, state.shape[-1]
    state, inputs = pad(state, hidden), pad(inputs, hidden)
    enter, forget, candidate, output = _gates(parameters, state, inputs)
    before = state[:, hidden:]
    shown = torch.tanh(forget * before + enter * candidate)
    slope = output * (1 - shown * shown)
    memory = [
        candidate * enter * (1 - enter),
        before * forget * (1 - forget),
        enter * (1 - candidate * candidate),
        torch.zeros_like(output),
    ]
    units = [slope * part for part in memory[:3]] + [shown * output * (1 - output)]

    def rows(tensor: Tensor) -> Tensor:
        return tensor[..., :batch].transpose(1, 2)

    units, memory = list(map(rows, units)), list(map(rows, memory))

    def both(weight: Tensor) -> Tensor:
        return torch.cat([through(units, weight), through(memory, weight)], dim=-2)

    kept = [torch.diag_embed(rows(slope * forget)), torch.diag_embed(rows(forget))]
    jacobian = torch.cat([both(parameters.weight_hh), torch.cat(kept, dim=-2)], dim=-1)
    return Linearisation(
        jacobian,
        torch.cat([diagonals(units), diagonals(memory)], dim=-2),
        both(parameters.weight_ih),
        parameters.weight_hh[:, None, None],
        jacobian,
    )


def _gates(
    parameters: Parameters, state: Tensor, inputs: Tensor, disturbance: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return input gate, forget gate, candidate and output gate, each (M, H, B)."""
    shown = state[:, : parameters.hidden]
    from_input = torch.baddbmm(parameters.bias_ih[:, :, None], parameters.weight_ih, inputs)
    from_state = torch.baddbmm(parameters.bias_hh[:, :, None], parameters.weight_hh, shown)
    if disturbance is not None:
        from_state = from_state + disturbance
    enter, forget, candidate, output = (from_input + from_state).chunk(4, dim=1)
    return enter.sigmoid(), forget.sigmoid(), candidate.tanh(), output.sigmoid()


class Workspace(sequence.Workspace):
    """Memory for whole sequences of long short-term memory, and the passes over it."""

    def __init__(self, length: int, parameters: Parameters, batch: int) -> None:
        super().__init__(length, parameters, batch, 4 * parameters.hidden)
        shape = self.d_state.shape
        self.squashed, self.memory = self.zeros(length, *shape), self.zeros(length + 1, *shape)
        self.d_memory, self.scratch = self.zeros(*shape), self.zeros(*shape)
        # Views made once: making them anew at every step would cost as much as the arithmetic.
        self.views = [self._views(t) for t in range(length)]

    def _views(self, t: int) -> tuple[Tensor, ...]:
        gates, h = self.gates[t], self.hidden
        enter, forget, candidate, output = gates.chunk(4, dim=1)
        return (
            *(self.drive[t], gates, gates[:, : 2 * h], enter, forget, candidate, output),
            *(self.memory[t], self.memory[t + 1], self.squashed[t], self.drive[t + 1, :, :h]),
        )

    def states(self) -> Tensor:
        """Return the states after each step (T, M, 2H, B), in memory of their own."""
        if self.kept is not None:
            return self.kept
        return torch.cat([self.after, self.memory[1:]], dim=2)

    def go_on(self, t: int) -> None:
        """Turn the state after a step into the one before the next, if factors multiply it."""
        if self.factors is not None:
            h, units, memory = self.hidden, self.after[t], self.memory[t + 1]
            if self.kept is not None:
                torch.cat([units, memory], dim=1, out=self.kept[t])
            if t + 1 < self.length:
                units.mul_(self.factors[t + 1][:, :h])
                memory.mul_(self.factors[t + 1][:, h:])

    def go_back(self, t: int) -> None:
        """Turn the gradient of the state before a step into that of the one after the last."""
        if self.factors is not None:
            self.d_state.mul_(self.factors[t][:, : self.hidden])
            self.d_memory.mul_(self.factors[t][:, self.hidden :])

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
        for t, views in enumerate(self.views):
            drive, gates, both, enter, forget, n, output, before, after, shown, state = views
            torch.bmm(self.weight, drive, out=gates)
            both.sigmoid_()
            n.tanh_()
            output.sigmoid_()
            torch.mul(forget, before, out=after)
            after.addcmul_(enter, n)
            torch.tanh(after, out=shown)
            torch.mul(output, shown, out=state)
            self.go_on(t)

    def backward(
        self, d_states: Tensor | None, d_last: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the gradients of the four weights."""
        h, d_gates, d_weight, scratch = self.hidden, self.d_gates, self.d_weight, self.scratch
        d_state, d_memory = self.d_state, self.d_memory
        d_enter, d_forget, d_candidate, d_output = d_gates.chunk(4, dim=1)
        d_both, d_gates_t = d_gates[:, : 2 * h], d_gates.transpose(1, 2)
        weight_t = self.weight[:, :, :h].transpose(1, 2)
        for gradient in (d_weight, d_state, d_memory):
            gradient.zero_()
        if d_last is not None:
            d_state += d_last
        sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
        tanh_backward = torch.ops.aten.tanh_backward.grad_input
        for t in range(self.length - 1, -1, -1):
            drive, _, both, enter, forget, n, output, before, _, shown, _ = self.views[t]
            if d_states is not None:
                d_state += d_states[t, :, :h]
                if d_states.shape[2] > h:
                    d_memory += d_states[t, :, h:]
            torch.mul(d_state, shown, out=d_output)
            sigmoid_backward(d_output, output, grad_input=d_output)
            torch.mul(d_state, output, out=scratch)
            tanh_backward(scratch, shown, grad_input=scratch)
            d_memory += scratch
            torch.mul(d_memory, n, out=d_enter)
            torch.mul(d_memory, before, out=d_forget)
            sigmoid_backward(d_both, both, grad_input=d_both)
            torch.mul(d_memory, enter, out=scratch)
            tanh_backward(scratch, n, grad_input=d_candidate)
            d_weight.baddbmm_(drive, d_gates_t)
            self.pass_down(t)
            if t:
                d_memory.mul_(forget)
                torch.bmm(weight_t, d_gates, out=d_state)
                self.go_back(t)
        return sequence.weight_gradients(self)


layout.add("lstm", Cell(gates=4, parts=2, step=step, linearise=linearise, workspace=Workspace))
