"""Files of any origin: parts missing, of a wrong type, or of another layout."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_audit import ORIGINAL, clean_report

from msstab import downloads
from msstab.audit import AuditError, Kind, Row, audit, check, read, summary, to_json
from msstab.results import Results

WRONG: tuple[Any, ...] = (
    "many",
    [],
    {},
    [[]],
    True,
    -1.5,
    10**400,
    1e308,
    float("nan"),
    None,
    0,
    "\ud800",
)


def clean() -> Any:
    return json.loads(clean_report().model_dump_json(exclude_unset=True))


def kinds(content: object) -> dict[str, Kind]:
    rows = audit(check(content))
    found = {row.quantity: row.kind for row in rows}
    assert len(found) == len(rows)
    return found


def flags(content: object) -> set[str]:
    return {row.quantity for row in audit(check(content)) if row.flagged}


def fields(content: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    """Every field and every place in a list, however deep."""
    inner: Any = {}
    if isinstance(content, dict):
        inner = content.items()
    elif isinstance(content, list):
        inner = enumerate(content)
    for key, value in inner:
        yield (*path, key)
        yield from fields(value, *path, key)


def at(content: Any, path: tuple[Any, ...]) -> Any:
    for part in path:
        content = content[part]
    return content


# ---- any part may be missing or wrong


@pytest.mark.parametrize("source", ["clean", "original"])
def test_any_field_may_be_missing(source: str) -> None:
    text = ORIGINAL.read_text() if source == "original" else json.dumps(clean())
    before = flags(json.loads(text))
    for path in fields(json.loads(text)):
        if isinstance(path[-1], int):
            continue
        content = json.loads(text)
        del at(content, path[:-1])[path[-1]]
        if path == ("bench_report",):
            with pytest.raises(AuditError, match="bench_report: missing"):
                check(content)
            continue
        new = flags(content) - before
        # What is missing is no lie; but a budget, or the better estimate, must be shown.
        allowed = {
            "baseline": {"tuning budget"},
            "idea": {"tuning budget"},
            "sweep": {"tuning budget"},
            "std_ddof1": {f"{arm}: standard deviation" for arm in ("baseline", "idea")},
            "mde_power80": {"mde at 80% power"},
        }
        # The original's differences, which then stand in for the errors, hold one that is off.
        off = {"mean difference"} if source == "original" else set()
        assert new <= allowed.get(path[-1], set()) | off, path


@pytest.mark.parametrize("source", ["clean", "original"])
def test_any_value_may_be_anything(source: str) -> None:
    text = ORIGINAL.read_text() if source == "original" else json.dumps(clean())
    unusable = []
    for path in fields(json.loads(text)):
        for wrong in random.Random(str(path)).sample(WRONG, 4):
            content = json.loads(text)
            at(content, path[:-1])[path[-1]] = wrong
            try:
                rows = audit(check(content))
            except AuditError as error:
                unusable.append(str(error))
            else:
                json.dumps(to_json(rows), allow_nan=False)
    assert len(unusable) > 50
    assert {len(message.splitlines()) for message in unusable} == {1}


def test_two_fields_may_be_missing_at_once() -> None:
    text, chance = json.dumps(clean()), random.Random(0)
    paths = [p for p in fields(json.loads(text)) if isinstance(p[-1], str) and len(p) > 1]
    for _ in range(150):
        content = json.loads(text)
        for path in chance.sample(paths, 3):
            try:
                del at(content, path[:-1])[path[-1]]
            except KeyError:
                continue
        assert audit(check(content))


def test_fields_of_others_are_let_through() -> None:
    content = clean()
    for path in [(), ("bench_report",), ("bench_report", "idea"), ("bench_report", "comparison")]:
        at(content, path)["wandb_run"] = {"id": [1, None, {"x": float("nan")}]}
    assert flags(content) == set()


def test_a_missing_figure_shows_what_it_would_be() -> None:
    content = clean()
    del content["bench_report"]["comparison"]["interval"]
    rows = {row.quantity: row for row in audit(check(content))}
    row = rows["95% interval: low"]
    assert (row.kind, row.stated) == (Kind.NOT_RECORDED, None)
    assert row.recomputed == pytest.approx(clean()["bench_report"]["comparison"]["interval"][0])


def test_two_lists_of_errors_are_enough() -> None:
    bench = clean()["bench_report"]
    least = {
        "baseline": {"full": {"per_seed": bench["baseline"]["full"]["per_seed"]}},
        "idea": {"per_seed": bench["idea"]["per_seed"]},
        "comparison": {"p_value": bench["comparison"]["p_value"]},
    }
    # A report's figures may come without the envelope, and both arms in either layout.
    assert kinds(least)["p value"] is Kind.AGREES
    least["baseline"] = least["baseline"]["full"]
    assert kinds({"bench_report": least})["p value"] is Kind.AGREES
    assert flags(least) == {"tuning budget"}


def test_differences_alone_are_judged() -> None:
    content = clean()
    del content["bench_report"]["baseline"]["full"]["per_seed"]
    # Log ratios, which the report says it rests on, take the errors of both arms.
    assert kinds(content)["verdict"] is kinds(content)["log ratios: p value"] is Kind.NOT_RECORDED
    del content["bench_report"]["comparison"]["decided_on"]
    found = kinds(content)
    for name in ("p value", "mde", "mde at 80% power", "verdict", "equivalence p"):
        assert found[name] is Kind.AGREES
    assert found["baseline: mean"] is found["correlation of the pairs"] is Kind.NOT_RECORDED
    assert flags(content) == set()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "this is not JSON: "),
        ("", "this is not JSON: "),
        ("[" * 100_000, "nested too deeply"),
        ("[1]", "the file holds a list; allowed is an object"),
        ("{}", "bench_report: missing; it holds at least one of baseline"),
        ('{"bench_report": {"a": 1}}', "bench_report: missing"),
        ('{"bench_report": 3}', "bench_report = 3: it must be an object"),
        ('{"bench_report": {"idea": {"n": "8"}}}', "idea.n = '8': it must be a whole number"),
        ('{"idea": {"per_seed": [1, "x"]}}', "idea.per_seed[1] = 'x': it must be a number"),
        ('{"idea": {"per_seed": [1, null]}}', "idea.per_seed[1] = None: it must be a number"),
        ('{"idea": {"per_seed": [1, NaN]}}', "idea.per_seed[1] = nan: it must be a finite number"),
        ('{"idea": {"mean": true}}', "idea.mean = True: it must be a number"),
        ('{"idea": {"sweep": {}}}', "idea.sweep = {}: it must be a list"),
        ('{"idea": {}, "worked": "no"}', "worked = 'no': it must be true or false"),
        ('{"comparison": {"alpha": 5}}', "comparison.alpha = 5: it must be less than 0.5"),
        ('{"comparison": {"interval": [1]}}', "interval = [1]: it must be a list of two numbers"),
        ('{"idea": {"n": "a", "mean": "b"}}', "(1 more)"),
    ],
)
def test_an_unusable_file_is_explained_in_a_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(AuditError) as caught:
        audit(read(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_margin_that_no_error_can_improve_by_is_explained() -> None:
    content = clean()
    content["bench_report"]["comparison"]["margin"] = 50.0
    with pytest.raises(AuditError, match=r"margin = 50.0 is the baseline's whole error"):
        audit(check(content))


def test_a_file_of_bytes_and_one_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(AuditError, match="UTF-8"):
        read(path)
    path.write_bytes(b"\xef\xbb\xbf" + ORIGINAL.read_bytes())
    assert audit(read(path)) == audit(read(ORIGINAL))


# ---- no false alarms


def test_our_own_report_raises_no_false_alarm(tiny_results: Results, tmp_path: Path) -> None:
    downloads.write(tiny_results, tmp_path)
    rows = {row.quantity: row for row in audit(read(tmp_path / "bench_report.json"))}
    # Whether pairing helps six tiny networks is chance; that it is checked is not.
    assert {name for name, row in rows.items() if row.flagged} <= {"correlation of the pairs"}
    assert {row.quantity for row in rows.values() if row.kind is Kind.NOT_RECORDED} == set()
    assert summary([*rows.values()]).startswith(f"{len(rows)} checks: ")
    assert rows["mechanism: divisor"].stated == "predicted"


def test_rounded_figures_are_no_contradiction() -> None:
    content = clean()
    comparison = content["bench_report"]["comparison"]
    for part in (content["bench_report"]["baseline"]["full"], content["bench_report"]["idea"]):
        part["per_seed"] = [round(value, 5) for value in part["per_seed"]]
    assert flags(content) == set()
    for name in ("delta_mean", "mde", "mde_rel_pct", "mde_power80", "p_value"):
        comparison[name] = float(f"{comparison[name]:.3g}")
    assert flags(content) == set()
    comparison["mde_power80"] *= 1.02
    assert flags(content) == {"mde at 80% power"}


def test_where_higher_is_better_signs_turn() -> None:
    content = clean()
    bench = content["bench_report"]
    a, b = bench["baseline"]["full"], bench["idea"]
    a["per_seed"], b["per_seed"] = b["per_seed"], a["per_seed"]
    accuracies = {
        "metric_direction": "higher is better",
        "baseline": {"per_seed": a["per_seed"], "best_cfg": {"lr": 0.1}},
        "idea": {"per_seed": b["per_seed"], "best_cfg": {"lr": 0.1}},
        "comparison": {"system_worked": True, "idea_wins": 10},
    }
    for arm in ("baseline", "idea"):
        accuracies[arm]["sweep"] = [  # type: ignore[index]
            {"cfg": {"lr": rate}, "mean": mean} for rate, mean in ((0.01, 0.5), (0.1, 0.9), (1, 0))
        ]
    assert flags(accuracies) == set()
    accuracies["metric_direction"] = "lower is better"
    assert flags(accuracies) == {
        *("worked", "wins of the idea", "baseline: best trial", "idea: best trial")
    }


def test_configurations_may_have_any_keys() -> None:
    content = clean()
    idea = content["bench_report"]["idea"]
    rates = (0.01, 0.1, 1.0)
    idea["sweep"] = [
        {"cfg": {"learning_rate": r, "width": w, "optimizer": "adam"}, "mean": 1 + abs(r - 0.1) - w}
        for r in rates
        for w in (0.1, 0.2, 0.3)
    ]
    idea["best_cfg"] = {"learning_rate": 0.1, "width": 0.3, "optimizer": "adam", "epochs": 3}
    assert flags(content) == {"idea: width"}


def test_tests_of_others_are_recognised() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    content = clean()
    d = np.array(content["bench_report"]["comparison"]["per_seed_diffs"])
    d[:5] *= -0.4
    full, idea = content["bench_report"]["baseline"]["full"], content["bench_report"]["idea"]
    mixed = (np.array(full["per_seed"]) + d).tolist()
    for p, words in (
        (scipy_stats.ttest_1samp(d, 0).pvalue, "paired t test"),
        (scipy_stats.wilcoxon(d).pvalue, "Wilcoxon"),
    ):
        least = {
            "baseline": {"per_seed": full["per_seed"]},
            "idea": {"per_seed": mixed},
            "comparison": {"p_value": float(p)},
        }
        row = find(audit(check(least)), "p value")
        assert row.agrees
        assert words in row.why
    assert idea


def find(rows: list[Row], quantity: str) -> Row:
    return next(row for row in rows if row.quantity == quantity)
