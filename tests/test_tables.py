import re

import numpy as np
import pandas as pd
import pytest

from msstab import (
    downloads,
    evidence,
    families,
    judgement,
    results,
    selections,
    sensitivity,
    tables,
    verdict,
)
from msstab.report import original_report
from msstab.results import Results
from msstab.tuning import Configuration


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0021194, "0.00212"), (0, "0"), (1.23456e-7, "1.23e-07"), (float("nan"), "not a number")],
)
def test_numbers_are_short_and_readable(value: float, text: str) -> None:
    assert tables.number(value) == text


def test_comparisons_show_the_evidence_and_the_outcome_of_the_decision(
    tiny_results: Results,
) -> None:
    compared = [tiny_results.clean, tiny_results.noisy]
    frame = tables.comparisons(compared)
    for (_, row), comparison in zip(frame.iterrows(), compared, strict=True):
        e = comparison.evidence
        assert row["Outcome"] == comparison.decision.outcome.value
        assert row["Change"] == f"{100 * (e.ratio - 1):+.1f}%"
        assert row["Wins"] == f"{e.wins} of {e.n}"


def test_the_baselines_learning_rates_stand_beside_the_originals(tiny_results: Results) -> None:
    frame = tables.learning_rates(tiny_results, original_report()).set_index("Learning rate")
    assert list(frame.index) == ["0.01", "0.05"]
    assert frame.loc["0.01", "The original's test error"] == "0.00258"
    assert frame.loc["0.05", "The original's test error"] == "not run"


def test_tuning_shows_the_same_budget_for_every_arm(tiny_results: Results) -> None:
    frame = tables.tuning(tiny_results)
    assert frame["Configurations tried"].nunique() == 1
    assert list(frame["Arm"]) == 2 * ["baseline"] + 3 * ["spectral proxy"]
    runs = tiny_results.experiment
    choices = [runs.chosen, runs.penalised, runs.robust]
    chosen = [c["spectral_proxy"] for c in choices]
    assert list(frame["Strength"])[2:] == [f"{c.strength:g}" for c in chosen]
    assert list(frame["Learning rate"])[2:] == [f"{c.learning_rate:g}" for c in chosen]


def test_forecasters_are_means_over_the_confirmation_seeds(tiny_results: Results) -> None:
    frame = tables.forecasters(tiny_results)
    assert len(frame) == 4
    shown = frame["Test error (MSE)"].iloc[-1]
    assert shown == tables.number(tiny_results.clean.evidence.mean_baseline)


def test_the_rules_limits_stand_beside_its_figures(tiny_results: Results) -> None:
    frame = tables.prediction(tiny_results).set_index("Figure")
    assert frame.loc["Log-rmse", "Rule R1 asks"] == "at most 0.1"
    assert frame.loc["Networks compared", "All networks"] == str(
        tiny_results.mechanism.everywhere.n
    )


def test_every_rule_is_shown_with_its_outcome(tiny_results: Results) -> None:
    frame = tables.findings(tiny_results)
    names = [rule.partition(". ")[0] for rule in frame.Rule]
    assert names == ["R1", "R2", "R3", "R4"]
    for name, outcome, said in zip(names, frame.Outcome, frame.Figures, strict=True):
        assert tiny_results.mechanism.findings[name] == (outcome, said)


def test_candidates_are_ordered_by_what_they_explain(tiny_results: Results) -> None:
    frame = tables.mediators(tiny_results)
    made = judgement.mediators(tiny_results.experiment)
    explained = [made[name].explained for name in frame.Candidate]
    assert sorted(explained, reverse=True) == explained
    assert set(frame.Candidate) == set(judgement.MEDIATORS)


def test_arms_are_shown_with_their_own_comparisons(tiny_results: Results) -> None:
    own = tiny_results.arms["spectral_proxy"]
    (clean,) = tables.clean_errors(tiny_results).to_dict("records")
    (noisy,) = tables.noisy_errors(tiny_results).to_dict("records")
    runs = tiny_results.experiment
    for row, c in ((clean, runs.penalised), (noisy, runs.robust)):
        assert row["Arm"] == "spectral proxy"
        assert row["Strength"] == f"{c['spectral_proxy'].strength:g}"
        assert row["Pairs"] == "6"
    for shown, compared in (
        (clean["Clean error"], own.clean),
        (noisy["Error under noise"], own.noisy),
        (noisy["Clean error"], own.price),
        (tables.levels(tiny_results).loc[0, "Noise 0.2"], own.noisy),
    ):
        r = compared.evidence.ratios
        low, high = (100 * (bound - 1) for bound in r.interval)
        assert shown == f"{100 * (r.ratio - 1):+.0f}% [{low:+.0f}, {high:+.0f}]"
    assert noisy["Error under noise: outcome"] == own.noisy.decision.outcome.value


