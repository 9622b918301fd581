"""That part of paired evidence which decides, on one scale: of log ratios or of differences."""

from dataclasses import dataclass
from enum import StrEnum

from msstab.evidence.pairs import Interval


class Scale(StrEnum):
    """What paired errors are compared by."""

    RATIOS = "log ratios"
    DIFFERENCES = "differences"


@dataclass(frozen=True)
class Judged:
    """What n pairs say at level alpha on one scale.

    Effects, margin and detectable effects are shares of the baseline's error if `relative`, and
    else, where its mean is not positive, in the units of the error. On log ratios an effect is the
    geometric mean ratio less 1. `mean` is that of the differences or of the logarithms; its sign
    is that of the effect.
    """

    scale: Scale
    relative: bool
    n: int
    alpha: float
    mean: float
    effect: float
    interval: Interval
    margin: float
    p_value: float
    p_exact: bool
    p_standard_error: float
    p_floor: float
    p_equivalence: float
    p_improvement: float
    mde_power80: float
    mde_power90: float
    power_at_margin: float

    def written(self, effect: float, sign: str = "", digits: int | None = None) -> str:
        """Write an effect for a reader: in percent, or as it is where that has no meaning.

        `digits` are those after the point, by default one below 10% and none above.
        """
        if not self.relative:
            return f"{effect:{sign}.3g}"
        percent = 100 * effect
        if digits is None:
            digits = 1 if abs(percent) < 10 else 0
        return f"{percent:{sign}.{digits}f}%"
