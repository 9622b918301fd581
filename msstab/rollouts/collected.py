"""The free runs of all networks of a Study: which tracks, which networks, and how they compare."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from msstab import arms, experiment, measures, results, surveys, tracks
from msstab.experiment import Progress
from msstab.results import Comparison
from msstab.rollouts import measured
from msstab.rollouts.deviations import Array
from msstab.seeding import generator
from msstab.study import Study, StudyError
from msstab.surveys import Survey
from msstab.trials import draw

STATED = "lorenz_state"
"""The track of free runs where the Study's own forecasts cannot be fed back."""

LEVELS = (0.05, 0.25, 1.0)
"""Noise levels at which growth under noise is predicted, in those of the noisy test."""

FEWEST = 16
"""Test sequences of the first seed that must go on to the end of a horizon."""

ROLES = {False: ("selected", "penalised"), True: ("robust", "robust")}
"""The roles of the baseline's networks and of an arm's that run freely without and under noise."""

Network = dict[str, NDArray[Any]]
"""What was measured of one network; see `measured`."""


class FreeRuns(NamedTuple):
    """All free runs on one track.

    `lengths` are those of the horizons in steps, shortest first, by window lengths. `networks`
    holds what `measured.free_runs` gives by arm and role, `growth` what `measured.growths` gives
    by arm, for the networks without noise, each in the order of seeds. `exponent` is the largest
    Lyapunov exponent of the track's system in nats a step, with its standard error, if the track
    is of a system that can be simulated.
    """

    track: str
    survey: Survey
    lengths: dict[int, int]
    networks: dict[tuple[str, str], list[Network]]
    growth: dict[str, list[Network]]
    exponent: tuple[float, float] | None

    @property
    def study(self) -> Study:
        """The parameters of these runs."""
        return self.survey.study

    @property
    def arms(self) -> tuple[str, ...]:
        """The baseline, the judged arm and those beside it."""
        return self.study.arms

    @property
    def longest(self) -> int:
        """Steps of the longest horizon."""
        return max(self.lengths.values())

    @property
    def sequences(self) -> int:
        """Test sequences on which each network runs freely."""
        return int(self.of(self.arms[0])[0]["valid"].size)

    @property
    def lyapunov_time(self) -> float | None:
        """Steps in which small deviations grow by e in the true system; None if they do not."""
        if self.exponent is None:
            return None
        rate, error = self.exponent
        return 1 / rate if rate > 4 * error else None

    def of(self, arm: str, *, noisy: bool = False) -> list[Network]:
        """Return an arm's networks in the role that counts."""
        baseline, other = ROLES[noisy]
        return self.networks[arm, baseline if arm == self.arms[0] else other]


def closed_tracks(study: Study) -> tuple[str, ...]:
    """Return the tracks of free runs, that of the third question first.

    It is the Study's own where its forecasts are its next inputs; else `STATED`, unless the
    tracks that part II compares have a closed one and not this. The other closed ones follow.
    """
    others = [name for name in study.survey_tracks if definition(study, name).closed]
    if tracks.of(study).closed:
        first = study.track
    else:
        first = STATED if STATED in others or not others else others[0]
    return (first, *(name for name in others if name != first))


def definition(study: Study, name: str) -> tracks.Track:
    """Return a track that the Study's parameters name."""
    return tracks.of(study.model_copy(update={"track": name}))


def plan(study: Study) -> dict[str, Study]:
    """Return the smaller study whose networks run freely on each of `closed_tracks`."""
    return {name: variant(study, name) for name in closed_tracks(study)}


def variant(study: Study, name: str) -> Study:
    """Return the smaller study on one track: `surveys.variant`, and arms made for free runs.

    An arm of `survey_arms` that feeds forecasts back is compared here even where the Study cannot
    have it, because it cannot feed back those of its own track.
    """
    small = surveys.variant(study, track=name)
    made_for_it = [
        arm
        for arm in study.survey_arms
        if arm not in small.arms and (own := arms.find(arm)) and own.closed
    ]
    return surveys.variant(study, track=name, arms=(*small.arms, *made_for_it))


def collect(
    study: Study, *, jobs: int | None = None, progress: Progress | None = None
) -> dict[str, FreeRuns]:
    """Return the free runs on each of `closed_tracks`; what has been run before is read."""
    return {
        name: collect_track(study, name, jobs=jobs, progress=own)
        for name, own in zip(closed_tracks(study), _in_turn(progress), strict=False)
    }


