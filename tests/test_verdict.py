import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from outcomes import BASELINE, NOISE
from outcomes import evidence_for as whole_evidence_for

from msstab import verdict
from msstab.evidence import Judged, Scale, summarise
from msstab.report import read_report
from msstab.verdict import Outcome

ORIGINAL = Path(__file__).parents[1] / "msstab" / "data" / "stage2_report.json"


def evidence_for(outcome: Outcome) -> Judged:
    return whole_evidence_for(outcome).judged


# ---- the tree


@pytest.mark.parametrize("outcome", Outcome)
def test_each_outcome_is_reached(outcome: Outcome) -> None:
    decision = verdict.decide(evidence_for(outcome))
    assert decision.outcome is outcome
    assert decision.reason.endswith(".")
    assert decision.reason.count(". ") == 0


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_too_few_pairs_cannot_decide_and_say_how_many_would(n: int) -> None:
    for shift in (-0.5, 0.0):
        idea = BASELINE[:n] + shift
        decision = verdict.decide(summarise(BASELINE[:n], idea, margin=0.05).judged)
        assert decision.outcome is Outcome.INCONCLUSIVE
        assert "at least 6 are needed" in decision.reason
        assert f"{2 / 2**n:.3g}" in decision.reason


def test_six_pairs_can_decide() -> None:
    e = summarise(BASELINE[:6], BASELINE[:6] - 0.5, margin=0.05).judged
    assert verdict.decide(e).outcome is Outcome.BETTER
    strict = summarise(BASELINE[:6], BASELINE[:6] - 0.5, margin=0.05, alpha=0.01).judged
    assert verdict.decide(strict).outcome is Outcome.INCONCLUSIVE
    assert "at least 8 are needed" in verdict.decide(strict).reason


def test_equivalence_comes_before_a_difference_and_mentions_it() -> None:
    small = summarise(BASELINE, BASELINE - 0.01 + NOISE / 10, margin=0.05).judged
    assert small.p_value <= 0.05
    decision = verdict.decide(small)
    assert decision.outcome is Outcome.EQUIVALENT
    assert "also differs from zero" in decision.reason
    assert "does not differ from zero" in verdict.decide(evidence_for(Outcome.EQUIVALENT)).reason


def test_identical_arms_are_equivalent() -> None:
    decision = verdict.decide(summarise(BASELINE, BASELINE, margin=0.05).judged)
    assert decision.outcome is Outcome.EQUIVALENT


def test_level_itself_counts_as_rejection() -> None:
    e = dataclasses.replace(evidence_for(Outcome.BETTER), p_value=0.05)
    assert verdict.decide(e).outcome is Outcome.BETTER
    above = dataclasses.replace(e, p_value=math.nextafter(0.05, 1))
    assert verdict.decide(above).outcome is Outcome.INCONCLUSIVE
    equivalent = dataclasses.replace(above, p_equivalence=0.05)
    assert verdict.decide(equivalent).outcome is Outcome.EQUIVALENT


def test_inconclusive_compares_what_is_detectable_with_what_matters() -> None:
    e = evidence_for(Outcome.INCONCLUSIVE)
    reason = verdict.decide(e).reason
    assert f"detect a change of {100 * e.mde_power80:.0f}% with 80% power" in reason
    assert f"smallest effect of interest is {100 * e.margin:.1f}%" in reason


def test_the_original_is_inconclusive_as_it_said() -> None:
    report = read_report(ORIGINAL)
    bench = report.bench_report
    baseline = np.array(bench.baseline.full.per_seed)
    whole = summarise(baseline, bench.idea.per_seed, margin=0.05 * baseline.mean())
    assert verdict.decide(whole.judged).outcome == report.practical_verdict
    # The original judged differences.
    e = whole.on(Scale.DIFFERENCES)
    decision = verdict.decide(e)
    assert decision.outcome == report.practical_verdict
    judgement = verdict.combine(decision, e, bool(report.mechanism_ok))
    assert judgement.system_verdict == report.system_verdict
    assert judgement.worked == report.worked
    # An improvement by 5% is excluded with 1 - 0.274 only.
    assert judgement.confidence == 7


def test_heavy_tails_do_not_hide_what_ratios_show() -> None:
    # Every network improves by about a tenth; one pair of huge errors drowns it in differences.
    baseline = np.array([*BASELINE, 1000.0, 900.0])
    idea = baseline * (0.9 + np.append(NOISE, [0.0, 0.0]) / 2)
    idea[-1] = 990.0
    e = summarise(baseline, idea, margin=0.05 * baseline.mean())
    assert verdict.decide(e.on(Scale.DIFFERENCES)).outcome is Outcome.INCONCLUSIVE
    assert verdict.decide(e.judged).outcome is Outcome.BETTER
    assert "geometric mean ratio" in verdict.decide(e.judged).reason


def test_errors_without_logarithms_are_judged_by_their_differences() -> None:
    e = summarise([0.0, *BASELINE], [0.1, *(BASELINE - 0.5)], margin=0.05)
    assert e.judged.scale is Scale.DIFFERENCES
    assert e.judged.effect == pytest.approx(e.mean_difference / e.mean_baseline)
    decision = verdict.decide(e.judged)
    assert decision.outcome is Outcome.BETTER
    assert "mean difference" in decision.reason


