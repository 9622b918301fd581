"""What an arm adds to training: one file for each idea, registered under its function's name."""

from msstab.arms.noise_injection import noise_injection
from msstab.arms.registry import ARMS, N_STRENGTHS, Arm, Forward, Penalty, Step, add, arm, find
from msstab.arms.spectral_proxy import spectral_proxy, squared_spectral_norm
from msstab.arms.weight_decay import weight_decay

__all__ = [
    "ARMS",
    "N_STRENGTHS",
    "Arm",
    "Forward",
    "Penalty",
    "Step",
    "add",
    "arm",
    "find",
    "noise_injection",
    "spectral_proxy",
    "squared_spectral_norm",
    "weight_decay",
]
