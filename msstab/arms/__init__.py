"""What an arm adds to training: one file for each idea, registered under its function's name."""

from msstab.arms.lifted_radius import lifted_radius
from msstab.arms.moment_growth import moment_growth, moment_growth_closed
from msstab.arms.output_variance import output_variance
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
    "lifted_radius",
    "moment_growth",
    "moment_growth_closed",
    "output_variance",
    "spectral_proxy",
    "squared_spectral_norm",
]
