"""What an arm adds to training: one file for each idea, registered under its function's name."""

from msstab.arms.registry import ARMS, N_STRENGTHS, Arm, Forward, Penalty, Step, add, arm, find
from msstab.arms.spectral_proxy import spectral_proxy, squared_spectral_norm

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
    "spectral_proxy",
    "squared_spectral_norm",
]
