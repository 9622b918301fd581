"""Recurrent cells for M stacked models at once: whole sequences, single steps and Jacobians.

Layout: models first, batch last. A state is (M, H, B), a sequence of inputs (T, M, D, B), so
that every product is one batched matrix product and every elementwise operation runs over
contiguous memory. A model's numbers do not depend on how many others share its stack.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from msstab.study import declare

declare("cell", "gru")


class Parameters(NamedTuple):
    """M gated recurrent units with a linear readout, in the shapes and gate order of torch.

    Gates are stacked r, z, n (reset, update, candidate): `weight_ih` (M, 3H, D), `weight_hh`
    (M, 3H, H), both biases (M, 3H), `weight_out` (M, O, H), `bias_out` (M, O).
    """

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor
    bias_hh: Tensor
    weight_out: Tensor
    bias_out: Tensor

    def select(self, models: slice | Sequence[int] | Tensor) -> "Parameters":
        """Return the parameters of some of the models."""
        return Parameters(*(tensor[models] for tensor in self))

    def require_grad(self) -> "Parameters":
        """Return leaf copies that record gradients."""
        return Parameters(*(tensor.detach().clone().requires_grad_() for tensor in self))


def initial_parameters(
    streams: Sequence[np.random.Generator],
    hidden: int,
    n_inputs: int,
    n_outputs: int,
    *,
    gain: float = 1.0,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
) -> Parameters:
    """Draw weights uniformly from +-gain / sqrt(hidden), torch's own initialisation at gain 1.

    One stream a model; a model's weights depend on its stream alone.
    """
    shapes = [(3 * hidden, n_inputs), (3 * hidden, hidden), (3 * hidden,), (3 * hidden,)]
    shapes += [(n_outputs, hidden), (n_outputs,)]
    bound = gain / math.sqrt(hidden)
    models = [[rng.uniform(-bound, bound, size=shape) for shape in shapes] for rng in streams]
    stacked = (np.stack(tensors) for tensors in zip(*models, strict=True))
    return Parameters(*(torch.as_tensor(t, dtype=dtype, device=device) for t in stacked))


def step(
    parameters: Parameters, state: Tensor, inputs: Tensor, disturbance: Tensor | None = None
) -> Tensor:
    """Advance every model by one step: state (M, H, B), inputs (M, D, B) -> next state (M, H, B).

    A `disturbance` (M, 3H, B) is added to the recurrent pre-activations W_hh h + b_hh.
    Source: Cho et al. (2014) in torch's form, where the reset gate acts after the product.
    """
    _, update, candidate, _ = _gates(parameters, state, inputs, disturbance)
    return torch.lerp(candidate, state, update)


def readout(parameters: Parameters, state: Tensor) -> Tensor:
    """Return the linear readout of a state: (M, H, B) -> (M, O, B)."""
    return torch.baddbmm(parameters.bias_out[:, :, None], parameters.weight_out, state)


def jacobian(parameters: Parameters, state: Tensor, inputs: Tensor) -> Tensor:
    """Return the exact Jacobian of a step with respect to the state.

    State (M, H, B) and inputs (M, D, B) -> (M, B, H, H), rows for the next state's units.
    Source: the theory page, J = diag(z) + diag(g_r) W_hr + diag(g_z) W_hz + diag(g_n) W_hn.
    """
    *slopes, _, update = _slopes(parameters, state, inputs)
    return _through(slopes, parameters.weight_hh) + torch.diag_embed(update)


class Linearisation(NamedTuple):
    """First derivatives of a step at one state, with leading dimensions (...), here (M, B).

    `jacobian` (..., N, N) is what a deviation of the state becomes, `recurrent` (..., N, R) what
    one of the R recurrent pre-activations does, `inputs` (..., N, D) what one of the inputs does,
    and `weight` (..., R, N) gives the pre-activations from the state (with columns of zeros for
    parts of a state that they do not read). `entry` (..., N, N) is what a disturbance of the
    stored state becomes; it differs from `jacobian` where forecasts are fed back.
    """

    jacobian: Tensor
    recurrent: Tensor
    inputs: Tensor
    weight: Tensor
    entry: Tensor


def linearise(parameters: Parameters, state: Tensor, inputs: Tensor) -> Linearisation:
    """Return the exact derivatives of a step: state (M, H, B), inputs (M, D, B).

    Source: the theory page, section 2, J_x = diag(g_r) W_ir + diag(g_z) W_iz + diag(g) W_in with
    g = (1-z)(1-n^2), and the pre-activations' derivative [diag(g_r) diag(g_z) diag(g_n)].
    """
    reset, gate, candidate, outer, update = _slopes(parameters, state, inputs)
    through = _through([reset, gate, candidate], parameters.weight_hh)
    through = through + torch.diag_embed(update)
    return Linearisation(
        through,
        torch.cat([torch.diag_embed(slope) for slope in (reset, gate, candidate)], dim=-1),
        _through([reset, gate, outer], parameters.weight_ih),
        parameters.weight_hh[:, None],
        through,
    )


def _slopes(parameters: Parameters, state: Tensor, inputs: Tensor) -> tuple[Tensor, ...]:
    """Return g_r, g_z, g_n, (1-z)(1-n^2) and z, each (M, B, H)."""
    _, hidden, batch = state.shape
    state, inputs = pad(state, hidden), pad(inputs, hidden)
    reset, update, candidate, recurrent = _gates(parameters, state, inputs)
    outer = (1 - update) * (1 - candidate * candidate)
    slope_reset = outer * recurrent * reset * (1 - reset)
    slope_update = (state - candidate) * update * (1 - update)
    slopes = (slope_reset, slope_update, outer * reset, outer, update)
    return tuple(slope[..., :batch].transpose(1, 2) for slope in slopes)


def _through(slopes: Sequence[Tensor], weight: Tensor) -> Tensor:
    """Return the sum over gates of diag(slope) W_gate: three (M, B, H), (M, 3H, N)."""
    blocks = weight[:, None].chunk(3, dim=2)
    reset, update, candidate = (s[..., None] * w for s, w in zip(slopes, blocks, strict=True))
    return reset + update + candidate


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


class Workspace:
    """Memory for one forward and backward pass over a sequence, reused from step to step.

    A later forward pass overwrites an earlier one's intermediate values, so a backward pass
    after that raises RuntimeError.
    """

    def __init__(self, length: int, parameters: Parameters, batch: int) -> None:
        models, _, n_inputs = parameters.weight_ih.shape
        hidden = parameters.weight_hh.shape[2]
        width = hidden + 1 + n_inputs
        self.length, self.hidden, self.generation = length, hidden, 0

        def zeros(*shape: int) -> Tensor:
            return parameters.weight_ih.detach().new_zeros(shape)

        # What drives step t, in rows: the state before it, a constant 1 for the biases, inputs.
        self.drive = zeros(length + 1, models, width, batch)
        self.drive[:, :, hidden] = 1
        # One product gives all pre-activations, in rows: reset, update, and the candidate's
        # recurrent and input terms apart, for the reset gate acts on the recurrent one alone.
        self.weight = zeros(models, 4 * hidden, width)
        self.gates = zeros(length, models, 4 * hidden, batch)
        self.candidate = zeros(length, models, hidden, batch)
        self.minus_one = torch.full_like(self.candidate[0], -1.0)
        self.d_gates = zeros(models, 4 * hidden, batch)
        self.d_state = zeros(models, hidden, batch)
        self.scratch = zeros(models, hidden, batch)
        self.d_weight = zeros(models, width, 4 * hidden)
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


class _Sequence(torch.autograd.Function):
    """A whole sequence with hand-written back-propagation."""

    @staticmethod
    def forward(ctx: Any, space: Workspace, inputs: Tensor, *weights: Tensor) -> Tensor:
        _forward(space, inputs, *weights)
        ctx.space, ctx.generation = space, space.generation
        return space.drive[1:, :, : space.hidden].clone()

    @staticmethod
    def backward(ctx: Any, d_states: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.generation != ctx.space.generation:
            raise RuntimeError("a later forward pass has overwritten this one's workspace")
        return (None, None, *_backward(ctx.space, d_states))


def run(
    parameters: Parameters, inputs: Tensor, workspace: Workspace | None = None
) -> tuple[Tensor, Tensor]:
    """Run every model over its sequences from a zero state; differentiable in the parameters.

    Inputs (T, M, D, B) -> the states after each step (T, M, H, B) and the readout of the last
    one (M, O, B). A `workspace`, made for these shapes with B rounded up by `padded`, saves
    allocating memory at every call.
    """
    length, _, _, batch = inputs.shape
    inputs = pad(inputs, parameters.weight_hh.shape[2])
    if workspace is None:
        workspace = Workspace(length, parameters, inputs.shape[-1])
    states: Tensor = _Sequence.apply(workspace, inputs, *parameters[:4])  # type: ignore[no-untyped-call]
    outputs = readout(parameters, states[-1])
    return states[..., :batch], outputs[..., :batch]


def padded(batch: int, hidden: int) -> int:
    """Return the batch rounded up so that a state's numbers fill whole vectors, two at a time.

    Vector units treat a remainder, and matrix products a misaligned matrix, differently in the
    last bits; with whole vectors a model's numbers do not depend on its place in the stack.
    """
    unit = 32 if hidden % 2 else 16
    return -(-batch // unit) * unit


def pad(tensor: Tensor, hidden: int) -> Tensor:
    """Fill a tensor's last dimension, the batch, with zeros up to whole vectors."""
    missing = padded(tensor.shape[-1], hidden) - tensor.shape[-1]
    return torch.nn.functional.pad(tensor, (0, missing)) if missing else tensor.contiguous()


