"""The networks of `cells` one by one in torch's own modules, with which tests compare."""

import numpy as np
import torch
from torch import Tensor, nn

from msstab import cells
from msstab.arms import Step
from msstab.cells import Parameters
from msstab.noise import NOISES


def networks(
    models: int,
    hidden: int,
    n_inputs: int = 1,
    n_outputs: int = 1,
    *,
    cell: str = "gru",
    layers: int = 1,
    gain: float = 1.0,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> Parameters:
    """Random networks, the same whatever their number."""
    streams = [np.random.default_rng([seed, model]) for model in range(models)]
    return cells.initial_parameters(
        streams, hidden, n_inputs, n_outputs, cell=cell, layers=layers, gain=gain, dtype=dtype
    )


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Standard normal numbers."""
    return torch.as_tensor(np.random.default_rng(seed).normal(size=shape), dtype=dtype)


def modules(parameters: Parameters, model: int = 0) -> tuple[nn.RNNBase, nn.Linear]:
    """One network as torch's recurrent and linear layers."""
    own = [tensor[model].detach().clone() for tensor in parameters]
    _, n_inputs = own[0].shape
    n_outputs, hidden = own[4].shape
    kind = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn": nn.RNN}[parameters.cell]
    recurrent = kind(n_inputs, hidden, parameters.layers, dtype=own[0].dtype)
    linear = nn.Linear(hidden, n_outputs, dtype=own[0].dtype)
    with torch.no_grad():
        for to, tensor in zip(weights(recurrent, linear), own, strict=True):
            to.copy_(tensor)
    return recurrent, linear


def weights(recurrent: nn.RNNBase, linear: nn.Linear) -> list[Tensor]:
    """The modules' weights in the order of `Parameters`."""
    named = dict(recurrent.named_parameters())
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    lowest, *upper = [[named[f"{k}_l{n}"] for k in kinds] for n in range(recurrent.num_layers)]
    return [*lowest, linear.weight, linear.bias, *(tensor for layer in upper for tensor in layer)]


def states(recurrent: nn.RNNBase, inputs: Tensor) -> Tensor:
    """The whole states of torch's layers, (T, B, S), from inputs (T, B, D)."""
    if recurrent.num_layers == 1 and not isinstance(recurrent, nn.LSTM):
        found: Tensor = recurrent(inputs)[0]
        return found
    # The rest of a state shows at the end of a sequence alone: so one step after the other.
    seen, carried = [], None
    for x in inputs:
        _, carried = recurrent(x[None], carried)
        parts = carried if isinstance(carried, tuple) else (carried,)
        # From the top layer down, where torch counts from the bottom up.
        seen.append(torch.cat([layer for part in parts for layer in part.flip(0)], dim=1))
    return torch.stack(seen)


def step(parameters: Parameters, model: int, state: Tensor, inputs: Tensor) -> Tensor:
    """One step of torch's own cells, one above the other, from a state (S,) on inputs (D,)."""
    own = [tensor[model] for tensor in parameters]
    layers = [own[:4], *(own[k : k + 4] for k in range(6, len(own), 4))]
    hidden = parameters.hidden
    shown, memory = state[: len(layers) * hidden], state[len(layers) * hidden :]
    # From the bottom layer up, where a state goes from the top one down.
    units, memories = (list(torch.split(part, hidden))[::-1] for part in (shown, memory))
    below = inputs[None]
    for k, weights in enumerate(layers):
        if parameters.cell == "lstm":
            below, after = torch.lstm_cell(below, (units[k][None], memories[k][None]), *weights)
            memories[k] = after[0]
        else:
            of = {"gru": torch.gru_cell, "rnn": torch.rnn_tanh_cell}[parameters.cell]
            below = of(below, units[k][None], *weights)
        units[k] = below[0]
    return torch.cat([*units[::-1], *(memories[::-1] if len(memory) else [])])


def jacobian(parameters: Parameters, model: int, state: Tensor, inputs: Tensor) -> Tensor:
    """The Jacobian (S, S) of `step` with respect to the state, by automatic differentiation."""
    found: Tensor = torch.func.jacrev(lambda h: step(parameters, model, h, inputs))(state)
    return found


def step_of(
    parameters: Parameters,
    *,
    batch: int = 6,
    length: int = 5,
    noise: str = "unit",
    sigma: float = 0.2,
    target: float = 1.0,
    inputs: Tensor | None = None,
    steps: int = 1,
) -> Step:
    """What an arm sees at one step of these networks, on inputs and targets drawn alike."""
    models, _, n_inputs = parameters.weight_ih.shape
    dtype = parameters.weight_ih.dtype
    if inputs is None:
        inputs = normal(length, models, n_inputs, batch, dtype=dtype)
    found, outputs = cells.run(parameters, inputs, steps=steps)
    targets = normal(*outputs.shape, seed=1, dtype=dtype)
    streams = [np.random.default_rng([2, model]) for model in range(models)]
    return Step(
        parameters, inputs, targets, found, outputs, NOISES[noise], sigma, target, streams, {}
    )


def of_models(step: Step, parameters: Parameters, chosen: list[int]) -> Step:
    """The same step for some of its models, whose streams begin anew."""
    inputs = step.inputs[:, chosen].contiguous()
    steps = cells.output_steps(parameters, step.targets)
    states, outputs = cells.run(parameters, inputs, steps=steps)
    return step._replace(
        parameters=parameters,
        inputs=inputs,
        targets=step.targets[chosen],
        states=states,
        outputs=outputs,
        streams=[np.random.default_rng([2, model]) for model in chosen],
        memory={},
    )
