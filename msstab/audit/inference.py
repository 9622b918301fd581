"""What is inferred from the differences: p, interval, detectable effect, equivalence."""

import math
import warnings
from collections.abc import Iterator

import numpy as np
from scipy import stats

from msstab.audit.facts import Facts
from msstab.audit.rows import Row, concern, figure, same, stated, unchecked
from msstab.evidence import PairedEvidence, power

PLAUSIBLE_RESAMPLES = [m * 10**k for k in (2, 3, 4, 5) for m in (1, 2, 4, 5)] + [10**6]


def check(facts: Facts) -> Iterator[Row]:
    """Yield the rows on everything that is inferred from the differences."""
    yield _p_value(facts)
    yield _pairing(facts)
    yield from _detectable(facts)
    yield from _interval(facts)
    yield _equivalence(facts)
    yield from _decided(facts)


def _p_value(facts: Facts) -> Row:
    said, e, name = facts.bench.comparison.p_value, facts.evidence, "p value"
    own = None if e is None else e.p_value
    if said is None:
        return unchecked(name, "the file does not state it", own)
    if not 0 < said <= 1:
        why = "p lies above 0 and up to 1: what was observed is itself one of the arrangements"
        return stated(name, said, own, False, why)
    n = facts.bench.comparison.n_pairs if e is None else e.n
    floor = None if n is None or n < 1 else 2.0 ** (1 - n)
    low = floor is not None and said < floor * (1 - 1e-9)
    if e is None:
        if low:
            why = f"{n} pairs cannot give less than {floor:.3g}, two arrangements of 2^{n}"
            return stated(name, said, floor, False, why)
        return unchecked(name, "2 or more paired values are not recorded", said=said)
    if same(said, e.p_value):
        return stated(name, said, e.p_value, True, _exact(e))
    if (other := _other_test(said, facts)) is not None:
        why = f"the p of {other}; the sign-flip test, which needs no normality, is the other value"
        return stated(name, said, e.p_value, True, why)
    if low:
        why = f"below {floor:.3g}, the least that {n} pairs can give; {_exact(e)}"
        return stated(name, said, e.p_value, False, why)
    if not e.p_exact:
        agrees = abs(said - e.p_value) <= 4 * math.sqrt(2) * e.p_standard_error
        return stated(name, said, e.p_value, agrees, _exact(e))
    why = _exact(e) + _resampled(said, e)
    if e.p_value < 1 and same(said, e.p_value / 2):
        why += "; what is stated is half of it, that of a one-sided test"
    return stated(name, said, e.p_value, False, why)


def _exact(e: PairedEvidence) -> str:
    if e.p_exact:
        total = 2**e.n
        return f"exact: {round(e.p_value * total)} of {total} arrangements of signs"
    return f"from random signs, with a Monte Carlo standard error of {e.p_standard_error:.2g}"


def _resampled(said: float, e: PairedEvidence) -> str:
    # A share of m resamples is a multiple of 1/m, and so tells how many there may have been.
    possible = [m for m in PLAUSIBLE_RESAMPLES if abs(said * m - round(said * m)) < 1e-6]
    error = math.sqrt(e.p_value * (1 - e.p_value))
    if not possible or error == 0:
        return ""
    guesses = [
        f"{round(said * m)} of {m} ({(said - e.p_value) * math.sqrt(m) / error:+.1f})"
        for m in possible[:2]
    ]
    return f"; as a share of random ones (standard errors off): {' or '.join(guesses)}"


def _other_test(said: float, facts: Facts) -> str | None:
    assert facts.evidence is not None
    if same(said, facts.evidence.p_t):
        return "the paired t test"
    d = facts.differences
    if d is not None and np.any(d):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if same(said, float(stats.wilcoxon(d).pvalue)):
                return "Wilcoxon's signed-rank test"
    return None


def _pairing(facts: Facts) -> Row:
    e, name = facts.evidence, "correlation of the pairs"
    if e is None or not facts.paired:
        return unchecked(name, "the values of both arms by seed are not recorded")
    if math.isnan(e.variance_ratio):
        return unchecked(name, "neither arm varies between seeds")
    why = (
        f"differences vary {e.variance_ratio:.3f} times as much as between independent runs: "
        f"pairing {'gained' if e.pairing_helped else 'cost'} power"
    )
    shown = None if math.isnan(e.correlation) else e.correlation
    return concern(name, None, shown, e.pairing_helped, why)


def _detectable(facts: Facts) -> Iterator[Row]:
    said, e = facts.bench.comparison, facts.evidence
    if e is None:
        for name, value in (("mde", said.mde), ("mde at 80% power", said.mde_power80)):
            yield unchecked(name, "2 or more paired values are not recorded", said=value)
    else:
        half_width, why = _half_width(facts, e)
        full = said.mde is not None and same(said.mde, e.mde_power80, facts.slack)
        if full:
            half_width, why = e.mde_power80, "the effect that is detected with 80% power"
        row = figure("mde", said.mde, half_width, why, facts.slack)
        yield row
        if row.agrees or row.stated is None or said.mde_power80 is not None:
            yield _power(facts, e)
    yield _relative(facts)


