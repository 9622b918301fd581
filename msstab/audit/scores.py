"""Each arm's figures and the differences between them, from the values by seed."""

from collections.abc import Iterator

import numpy as np

from msstab.audit.facts import ARMS, Facts
from msstab.audit.rows import (
    DIGITS_OF_A_MEASUREMENT,
    Row,
    concern,
    digits,
    figure,
    same,
    stated,
    unchecked,
)
from msstab.evidence import pairs_for_level


def check(facts: Facts) -> Iterator[Row]:
    """Yield the rows on how many values there are, on each arm's, and on the differences."""
    yield _counts(facts)
    yield _enough(facts)
    for name in ARMS:
        yield from _arm(facts, name)
    yield _repeated(facts)
    yield from _differences(facts)


def _counts(facts: Facts) -> Row:
    bench, name = facts.bench, "number of pairs"
    recorded = [bench.comparison.n_pairs, bench.n_seeds, *(facts.arm(a).scores.n for a in ARMS)]
    counts = [count for count in recorded if count is not None]
    said = float(counts[0]) if counts else None
    sizes = [v.size for v in facts.values.values() if v is not None]
    if len(sizes) == 2 and not facts.paired:
        why = f"{sizes[0]} baseline and {sizes[1]} idea values do not pair up"
        return stated(name, said, f"{sizes[0]} and {sizes[1]}", False, why)
    if facts.evidence is None:
        return unchecked(name, "no two arms with values by seed, 2 or more each", said=said)
    n = facts.evidence.n
    wrong = sum(count != n for count in counts)
    why = f"{n} values by seed in each arm; {wrong} of {len(counts)} stated counts differ"
    return stated(name, said, float(n), wrong == 0, why)


def _enough(facts: Facts) -> Row:
    name, needed = "pairs for the level", pairs_for_level(facts.alpha)
    n = facts.evidence.n if facts.evidence else facts.bench.comparison.n_pairs
    if n is None:
        return unchecked(name, "the number of pairs is not recorded", float(needed))
    floor = min(1.0, 2.0 ** (1 - n))
    why = f"{n} pairs can give p = {floor:.2g} at the least; p <= {facts.alpha:g} takes {needed}"
    return concern(name, float(n), f"{needed} or more", n >= needed, why)


def _arm(facts: Facts, name: str) -> Iterator[Row]:
    scores, values = facts.arm(name).scores, facts.values[name]
    if values is None:
        why = "2 or more values by seed are not recorded"
        yield unchecked(f"{name}: mean", why, said=scores.mean)
        yield unchecked(f"{name}: standard deviation", why, said=scores.std_ddof1 or scores.std)
        return
    slack, n = facts.slack, values.size
    mean, spread = float(values.mean()), float(values.std())
    sd = float(values.std(ddof=1))
    yield figure(f"{name}: mean", scores.mean, mean, "mean of the seeds", slack)
    divided = "n"
    if scores.std is not None:
        estimate = same(scores.std, sd, slack) and not same(scores.std, spread)
        divided = "n - 1" if estimate else "n"
        row = figure(f"{name}: std", scores.std, sd if estimate else spread, "", slack)
        yield row._replace(why=f"divides by {divided}" if row.agrees else f"of {n} values by seed")
        if not row.agrees and scores.std_ddof1 is None:
            return
    why = "an estimate of the spread between seeds divides by n - 1"
    said = scores.std if scores.std_ddof1 is None else scores.std_ddof1
    # Any rounding that hides the factor between the two would hide this.
    room = 0.0 if scores.std_ddof1 is None and divided == "n" else slack
    row = figure(f"{name}: standard deviation", said, sd, why, room)
    yield row._replace(why=f"divides by n; {why}") if row.flagged and said == scores.std else row


def _repeated(facts: Facts) -> Row:
    values = {name: v for name, v in facts.values.items() if v is not None}
    if not values:
        return unchecked("repeated values", "no values by seed are recorded")
    troubles = []
    for name, array in values.items():
        precise = [v for v in array.tolist() if digits(v) >= DIGITS_OF_A_MEASUREMENT]
        repeats = len(precise) - len(set(precise))
        if repeats:
            troubles.append(f"{name} repeats {repeats} of its {array.size} values")
    if facts.paired:
        a, b = (values[name] for name in ARMS)
        equal, d = int(np.count_nonzero(a == b)), b - a
        if equal and any(digits(v) >= DIGITS_OF_A_MEASUREMENT for v in a[a == b].tolist()):
            troubles.append(f"in {equal} of {a.size} pairs the idea's value is the baseline's own")
        elif not equal and np.ptp(d) <= 1e-9 * abs(d.mean()):
            troubles.append("every pair differs by the same amount")
    why = "; ".join(troubles) or "no two networks have the same value"
    return concern("repeated values", None, len(troubles), not troubles, why)


def _differences(facts: Facts) -> Iterator[Row]:
    comparison, e = facts.bench.comparison, facts.evidence
    mean = None if e is None else e.mean_difference
    yield figure("mean difference", comparison.delta_mean, mean, "idea - baseline", facts.slack)
    given = comparison.per_seed_diffs
    if e is None or facts.differences is None or not facts.paired or given is None:
        yield unchecked("differences", "needs the values of both arms, and the differences")
    elif len(given) == e.n:
        said = np.array(given)
        gaps = np.abs(said - facts.differences)
        pairs = zip(given, facts.differences.tolist(), strict=True)
        wrong = np.array([not same(one, own, facts.slack) for one, own in pairs])
        worst = int(np.argmax(gaps))
        why = f"{np.count_nonzero(wrong)} of {e.n} differ"
        if wrong.any():
            why += f", pair {worst + 1} most, by {gaps[worst]:.2g}"
        pair = float(said[worst]), float(facts.differences[worst])
        yield stated(f"difference of pair {worst + 1}", *pair, not wrong.any(), why)
    else:
        why = f"{len(given)} differences for {e.n} pairs"
        yield stated("differences", float(len(given)), float(e.n), False, why)
    wins = None
    if facts.differences is not None:
        wins = int(np.count_nonzero(facts.sign * facts.differences < 0))
    why = f"seeds with a {'lower' if facts.sign > 0 else 'higher'} value"
    yield figure("wins of the idea", comparison.idea_wins, wins, why)
