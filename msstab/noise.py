"""Noise structures: each one's sampler beside its second-moment propagation.

Prediction and simulation of a structure stand together so that they cannot drift apart. A
structure acts on the state before each step, h' = f(noisy h, x); linearised about the clean
trajectory, the deviation's second moment P obeys P' = L(P) + Q, where L is homogeneous and Q is
forced by the clean state (equation (2) of the theory: L at h = 0, Q at P = 0).
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from msstab.study import declare


class Noise(NamedTuple):
    """One structure: `perturb` for simulation, `propagate` for prediction.

    `perturb(state, standard_normal, sigma)`: states (..., H, B) and independent standard normal
    numbers of that shape -> noisy states. `propagate(moment, jacobian, state, sigma)`: P and J
    (..., H, H) and clean states (..., H) -> L(P) + Q.
    """

    perturb: Callable[[Tensor, Tensor, float], Tensor]
    propagate: Callable[[Tensor, Tensor, Tensor, float], Tensor]


def _perturb_units(state: Tensor, standard_normal: Tensor, sigma: float) -> Tensor:
    return state * (1 + sigma * standard_normal)


def _propagate_units(moment: Tensor, jacobian: Tensor, state: Tensor, sigma: float) -> Tensor:
    power = torch.diagonal(moment, dim1=-2, dim2=-1) + state.square()
    return jacobian @ (moment + torch.diag_embed(sigma**2 * power)) @ jacobian.mT


NOISES: dict[str, Noise] = {"unit": Noise(_perturb_units, _propagate_units)}
"""`unit`: h o (1 + sigma eps), one eps for each unit and step."""

declare("noise", "unit")
