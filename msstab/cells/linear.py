"""The first derivatives of a step, whatever the cell."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Linearisation(NamedTuple):
    """First derivatives of a step at one state, with leading dimensions (...), here (M, B).

    `jacobian` (..., S, S) is what a deviation of the state becomes, `recurrent` (..., S, R) what
    one of the R recurrent pre-activations does, `inputs` (..., S, D) what one of the inputs does,
    and `weights` (..., L, R/L, H) give the pre-activations of each layer, from the top, from its
    own hidden units. `entry` (..., S, S) is what a disturbance of the stored state becomes; it
    differs from `jacobian` where forecasts are fed back.
    """

    jacobian: Tensor
    recurrent: Tensor
    inputs: Tensor
    weights: Tensor
    entry: Tensor

    @property
    def weight(self) -> Tensor:
        """The weights as one matrix (..., R, S), zero where a layer does not read the state."""
        return self.reading(self.weights)

    def reading(self, blocks: Tensor) -> Tensor:
        """Lay each layer's rows over the units that it reads: (..., L, Q, H) -> (..., LQ, S)."""
        size, hidden = self.entry.shape[-1], blocks.shape[-1]
        rows = [
            torch.nn.functional.pad(block, (k * hidden, size - (k + 1) * hidden))
            for k, block in enumerate(blocks.unbind(-3))
        ]
        return torch.cat(rows, dim=-2)


def diagonals(slopes: Sequence[Tensor]) -> Tensor:
    """Return the blocks diag(slope) side by side: G times (M, B, H) -> (M, B, H, GH)."""
    together = torch.stack(list(slopes), dim=-2)
    *leading, gates, hidden = together.shape
    blocks = together.new_zeros(*leading, hidden, gates, hidden)
    torch.diagonal(blocks, dim1=-3, dim2=-1).copy_(together)
    return blocks.flatten(-2)


def through(slopes: Sequence[Tensor], weight: Tensor) -> Tensor:
    """Return the sum over gates of diag(slope) W_gate: G times (M, B, H), (M, GH, N).

    Term by term, not as one product: the last bits of a batched product can depend on a matrix's
    place in the batch.
    """
    blocks = weight[:, None].chunk(len(slopes), dim=2)
    terms = [slope[..., None] * block for slope, block in zip(slopes, blocks, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
