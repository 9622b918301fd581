import json
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy import stats
from shelves import report_of

from msstab import comparing, svg
from msstab.books import BookError
from msstab.comparing import Row
from msstab.report import Decisive, Question, Report, original_report


def rows_by_name(first: Report, second: Report) -> dict[str, Row]:
    return {row.quantity: row for row in comparing.compare(first, second)}


def test_only_parameters_that_differ_are_shown() -> None:
    found = comparing.compare(
        report_of("a", hidden=32, cell="gru", new=1), report_of("b", hidden=16, cell="gru")
    )
    parameters = [row[1:] for row in found if row.group == "parameter"]
    assert parameters == [("hidden", 32, 16), ("new", 1, None)]


def test_effects_are_those_of_the_values_by_seed() -> None:
    first, second = report_of("a", effect=-0.1), report_of("b", effect=0.2)
    rows = rows_by_name(first, second)
    for side, report in enumerate((first, second)):
        bench = report.bench_report
        a, b = np.array(bench.baseline.full.per_seed), np.array(bench.idea.per_seed)
        logs = np.log(b / a)
        low, high = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
        expected = {
            "effect, % of the baseline's error": 100 * np.expm1(logs.mean()),
            "interval, from": 100 * np.expm1(low),
            "interval, to": 100 * np.expm1(high),
        }
        for name, value in expected.items():
            assert rows[name][2 + side] == pytest.approx(value)
        assert rows["pairs"][2 + side] == len(a)


def test_a_changed_verdict_is_said_and_an_unchanged_one_too() -> None:
    better, worse = report_of("a", effect=-0.1, hidden=8), report_of("b", effect=0.2, hidden=16)
    assert comparing.sentence(comparing.compare(better, worse)) == (
        "The outcome changes from better to worse; 1 parameter differs: hidden."
    )
    assert comparing.sentence(comparing.compare(worse, worse)) == (
        "Both come out worse; no recorded parameter differs."
    )
    many = report_of("c", effect=0.2, **{f"p{k}": k for k in range(20)})
    said = comparing.sentence(comparing.compare(report_of("b", effect=0.2), many))
    assert said.startswith("Both come out worse; 20 parameters differ: p0, p1,")
    assert said.endswith("p7, and more.")


def test_a_report_without_parameters_or_outcome_can_be_compared() -> None:
    rows = rows_by_name(original_report(), report_of("b", hidden=16))
    assert rows["study"][2:] == (None, "b")
    assert "hidden" not in rows
    assert rows["outcome"].first == "inconclusive"
    texts = {text[0]: text[1:] for text in comparing.to_texts(list(rows.values()))}
    assert texts["study"] == ("not recorded", "b", "yes")
    assert texts["mechanism confirmed"] == ("yes", "yes", "")


def test_every_question_that_a_report_answers_is_compared() -> None:
    first, second = report_of("a", effect=-0.1), report_of("b", effect=0.2)
    answered = [
        report.model_copy(
            update={
                "questions": {
                    "Q2": Question(
                        title="under noise",
                        track="dynamics",
                        n_pairs=10,
                        outcome=outcome,
                        reason="",
                        decided_on=decided_on(effect),
                    )
                }
            }
        )
        for report, outcome, effect in ((first, "better", -0.25), (second, "worse", 0.5))
    ]
    rows = rows_by_name(*answered)
    assert rows["Q2: outcome"][2:] == ("better", "worse")
    assert rows["Q2: effect, % of the baseline's error"][2:] == (-25, 50)
    assert rows_by_name(first, answered[1])["Q2: outcome"][2:] == (None, "worse")


def decided_on(effect: float) -> Decisive:
    numbers = ("p_value", "p_equivalence", "p_improvement", "mde_power80", "power_at_margin")
    return Decisive(
        scale="log ratios",
        effect=effect,
        interval=(effect, effect),
        margin=0.05,
        **dict.fromkeys(numbers, 0.5),
    )


def test_json_holds_no_number_that_json_cannot() -> None:
    rows = [Row("effect", "interval, to", math.inf, math.nan), Row("verdict", "outcome", "a", "a")]
    found = comparing.to_json(rows)
    json.dumps(found, allow_nan=False)
    assert found["rows"][0] == {
        "group": "effect",
        "quantity": "interval, to",
        "first": None,
        "second": None,
        "changed": True,
    }


def test_values_that_cannot_be_compared_are_refused() -> None:
    report = report_of("a")
    bench = report.bench_report
    full = bench.baseline.full.model_copy(update={"per_seed": (math.nan,) * 10})
    baseline = bench.baseline.model_copy(update={"full": full})
    broken = report.model_copy(
        update={"bench_report": bench.model_copy(update={"baseline": baseline})}
    )
    with pytest.raises(BookError, match="cannot be compared"):
        comparing.compare(report, broken)


def test_the_figure_shows_both_effects_and_stands_alone() -> None:
    reports = {"first": report_of("a", effect=-0.1), "second": report_of("b", effect=0.2)}
    picture = comparing.picture(reports)
    for name, report in reports.items():
        effect = comparing.paired(report).judged.effect
        assert f"{name}: {100 * effect:+.1f}%" in picture.alt
    text = svg.standalone(picture)
    root = ET.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "@media (prefers-color-scheme:dark){:root{color:" in text
    assert "http" not in text.replace("http://www.w3.org/", "")
