"""What is asked of a calibration on the scale that decides, and whether it holds."""

import pandas as pd

from msstab.calibration import INTERVALS, LOGS, SEQUENTIAL
from msstab.verdict import Outcome

BARS = {
    "false better or worse": ("rejected", False, LOGS),
    "false better or worse, stopping at any pair": ("rejected", False, SEQUENTIAL),
    "false equivalence": (Outcome.EQUIVALENT.value, True, LOGS),
    "power, against the plan": ("rejected", True, LOGS),
} | {f"coverage, {name}": ("covered", False, name) for name in INTERVALS[:4]}
"""The quantity, whether there is an effect, and of what; the verdict's interval is t's."""


def bars(frame: pd.DataFrame) -> pd.DataFrame:
    """Return each of BARS with the rates of a calibration that it is for, a row each.

    Columns: `bar`, `rates` (their number), `lowest`, `highest`, `low` and `high` (what is allowed),
    `missed` (rates outside) and `holds`, whether there are none. Without rates nothing holds.
    """
    rows = []
    for bar in BARS:
        own = _of(frame, bar)
        missed = int((~own.holds).sum())
        rows.append(
            {
                "bar": bar,
                "rates": len(own),
                "lowest": own.rate.min(),
                "highest": own.rate.max(),
                "low": own.low.min(),
                "high": own.high.max(),
                "missed": missed,
                "holds": len(own) > 0 and missed == 0,
            }
        )
    return pd.DataFrame(rows)


def sentence(frame: pd.DataFrame) -> str:
    """Say how many rates of a calibration lie within their bars, and which do not."""
    rows = pd.concat([_of(frame, bar).assign(bar=bar) for bar in BARS])
    outside = rows[~rows.holds]
    said = f"On the scale that decides, {rows.holds.sum()} of {len(rows)} rates are within bars."
    if len(outside):
        named = [
            f"{row['bar']}, {row['family']} errors, {row['pairs']} pairs: {row['rate']:.1%}, asked "
            f"{row['low']:.1%} to {row['high']:.1%}"
            for row in outside.to_dict("records")
        ]
        said += f" Outside: {'; '.join(named)}."
    return (
        f"{said} With {rows.studies.min()} simulated studies of each kind, a rate's standard error "
        f"is up to {100 * rows.standard_error.max():.1f} points."
    )


def _of(frame: pd.DataFrame, bar: str) -> pd.DataFrame:
    quantity, effect, procedure = BARS[bar]
    own = (frame.quantity == quantity) & (frame.procedure == procedure)
    return frame[own & ((frame.effect != 0) == effect)]