# ---- fields and prose


@pytest.mark.parametrize(
    ("outcome", "mechanism_ok", "system"),
    [
        (Outcome.BETTER, True, "supported"),
        (Outcome.BETTER, False, "partial"),
        (Outcome.WORSE, True, "partial"),
        (Outcome.WORSE, False, "refuted"),
        (Outcome.EQUIVALENT, True, "partial"),
        (Outcome.EQUIVALENT, False, "refuted"),
        (Outcome.INCONCLUSIVE, True, "partial"),
        (Outcome.INCONCLUSIVE, False, "partial"),
    ],
)
def test_outcome_and_mechanism_give_the_fields(
    outcome: Outcome, mechanism_ok: bool, system: str
) -> None:
    e = evidence_for(outcome)
    judgement = verdict.combine(verdict.decide(e), e, mechanism_ok)
    assert judgement.system_verdict == system
    assert judgement.practical_verdict == outcome.value
    assert judgement.worked is (outcome is Outcome.BETTER)
    assert judgement.mechanism_ok == mechanism_ok
    assert judgement.system_judged is True
    reasons = judgement.reasons
    assert set(reasons) == {*judgement._fields} - {"system_judged", "reasons"}
    assert all(reason.endswith(".") for reason in reasons.values())
    assert outcome.value in reasons["system_verdict"]
    assert ("not confirmed" in reasons["system_verdict"]) is not mechanism_ok
    assert reasons["practical_verdict"] == verdict.decide(e).reason


@pytest.mark.parametrize(
    ("p", "confidence"), [(1.0, 0), (0.9, 1), (0.703125, 2), (0.3, 7), (0.05, 9), (1e-5, 9)]
)
def test_confidence_is_ten_times_one_minus_p_rounded_down(p: float, confidence: int) -> None:
    better = dataclasses.replace(evidence_for(Outcome.BETTER), p_value=p, p_improvement=0.5)
    worse = dataclasses.replace(better, p_value=0.5, p_improvement=p)
    won = verdict.Decision(Outcome.BETTER, "")
    assert verdict.combine(won, better, True).confidence == confidence
    for outcome in set(Outcome) - {Outcome.BETTER}:
        lost = verdict.Decision(outcome, "")
        assert verdict.combine(lost, worse, True).confidence == confidence


def test_headline_is_one_sentence_with_the_numbers() -> None:
    e = evidence_for(Outcome.BETTER)
    text = verdict.headline(verdict.decide(e), e, "rule R1 is not discriminating.")
    assert text.startswith("The penalty lowers the test error")
    assert text.endswith("; rule R1 is not discriminating.")
    assert text.count(". ") == 0
    low, high = (100 * bound for bound in e.interval)
    for number in (f"p = {e.p_value:.2g}", "10 pairs", f"{low:+.0f}% to {high:+.0f}%"):
        assert number in text
    assert f"geometric mean ratio {100 * e.effect:+.0f}%" in text


def test_sentences_leave_out_percentages_of_nothing() -> None:
    e = summarise(BASELINE - 2, BASELINE - 2.2, margin=0.05).judged
    assert e.scale is Scale.DIFFERENCES
    assert e.effect == pytest.approx(-0.2)
    text = verdict.decide(e).reason + verdict.headline(verdict.decide(e), e, "yes")
    assert "nan" not in text


@pytest.mark.parametrize(
    ("p", "text"), [(0.703125, "p = 0.7"), (0.0078125, "p = 0.0078"), (1e-5, "p < 0.0001")]
)
def test_p_values_are_written_for_readers(p: float, text: str) -> None:
    assert verdict.p_text(p) == text


def test_the_tree_decides_and_its_last_branch_always_holds() -> None:
    for outcome in Outcome:
        e = evidence_for(outcome)
        branch = verdict.TREE[verdict.branch_taken(e)]
        assert branch.outcome is verdict.decide(e).outcome is outcome
        assert branch.reason(e) == verdict.decide(e).reason
        assert verdict.TREE[-1].holds(e)
    assert {branch.outcome for branch in verdict.TREE} == set(Outcome)
    assert all(branch.question.endswith("?") for branch in verdict.TREE[:-1])


def test_the_figures_beside_a_question_are_the_evidences() -> None:
    e = evidence_for(Outcome.BETTER)
    readings = [branch.reading(e) for branch in verdict.TREE]
    assert readings[0] == "10 pairs, 6 needed"
    assert readings[1].endswith(verdict.p_text(e.p_equivalence))
    assert readings[2].endswith(verdict.p_text(e.p_value))
    assert readings[3] == f"geometric mean ratio {100 * e.effect:+.0f}%"


def test_a_p_that_is_not_a_number_decides_nothing() -> None:
    e = dataclasses.replace(evidence_for(Outcome.BETTER), p_value=math.nan, p_equivalence=math.nan)
    assert verdict.decide(e).outcome is Outcome.INCONCLUSIVE
