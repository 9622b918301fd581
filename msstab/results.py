"""What a Study's runs say: comparisons, mechanism test and verdict, as the chapters show them."""

from typing import NamedTuple

import joblib
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from msstab import evidence, experiment, judgement, mechanism
from msstab.evidence import PairedEvidence
from msstab.experiment import Experiment
from msstab.judgement import MechanismTest
from msstab.study import Study
from msstab.tuning import Configuration
from msstab.verdict import Decision, decide, headline

CLEAN_ROLES, ROBUST_ROLES = ("selected", "penalised"), ("robust", "robust")
"""The roles of the baseline's and of an arm's networks on the first and on the second question."""


class Comparison(NamedTuple):
    """A paired comparison of the penalised arm with the baseline on one error, seed by seed."""

    title: str
    baseline: NDArray[np.float64]
    idea: NDArray[np.float64]
    evidence: PairedEvidence
    decision: Decision


class ArmComparison(NamedTuple):
    """One arm against the baseline, on the two questions, each with its own selection.

    Q1, `clean`: the clean error of the configurations of lowest clean validation error.
    Q2, `noisy`: the error under noise of those of lowest validation error under noise, and
    `price`, the clean error of the same networks. The arm's are of positive strength.
    """

    arm: str
    clean: Comparison
    noisy: Comparison
    price: Comparison


class Results(NamedTuple):
    """Everything the chapters show.

    `idea` is the arm that is judged, one of `arms`. `tuned` compares it at the configuration
    tuning chose when it was free to choose strength 0.
    """

    experiment: Experiment
    idea: str
    arms: dict[str, ArmComparison]
    tuned: Comparison
    mechanism: MechanismTest

    @property
    def study(self) -> Study:
        """The parameters of the runs."""
        return self.experiment.study

    @property
    def table(self) -> pd.DataFrame:
        """One row for each network (see Experiment)."""
        return self.experiment.table

    @property
    def clean(self) -> Comparison:
        """Q1 for the judged arm."""
        return self.arms[self.idea].clean

    @property
    def noisy(self) -> Comparison:
        """Q2 for the judged arm."""
        return self.arms[self.idea].noisy

    @property
    def baseline_configuration(self) -> Configuration:
        """What tuning chose for the baseline."""
        return self.experiment.chosen["baseline"]

    @property
    def idea_configuration(self) -> Configuration:
        """The idea's best configuration of positive strength, the one that is judged."""
        return self.experiment.penalised[self.idea]

    @property
    def free_choice(self) -> Configuration:
        """The idea's best configuration when strength 0 is allowed."""
        return self.experiment.chosen[self.idea]

    @property
    def verdict(self) -> str:
        """The answer in one sentence."""
        clean = self.clean
        return headline(clean.decision, clean.evidence.judged, mechanism_clause(self.mechanism))


def collect(
    study: Study, *, jobs: int | None = None, progress: experiment.Progress | None = None
) -> Results:
    """Return the results of a Study; what has been run before is read, the rest is run.

    `jobs` processes share what is to be run, by default one for each core.
    """
    runs = experiment.run(study, jobs=jobs or joblib.cpu_count(), progress=progress)
    idea = study.arms[1]
    return Results(
        runs,
        idea,
        {arm: compare_arm(runs, arm) for arm in study.arms[1:]},
        tuned=_against_baseline(
            runs, idea, ("selected", "selected"), "test_mse", "Clean error, strength 0 allowed"
        ),
        mechanism=judgement.judge(runs),
    )


def compare_arm(runs: Experiment, arm: str) -> ArmComparison:
    """Compare an arm with the baseline on both questions."""
    noisy = f"Q2: error under noise of {runs.study.sigma_test:g}"
    return ArmComparison(
        arm,
        _against_baseline(runs, arm, CLEAN_ROLES, "test_mse", "Q1: clean error"),
        _against_baseline(runs, arm, ROBUST_ROLES, "noisy_mse", noisy),
        _against_baseline(runs, arm, ROBUST_ROLES, "test_mse", "Q2: its price in clean error"),
    )


def by_level(found: Results, arm: str) -> dict[float, Comparison]:
    """Compare Q2's networks of an arm with the baseline's at every noise level of the grid."""
    return {
        level: _against_baseline(
            found.experiment, arm, ROBUST_ROLES, f"noisy_mse@{level:g}", f"Noise {level:g}"
        )
        for level in found.study.sigma_grid
    }


def _against_baseline(
    runs: Experiment, arm: str, roles: tuple[str, str], metric: str, title: str
) -> Comparison:
    """Compare on the arm's confirmation seeds; `roles` are the baseline's and the arm's."""
    a, b = pairs(runs, arm, roles, metric)
    return compare(title, a, b, alpha=runs.study.alpha, sesoi=runs.study.sesoi)


