"""Chapter 8: networks under every noise structure, and networks trained for each of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msstab import agreements, effects, experiment, measures, structures, surveys, under_noise
from msstab.agreements import Agreement
from msstab.effects import Effect
from msstab.experiment import Experiment, Progress
from msstab.scores import DIVERGED
from msstab.study import Study
from msstab.trials import Trial

BASELINE = "baseline"

SEQUENCES, DRAWS = 32, 32
"""Test sequences of each network, and noise draws for each, where the Study has more."""

Cross = tuple[str, str, str]
"""An arm, the structure that it was trained for, and the one under which it is tested."""


class Structured(NamedTuple):
    """What the chapter shows.

    `strengths` are the matched ones, `disturbances` the mean squares of a baseline step at these.
    `table` has a row for each network and structure: arm, seed, structure, clean, error, the
    variances of `under_noise.variances`, and whether it diverged, by the rule of `scores.score`.
    `crossed` has one for each arm, structure trained for, structure tested and seed.
    """

    study: Study
    strengths: dict[str, float]
    disturbances: dict[str, float]
    table: pd.DataFrame
    crossed: pd.DataFrame

    @property
    def arms(self) -> list[str]:
        """The arms beside the baseline."""
        return [str(arm) for arm in self.table.arm.unique() if arm != BASELINE]

    @property
    def trained(self) -> list[str]:
        """The structures that arms were trained for."""
        return [str(name) for name in self.crossed.trained.unique()]


def collect(
    study: Study, *, jobs: int | None = None, progress: Progress | None = None
) -> Structured:
    """Return what the chapter shows; what has been run before is read, the rest is run.

    The networks are those of the Study's second question, tuned for its noise, on no more than
    `study.survey_seeds` seeds; those trained for other structures are smaller studies' own.
    """
    jobs = jobs or joblib.cpu_count()
    runs = experiment.run(study, jobs=jobs, progress=progress)
    chosen = {arm: _robust(runs, arm) for arm in surveys.variant(study).arms}
    names = list(dict.fromkeys([study.noise, *study.survey_structures]))

    def measure(
        kind: str,
        function: Callable[[Trial, Mapping[str, Any]], dict[str, Any]],
        networks: Sequence[Trial],
        at: Sequence[tuple[str, float]] = (),
    ) -> list[dict[str, NDArray[Any]]]:
        settings = {
            "names": names,
            "at": [list(pair) for pair in at],
            "sequences": min(SEQUENCES, study.mechanism_sequences),
            "draws": min(DRAWS, study.draws),
            "n_validation": study.n_validation,
            "n_test": study.n_test,
            "seeds": len(chosen[BASELINE]),
        }
        rooms = under_noise.ROOMS
        return measures.measure(
            kind, function, networks, settings, rooms, jobs=jobs, progress=progress
        )

    moved = measure("disturbance", under_noise.disturbances, chosen[BASELINE])
    means = {name: float(np.mean([one[name] for one in moved])) for name in moved[0]}
    strengths = structures.matched(means, study.noise, study.sigma_test)
    assumed = structures.matched(means, study.noise, study.sigma)
    at = list(strengths.items())
    at += [
        (name, strengths[name.removesuffix(structures.FROZEN)])
        for name in structures.frozen_structures(names)
    ]
    table = pd.concat(
        _rows(arm, own, at, measure("structures", under_noise.variances, own, at))
        for arm, own in chosen.items()
    )
    named = [(name, strengths[name]) for name in study.survey_structures]
    variants = {
        name: surveys.variant(
            study, noise=name, sigma=assumed[name], sigma_test=level, sigma_grid=(level,)
        )
        for name, level in named
    }
    crossed = pd.concat(
        _rows(arm, own, named, measure("crossed", under_noise.errors, own, named)).assign(
            trained=name
        )
        for name, survey in surveys.collect(variants, jobs=jobs, progress=progress).items()
        for arm in survey.study.arms
        for own in [_robust(survey.experiment, arm)]
    )
    at_strength = {name: means[name] * s**2 for name, s in strengths.items()}
    return Structured(study, strengths, at_strength, table, crossed)


def harm(found: Structured, arm: str = BASELINE) -> dict[str, Effect]:
    """Return by which factor each structure raises the error of an arm's networks."""
    own = found.table[found.table.arm == arm]
    return {
        str(name): effects.effect(rows.clean, rows.error, found.study.alpha)
        for name, rows in own.groupby("structure", sort=False)
    }


