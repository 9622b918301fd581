"""Tables of chapter 9, on rounding to few bits."""

import math
from collections.abc import Mapping

import pandas as pd

from msstab import quantised
from msstab.bits_bought import Bought
from msstab.quantised import Key, Quantised
from msstab.results import Comparison
from msstab.tables.shown import number, spoken


def rounding_predictions(found: Quantised) -> pd.DataFrame:
    """Measured over predicted deviations of the output, in each case."""
    random, nearest = (quantised.fits(found, kind) for kind in ("random", "nearest"))
    error = quantised.monte_carlo_error(found)
    rows = []
    for case, fit in random.items():
        part, per, bits = case
        rows.append(
            {
                "Rounded": part,
                "Step per": per,
                "Bits": str(bits),
                "At random": number(fit.ratio),
                f"Within {quantised.TOLERANCE:.0%}": f"{fit.within:.0%}",
                "Monte Carlo error": f"{error[case]:.0%}",
                "To nearest": number(nearest[case].ratio),
                "5% to 95% of networks": f"{nearest[case].low:.2g} to {nearest[case].high:.2g}",
                "Networks": str(fit.n),
                "Not comparable": str(fit.n_unusable + nearest[case].n_unusable),
            }
        )
    return pd.DataFrame(rows)


def rounded_errors(compared: Mapping[Key, Comparison], tuned_for: str) -> pd.DataFrame:
    """Each arm's error relative to the baseline's at the same bits; a star where they differ."""
    marked = quantised.differing(compared, tuned_for)
    texts = {
        key: _ratio(c) + ("*" if key in marked else "")
        for key, c in compared.items()
        if key[0] == tuned_for
    }
    return _by_bits(texts)


def bits_bought(bought: Mapping[Key, Bought], tuned_for: str) -> pd.DataFrame:
    """At how many fewer bits each arm reaches the baseline's error, by the baseline's bits."""
    fewest = min(bits for *_, bits in bought)
    texts = {
        key: _bought(one, key[-1] - fewest) for key, one in bought.items() if key[0] == tuned_for
    }
    return _by_bits(texts)


def rounding_divergence(found: Quantised) -> pd.DataFrame:
    """How many networks diverge, rounded to nearest, by arm."""
    counts = found.table.groupby(["arm", "rounded", "bits"], sort=False).diverged
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for name, own in counts:
        arm, part, bits = map(str, name)
        row = rows.setdefault((arm, part), {"Arm": spoken(arm), "Rounded": part})
        row[f"{bits} bits"] = f"{own.sum()} of {len(own)}"
    return pd.DataFrame(list(rows.values()))


def _by_bits(texts: Mapping[Key, str]) -> pd.DataFrame:
    """Put texts into a row for each arm and what is rounded, and a column for each bits."""
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for (_, arm, part, per, bits), text in texts.items():
        start = {"Arm": spoken(arm), "Rounded": part, "Step per": per}
        rows.setdefault((arm, part, per), start)[f"{bits} bits"] = text
    return pd.DataFrame(list(rows.values()))


def _ratio(c: Comparison) -> str:
    r = c.evidence.ratios
    return f"{r.ratio:.2f} [{r.interval.low:.2f}, {r.interval.high:.2f}]"


def _bought(one: Bought, most: int) -> str:
    values = [_fewer(value, most) for value in one[:3]]
    return f"{values[0]} [{values[1]}, {values[2]}]"


def _fewer(bits: float, most: int) -> str:
    if math.isinf(bits):
        return f"over {most}" if bits > 0 else "never"
    return f"{bits:+.2f}"