def pairs(
    runs: Experiment, arm: str, roles: tuple[str, str], score: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a score of the baseline's and of an arm's networks (n,), (n,), paired by seed."""
    b = _by_seed(runs, arm, roles[1], score)
    return _by_seed(runs, "baseline", roles[0], score)[: len(b)], b


def compare(
    title: str, baseline: ArrayLike, idea: ArrayLike, *, alpha: float, sesoi: float
) -> Comparison:
    """Compare two arms' errors (n,), paired by seed, with a margin of `sesoi` baseline means."""
    a, b = np.asarray(baseline, dtype=np.float64), np.asarray(idea, dtype=np.float64)
    found = evidence.summarise(a, b, alpha=alpha, margin=sesoi * float(a.mean()))
    return Comparison(title, a, b, found, decide(found.judged))


def mechanism_clause(test: MechanismTest) -> str:
    """Return the mechanism's outcome as a clause, from the same values as the tables' words."""
    if test.confirmed:
        return "the theory behind it passes all rules of the mechanism test, R1 to R4"
    words = [f"{name} {finding.rule.value}" for name, finding in test.findings.items()]
    return f"of the mechanism test's rules, {', '.join(words)}"


def signatures(results: Results) -> pd.DataFrame:
    """Return the original's mechanism check for every arm and for untrained networks.

    One row a group of networks: mean prediction and observation, the check's relative error and
    whether it passes, and the same for the prediction that the ratio is always 1.
    """
    rows = []
    shown = results.table[~results.table.role.isin(["tuning", "robust"])]
    for (role, arm), group in shown.groupby(["role", "arm"], sort=False):
        predicted, observed = group.proxy_radius.mean(), group.power_ratio.mean()
        error = float(mechanism.relative_error(predicted, observed))
        rows.append(
            {
                "role": role,
                "arm": arm,
                "networks": len(group),
                "predicted": predicted,
                "observed": observed,
                "relative_error": error,
                "confirmed": error <= mechanism.SIGNATURE_TOLERANCE,
                "trivial_error": float(mechanism.relative_error(1.0, observed)),
                "log_growth_error": float(mechanism.log_growth_error(predicted, observed)),
            }
        )
    return pd.DataFrame(rows)


def learning_curves(results: Results) -> tuple[dict[str, NDArray[np.float64]], str]:
    """Return the baseline's training errors (tuning seeds, epochs) by rung of the ladder.

    Beside them, the label of the rung nearest to the chosen learning rate.
    """
    chosen = np.log(results.baseline_configuration.learning_rate)
    rungs = results.experiment.grid.rungs
    curves = {
        f"{rate:g}": _curves(results, "baseline", Configuration(rate, 0.0), "losses")
        for rate in rungs
    }
    nearest = min(rungs, key=lambda rate: abs(float(np.log(rate) - chosen)))
    return curves, f"{nearest:g}"


def hinge_activity(results: Results) -> dict[str, NDArray[np.float64]]:
    """Return the share of steps with an active hinge (tuning seeds, epochs) by strength.

    At the learning rate of the judged configuration.
    """
    rate = results.idea_configuration.learning_rate
    strengths = [s for s in results.experiment.grid.strengths[results.idea] if s > 0]
    return {
        f"strength {s:g}": _curves(results, results.idea, Configuration(rate, s), "active")
        for s in strengths
    }


def limitations(results: Results) -> list[str]:
    """Return what these runs cannot show, each as a sentence."""
    s, runs = results.study, results.experiment
    found = [
        f"The primary comparison is of one track ({s.track}), one cell ({s.cell}) and one size "
        f"({s.hidden} units); part II varies each, one at a time, on fewer pairs, "
        "which find large effects only.",
        f"Its noise is of one structure ({s.noise}) and judged at one level ({s.sigma_test:g}).",
        f"Networks trained for {s.epochs} epochs on {s.n_train} sequences; longer training may "
        "order the arms differently.",
        "What mediates a benefit is read from correlations over variants, not from interventions "
        "on the mediator itself.",
    ]
    if not runs.bracketed:
        found.append("A chosen configuration lies on the edge of the widened tuning grid.")
    if diverged := int(runs.table.diverged.sum()):
        found.append(f"{diverged} runs diverged and count with the constant forecast's error.")
    return found


def _by_seed(runs: Experiment, arm: str, role: str, metric: str) -> NDArray[np.float64]:
    rows = runs.table[(runs.table.arm == arm) & (runs.table.role == role)]
    return np.asarray(rows.sort_values("seed")[metric], dtype=np.float64)


def _curves(
    results: Results, arm: str, configuration: Configuration, curve: str
) -> NDArray[np.float64]:
    study = results.study
    runs = [
        experiment.curves(study, configuration, arm, "tuning", seed)[curve]
        for seed in range(study.tuning_seeds)
    ]
    return np.concatenate(runs)
