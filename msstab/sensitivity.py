"""What would change the verdict: other limits, another scale, or one seed less."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msstab import evidence
from msstab.evidence import Judged, Scale
from msstab.results import Comparison, compare
from msstab.verdict import TREE, Deciding, Facts, branch_taken

MARGINS = (0.01, 0.02, 0.05, 0.1, 0.2)
"""Smallest effects of interest that are tried, as shares of the baseline's error."""

LEVELS = (0.01, 0.05, 0.1)
"""Levels that are tried."""

AS_JUDGED, MARGIN, LEVEL = "as judged", "smallest effect of interest", "level"
SCALE, SEED = "scale", "seed left out"


def vary(
    comparison: Comparison,
    *,
    margins: Sequence[float] = MARGINS,
    levels: Sequence[float] = LEVELS,
) -> pd.DataFrame:
    """Return the outcome as judged and after one change at a time, a row each.

    Columns: `varied` (what is changed), `value` (to what: a share, a level, the number of the seed
    left out), `outcome`, `differs` (from the outcome as judged), `effect` (mean change as a share
    of the baseline's error, see `evidence.Judged`), `p_value`,
    `p_equivalence`. Where differences decide there is no other scale, and two pairs have none to
    leave out. 1.5 s for 1000 pairs.
    """
    e = comparison.evidence
    judged, values = e.judged, _values(comparison)
    facts = _facts(judged)
    rows = [_row(AS_JUDGED, math.nan, facts, judged.effect)]
    for margin in margins:
        p = evidence.equivalence_p(values, _own_margin(comparison, margin))
        rows.append(_row(MARGIN, margin, facts._replace(p_equivalence=p), judged.effect))
    rows += [_row(LEVEL, level, facts._replace(alpha=level), judged.effect) for level in levels]
    if judged.scale is Scale.RATIOS:
        other = e.on(Scale.DIFFERENCES)
        rows.append(_row(SCALE, math.nan, _facts(other), other.effect))
    if e.n > 2:
        rows += _without_each(comparison, values)
    frame = pd.DataFrame(rows)
    frame.insert(3, "differs", frame.outcome != frame.outcome[0])
    return frame


def most_influential(frame: pd.DataFrame) -> pd.Series | None:
    """Return the row of the seed that matters most, of a frame by `vary`.

    Of the seeds without which the outcome differs, else of all, the one that moves the mean change
    most. None where no seed was left out.
    """
    seeds = frame[frame.varied == SEED]
    if seeds.empty:
        return None
    moved = (seeds.effect - frame.effect[0]).abs()
    candidates = moved[seeds.differs] if seeds.differs.any() else moved
    row: pd.Series = frame.loc[candidates.idxmax()]
    return row


def again(
    baseline: NDArray[np.float64], idea: NDArray[np.float64], *, alpha: float, sesoi: float
) -> dict[str, object]:
    """Return what other errors (n,), (n,) of a comparison's arms decide, as part of a row.

    Keys: `pairs`, `outcome`, `effect` and `p_value`, of which fewer than two pairs have none.
    """
    if len(baseline) < 2:
        return {"pairs": len(baseline), "outcome": "", "effect": math.nan, "p_value": math.nan}
    found = compare("", baseline, idea, alpha=alpha, sesoi=sesoi)
    judged = found.evidence.judged
    return {
        "pairs": judged.n,
        "outcome": found.decision.outcome.value,
        "effect": judged.effect,
        "p_value": judged.p_value,
    }


def vary_tracks(comparisons: Mapping[str, Comparison]) -> pd.DataFrame:
    """Return the change of the error pooled over tracks, and without each track, a row each.

    Pooled is the mean over tracks of each track's mean log ratio, so that tracks count alike
    however many pairs they have. Columns: `left_out` (a track's name, empty in the first row),
    `tracks` that are pooled, `mean` (log ratio), `effect` (the geometric mean ratio less 1) and
    `change` (of the mean by leaving the track out). One track cannot be left out. Raises
    ValueError for no tracks and for an error that has no logarithm.
    """
    if not comparisons:
        raise ValueError("no comparisons were given: at least one track is needed")
    means = {
        track: float(evidence.log_ratios(c.baseline, c.idea).mean())
        for track, c in comparisons.items()
    }
    pooled = float(np.mean(list(means.values())))
    left_out = ["", *(means if len(means) > 1 else ())]
    rows = []
    for track in left_out:
        kept = [mean for name, mean in means.items() if name != track]
        mean = float(np.mean(kept))
        row = {"left_out": track, "tracks": len(kept), "mean": mean, "effect": math.expm1(mean)}
        rows.append({**row, "change": mean - pooled})
    return pd.DataFrame(rows)