def collect_track(
    study: Study, name: str, *, jobs: int | None = None, progress: Progress | None = None
) -> FreeRuns:
    """Return the free runs on one track, of the networks of its `variant`."""
    turn = _in_turn(progress)
    small = variant(study, name)
    window, lengths = tracks.of(small).length, horizons(small)
    survey = surveys.collect({name: small}, jobs=jobs, progress=next(turn))[name]
    settings = {
        "steps": max(lengths.values()),
        "window": window,
        "sequences": min(small.mechanism_sequences, small.n_test // 2),
        "n_test": small.n_test,
        "noise": small.noise,
        "sigma": small.sigma_test,
        "levels": [share * small.sigma_test for share in LEVELS],
    }
    baseline, *others = small.arms
    roles = {
        noisy: [(baseline, first), *((arm, other) for arm in others)]
        for noisy, (first, other) in ROLES.items()
    }
    both = roles[False] + roles[True]
    networks = _measure(
        "free-runs", measured.free_runs, survey, both, settings, jobs, next(turn)
    )  # fmt: skip
    grown = _measure(
        "free-growth", measured.growths, survey, roles[False], settings, jobs, next(turn)
    )  # fmt: skip
    return FreeRuns(
        name, survey, lengths, networks, {arm: own for (arm, _), own in grown.items()},
        exponent(small),
    )  # fmt: skip


def horizons(study: Study) -> dict[int, int]:
    """Return the steps of each horizon on a Study's track by window lengths, shortest first.

    A measured series ends, and with it the truth: horizons beyond which too few test sequences
    go on, or none without a missing value, are left out. Raises StudyError if that is all.
    """
    learned = tracks.of(study)
    lengths = {times: times * learned.length for times in sorted(study.free_runs)}
    if learned.system is not None:
        return lengths
    sizes = (study.n_train, 0, study.n_test)
    longest = max(lengths.values())
    full_name = tracks.name_of(study)
    future = draw(full_name, study.study_seed, "confirmation", 0, sizes, longest).test.future
    there: NDArray[np.bool_] = np.isfinite(future)
    kept = {
        times: length
        for times, length in lengths.items()
        if there[:, :length].all(axis=(1, 2)).sum() >= min(FEWEST, study.n_test)
    }
    if not kept:
        raise StudyError(
            f"free_runs = {study.free_runs}: track {study.track} has fewer than {FEWEST} test "
            f"sequences that go on for {min(lengths.values())} steps; take another track, or "
            "give a longer series"
        )
    return kept


def exponent(study: Study) -> tuple[float, float] | None:
    """Return the largest Lyapunov exponent of a Study's system a step, with its standard error.

    None for a track that is not of a system without chance that can be simulated.
    """
    system = tracks.of(study).system
    if system is None:
        return None
    return tracks.lyapunov_exponent(system, generator(study.study_seed, study.track, "exponent"))


def errors(networks: Sequence[Network], length: int, *, noisy: bool = False) -> Array:
    """Return each network's mean squared normalised error over the first steps of free runs."""
    name = "noisy_error" if noisy else "error"
    return np.array([own[name][:length].mean() for own in networks])


def valid_times(networks: Sequence[Network], *, noisy: bool = False) -> Array:
    """Return each network's mean valid time in steps."""
    name = "noisy_valid" if noisy else "valid"
    return np.array([own[name].mean() for own in networks])


def by_horizon(found: FreeRuns, arm: str, *, noisy: bool = False) -> dict[int, Comparison]:
    """Compare an arm's free-run error with the baseline's at each horizon."""
    baseline, own = (found.of(name, noisy=noisy) for name in (found.arms[0], arm))
    return {
        times: _compare(
            found,
            f"Free run of {spoken_windows(times)}",
            errors(baseline, length, noisy=noisy),
            errors(own, length, noisy=noisy),
        )
        for times, length in found.lengths.items()
    }


def by_valid_time(found: FreeRuns, arm: str, *, noisy: bool = False) -> Comparison:
    """Compare how soon forecasts fail, one over the valid time: lower is better, as for errors."""
    baseline, own = (found.of(name, noisy=noisy) for name in (found.arms[0], arm))
    rates = [1 / valid_times(networks, noisy=noisy) for networks in (baseline, own)]
    return _compare(found, "One over the valid time", *rates)


def free_run_comparison(
    study: Study, *, jobs: int | None = None, progress: Progress | None = None
) -> tuple[str, Comparison]:
    """Return the third question's track and its comparison of the judged arm with the baseline.

    It is of the free-run error at the shortest horizon, on the first of `closed_tracks`.
    """
    name = closed_tracks(study)[0]
    found = collect_track(study, name, jobs=jobs, progress=progress)
    shortest = min(found.lengths)
    compared = by_horizon(found, found.arms[1])[shortest]
    return name, compared._replace(title=f"Q3: free-run error over {spoken_windows(shortest)}")


def spoken_windows(times: int) -> str:
    """Write a length in input windows for a reader."""
    return "one window" if times == 1 else f"{times} windows"


def _compare(found: FreeRuns, title: str, baseline: Array, idea: Array) -> Comparison:
    study = found.study
    return results.compare(title, baseline, idea, alpha=study.alpha, sesoi=study.sesoi)


def _measure(
    kind: str,
    function: measures.Measurement,
    survey: Survey,
    groups: Sequence[tuple[str, str]],
    settings: Mapping[str, Any],
    jobs: int | None,
    progress: Progress | None,
) -> dict[tuple[str, str], list[Network]]:
    """Measure the networks of each arm and role, those of one seed after each other.

    So a process finds the data of a seed again, which take longer to draw than to be used.
    """
    by_group = {group: experiment.confirmed(survey.experiment, *group) for group in groups}
    places = sorted(
        (trial.index, order, group)
        for order, (group, trials) in enumerate(by_group.items())
        for trial in trials
    )
    found = measures.measure(
        kind,
        function,
        [by_group[group][index] for index, _, group in places],
        settings,
        measured.ROOMS,
        jobs=jobs,
        progress=progress,
    )
    networks: dict[tuple[str, str], list[Network]] = {group: [] for group in by_group}
    for (_, _, group), own in zip(places, found, strict=True):
        networks[group].append(own)
    return networks


def _in_turn(progress: Progress | None) -> Iterator[Progress | None]:
    """Yield a progress for each of several works, the total growing as they begin."""
    before = 0
    while True:
        last = 0

        def advance(done: int, total: int, before: int = before) -> None:
            nonlocal last
            last = total
            if progress:
                progress(before + done, before + total)

        yield advance
        before += last
