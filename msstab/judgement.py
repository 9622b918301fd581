"""Apply rules R1 to R4 of the mechanism test to a Study's runs."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msstab import agreements, cells, control, mediation, rules, store
from msstab.agreements import Agreement
from msstab.control import Control
from msstab.experiment import Experiment
from msstab.keys import key
from msstab.mediation import Mediator
from msstab.noise import NOISES
from msstab.rules import Finding, Rule
from msstab.seeding import generator
from msstab.study import Study

CONTROL_NOISE, CONTROL_SIGMA, CONTROL_UNITS = "unit", 0.5, 16
"""The control of rule R4: noise strong enough for its share of the growth to be seen."""

_CONTROL_ROOMS = (
    *("seeding", "cells", "operators", "noise", "reduced", "spectral"),
    *("noisy", "control"),
)

MEDIATORS = {
    "predicted output variance": "predicted_variance",
    "radius of the second-moment operator": "radius",
    "growth rate along trajectories": "growth_rate",
    "the original's spectral-norm bound": "proxy_radius",
}
"""What might carry a benefit under noise, and its score."""


class Changes(NamedTuple):
    """Log output variance of variants less that of the baseline of the same seed.

    Arrays (variants, seeds); the placebo is predicted with another network's Jacobians.
    """

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    placebo: NDArray[np.float64]


class MechanismTest(NamedTuple):
    """The rules' findings by name, and what they rest on.

    `networks` are those that are judged, one row each, `others` those that have not learnt the
    track, on which the prediction of rule R1 is shown too, in `everywhere` together with the first.
    """

    networks: pd.DataFrame
    others: pd.DataFrame
    n_variants: int
    prediction: Agreement
    placebo: Agreement
    everywhere: Agreement
    changes: Changes
    control: Control
    findings: dict[str, Finding]

    @property
    def confirmed(self) -> bool:
        """Whether every rule came out confirmed."""
        return all(finding.rule is Rule.CONFIRMED for finding in self.findings.values())


def judge(runs: Experiment) -> MechanismTest:
    """Apply the rules to every variant that tuning tried and that learnt the track.

    A variant, one arm at one configuration, has learnt it if its mean test error is below the
    ridge autoregression's: the theory is claimed of trained networks, and a recurrent network
    that a linear forecast beats is not one.
    """
    judged, others = learnt(runs)
    n_variants = judged.groupby(_VARIANT).ngroups
    real = agreements.agreement(judged.predicted_variance, judged.observed_variance)
    placebo = agreements.agreement(judged.placebo_variance, judged.observed_variance)
    both = pd.concat([judged, others])
    everywhere = agreements.agreement(both.predicted_variance, both.observed_variance)
    changes = Changes(
        *(
            _log_changes(runs, judged, f"{kind}_variance")
            for kind in ("predicted", "observed", "placebo")
        )
    )

    def scores(name: str) -> NDArray[np.float64]:
        return by_variant(runs, judged, name)

    at_rest = operator_control(runs.study)
    findings = {
        "R1": rules.judge_prediction(real, placebo, n_variants, runs.study.tuning_seeds),
        "R2": rules.judge_change(*changes),
        "R3": rules.judge_mediation(
            scores("noisy_mse") - scores("clean_mse"),
            scores("predicted_variance"),
            scores("placebo_variance"),
        ),
        "R4": rules.judge_operator(
            at_rest.predicted, at_rest.simulated, at_rest.standard_error, at_rest.without_noise
        ),
    }
    return MechanismTest(
        judged, others, n_variants, real, placebo, everywhere, changes, at_rest, findings
    )


_VARIANT = ["arm", "learning_rate", "strength"]


def learnt(runs: Experiment) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tuning runs of variants that learnt the track, and those of the others."""
    tuning = runs.table[runs.table.role == "tuning"]
    # At strength 0 an arm's networks are the baseline's own; they count once.
    tuning = tuning[(tuning.arm == "baseline") | (tuning.strength > 0)]
    better = tuning.groupby(_VARIANT).test_mse.transform("mean") < tuning.ridge_mse.mean()
    return tuning[better], tuning[~better]


def by_variant(runs: Experiment, rows: pd.DataFrame, score: str) -> NDArray[np.float64]:
    """Return a score as an array (variants, tuning seeds), variants in the order of their names."""
    by_seed = rows.set_index([*_VARIANT, "seed"])[score].unstack("seed")
    return np.asarray(by_seed.reindex(columns=range(runs.study.tuning_seeds)), dtype=np.float64)


def mediators(runs: Experiment) -> dict[str, Mediator]:
    """Return how the change of each candidate goes with the change of the error under noise.

    Over the variants that rule R2 is judged on, each against the tuned baseline of its seed.
    """
    rows, _ = learnt(runs)
    candidates = {
        name: _changes(runs, rows, score)
        if score == "growth_rate"
        else _log_changes(runs, rows, score)
        for name, score in MEDIATORS.items()
    }
    benefit = _log_changes(runs, rows, "noisy_mse")
    stream = generator(runs.study.study_seed, runs.study.track, "mediators")
    return mediation.mediators(benefit, candidates, stream, level=1 - runs.study.alpha)


def breakdown(runs: Experiment) -> dict[str, dict[float, Agreement]]:
    """Return the prediction's agreement by noise level, for trained and untrained networks."""
    trained, _ = learnt(runs)
    untrained = runs.table[runs.table.role == "untrained"]
    groups = {"trained": trained} | {
        str(arm): own for arm, own in untrained.groupby("arm", sort=False)
    }
    levels = runs.study.sigma_grid
    return {
        name: dict(
            zip(
                levels,
                agreements.breakdown(
                    [rows[f"predicted_variance@{s:g}"] for s in levels],
                    [rows[f"observed_variance@{s:g}"] for s in levels],
                ),
                strict=True,
            )
        )
        for name, rows in groups.items()
    }


def operator_control(study: Study) -> Control:
    """Return the control of rule R4 for the Study's cell; it is kept once it has been made."""
    units = min(CONTROL_UNITS, study.hidden)
    stream = (study.study_seed, "control", study.cell)
    name = key([*stream, units, CONTROL_NOISE, CONTROL_SIGMA], _CONTROL_ROOMS)
    if (kept := store.load("control", name)) is None:
        network = cells.initial_parameters(
            [generator(*stream, "weights")], units, 1, 1, cell=study.cell
        )
        made = control.operator_control(
            network, NOISES[CONTROL_NOISE], CONTROL_SIGMA, generator(*stream, "noise")
        )
        store.save("control", name, made._asdict())
        kept = made._asdict()
    return Control(**kept)


def _log_changes(runs: Experiment, rows: pd.DataFrame, score: str) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(
            np.log(by_variant(runs, rows, score)) - np.log(_baseline(runs, score)), dtype=np.float64
        )


def _changes(runs: Experiment, rows: pd.DataFrame, score: str) -> NDArray[np.float64]:
    return np.asarray(by_variant(runs, rows, score) - _baseline(runs, score), dtype=np.float64)


def _baseline(runs: Experiment, score: str) -> NDArray[np.float64]:
    """Return the tuned baseline's score by tuning seed."""
    tuning = runs.table[(runs.table.role == "tuning") & (runs.table.arm == "baseline")]
    chosen = tuning[tuning.learning_rate == runs.chosen["baseline"].learning_rate]
    return np.asarray(chosen.sort_values("seed")[score], dtype=np.float64)
