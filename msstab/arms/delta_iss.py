"""Incremental input-to-state stability: networks that forget where they started, provably."""

from collections.abc import Callable

import torch
from torch import Tensor

from msstab.arms.registry import Penalty, Step, arm
from msstab.cells import Parameters


@arm(strengths=(0.0, 0.01, 0.1))
def delta_iss(step: Step) -> Penalty:
    """Hinge on a bound that, below 1, makes any two runs on the same inputs merge.

    On log(nu / target) with the bound nu. Inputs are taken to be no larger than the largest of this
    step's batch. Source: Bonassi, Farina & Scattolini, "On the stability properties of gated
    recurrent units neural networks" (2021); Terzi, Bonassi, Farina & Scattolini (2021) for long
    short-term memory; see `contraction_bound`.
    """
    largest = step.inputs.abs().amax(dim=(0, 2, 3))
    ratio = contraction_bound(step.parameters, largest) / step.target
    # A diverged model's NaN stays one; a bound of zero has no gradient.
    excess = torch.log(torch.where(ratio <= 1, torch.ones_like(ratio), ratio)).to(step.outputs)
    return Penalty(excess, (excess > 0).to(excess))


def contraction_bound(parameters: Parameters, largest_input: Tensor) -> Tensor:
    """Return nu (M,), below 1 where the sufficient condition for incremental stability holds.

    For inputs of at most `largest_input` (M,) in absolute value, and states that started at zero.
    Layers on top of each other are stable if each of them is, on inputs of at most 1.
    ||W|| is the induced infinity norm, the largest row sum of absolute values, and a bar marks a
    gate's bound, the activation of the largest sum over a row of |W_h| + |W_i| x_max + |b|.
    In double precision, in which 1 / (1 - zbar) of large weights does not overflow.
    """
    bound, largest = _BOUNDS[parameters.cell], largest_input.double()
    found = bound(parameters.layer(0), largest)
    for index in range(1, parameters.layers):
        found = torch.maximum(found, bound(parameters.layer(index), torch.ones_like(largest)))
    return found


def _of_gru(parameters: Parameters, largest: Tensor) -> Tensor:
    """Return rbar ||W_hn|| + mbar ||W_hr|| / 4 + (1 + nbar) ||W_hz|| / (4 (1 - zbar)).

    The authors' condition, derived anew for torch's form, in which the reset gate multiplies
    m = W_hn h + b_hn after the product: mbar bounds |m|, and |n| is at most nbar =
    tanh(max(|W_in| x_max + |b_in| + rbar |m|)). States stay within [-1, 1].
    """
    norms, peaks = _norms(parameters), _peaks(parameters, largest)
    h = parameters.hidden
    reset = peaks[:, 0].sigmoid()
    recurrent = _row_sums(parameters.weight_hh)[:, 2 * h :] + parameters.bias_hh[:, 2 * h :].abs()
    driven = _row_sums(parameters.weight_ih)[:, 2 * h :] * largest[:, None]
    driven = driven + parameters.bias_ih[:, 2 * h :].abs()
    candidate = (driven + reset[:, None] * recurrent).amax(1).tanh()
    slope = reset * norms[:, 2] + recurrent.amax(1) * norms[:, 0] / 4
    return slope + (1 + candidate) * norms[:, 1] * _inverse_complement(peaks[:, 1]) / 4


def _of_lstm(parameters: Parameters, largest: Tensor) -> Tensor:
    """Return obar a / (1 - fbar) + tanh(cbar) ||W_ho|| / 4.

    With a = ||W_hf|| cbar / 4 + ibar ||W_hg|| + ||W_hi|| gbar / 4 and the memory's bound
    cbar = ibar gbar / (1 - fbar): below 1 exactly where the matrix that bounds the differences
    (|dc'|, |dh'|) by (|dc|, |dh|), [[fbar, a], [obar fbar, obar a + tanh(cbar) ||W_ho|| / 4]], is
    Schur stable.
    """
    enter, forget, candidate, output = _norms(parameters).unbind(1)
    peaks = _peaks(parameters, largest)
    i, g, o = peaks[:, 0].sigmoid(), peaks[:, 2].tanh(), peaks[:, 3].sigmoid()
    kept = _inverse_complement(peaks[:, 1])
    memory = i * g * kept
    slope = forget * memory / 4 + i * candidate + enter * g / 4
    return o * slope * kept + memory.tanh() * output / 4


def _of_rnn(parameters: Parameters, largest: Tensor) -> Tensor:
    """Return ||W_hh||: the slope of tanh is at most 1, whatever the inputs."""
    return _norms(parameters)[:, 0]


_BOUNDS: dict[str, Callable[[Parameters, Tensor], Tensor]] = {
    "gru": _of_gru,
    "lstm": _of_lstm,
    "rnn": _of_rnn,
}


def _row_sums(weight: Tensor) -> Tensor:
    """Return the sums of absolute values of the rows: (M, R, N) -> (M, R)."""
    return weight.double().abs().sum(2)


def _norms(parameters: Parameters) -> Tensor:
    """Return each gate's ||W_h||: (M, G)."""
    return _largest_of_gates(parameters, _row_sums(parameters.weight_hh))


def _peaks(parameters: Parameters, largest: Tensor) -> Tensor:
    """Return the largest pre-activation that each gate can have where |h| <= 1: (M, G)."""
    bias = (parameters.bias_ih.double() + parameters.bias_hh.double()).abs()
    driven = _row_sums(parameters.weight_ih) * largest[:, None]
    return _largest_of_gates(parameters, _row_sums(parameters.weight_hh) + driven + bias)


def _largest_of_gates(parameters: Parameters, rows: Tensor) -> Tensor:
    return rows.view(len(rows), -1, parameters.hidden).amax(2)


def _inverse_complement(peak: Tensor) -> Tensor:
    """Return 1 / (1 - sigmoid), which rounding would lose for a gate that is nearly open."""
    return 1 + peak.exp()
