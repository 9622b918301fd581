"""What an arm adds to training: one file for each idea, registered under its function's name."""

from msstab.arms.delta_iss import delta_iss
from msstab.arms.gradient_flossing import gradient_flossing
from msstab.arms.jacobian_norm import jacobian_norm
from msstab.arms.lifted_radius import lifted_radius
from msstab.arms.moment_growth import moment_growth, moment_growth_closed
from msstab.arms.noise_injection import noise_injection
from msstab.arms.output_variance import output_variance
from msstab.arms.pascanu_omega import pascanu_omega
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
    "delta_iss",
    "find",
    "gradient_flossing",
    "jacobian_norm",
    "lifted_radius",
    "moment_growth",
    "moment_growth_closed",
    "noise_injection",
    "output_variance",
    "pascanu_omega",
    "spectral_proxy",
    "squared_spectral_norm",
    "weight_decay",
]
