"""Sentences on the tracks whose words, and not only numbers, depend on the results."""

from collections.abc import Mapping

from msstab import by_track
from msstab.study import Study
from msstab.surveys import Survey
from msstab.tables import spoken
from msstab.verdict import Outcome

_WORDS = {
    Outcome.BETTER: "lower",
    Outcome.WORSE: "higher",
    Outcome.EQUIVALENT: "equivalent",
    Outcome.INCONCLUSIVE: "undecided",
}


def skill(found: Mapping[str, Survey]) -> str:
    """Say on which tracks the baseline beats what needs no network."""
    without = [track for track, survey in found.items() if not by_track.skill(survey).skilled]
    count = len(found) - len(without)
    lead = f"The tuned baseline beats the best naive forecast on {count} of {len(found)} tracks"
    if not without:
        return f"{lead}."
    return (
        f"{lead}. It has no skill on {_listed(without)}: what an arm changes there says little "
        "about networks that have learnt something."
    )


def arm(found: Mapping[str, Survey], arm: str) -> str:
    """Say on which tracks an arm lowers, raises or leaves either error."""
    parts = []
    p_values = by_track.adjusted(found, arm)
    words = {"clean": "clean error", "noisy": "error under noise"}
    for question, own in by_track.compared(found, arm).items():
        by_outcome: dict[Outcome, list[str]] = {kind: [] for kind in Outcome}
        for track, c in own.items():
            by_outcome[by_track.outcome(c, p_values[question][track])].append(track)
        said = [f"{_WORDS[kind]} on {_listed(on)}" for kind, on in by_outcome.items() if on]
        parts.append(f"The {words[question]} is {'; '.join(said)}.")
    tests = sum(map(len, p_values.values()))
    return f"With {spoken(arm)}, after Holm's adjustment over {tests} tests: " + " ".join(parts)


def prediction(found: Mapping[str, Survey], limit: float) -> str:
    """Say on which tracks predictions of the output variance keep rule R1's limit."""
    misses = {track: by_track.prediction(survey).log_rmse for track, survey in found.items()}
    beyond = [track for track, miss in misses.items() if not miss <= limit]
    kept = len(misses) - len(beyond)
    lead = (
        f"Prediction and observation agree within a log-rmse of {limit:g} on {kept} of "
        f"{len(misses)} tracks"
    )
    if not beyond:
        return f"{lead}."
    named_misses = [f"{track} ({misses[track]:.2g})" for track in beyond]
    return f"{lead}, and do not on {_listed(named_misses)}."


def left_out(study: Study) -> str:
    """Say which tracks are left out, and why, or nothing."""
    out = by_track.left_out(study)
    if not out:
        return ""
    return (
        f"Left out: {_listed(out)}, which {'does' if len(out) == 1 else 'do'} not forecast the "
        f"next input that {spoken(study.arms[1])} feeds back."
    )


def _listed(names: list[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