def against_own(found: Structured) -> dict[str, Effect]:
    """Return the baseline's error under each other structure over that under the Study's own."""
    errors = _errors(found, BASELINE)
    own = errors.pop(found.study.noise)
    return {name: effects.effect(own, other, found.study.alpha) for name, other in errors.items()}


def benefits(found: Structured) -> dict[tuple[str, str], Effect]:
    """Return each arm's error over the baseline's, by arm and structure."""
    baseline = _errors(found, BASELINE)
    return {
        (arm, name): effects.effect(baseline[name], error, found.study.alpha)
        for arm in found.arms
        for name, error in _errors(found, arm).items()
    }


def freezing(found: Structured) -> dict[str, Effect]:
    """Return the baseline's error under frozen errors over that under fresh ones, by structure."""
    errors = _errors(found, BASELINE)
    return {
        fresh: effects.effect(errors[fresh], error, found.study.alpha)
        for name, error in errors.items()
        if (fresh := name.removesuffix(structures.FROZEN)) != name
    }


def predictions(found: Structured) -> dict[str, dict[str, Agreement]]:
    """Return how predicted and observed variances agree over all networks, by structure.

    Under `predicted`, `white` and `placebo`, as in `under_noise.variances`.
    """
    return {
        str(name): {
            kind: agreements.agreement(rows[kind], rows.observed)
            for kind in ("predicted", "white", "placebo")
        }
        for name, rows in found.table.groupby("structure", sort=False)
    }


def transfer(found: Structured) -> dict[Cross, Effect]:
    """Return each arm's error over that of the baseline that was tuned for the tested structure."""
    errors = _crossed_errors(found)
    return {
        (arm, trained, tested): effects.effect(
            errors[BASELINE, tested, tested], own, found.study.alpha
        )
        for (arm, trained, tested), own in errors.items()
        if arm != BASELINE
    }


def matching(found: Structured) -> dict[str, Effect]:
    """Return, by arm, the error when trained for the tested structure over that when for another.

    For each seed the mean over the tested structures of the log error of the network trained for
    it, less the mean log error of those trained for the others. None for a single structure.
    """
    names, errors = found.trained, _crossed_errors(found)
    if len(names) < 2:
        return {}
    logs = {cross: np.log(error) for cross, error in errors.items()}
    return {
        arm: effects.of_logs(
            np.mean(
                [
                    logs[arm, tested, tested]
                    - np.mean([logs[arm, o, tested] for o in names if o != tested], axis=0)
                    for tested in names
                ],
                axis=0,
            ),
            found.study.alpha,
        )
        for arm in found.arms
    }


def _robust(runs: Experiment, arm: str) -> list[Trial]:
    return experiment.confirmed(runs, arm, "robust")[: runs.study.survey_seeds]


def _rows(
    arm: str,
    networks: Sequence[Trial],
    at: Sequence[tuple[str, float]],
    scores: Sequence[Mapping[str, NDArray[Any]]],
) -> pd.DataFrame:
    """Return the rows of an arm's networks; one that has diverged counts as a constant forecast."""
    tables = []
    for trial, own in zip(networks, scores, strict=True):
        constant, limit = float(own["constant"]), DIVERGED * float(own["constant"])
        lost = ~((own["error"] <= limit) & (own["clean"] <= limit))
        variances = {name: own[name] for name in _VARIANCES if name in own}
        tables.append(
            pd.DataFrame(
                {
                    "arm": arm,
                    "seed": trial.index,
                    "structure": [name for name, _ in at],
                    "clean": np.where(lost, constant, own["clean"]),
                    "error": np.where(lost, constant, own["error"]),
                    **variances,
                    "diverged": lost,
                }
            )
        )
    return pd.concat(tables)


_VARIANCES = ("observed", "predicted", "white", "placebo")


def _errors(found: Structured, arm: str) -> dict[str, NDArray[np.float64]]:
    """Return an arm's errors by structure, in the order of seeds."""
    own = found.table[found.table.arm == arm].sort_values("seed", kind="stable")
    return {str(name): rows.error.to_numpy() for name, rows in own.groupby("structure", sort=False)}


def _crossed_errors(found: Structured) -> dict[Cross, NDArray[np.float64]]:
    groups: Any = found.crossed.sort_values("seed", kind="stable").groupby(
        ["arm", "trained", "structure"], sort=False
    )
    return {cross: rows.error.to_numpy() for cross, rows in groups}
