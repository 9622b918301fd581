"""Jacobians and second-moment operators along sampled sequences, as cheap as arms need them."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from msstab import cells, moments, operators
from msstab.arms.registry import Step
from msstab.arms.sampling import Sequences
from msstab.operators import Operator

AT_ONCE = 6
"""Jacobians formed in one go: more do not fit into fast memory."""


def jacobians_along(step: Step, drawn: Sequences) -> list[Tensor]:
    """Return the Jacobian of each step of the sequences: W times (M, K, S, S)."""
    _, models, size, count = drawn.before.shape
    found: list[Tensor] = []
    for first in range(0, len(drawn.before), AT_ONCE):
        before, inputs, states = (part[first : first + AT_ONCE] for part in drawn[:3])
        some = Sequences(before, inputs, states, drawn.drawn)
        jacobians = cells.jacobian(step.parameters, *some.flat())
        found += jacobians.view(models, -1, count, size, size).unbind(1)
    return found


def operators_along(step: Step, drawn: Sequences, *, closed_loop: bool = False) -> list[Operator]:
    """Return the operator of each of W steps, leading dimensions (M, K), N in whole vectors.

    The operators of `moments.linearisations`, but with all steps linearised at once and filled up
    by `operators.whole_vectors`. Raises ValueError for a closed loop whose outputs are not its
    inputs.
    """
    length, count = drawn.states.shape[0], drawn.states.shape[-1]
    places = drawn.flat()
    linearised = cells.linearise(step.parameters, places.states, places.inputs)
    if closed_loop:
        linearised = moments.feed_back(step.parameters, linearised)
    together = operators.whole_vectors(step.noise.operator(linearised, step.sigma))
    parts: dict[str, Any] = {
        name: _apart(tensor, core, length, count)
        for name, core in operators.CORE.items()
        if (tensor := getattr(together, name)) is not None
    }
    if together.directions is together.jacobian:
        parts["directions"] = parts["jacobian"]
    return [
        together._replace(**{name: part[t] for name, part in parts.items()}) for t in range(length)
    ]


def _apart(tensor: Tensor, core: int, length: int, count: int) -> Sequence[Tensor]:
    """Split (M, W K, ...) into W times (M, K, ...); what is the same at all steps stays whole."""
    places = tensor.shape[1] if tensor.dim() == core + 2 else 1
    if places == 1:
        return [tensor] * length
    return tensor.reshape(tensor.shape[0], length, count, *tensor.shape[2:]).unbind(1)
