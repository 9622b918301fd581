"""The networks of `cells` one by one in torch's own modules, with which tests compare."""

import numpy as np
import torch
from torch import Tensor, nn

from msstab import cells
from msstab.cells import Parameters


def networks(
    models: int,
    hidden: int,
    n_inputs: int = 1,
    n_outputs: int = 1,
    *,
    gain: float = 1.0,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> Parameters:
    """Random networks, the same whatever their number."""
    streams = [np.random.default_rng([seed, model]) for model in range(models)]
    return cells.initial_parameters(streams, hidden, n_inputs, n_outputs, gain=gain, dtype=dtype)


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Standard normal numbers."""
    return torch.as_tensor(np.random.default_rng(seed).normal(size=shape), dtype=dtype)


def modules(parameters: Parameters, model: int = 0) -> tuple[nn.GRU, nn.Linear]:
    """One network as torch's GRU and linear layer."""
    own = [tensor[model].detach().clone() for tensor in parameters]
    _, n_inputs = own[0].shape
    n_outputs, hidden = own[4].shape
    gru = nn.GRU(n_inputs, hidden, dtype=own[0].dtype)
    linear = nn.Linear(hidden, n_outputs, dtype=own[0].dtype)
    with torch.no_grad():
        for to, tensor in zip(weights(gru, linear), own, strict=True):
            to.copy_(tensor)
    return gru, linear


def weights(gru: nn.GRU, linear: nn.Linear) -> list[Tensor]:
    """The modules' weights in the order of `Parameters`."""
    named = dict(gru.named_parameters())
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    return [*(named[name] for name in names), linear.weight, linear.bias]


def step(parameters: Parameters, model: int, state: Tensor, inputs: Tensor) -> Tensor:
    """One step of torch's GRU cell from a state (H,) on inputs (D,)."""
    w_ih, w_hh, b_ih, b_hh, _, _ = (tensor[model] for tensor in parameters)
    return torch.gru_cell(inputs[None], state[None], w_ih, w_hh, b_ih, b_hh)[0]


def jacobian(parameters: Parameters, model: int, state: Tensor, inputs: Tensor) -> Tensor:
    """The Jacobian (H, H) of `step` with respect to the state, by automatic differentiation."""
    found: Tensor = torch.func.jacrev(lambda h: step(parameters, model, h, inputs))(state)
    return found
