"""Sentences whose words, and not only numbers, depend on the results."""

import numpy as np
import pandas as pd

from msstab import experiment, judgement, results
from msstab.report import Report
from msstab.results import Results
from msstab.tables import spoken
from msstab.verdict import Outcome, p_text


def skill(found: Results) -> str:
    """Say, as the end of a sentence, whether the tuned baseline beats the linear forecast."""
    rows = found.table[(found.table.role == "selected") & (found.table.arm == "baseline")]
    ratio = rows.ridge_mse.mean() / rows.test_mse.mean()
    if ratio > 1:
        return f"{ratio:.1f} times less than the linear forecast."
    return f"{1 / ratio:.1f} times more than the linear forecast, which it does not beat."


def reproduction(found: Results, original: Report) -> str:
    """Say, as the end of a sentence, whether the original's errors come out here."""
    tuning = found.table[(found.table.role == "tuning") & (found.table.arm == "baseline")]
    here = {
        c.learning_rate: r.test_mse.mean() for c, r in experiment.by_configuration(tuning).items()
    }
    pairs = [
        (entry.cfg.lr, here[entry.cfg.lr], entry.mean)
        for entry in original.bench_report.baseline.sweep
        if entry.cfg.lr in here
    ]
    if not pairs:
        return "none of the original's learning rates was run here."
    same = [np.floor(np.log10(own)) == np.floor(np.log10(stated)) for _, own, stated in pairs]
    ratios = ", ".join(f"{own / stated:.2g} at {rate:g}" for rate, own, stated in pairs)
    return (
        f"of the {len(pairs)} learning rates that the original ran too, {sum(same)} give an error "
        f"of the same decade (its error times {ratios})."
    )


def both_errors(found: Results) -> str:
    """Say how the judged arm came out on both questions."""
    parts = []
    for comparison in (found.clean, found.noisy):
        e = comparison.evidence.judged
        change = e.written(e.effect, "+", 0)
        parts.append(f"{comparison.decision.outcome.value} ({change}, {p_text(e.p_value)})")
    return (
        f"Networks trained with `{found.idea}` are compared with the baseline, each tuned for the "
        f"question: the clean error comes out {parts[0]}, and the error under noise of "
        f"{found.study.sigma_test:g} {parts[1]}."
    )


def every_arm(found: Results) -> str:
    """Say which arms lower and which raise the error, on both questions."""
    parts = []
    for what, chosen in (
        ("the clean error", {a: c.clean for a, c in found.arms.items()}),
        (
            f"the error under noise of {found.study.sigma_test:g}",
            {a: c.noisy for a, c in found.arms.items()},
        ),
    ):
        by_outcome = {
            outcome: [spoken(a) for a, c in chosen.items() if c.decision.outcome is outcome]
            for outcome in Outcome
        }
        better, worse = by_outcome[Outcome.BETTER], by_outcome[Outcome.WORSE]
        parts.append(
            f"Of {len(chosen)} arms, {len(better)} lower {what}{_named(better)}, "
            f"{len(worse)} raise it{_named(worse)}, {len(by_outcome[Outcome.EQUIVALENT])} are "
            f"equivalent to the baseline and {len(by_outcome[Outcome.INCONCLUSIVE])} inconclusive."
        )
    return " ".join(parts)


def planning(found: Results) -> str:
    """Say how many pairs the primary comparison was planned with, and what they turned out to see.

    The planned power is that for the spread of the tuning seeds, the achieved one that for the
    spread of the confirmation.
    """
    plan, study = found.experiment.plan, found.study
    ratios = found.clean.evidence.ratios
    return (
        f"Over the {plan.tuning_seeds} tuning seeds the logarithm of the ratio of paired errors "
        f"had a standard deviation of {plan.sd:.2f}; to detect an effect of {study.sesoi:.0%} with "
        f"{plan.power:.0%} power at that spread takes {plan.needed} pairs. {plan.seeds} run "
        f"({plan.reason}), with a planned power of {plan.power_planned:.0%}. Their own standard "
        f"deviation is {ratios.sd:.2f}, so that the power achieved is "
        f"{ratios.power_at_margin:.0%}, and an effect of {ratios.mde_power80:.1f}% is detected "
        f"with 80% power, one of {ratios.mde_power90:.1f}% with 90%."
    )


