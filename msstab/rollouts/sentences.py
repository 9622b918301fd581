"""Sentences on free runs whose words, and not only numbers, depend on the results."""

from collections.abc import Mapping

import numpy as np

from msstab import tracks
from msstab.results import Comparison
from msstab.rollouts.collected import (
    FreeRuns,
    by_horizon,
    closed_tracks,
    definition,
    spoken_windows,
)
from msstab.rollouts.deviations import SATURATION, THRESHOLD
from msstab.rollouts.summaries import (
    attractor,
    exponents,
    fates,
    growth_agreement,
    growth_and_error,
    growths,
)
from msstab.study import Study
from msstab.tables import spoken
from msstab.verdict import Outcome

_OUTCOMES = {
    Outcome.BETTER: "lower than the baseline's",
    Outcome.WORSE: "higher than the baseline's",
    Outcome.EQUIVALENT: "equivalent to the baseline's",
    Outcome.INCONCLUSIVE: "not told apart from the baseline's",
}


def which_track(study: Study) -> str:
    """Say on which track the third question is asked, and why."""
    name = closed_tracks(study)[0]
    own = tracks.of(study)
    if name == study.track:
        return (
            f"Forecasts of `{name}` are its next inputs, so the free runs are on this very track."
        )
    if not own.autonomous:
        why = f"What `{study.track}` forecasts is another quantity than what goes in"
    else:
        why = f"What `{study.track}` forecasts lies {own.horizon} steps after its last input"
    return (
        f"{why}, so its forecasts cannot be fed back. The free runs are on `{name}` instead "
        f"({definition(study, name).title}), whose forecasts are its next inputs, with networks "
        "tuned and trained there."
    )


def left_out(found: FreeRuns) -> str:
    """Say which horizons are left out because the truth does not go on for so long, if any."""
    missing = [times for times in sorted(found.study.free_runs) if times not in found.lengths]
    if not missing:
        return ""
    return (
        f"Free runs of {_listed([spoken_windows(times) for times in missing])} are left out: the "
        f"series of `{found.track}` does not go on for so long."
    )


def answer(found: FreeRuns) -> str:
    """Say how the judged arm's free runs compare with the baseline's, horizon by horizon."""
    arm = found.arms[1]
    clean = by_horizon(found, arm)
    parts = [
        f"{_outcome(c)} over {spoken_windows(times)} ({_ratio(c)})" for times, c in clean.items()
    ]
    noisy = by_horizon(found, arm, noisy=True)
    times, under = next(iter(noisy.items()))
    return (
        f"The free-run error of networks trained with `{arm}` is {_listed(parts)}."
        f"{_same_networks(clean)} Under noise of {found.study.sigma_test:g}, with networks tuned "
        f"for it, it is {_outcome(under)} over {spoken_windows(times)} ({_ratio(under)})."
        f"{_same_networks(noisy)}"
    )


def how_long(found: FreeRuns) -> str:
    """Say how long forecasts stay valid, by arm."""
    unit = found.lyapunov_time
    parts = []
    for arm in found.arms:
        valid = fates(found, arm).valid
        times = f", {valid / unit:.2f} Lyapunov times" if unit else ""
        parts.append(f"{spoken(arm)} {valid:.1f} steps{times}")
    reason = (
        ""
        if unit
        else " The system does not part neighbours, or is not simulated: no Lyapunov time is given."
    )
    return (
        f"On average a forecast first errs by {THRESHOLD:g} standard deviations after: "
        f"{'; '.join(parts)}.{reason}"
    )


def astray(found: FreeRuns) -> str:
    """Say how many runs leave the signal's range, are not finite, or stand still."""
    parts = []
    for noisy, where in ((False, "Without noise"), (True, "Under noise")):
        made = {arm: fates(found, arm, noisy=noisy) for arm in found.arms}
        total = sum(f.runs for f in made.values())
        counts = {
            what: round(sum(getattr(f, what) * f.runs for f in made.values()))
            for what in ("left", "not_finite", "still")
        }
        if not any(counts.values()):
            parts.append(f"{where} all {total} runs stay in range and go on moving.")
            continue
        worst = max(made, key=lambda arm: made[arm].left + made[arm].still)
        parts.append(
            f"{where}, of {total} runs {counts['left']} leave the signal's range "
            f"({counts['not_finite']} of them with values that are not finite) and "
            f"{counts['still']} stand still in the end; most of these belong to {spoken(worst)}."
        )
    return " ".join(parts)