def test_each_question_has_its_own_adjusted_p(tiny_results: Results) -> None:
    own = tiny_results.arms["spectral_proxy"]
    other = own._replace(arm="weight_decay", clean=own.noisy, noisy=own.clean)
    runs = tiny_results.experiment

    def chosen_for_both(chosen: dict[str, Configuration]) -> dict[str, Configuration]:
        return {**chosen, other.arm: chosen[own.arm]}

    several = tiny_results._replace(
        arms={own.arm: own, other.arm: other},
        experiment=runs._replace(
            chosen=chosen_for_both(runs.chosen),
            penalised=chosen_for_both(runs.penalised),
            robust=chosen_for_both(runs.robust),
        ),
    )
    for table, question in ((tables.clean_errors, "clean"), (tables.noisy_errors, "noisy")):
        asked = {arm: getattr(c, question) for arm, c in several.arms.items()}
        adjusted = families.holm_across(asked)
        assert list(table(several)["p, Holm"]) == [f"{p:.2g}" for p in adjusted.values()]
    # With one arm there is nothing to adjust.
    p = own.clean.evidence.p_value
    assert list(tables.clean_errors(tiny_results)["p, Holm"]) == [f"{p:.2g}"]


def test_the_table_of_changes_counts_seeds_left_out(tiny_results: Results) -> None:
    frame = tables.changes_of_verdict(tiny_results.clean)
    varied = sensitivity.vary(tiny_results.clean)
    left_out = varied[varied.varied == sensitivity.SEED]
    assert frame.Outcome[0] == tiny_results.clean.decision.outcome.value
    assert frame["What is changed"][0] == "nothing (as judged)"
    last = frame[frame["What is changed"].str.startswith("one seed left out")]
    # Five pairs are too few for the level.
    assert list(last["What is changed"]) == ["one seed left out (6 of 6)"]
    assert list(last.Outcome) == ["inconclusive"]
    assert len(frame) == len(varied) - len(left_out) + 1


def test_the_table_of_selection_rules_shows_what_was_chosen_and_decided(
    tiny_results: Results,
) -> None:
    frame = tables.selection_rules(tiny_results)
    for question in ("Q1", "Q2"):
        made = selections.vary(tiny_results.experiment, tiny_results.idea, question)
        shown = frame[frame.Question == question].reset_index(drop=True)
        assert list(shown["Chosen by"]) == list(selections.RULES)
        ran = made.pairs > 0
        assert list(shown.Outcome[ran]) == list(made.outcome[ran])
        assert set(shown.Outcome[~ran]) <= {"not known"}
        judged = made.idea[0]
        assert shown.Penalised[0] == f"{judged.learning_rate:g}, strength {judged.strength:g}"
        assert shown.Baseline[0] == f"{made.baseline[0].learning_rate:g}"


def test_diverged_runs_are_counted_in_every_role(tiny_results: Results) -> None:
    table = tiny_results.table.copy()
    table.loc[(table.arm == "spectral_proxy") & (table.role == "robust"), "diverged"] = True
    changed = tiny_results._replace(experiment=tiny_results.experiment._replace(table=table))
    frame = tables.diverged_runs(changed).set_index("Arm")
    assert list(frame.columns) == [
        "Tuning",
        "Free choice",
        "Clean error",
        "Under noise",
        "Untrained",
    ]
    assert frame.loc["spectral proxy", "Under noise"] == "6 of 6"
    assert frame.loc["spectral proxy", "Clean error"] == "0 of 6"
    assert frame.loc["baseline", "Clean error"] == ""
    tried = table[(table.arm == "baseline") & (table.role == "tuning")]
    assert frame.loc["baseline", "Tuning"] == f"0 of {len(tried)}"
    assert frame.loc["untrained, gain 1", "Untrained"] == "0 of 6"


