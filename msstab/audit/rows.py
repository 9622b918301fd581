"""One checked quantity: what a file states, what follows from its numbers, and how they agree."""

import math
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

RELATIVE_TOLERANCE = 1e-9
"""Far above rounding, far below a digit that was mistyped."""

DIGITS_OF_A_MEASUREMENT = 6
"""Values with as many digits do not coincide by chance, as counts and rounded shares do."""


class Kind(StrEnum):
    """A number reproduced, one that isn't, a concern about the design, or nothing to check."""

    AGREES = "agrees"
    DIFFERS = "differs"
    FINDING = "finding"
    NOT_RECORDED = "not recorded"


Value = float | str | None


class Row(NamedTuple):
    """One checked quantity; for a concern about design, AGREES means there is none."""

    quantity: str
    stated: Value
    recomputed: Value
    kind: Kind
    why: str

    @property
    def agrees(self) -> bool:
        """Whether the check was made and found nothing."""
        return self.kind is Kind.AGREES

    @property
    def flagged(self) -> bool:
        """Whether the check found something."""
        return self.kind in (Kind.DIFFERS, Kind.FINDING)


def stated(quantity: str, said: Value, recomputed: Value, agrees: bool, why: str) -> Row:
    """Return the row of something stated that does or does not follow."""
    return Row(quantity, said, recomputed, Kind.AGREES if agrees else Kind.DIFFERS, why)


def figure(
    quantity: str, said: float | None, recomputed: float | None, why: str, slack: float = 0.0
) -> Row:
    """Return the row of a number; one that is missing on either side is not recorded."""
    if said is None:
        return unchecked(quantity, "the file does not state it", recomputed)
    if recomputed is None:
        return unchecked(quantity, "what it follows from is not recorded", said=said)
    return stated(quantity, float(said), float(recomputed), same(said, recomputed, slack), why)


def concern(quantity: str, said: Value, recomputed: Value, fine: bool, why: str) -> Row:
    """Return the row of a question to the design, answered well or not."""
    return Row(quantity, said, recomputed, Kind.AGREES if fine else Kind.FINDING, why)


def unchecked(quantity: str, why: str, recomputed: Value = None, said: Value = None) -> Row:
    """Return the row of a check that the file records too little for."""
    return Row(quantity, said, recomputed, Kind.NOT_RECORDED, why)


def same(said: float, recomputed: float, slack: float = 0.0) -> bool:
    """Return whether a stated number is the recomputed one, up to how it was rounded.

    A number written with few digits may be off by half a unit of its last place, but by no more
    than that of its second digit; `slack` is what the rounding of the values by seed adds.
    """
    gap = abs(said - recomputed)
    if not math.isfinite(gap):
        return False
    return gap <= max(RELATIVE_TOLERANCE * abs(recomputed), 0.5 * unit(said) * (1 + 1e-9), slack)


def unit(value: float) -> float:
    """Return what the last digit of a number counts, as it is written, at least its second one."""
    if value == 0:
        return 0.0
    number = Decimal(repr(float(value))).normalize()
    return float(Decimal(1).scaleb(min(int(number.as_tuple().exponent), number.adjusted() - 1, 0)))


def digits(value: float) -> int:
    """Return how many significant digits a number is written with."""
    return len(Decimal(repr(float(value))).normalize().as_tuple().digits)
