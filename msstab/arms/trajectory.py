"""Second-moment operators along sampled sequences, in a form that arms can afford."""

from msstab import cells, moments, operators
from msstab.arms.registry import Step
from msstab.arms.sampling import Sequences
from msstab.operators import Operator


def operators_along(
    step: Step, drawn: Sequences, *, closed_loop: bool = False
) -> list[Operator]:
    """Return the operator of each of W steps, leading dimensions (M, K), N in whole vectors.

    The operators of `moments.linearisations`, but with all steps linearised at once and filled up
    by `operators.whole_vectors`. Raises ValueError for a closed loop whose outputs are not its
    inputs.
    """
    length, models, _, count = drawn.states.shape
    places = drawn.flat()
    linearised = cells.linearise(step.parameters, places.states, places.inputs)
    if closed_loop:
        linearised = moments.feed_back(step.parameters, linearised)
    together = operators.whole_vectors(step.noise.operator(linearised, step.sigma))

    def apart(tensor, core):
        """Split (M, W K, ...) into W times (M, K, ...); what has no such dimension stays."""
        if tensor is None or tensor.dim() <= core or tensor.shape[1] == 1 != length * count:
            return [tensor] * length
        return tensor.unflatten(1, (length, count)).unbind(1)

    parts = {
        name: apart(getattr(together, name), core)
        for name, core in (
            *(("jacobian", 2), ("directions", 2), ("weights", 2), ("readers", 2), ("maps", 3)),
        )
    }
    if together.directions is together.jacobian:
        parts["directions"] = parts["jacobian"]
    return [
        together._replace(**{name: part[t] for name, part in parts.items()}) for t in range(length)
    ]
