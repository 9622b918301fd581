import numpy as np
import pytest
from drawn import assert_drawn

from msstab import agreements, figures, frontiers, judgement, results, trials
from msstab.results import Results
from msstab.svg import Picture
from msstab.verdict import TREE


def drawn(name: str, found: Results) -> Picture:
    tuning = found.table[found.table.role == "tuning"]
    own = tuning[tuning.arm == found.idea]
    match name:
        case "driven sequences":
            driven = found.study.model_copy(update={"track": "duffing"})
            return figures.sequences(trials.draw_data(driven, "tuning", 0).test, 0)
        case "sequences":
            return figures.sequences(trials.draw_data(found.study, "tuning", 0).test, 3)
        case "learning_curves":
            return figures.learning_curves(*results.learning_curves(found))
        case "tuning_curves":
            return figures.tuning_curves(own, found.idea_configuration, 0.01)
        case "hinge_activity":
            return figures.hinge_activity(results.hinge_activity(found))
        case "paired":
            return figures.paired(found.clean)
        case "tuning_panels":
            chosen = {arm: [c] for arm, c in found.experiment.chosen.items()}
            return figures.tuning_panels(tuning, chosen, 0.01)
        case "frontiers":
            return figures.frontiers(frontiers.frontiers(found.experiment), 0.2)
        case "levels":
            return figures.levels({found.idea: results.by_level(found, found.idea)})
        case "forced_variance":
            return figures.forced_variance(found.mechanism)
        case "changes":
            return figures.changes(found.mechanism)
        case "operator_control":
            return figures.operator_control(found.mechanism.control)
        case "breakdown":
            return figures.breakdown(judgement.breakdown(found.experiment), 0.1)
        case "budget_curves":
            return figures.budget_curves(tuning)
        case "power_curve":
            sd = found.clean.evidence.ratios.sd
            return figures.power_curve(sd, 256, [0.02, 0.1], sesoi=0.05, n_achieved=6)
        case "forest":
            return figures.forest(found.arms, found.idea, found.study.sesoi)
        case "performance_profile":
            errors = {"baseline": found.clean.baseline, found.idea: found.clean.idea}
            return figures.performance_profile(errors)
        case "decision_tree":
            return figures.decision_tree(found.clean.evidence.judged)
        case "signature":
            return figures.signature(found.table)
        case _:
            return figures.effects([found.clean, found.noisy], 0.05)


VARIANCES = ("predicted_variance", "observed_variance", "placebo_variance")
DRAWN: dict[str, tuple[str, ...]] = {
    "sequences": ("step", "value"),
    "driven sequences": ("step", "value"),
    "learning_curves": ("epoch", "training_error"),
    "tuning_curves": ("learning_rate", "validation_mse"),
    "hinge_activity": ("epoch", "active_percent"),
    "paired": ("baseline", "penalised", "change"),
    "tuning_panels": ("learning_rate", "validation_mse"),
    "frontiers": ("clean", "clean_low", "clean_high", "noisy", "noisy_low", "noisy_high"),
    "levels": ("noise_level", "change_percent", "low", "high"),
    "operator_control": ("gains", "predicted", "simulated", "without_noise"),
    "breakdown": ("noise_level", "log_rmse"),
    "signature": ("proxy_radius", "power_ratio"),
    "effects": ("change_percent", "low", "high"),
    "budget_curves": ("configurations", "expected_error"),
    "power_curve": ("pairs", "power"),
    "forest": ("ratio", "low", "high"),
    "performance_profile": ("factor", "baseline"),
}
"""Each figure, and the columns of its data that are coordinates in it."""

NAMES = (*DRAWN, "changes", "forced_variance", "decision_tree")


@pytest.mark.parametrize("name", DRAWN)
def test_the_numbers_beside_a_figure_are_those_it_shows(name: str, tiny_results: Results) -> None:
    assert_drawn(drawn(name, tiny_results), *DRAWN[name])


