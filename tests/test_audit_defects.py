"""Files with one defect each, and the one flag that it raises."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from test_audit import ORIGINAL, clean_report

from msstab.audit import Kind, Row, audit, check, read

Change = Callable[[dict[str, Any]], None]


def flagged(content: Any) -> dict[str, Row]:
    return {row.quantity: row for row in audit(check(content)) if row.flagged}


def clean(n: int = 10, effect: float = -0.1) -> Any:
    return json.loads(clean_report(n, effect).model_dump_json(exclude_unset=True))


def put(path: str, value: Any) -> Change:
    """Return a change that sets what lies at a dotted path below bench_report, or above it."""

    def change(content: dict[str, Any]) -> None:
        *parts, last = path.split(".")
        inner: Any = content if path.startswith("/") else content["bench_report"]
        for part in parts:
            inner = inner[part]
        inner[last.removeprefix("/")] = value

    return change


def drop(path: str) -> Change:
    def change(content: dict[str, Any]) -> None:
        *parts, last = path.split(".")
        inner: Any = content["bench_report"]
        for part in parts:
            inner = inner[part]
        del inner[last]

    return change


def both(*changes: Change) -> Change:
    def change(content: dict[str, Any]) -> None:
        for one in changes:
            one(content)

    return change


def as_ddof_0(content: dict[str, Any]) -> None:
    del content["bench_report"]["idea"]["std_ddof1"]


def only_rates(*rates: float) -> Change:
    def change(content: dict[str, Any]) -> None:
        for part in (content["bench_report"]["baseline"], content["bench_report"]["idea"]):
            part["sweep"] = [t for t in part["sweep"] if t["cfg"]["lr"] in rates]

    return change


def strongest(content: dict[str, Any]) -> None:
    idea = content["bench_report"]["idea"]
    idea["sweep"] = [t for t in idea["sweep"] if t["cfg"]["penalty"] <= 0.1]
    # As many trials as the baseline's: the learning rates are tried twice more.
    idea["sweep"] += [
        {"cfg": {"lr": lr, "penalty": 0.0}, "mean": 3.0, "validation_mean": 3.0}
        for lr in (0.002, 0.02, 0.2)
    ]


def reused(content: dict[str, Any]) -> None:
    idea = content["bench_report"]["idea"]
    best = next(t for t in idea["sweep"] if t["cfg"] == idea["best_cfg"])
    best["mean"] = sum(idea["per_seed"][:4]) / 4


def reused_values(content: dict[str, Any]) -> None:
    idea = content["bench_report"]["idea"]
    idea["sweep"][5]["per_seed"] = [9.5, idea["per_seed"][7]]


def half_width_as_mde(content: dict[str, Any]) -> None:
    del content["bench_report"]["comparison"]["mde_power80"]


def unequal(content: dict[str, Any]) -> None:
    full = content["bench_report"]["baseline"]["full"]
    # The mean of the others, so that their mean follows still.
    full["per_seed"].append(sum(full["per_seed"]) / 10)
    for name in ("std", "std_ddof1"):
        del full[name]


@pytest.mark.parametrize(
    ("change", "quantity", "words"),
    [
        (only_rates(0.001, 0.01), "learning rate", "edge"),
        (only_rates(0.01, 0.1), "learning rate", "edge"),
        (strongest, "idea: penalty", "edge"),
        (reused, "idea: tuning seeds", "first 4 seeds"),
        (reused_values, "idea: tuning seeds", "1 values of the sweep"),
        (drop("idea.sweep"), "tuning budget", "the idea's sweep"),
        (drop("baseline.sweep"), "tuning budget", "the sweep of baseline"),
        (as_ddof_0, "idea: standard deviation", "n - 1"),
        (half_width_as_mde, "mde at 80% power", "power; one detected with"),
        (put("comparison.p_value", 0.0), "p value", "p lies above 0"),
        (put("comparison.p_value", 1.5), "p value", "p lies above 0"),
        (put("comparison.p_value", 1e-5), "p value", "below 0.00195, the least that 10 pairs"),
        (put("comparison.p_value", 0.0337), "p value", "exact: 2 of 1024"),
        (put("comparison.delta_mean", -0.0999), "mean difference", "idea - baseline"),
        (put("comparison.mde_rel_pct", 12.0), "mde_rel_pct", "percent"),
        (put("comparison.interval", [-0.2, -0.01]), "95% interval", "Student"),
        (put("comparison.idea_wins", 9), "wins of the idea", "lower"),
        (put("comparison.mde", 0.5), "mde", "stated: "),
        (put("idea.mean", 0.5), "idea: mean", "mean of the seeds"),
        (put("idea.std", 0.5), "idea: std", "of 10 values"),
        (unequal, "number of pairs", "11 baseline and 10 idea values do not pair up"),
        (put("comparison.decided_on.effect", -0.12), "log ratios: effect", "by seed"),
        (put("comparison.decided_on.interval", [-0.2, -0.01]), "log ratios", "by seed"),
        (put("comparison.decided_on.p_value", 0.03), "log ratios: p value", "by seed"),
        (put("comparison.decided_on.p_equivalence", 0.2), "log ratios: equivalence p", "by seed"),
        (put("comparison.decided_on.p_improvement", 0.2), "log ratios: improvement p", "by seed"),
        (put("comparison.decided_on.margin", 0.02), "log ratios: margin", "by seed"),
        (put("comparison.decided_on.mde_power80", 0.3), "log ratios: mde at 80% power", "by seed"),
        (
            put("comparison.decided_on.power_at_margin", 0.3),
            "log ratios: power at the margin",
            "by seed",
        ),
        (put("mechanism_signature.relative_error", 0.05), "mechanism: relative error", "neither"),
        (put("/practical_verdict", "worse"), "verdict", "differs from zero"),
        (put("/worked", False), "worked", "where better is shown"),
        (put("/system_verdict", "partial"), "system verdict", "supported"),
        (put("comparison.verdict", "no significant win"), "comparison's words", "a gain"),
        (put("/verdict", "These runs cannot tell."), "verdict's words", "a gain"),
        (put("/verdict", "It lowers the test error (p = 0.03)."), "p in the verdict's words", ""),
        (put("/metrics", {"idea": "10-seed error mean=0.5."}), "idea: quoted mean", "mean"),
    ],
)
def test_one_defect_raises_one_flag(change: Change, quantity: str, words: str) -> None:
    content = clean()
    assert flagged(content) == {}
    change(content)
    found = flagged(content)
    twice = {
        "learning rate": {"baseline: learning rate", "idea: learning rate"},
        "95% interval": {"95% interval: low", "95% interval: high"},
        "log ratios": {"log ratios: low", "log ratios: high"},
    }
    assert set(found) == twice.get(quantity, {quantity})
    assert words in found[min(found)].why


def test_the_outcome_is_recomputed_on_the_scale_that_is_stated() -> None:
    # Nine pairs improve by a fifth; the tenth, a thousand times larger, is a tenth worse.
    baseline = np.append(np.random.default_rng(0).uniform(0.9, 1.1, 9), 1000.0)
    idea = baseline * np.append(np.full(9, 0.8), 1.1) * np.linspace(0.99, 1.01, 10)
    logs, differences = np.log(idea / baseline), idea - baseline
    exact: dict[str, Any] = {"n_resamples": np.inf, "permutation_type": "samples"}
    small = [stats.permutation_test((d,), np.mean, **exact).pvalue for d in (logs, differences)]
    assert small[0] < 0.05 < small[1]
    content: dict[str, Any] = {
        "practical_verdict": "better",
        "bench_report": {
            "baseline": {"per_seed": baseline.tolist()},
            "idea": {"per_seed": idea.tolist()},
            "comparison": {"decided_on": {"scale": "log ratios", "p_value": small[0]}},
        },
    }
    assert not {"verdict", "log ratios: p value"} & set(flagged(content))
    decided = content["bench_report"]["comparison"]["decided_on"]
    decided["scale"] = "differences"
    assert {"verdict", "differences: p value"} <= set(flagged(content))
    decided["p_value"], content["practical_verdict"] = small[1], "inconclusive"
    assert not {"verdict", "differences: p value"} & set(flagged(content))
    # A file without the field, as the original, is judged on differences.
    del content["bench_report"]["comparison"]["decided_on"]
    assert "verdict" not in flagged(content)
    content["practical_verdict"] = "better"
    assert "verdict" in flagged(content)


def test_an_idea_chosen_among_positive_strengths_is_not_blamed_for_it() -> None:
    content = clean()
    idea = content["bench_report"]["idea"]
    none = next(t for t in idea["sweep"] if t["cfg"] == {"lr": 0.01, "penalty": 0.0})
    none["validation_mean"] = 0.5
    assert flagged(content) == {}
    idea["best_cfg"]["lr"] = 0.001
    assert "idea: best trial" in flagged(content)


def test_an_error_divided_by_the_prediction_must_say_so() -> None:
    content = clean()
    signature = content["bench_report"]["mechanism_signature"]
    signature["relative_error"] = 0.01 / 0.8
    assert set(flagged(content)) == {"mechanism: divisor"}
    signature["relative_to"] = "predicted"
    assert flagged(content) == {}
    signature["relative_to"] = "observed"
    assert set(flagged(content)) == {"mechanism: relative error"}


def test_a_mechanism_check_that_any_network_passes_is_found_where_it_is_claimed() -> None:
    content = clean()
    signature = content["bench_report"]["mechanism_signature"]
    signature |= {
        "predicted_lifted_rho_mean": 1.02,
        "observed_hidden_second_moment_ratio_mean": 1.001,
        "relative_error": 0.019 / 1.001,
    }
    assert set(flagged(content)) == {
        *("mechanism: trivial prediction", "mechanism: error in log growth")
    }
    signature["confirmed"] = False
    assert flagged(content) == {}


def test_a_confirmation_in_spite_of_a_large_error_is_found() -> None:
    content = clean()
    signature = content["bench_report"]["mechanism_signature"]
    signature |= {"predicted_lifted_rho_mean": 0.3, "relative_error": 0.51 / 0.81}
    assert "mechanism: confirmed" in flagged(content)
    assert flagged(clean()) == {}


def test_too_few_pairs_for_the_level_are_found() -> None:
    content = clean(n=5)
    found = flagged(content)
    assert set(found) == {"pairs for the level"}
    assert "p = 0.062 at the least; p <= 0.05 takes 6" in found["pairs for the level"].why


@pytest.mark.parametrize(
    ("idea", "words"),
    [
        (lambda a, b: np.concatenate([b[:1], b[:-1]]), "idea repeats 1 of its 10 values"),
        (lambda a, b: a, "in 10 of 10 pairs the idea's value is the baseline's own"),
        (lambda a, b: np.concatenate([a[:2], b[2:]]), "in 2 of 10 pairs"),
        (lambda a, b: a - 0.1, "every pair differs by the same amount"),
    ],
)
def test_values_that_chance_would_not_give_are_found(
    idea: Callable[[Any, Any], Any], words: str
) -> None:
    bench = clean()["bench_report"]
    a, b = (np.array(v) for v in (bench["baseline"]["full"]["per_seed"], bench["idea"]["per_seed"]))
    content = {"baseline": {"per_seed": a.tolist()}, "idea": {"per_seed": idea(a, b).tolist()}}
    found = flagged(content)
    assert words in found["repeated values"].why
    assert set(found) <= {"repeated values", "tuning budget", "correlation of the pairs"}


def test_counts_that_coincide_are_not_suspicious() -> None:
    content = {"baseline": {"per_seed": [0.91, 0.92, 0.91]}, "idea": {"per_seed": [0.92, 0.9, 0.9]}}
    assert "repeated values" not in flagged(content)


@pytest.mark.parametrize(
    ("comparison", "found"),
    [
        ({"interval": [-0.2, 0.1], "system_worked": True}, {"worked"}),
        ({"interval": [-0.2, -0.1], "system_worked": True}, set()),
        (
            {"p_value": 0.2, "delta_mean": -0.1, "verdict": "significant win"},
            {"comparison's words"},
        ),
        ({"p_value": 0.01, "delta_mean": -0.1, "verdict": "significant win"}, set()),
        ({"p_value": 0.001, "n_pairs": 8}, {"p value"}),
        ({"p_value": 0.01, "n_pairs": 8}, set()),
        ({"n_pairs": 4}, {"pairs for the level"}),
    ],
)
def test_stated_figures_alone_can_contradict_each_other(
    comparison: dict[str, Any], found: set[str]
) -> None:
    assert set(flagged({"comparison": comparison})) == found | {"tuning budget"}


def test_a_gain_is_none_the_less_one_for_a_margin_that_nobody_stated() -> None:
    content = clean(effect=-0.02)
    content["worked"] = content["bench_report"]["comparison"]["system_worked"] = True
    content["practical_verdict"] = content["bench_report"]["comparison"]["outcome"] = "better"
    for name in ("verdict", "metrics"):
        del content[name]
    content["bench_report"]["comparison"]["verdict"] = "significant win"
    content["system_verdict"] = "supported"
    assert {"worked", "verdict"} <= set(flagged(content))
    del content["bench_report"]["comparison"]["margin"]
    assert flagged(content) == {}


def test_the_original_raises_these_flags_and_no_others() -> None:
    rows = audit(read(ORIGINAL))
    assert {row.quantity for row in rows if row.kind is Kind.DIFFERS} == {
        "baseline: standard deviation",
        "idea: standard deviation",
        "difference of pair 6",
        "p value",
        "mde at 80% power",
    }
    assert {row.quantity for row in rows if row.kind is Kind.FINDING} == {
        "correlation of the pairs",
        "mechanism: divisor",
        "mechanism: trivial prediction",
        "mechanism: error in log growth",
        "tuning budget",
        "baseline: learning rate",
        "baseline: tuning seeds",
    }