def never_active(found: Results) -> str:
    """Name the arms that never did anything, and are the baseline under another name."""
    tuning = found.table[(found.table.role == "tuning") & (found.table.strength > 0)]
    activity = tuning.groupby("arm", sort=False).hinge_active.max()
    idle = [spoken(str(arm)) for arm, share in activity.items() if share == 0]
    if not idle:
        return "Every arm was active in some of its runs."
    return (
        f"Never active at any strength: {', '.join(idle)}. Their networks are the baseline's, and "
        "their comparisons say nothing about the idea, only that networks here do not come near "
        f"the target of {found.study.target:g} that would set it off."
    )


def frontier_leaders(frontier: pd.DataFrame, sesoi: float) -> str:
    """Say which arm is lowest under noise at all, and which at a negligible clean price."""
    lowest = frontier.sort_values("noisy").iloc[0]
    lead = (
        f"The lowest error under noise is that of {spoken(lowest.arm)} at strength "
        f"{lowest.strength:g}: {lowest.noisy:.2f} times the baseline's, at {lowest.clean:.2f} "
        "times its clean error."
    )
    cheap = frontier[(frontier.clean <= 1 + sesoi) & (frontier.noisy < 1)].sort_values("noisy")
    if cheap.empty:
        return (
            f"{lead} Within {sesoi:.0%} of the baseline's clean error no arm lowers the error "
            "under noise."
        )
    best = cheap.iloc[0]
    return (
        f"{lead} Among those within {sesoi:.0%} of the baseline's clean error it is "
        f"{spoken(best.arm)} at strength {best.strength:g}, with {best.noisy:.2f} times the "
        f"baseline's error under noise and {best.clean:.2f} times its clean error."
    )


def strongest_mediator(found: Results) -> str:
    """Say which candidate explains most of the change under noise, and which least."""
    made = judgement.mediators(found.experiment)
    ranked = sorted(
        (name for name in made if np.isfinite(made[name].explained)),
        key=lambda name: -made[name].explained,
    )
    if len(ranked) < 2:
        return "Too few networks have learnt the track to tell what mediates a change."
    first, last = ranked[0], ranked[-1]
    return (
        f"Over {made[first].n} networks the {first} explains {made[first].explained:.0%} of the "
        f"variance of the change under noise, most of all candidates; the {last} explains "
        f"{made[last].explained:.0%}, least of all."
    )


def bracketing(found: Results) -> str:
    """Say how far the grid was widened, and whether that bracketed every choice."""
    study, grid = found.study, found.experiment.grid
    began, ended = _listed(study.learning_rates), _listed(grid.rungs)
    stayed = " and stayed so" if began == ended else f" and ended as {ended}"
    strengths = f"; each arm tries {grid.n_strengths} strengths"
    state = "is bracketed by worse ones" if found.experiment.bracketed else "still lies on an edge"
    every = "every choice" if found.experiment.bracketed else "a choice"
    return f"The ladder of learning rates began as {began}{stayed}{strengths}. Now {every} {state}."


def free_choice(found: Results) -> str:
    """Say what tuning did when it was free to switch the penalty off, and what is judged."""
    free, judged = found.free_choice, found.idea_configuration
    if free.strength == 0:
        lead = (
            "Given the choice, tuning switched the penalty off: its best strength is 0, at a "
            f"learning rate of {free.learning_rate:g}. A network without the penalty cannot judge "
            "it, so"
        )
    else:
        lead = f"Given the choice, tuning kept the penalty, at strength {free.strength:g}, and"
    return (
        f"{lead} the networks judged here are those of the best configuration *with* the penalty: "
        f"strength {judged.strength:g} at a learning rate of {judged.learning_rate:g}."
    )


def signature_check(found: Results) -> str:
    """Say for which groups of networks the original's check passes, and how it errs."""
    frame = results.signatures(found)
    passing = [
        f"“{spoken(arm)}”" + (f" ({role})" if role != "untrained" else "")
        for role, arm, confirmed in zip(frame.role, frame.arm, frame.confirmed, strict=True)
        if confirmed
    ]
    return (
        f"The check passes for {' and '.join(passing) or 'none of these groups'}. "
        f"The prediction “the ratio is 1” errs by at most {frame.trivial_error.max():.1%} in any "
        "group, and in log growth a step the check's own prediction errs by at least "
        f"{frame.log_growth_error.min():.0%}."
    )


def _named(arms: list[str]) -> str:
    return f" ({', '.join(arms)})" if arms else ""


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)