def test_predicted_variances_come_with_the_networks_they_are_of(tiny_results: Results) -> None:
    data = drawn("forced_variance", tiny_results).data
    judged = tiny_results.mechanism.networks
    assert data.judged.sum() == len(judged)
    assert len(data) == len(judged) + len(tiny_results.mechanism.others)
    assert data[data.judged][list(VARIANCES)].equals(judged[list(VARIANCES)])


def test_predicted_changes_are_factors(tiny_results: Results) -> None:
    made = judgement.Changes(*np.random.default_rng(0).normal(size=(3, 2, 4)))
    picture = figures.changes(tiny_results.mechanism._replace(changes=made))
    assert_drawn(picture, "predicted", "observed", "placebo")
    np.testing.assert_allclose(np.log(picture.data.observed), made.observed.ravel())


def test_the_trees_data_are_its_questions_and_the_way_taken(tiny_results: Results) -> None:
    data = drawn("decision_tree", tiny_results).data
    assert data.question.tolist() == [branch.question for branch in TREE[:-1]]
    asked = data[data.answer != ""]
    assert asked.answer.tolist() == ["no"] * (len(asked) - 1) + [asked.answer.iloc[-1]]


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_drawn_alike_twice_and_says_what_it_shows(
    name: str, tiny_results: Results
) -> None:
    first, again = drawn(name, tiny_results), drawn(name, tiny_results)
    assert first.svg == again.svg
    assert first.svg.startswith("<svg")
    assert len(first.alt) > 40
    assert first.alt.endswith(".")


def test_the_paired_figure_states_wins_mean_and_interval(tiny_results: Results) -> None:
    e = tiny_results.clean.evidence
    alt = figures.paired(tiny_results.clean).alt
    low, high = (100 * (bound - 1) for bound in e.ratios.interval)
    assert f"{e.wins} favour" in alt
    assert f"Mean change {100 * (e.ratio - 1):+.1f}%" in alt
    assert f"{low:+.1f}% to {high:+.1f}%" in alt


def test_pairs_without_logarithms_are_drawn_as_differences() -> None:
    pair = results.compare("error", [1.0, 2.0, 1.5], [0.0, 2.0, 1.0], alpha=0.05, sesoi=0.05)
    e = pair.evidence
    assert f"Mean change {e.percent(e.mean_difference):+.1f}%" in figures.paired(pair).alt


def test_effects_say_each_comparison_in_the_order_given(tiny_results: Results) -> None:
    alt = figures.effects([tiny_results.clean, tiny_results.noisy], 0.05).alt
    assert alt.index(tiny_results.clean.title) < alt.index(tiny_results.noisy.title)


def test_the_signature_figure_gives_the_range_of_observed_ratios(tiny_results: Results) -> None:
    shown = tiny_results.table[~tiny_results.table.role.isin(["tuning", "robust"])]
    low = np.quantile(shown.power_ratio, 0.025)
    assert f"between {low:.3f}" in figures.signature(tiny_results.table).alt


def test_a_breakdown_of_too_few_networks_is_drawn_without_curves() -> None:
    nothing = {"trained": {s: agreements.agreement([1.0], [1.0]) for s in (0.1, 0.2)}}
    assert "trained nan at 0.1" in figures.breakdown(nothing, 0.1).alt


def test_an_inspections_data_are_its_radii_and_variances() -> None:
    radii: dict[str, list[float]] = {"unit": [0.8, 0.9], "gain": []}
    variances: dict[str, list[float | None]] = {"unit": [0.01, 0.04], "gain": [0.02, None]}
    picture = figures.inspection(radii, [0.1, 0.2], variances, 0.1, None)
    assert_drawn(picture, "value")
    assert picture.data.quantity.tolist() == ["radius"] * 2 + ["output variance"] * 3
    assert picture.data.noise_level.tolist() == [0.1, 0.1, 0.1, 0.2, 0.1]