def test_the_scoring_of_diverged_runs_is_shown_with_its_outcomes(tiny_results: Results) -> None:
    runs = tiny_results.experiment
    table = runs.table.copy()
    lost = (table.arm == "spectral_proxy") & (table.role == "penalised") & (table.seed < 5)
    table.loc[lost, "diverged"] = True
    changed = tiny_results._replace(experiment=runs._replace(table=table))
    frame = tables.diverged_scoring(changed)
    assert list(frame.Pairs) == ["6", "1", "6", "6", "6", "6"]
    assert list(frame.Diverged) == 3 * ["5"] + 3 * ["0"]
    assert frame.Outcome[0] == tiny_results.clean.decision.outcome.value
    assert frame.Outcome[1] == "not decided"
    assert frame["Change of the error"][1] == ""


def test_interventions_say_how_often_and_at_what_cost(tiny_results: Results) -> None:
    (row,) = tables.interventions(tiny_results).to_dict("records")
    tuning = tiny_results.table.query("role == 'tuning' and strength > 0")
    assert row["Active (all strengths)"] == f"{tuning.hinge_active.mean():.0%}"
    # Twelve that tuned with a penalty, six that confirm for each question.
    assert row["Diverged"] == "0 of 24"
    assert float(row["Time of a training step"]) > 0


def test_the_originals_check_is_shown_for_every_group(tiny_results: Results) -> None:
    frame = tables.signatures(tiny_results)
    passes = frame["The original's check"] == "passes"
    assert list(passes) == list(results.signatures(tiny_results).confirmed)


def test_the_verdicts_answers_are_the_reports(tiny_results: Results) -> None:
    report = downloads.report(tiny_results)
    frame = tables.verdict(report)
    answers = dict(zip(frame.Question, frame.Answer, strict=True))
    assert answers["Outcome on clean error"] == report.practical_verdict
    assert answers["Did it work?"] == ("yes" if report.worked else "no")
    assert answers["Confidence, 0 to 10"] == str(report.confidence)
    assert all(frame.Why)


def test_every_question_is_shown_with_its_answer(tiny_results: Results) -> None:
    frame = tables.questions(downloads.report(tiny_results))
    assert list(frame.Outcome) == [
        c.decision.outcome.value for c in (tiny_results.clean, tiny_results.noisy)
    ]
    assert list(frame.Why) == [c.decision.reason for c in (tiny_results.clean, tiny_results.noisy)]


def test_a_shown_table_has_a_caption_scoped_headers_and_escaped_text() -> None:
    frame = pd.DataFrame({"a & b": ["<i>", "2"], "c": ["3", "4"]})
    markup = tables.show(frame, 'What "it" is')._repr_html_()
    assert "<figcaption>What &quot;it&quot; is</figcaption>" in markup
    assert len(re.findall('<th scope="col">', markup)) == 2
    assert "<th>" not in markup
    assert "a &amp; b" in markup
    assert "&lt;i&gt;" in markup
    assert "<i>" not in markup
    assert 'tabindex="0"' in markup


def test_the_evidence_gives_every_method_on_its_own_scale() -> None:
    rng = np.random.default_rng(0)
    baseline = np.exp(rng.normal(size=12))
    idea = 1.2 * baseline * np.exp(0.1 * rng.normal(size=12))
    e = evidence.summarise(baseline, idea, margin=0.05 * baseline.mean())
    frame = tables.evidence(e).set_index("Method")
    assert frame.loc["Mean change", "On ratios"] == f"{100 * (e.ratios.ratio - 1):+.1f}%"
    assert frame.loc["Mean change", "On differences"] == f"{e.percent(e.mean_difference):+.1f}%"
    low, high = (e.percent(bound) for bound in e.interval)
    assert frame.loc["t interval, 95%", "On differences"] == f"{low:+.1f}% to {high:+.1f}%"
    assert frame.loc["Sign-flip test (exact)", "On ratios"] == verdict.p_text(e.ratios.p_value)
    assert frame.loc["Effect found with 80% power", "On ratios"] == f"{e.ratios.mde_power80:.1f}%"
    assert not frame.isin(["nan%", "+nan%", "p = nan"]).any(axis=None)


def test_the_evidence_of_more_pairs_gives_its_monte_carlo_error() -> None:
    rng = np.random.default_rng(0)
    baseline = np.exp(rng.normal(size=60))
    e = evidence.summarise(baseline, 1.1 * baseline[::-1], margin=0.05 * baseline.mean())
    assert 0 < e.p_standard_error < 0.01
    said = f"Sign-flip test (Monte Carlo error {tables.number(e.p_standard_error, 1)})"
    assert said in set(tables.evidence(e).Method)
