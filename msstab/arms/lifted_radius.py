"""The exact spectral radius of the second-moment operator, held below a target."""

import torch
from torch import Tensor

from msstab import cells, operators, spectral
from msstab.arms.registry import Penalty, Step, arm
from msstab.arms.sampling import sample_states
from msstab.operators import Operator

SAMPLES = 1
"""States of each model at which a step of training looks."""

POWER, MARGIN = 32, 1e-3
"""Applications of L behind the bound that spares most solutions, and what it allows for rounding,
relative to the target's power."""


@arm(strengths=(0.0, 1.0, 10.0))
def lifted_radius(step: Step) -> Penalty:
    """Hinge on the logarithm of the second-moment operator's exact radius at sampled states.

    log(rho(L) / target) on the clean run. The gradient is exact, d rho = <S, dL(P)> / <S, P> with
    the eigenmatrices P and S, and flows through Jacobians and states into the parameters. A state
    at which the radius is a defective eigenvalue, which has no gradient, or at which no quick
    solver is accurate is left out: it counts as inactive. Source: theory page, equation (39).
    """
    places = sample_states(step, SAMPLES)
    linearised = cells.linearise(step.parameters, places.states, places.inputs)
    operator = operators.whole_vectors(step.noise.operator(linearised, step.sigma))
    open_, broken = _perhaps_open(operator, step.target)
    excess = torch.where(broken, torch.nan, 0.0).to(operator.jacobian)
    if open_.any():
        radius = _radius(_select(operator, open_)).to(excess)
        own = torch.where(radius <= step.target, torch.ones_like(radius), radius / step.target)
        excess = excess.masked_scatter(open_, own.log())
    return Penalty(excess.mean(1), (excess > 0).to(excess).mean(1))


@torch.no_grad()
def _perhaps_open(operator: Operator, target: float) -> tuple[Tensor, Tensor]:
    """Return where the radius may be above the target, and where it is no number: (M, K) each.

    L is positive, so that its powers are largest at the identity: rho(L)^k <= ||L^k(I)||_2
    (Russo & Dye 1966; Bhatia, Positive Definite Matrices, 2007, section 2.3), which the trace
    exceeds. For k = `POWER` the bound is nearly sharp.
    """
    j = operator.jacobian
    moment = torch.eye(j.shape[-1]).to(j).expand(j.shape).contiguous()
    for _ in range(POWER):
        moment = operators.apply(operator, moment) / target
    bound = torch.diagonal(moment, dim1=-2, dim2=-1).sum(-1)
    parts = (operator.jacobian, operator.directions, operator.weights, operator.maps)
    finite = torch.ones_like(bound, dtype=torch.bool)
    for part in parts:
        if part.dim() > 2 and part.shape[:2] == bound.shape and part.numel():
            finite &= part.flatten(2).isfinite().all(-1)
    return finite & ~(bound < 1 - MARGIN), ~finite


def _select(operator: Operator, where: Tensor) -> Operator:
    """Return the chosen elements (B,) of an operator with leading dimensions (M, K)."""
    chosen = {
        name: tensor.expand(*where.shape, *tensor.shape[-core:])[where]
        for name, core in operators.CORE.items()
        if (tensor := getattr(operator, name)) is not None
    }
    return operator._replace(**chosen)


def _radius(operator: Operator) -> Tensor:
    """Return radii (B,) in double precision, zero where there is no gradient."""
    double = operator._replace(
        **{
            name: tensor.double()
            for name in operators.CORE
            if (tensor := getattr(operator, name)) is not None
        }
    )
    eigen = spectral.quick_eigenmatrices(double)
    simple = spectral.is_simple(eigen)
    known = spectral.Eigen(
        *(torch.where(simple.reshape(-1, *(1,) * (t.dim() - 1)), t, 1.0) for t in eigen)
    )
    radius = spectral.with_gradient(double, known)
    return torch.where(simple, radius, torch.zeros_like(radius))