def on_the_attractor(found: FreeRuns) -> str:
    """Say how many networks end up as close to the true attractor as true trajectories are."""
    parts = []
    for arm in found.arms:
        made = attractor(found, arm)
        values = int((made.histogram <= made.histogram_floor.max()).sum())
        spectra = int((made.spectrum <= made.spectrum_floor.max()).sum())
        size = made.histogram.size
        parts.append(f"{spoken(arm)} {values} by values and {spectra} by spectrum, of {size}")
    return (
        "As close to independent true trajectories as other true trajectories are at most: "
        f"{'; '.join(parts)}."
    )


def growth_predicted(found: FreeRuns) -> str:
    """Say where the Jacobians predict growth better than another network's, and where not."""
    made = {level: growth_agreement(own) for level, own in growths(found).items()}
    clean = made.pop(0.0)
    holds = [f"{level:g}" for level, own in made.items() if own.holds]
    fails = [f"{level:g}" for level, own in made.items() if not own.holds]
    lead = (
        f"Without noise the Jacobians along a free run predict the growth of a small deviation to "
        f"{clean.rmse:.1g} nats a step, another network's to {clean.placebo_rmse:.1g}: "
    )
    lead += "the growth is each network's own." if clean.holds else "this does not discriminate."
    parts = [lead]
    if holds:
        parts.append(f"Under noise the prediction holds at {_listed(holds)}.")
    if fails:
        parts.append(
            f"{'It' if holds else 'Under noise it'} does not stand out from the placebo at "
            f"{_listed(fails)}: the noisy run has left the clean one along which it is linearised."
        )
    return " ".join(parts)


def growth_and_the_truth(found: FreeRuns) -> str:
    """Say how exponents compare with the true system's, and whether growth goes with error."""
    rank, n = growth_and_error(found)
    medians = "; ".join(
        f"{spoken(arm)} {np.nanmedian(exponents(found, arm)):+.4f}" for arm in found.arms
    )
    parts = [f"Median exponents in free run, in nats a step: {medians}."]
    if found.exponent is not None and found.lyapunov_time:
        rate, _ = found.exponent
        every = np.concatenate([exponents(found, arm) for arm in found.arms])
        low = int((every < rate / 2).sum())
        parts.append(
            f"That of the true system is {rate:+.4f}; of {every.size} networks {low} stay below "
            "half of it, less chaotic than the truth."
            if low
            else f"That of the true system is {rate:+.4f}; every network has at least half of it."
        )
    parts.append(
        f"Growth over the first window and error over the shortest horizon have a rank "
        f"correlation of {rank:+.2f} over {n} networks."
        if np.isfinite(rank)
        else "Too few networks differ in growth to relate it to their error."
    )
    return " ".join(parts)


def saturation(found: FreeRuns) -> str:
    """Say at which horizon a free run says no more than an independent trajectory would."""
    for times, compared in by_horizon(found, found.arms[1]).items():
        if compared.baseline.mean() ** 0.5 >= 0.9 * SATURATION:
            return (
                f"Over {spoken_windows(times)} the baseline's error is nearly that of an "
                f"independent trajectory, {SATURATION:.2f}: from there on only the statistics of "
                "the attractor can tell networks apart."
            )
    return (
        f"Even over {spoken_windows(max(found.lengths))} the baseline's error stays below that of "
        f"an independent trajectory, {SATURATION:.2f}."
    )


def other_tracks(every: Mapping[str, FreeRuns]) -> str:
    """Say how the judged arm's shortest free runs compare on the tracks after the first."""
    others = list(every.values())[1:]
    if not others:
        return "No other of the tracks that are compared can be run freely."
    parts = []
    for found in others:
        compared = next(iter(by_horizon(found, found.arms[1]).values()))
        parts.append(f"on `{found.track}` {_outcome(compared)} ({_ratio(compared)})")
    shortest = spoken_windows(min(others[0].lengths))
    return (
        f"Over {shortest} the free-run error of `{others[0].arms[1]}` is {_listed(parts)}; each "
        "track with networks of its own."
    )


def _outcome(c: Comparison) -> str:
    return _OUTCOMES[c.decision.outcome]


def _ratio(c: Comparison) -> str:
    low, high = c.evidence.ratio_interval
    return f"{c.evidence.ratio:.2f} times it, {low:.2f} to {high:.2f}"


def _same_networks(compared: dict[int, Comparison]) -> str:
    same = all(np.array_equal(c.baseline, c.idea) for c in compared.values())
    if not same:
        return ""
    return " These are the baseline's very networks: the arm was never active in their training."


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