def _half_width(facts: Facts, e: PairedEvidence) -> tuple[float, str]:
    said, error = facts.bench.comparison.mde, e.sd_difference / math.sqrt(e.n)
    quantile = float(stats.t.isf(e.alpha / 2, e.n - 1))
    why = f"half the width of a {100 * (1 - e.alpha):.3g}% interval is {quantile:.6g} standard "
    why += "errors; stated: "
    if said is None:
        return e.mde_half_width, why + "none"
    why += f"{said / error:.6g}" if error else "any, as differences do not vary"
    table = _from_a_table(e)
    return table if same(said, table) else e.mde_half_width, why


def _from_a_table(e: PairedEvidence) -> float:
    """Return the half-width by a printed table of t, the right quantity all the same."""
    quantile = float(stats.t.isf(e.alpha / 2, e.n - 1))
    return round(quantile, 3) * e.sd_difference / math.sqrt(e.n)


def _power(facts: Facts, e: PairedEvidence) -> Row:
    said = facts.bench.comparison
    value = said.mde if said.mde_power80 is None else said.mde_power80
    if value is None:
        return unchecked("mde at 80% power", "the file does not state it", e.mde_power80)
    percent = facts.percent(e.mde_power80)
    needed = f"{e.mde_power80:.3g}" if percent is None else f"{percent:.1f}% of the baseline"
    achieved = power(value, e.sd_difference, e.n, e.alpha)
    why = (
        f"an effect of the stated size is detected with {achieved:.1%} power; one detected with "
        f"80% is {needed}"
    )
    return figure("mde at 80% power", value, e.mde_power80, why, facts.slack)


def _relative(facts: Facts) -> Row:
    said, e, name = facts.bench.comparison, facts.evidence, "mde_rel_pct"
    sources = [said.mde]
    if e is not None:
        sources += [e.mde_half_width, _from_a_table(e)]
        sources += [e.mde_power80] if said.mde is None else []
    percents = [p for s in sources if s is not None and (p := facts.percent(s)) is not None]
    value = said.mde_rel_pct
    slack = facts.percent(facts.slack) or 0.0
    own = next((p for p in percents if value is not None and same(value, p, slack)), None)
    own = percents[0] if own is None and percents else own
    return figure(name, value, own, "the stated mde in percent of the baseline's mean", slack)


def _interval(facts: Facts) -> Iterator[Row]:
    level, said = f"{100 * (1 - facts.alpha):.3g}%", facts.bench.comparison.interval
    ends = [None, None] if said is None else said
    own = (None, None) if facts.evidence is None else facts.evidence.interval
    for name, end, computed in zip(("low", "high"), ends, own, strict=True):
        why = "by Student's t"
        yield figure(f"{level} interval: {name}", end, computed, why, facts.slack)


def _equivalence(facts: Facts) -> Row:
    said, e, name = facts.bench.comparison.p_equivalence, facts.evidence, "equivalence p"
    if e is None or not facts.margin_stated:
        return unchecked(name, "needs paired values and the margin", said=said)
    percent = facts.percent(e.margin)
    size = f"{e.margin:.3g}" if percent is None else f"{percent:.3g}% of the baseline"
    return figure(name, said, e.p_equivalence, f"two one-sided t tests at a margin of {size}")


_ON_SCALE = {"effect": "effect", "p value": "p_value", "mde at 80% power": "mde_power80"}
_OF_MARGIN = {
    "margin": "margin",
    "equivalence p": "p_equivalence",
    "improvement p": "p_improvement",
    "power at the margin": "power_at_margin",
}


def _decided(facts: Facts) -> Iterator[Row]:
    """Yield the rows on what the outcome is said to rest on, where that is stated."""
    said, e = facts.bench.comparison.decided_on, facts.judged
    if said is None:
        return
    scale, names = said.scale or "decided on", dict(_ON_SCALE)
    if facts.margin_stated:
        names |= _OF_MARGIN
    figures = {name: (getattr(said, at), getattr(e, at, None)) for name, at in names.items()}
    for k, name in enumerate(("low", "high")):
        figures[name] = (said.interval and said.interval[k], e and e.interval[k])
    # What rounding the smallest error may do to a share.
    errors = [abs(v) for array in facts.values.values() if array is not None for v in array if v]
    slack = facts.slack / min(errors, default=1.0)
    for name, (value, computed) in figures.items():
        why = "recomputed from the values by seed"
        if e is not None and name == "p value" and value is not None and not e.p_exact:
            agrees = abs(value - e.p_value) <= 4 * math.sqrt(2) * e.p_standard_error
            why = f"random signs, Monte Carlo standard error {e.p_standard_error:.2g}"
            yield stated(f"{scale}: {name}", value, computed, agrees, why)
        else:
            yield figure(f"{scale}: {name}", value, computed, why, slack)