def _forward(
    space: Workspace,
    inputs: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor,
    bias_hh: Tensor,
) -> None:
    h = space.hidden
    both, recurrent, from_input = slice(2 * h), slice(2 * h, 3 * h), slice(3 * h, 4 * h)
    space.generation += 1
    space.drive[: space.length, :, h + 1 :] = inputs
    space.weight[:, : 3 * h, :h] = weight_hh
    space.weight[:, : 3 * h, h] = bias_hh
    space.weight[:, both, h] += bias_ih[:, both]
    space.weight[:, both, h + 1 :] = weight_ih[:, both]
    space.weight[:, from_input, h] = bias_ih[:, recurrent]
    space.weight[:, from_input, h + 1 :] = weight_ih[:, recurrent]
    # tanh(u) = 2 sigmoid(2u) - 1, the sigmoid being the faster of the two; hence 2 times here.
    space.weight[:, from_input] *= 2
    for drive, state, after, gates, rz, reset, update, from_state, driven, n in space.views:
        torch.bmm(space.weight, drive, out=gates)
        rz.sigmoid_()
        torch.addcmul(driven, reset, from_state, value=2, out=space.scratch)
        space.scratch.sigmoid_()
        torch.add(space.minus_one, space.scratch, alpha=2, out=n)
        torch.lerp(n, state, update, out=after)