def tracks_sentence(frame: pd.DataFrame) -> str:
    """Say how the pooled change of the error moves without a track, from one by `vary_tracks`."""
    pooled, rest = frame.effect[0], frame[1:]
    if rest.empty:
        return f"On the one track that was run, the error changes by {pooled:+.1%}."
    turned = list(rest.left_out[np.sign(rest.effect) != np.sign(pooled)])
    sign = f"changes sign without {_listed(turned, 'or')}" if turned else "keeps its sign"
    most = rest.left_out.iloc[int(np.argmax(rest.change.abs()))]
    return (
        f"Pooled over {frame.tracks[0]} tracks, the error changes by {pooled:+.1%}. It {sign}: "
        f"with any one track left out it lies between {rest.effect.min():+.1%} and "
        f"{rest.effect.max():+.1%}, and {most} matters most."
    )


def sentence(frame: pd.DataFrame) -> str:
    """Say what would change the outcome and what would not, from a frame by `vary`."""
    groups = [(str(varied), rows) for varied, rows in frame[1:].groupby("varied", sort=False)]
    changed = [
        f"{outcome} {_changed(varied, own, len(rows))}"
        for varied, rows in groups
        for outcome, own in rows[rows.differs].groupby("outcome", sort=False)
    ]
    stays = [_unchanged(varied, rows) for varied, rows in groups if not rows.differs.any()]
    said = [f"The outcome is {frame.outcome[0]}."]
    if changed:
        said.append(f"It would be {'; '.join(changed)}.")
    if stays:
        said.append(f"It stays the same {_listed(stays, 'and')}.")
    seed = most_influential(frame)
    if seed is not None:
        said.append(
            f"Seed {seed.value:.0f} matters most: without it the mean change is "
            f"{seed.effect:+.2%} instead of {frame.effect[0]:+.2%}."
        )
    return " ".join(said)


def _row(varied: str, value: float, facts: Deciding, effect: float) -> dict[str, object]:
    return {
        "varied": varied,
        "value": value,
        "outcome": TREE[branch_taken(facts)].outcome.value,
        "effect": effect,
        "p_value": facts.p_value,
        "p_equivalence": facts.p_equivalence,
    }


def _facts(judged: Judged) -> Facts:
    return Facts(judged.n, judged.alpha, judged.mean, judged.p_value, judged.p_equivalence)


def _values(comparison: Comparison) -> NDArray[np.float64]:
    """Return what decides of each pair (n,): the log ratio, or the difference."""
    a, b = comparison.baseline, comparison.idea
    ratios = comparison.evidence.judged.scale is Scale.RATIOS
    return evidence.log_ratios(a, b) if ratios else b - a


def _own_margin(comparison: Comparison, share: float) -> float:
    """Return a margin that is a share of the baseline's error in the units of `_values`."""
    if comparison.evidence.judged.scale is Scale.RATIOS:
        return evidence.log_margin(share)
    return share * comparison.evidence.mean_baseline


def _without_each(comparison: Comparison, values: NDArray[np.float64]) -> list[dict[str, object]]:
    """Return a row for each seed left out; a margin on differences follows the baseline's mean."""
    judged, baseline, rows = comparison.evidence.judged, comparison.baseline, []
    ratios = judged.scale is Scale.RATIOS
    for seed, p in enumerate(evidence.sign_flip_leave_one_out(values).tolist()):
        rest = np.delete(values, seed)
        unit = 1.0 if ratios else float(np.delete(baseline, seed).mean())
        margin = evidence.log_margin(judged.margin) if ratios else judged.margin * unit
        mean = float(rest.mean())
        p_equivalence = evidence.equivalence_p(rest, margin)
        facts = Facts(rest.size, judged.alpha, mean, p, p_equivalence)
        rows.append(_row(SEED, seed, facts, math.expm1(mean) if ratios else mean / unit))
    return rows


def _changed(varied: str, rows: pd.DataFrame, tried: int) -> str:
    values = rows.value.tolist()
    match varied:
        case _ if varied == MARGIN:
            shares = _listed([f"{value:.3g}%" for value in 100 * rows.value], "or")
            return f"with a smallest effect of interest of {shares}"
        case _ if varied == LEVEL:
            return f"at a level of {_listed([f'{value:g}' for value in values], 'or')}"
        case _ if varied == SCALE:
            return "on differences"
        case _:
            if len(values) == 1:
                return f"without seed {values[0]:.0f} of {tried}"
            return f"with any one of {len(values)} of the {tried} seeds left out"


def _unchanged(varied: str, rows: pd.DataFrame) -> str:
    low, high = rows.value.min(), rows.value.max()
    match varied:
        case _ if varied == MARGIN:
            ends = f"{100 * low:.3g}% to {100 * high:.3g}%"
            return f"with a smallest effect of interest from {ends}"
        case _ if varied == LEVEL:
            return f"at levels from {low:g} to {high:g}"
        case _ if varied == SCALE:
            return "on differences"
        case _:
            return f"without any one of the {len(rows)} seeds"


def _listed(words: list[str], last: str) -> str:
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