def _backward(space: Workspace, d_states: Tensor) -> tuple[Tensor, ...]:
    h = space.hidden
    d_gates, d_state, d_weight, scratch = (
        space.d_gates,
        space.d_state,
        space.d_weight,
        space.scratch,
    )
    d_both, d_recurrent, d_input = (
        d_gates[:, : 2 * h],
        d_gates[:, 2 * h : 3 * h],
        d_gates[:, 3 * h :],
    )
    d_reset, d_update, d_hidden = d_both[:, :h], d_both[:, h:], d_gates[:, : 3 * h]
    d_gates_t = d_gates.transpose(1, 2)
    weight_t = space.weight[:, : 3 * h, :h].transpose(1, 2)
    d_weight.zero_()
    d_state.zero_()
    sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
    tanh_backward = torch.ops.aten.tanh_backward.grad_input
    for t in range(space.length - 1, -1, -1):
        drive, state, _, _, both, reset, update, recurrent, _, n = space.views[t]
        d_state.add_(d_states[t])
        torch.sub(state, n, out=scratch)
        torch.mul(scratch, d_state, out=d_update)
        torch.addcmul(d_state, d_state, update, value=-1, out=scratch)
        tanh_backward(scratch, n, grad_input=d_input)
        torch.mul(d_input, recurrent, out=d_reset)
        sigmoid_backward(d_both, both, grad_input=d_both)
        torch.mul(d_input, reset, out=d_recurrent)
        d_weight.baddbmm_(drive, d_gates_t)
        if t:
            d_state.mul_(update).baddbmm_(weight_t, d_hidden)
    d_rows = d_weight.transpose(1, 2)
    d_from_input = torch.cat([d_rows[:, : 2 * h, h:], d_rows[:, 3 * h :, h:]], 1)
    return (
        d_from_input[:, :, 1:].contiguous(),
        d_rows[:, : 3 * h, :h].contiguous(),
        d_from_input[:, :, 0].contiguous(),
        d_rows[:, : 3 * h, h].contiguous(),
    )
