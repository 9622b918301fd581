import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msstab.audit import Kind, Row, audit, to_frame
from msstab.evidence import summarise
from msstab.report import Arm, Report, build_report, read_report

ORIGINAL = Path(__file__).parents[1] / "msstab" / "data" / "stage2_report.json"


def original_rows() -> dict[str, Row]:
    return {row.quantity: row for row in audit(read_report(ORIGINAL))}


def clean_report(n: int = 10, effect: float = -0.1) -> Report:
    """A report without fault: paired arms that correlate, bracketed grids, equal budgets."""
    generator = np.random.default_rng(0)
    baseline = generator.uniform(0.8, 1.2, n)
    idea = baseline + generator.normal(effect, 0.02, n)
    trials = [
        ({"lr": lr, "penalty": penalty}, 1.01 + abs(lr - 0.01), 1.02 + abs(lr - 0.01) + k, 0)
        for lr in (0.001, 0.01, 0.1)
        for k, penalty in enumerate((0.1, 0.0, 1.0))
    ]
    return build_report(
        track="dynamics",
        model="gru_16",
        study={"alpha": 0.05},
        study_key="0123456789ab",
        versions={"numpy": "2.0"},
        baseline=Arm(
            {"lr": 0.01, "penalty": 0.0},
            [({**cfg, "penalty": 0.0}, *rest) for cfg, *rest in trials],  # type: ignore[misc]
            baseline,
        ),
        idea=Arm({"lr": 0.01, "penalty": 0.1}, trials, idea),
        evidence=summarise(baseline, idea, margin=0.05 * float(baseline.mean())),
        signature={
            "noise_sigma": 0.2,
            "predicted_lifted_rho_mean": 0.8,
            "observed_hidden_second_moment_ratio_mean": 0.81,
            "relative_error": 0.01 / 0.81,
            "confirmed": True,
            "source": "trained networks",
        },
        mechanism_ok=True,
        mechanism_reason="every rule holds",
        how_to_run="msstab build",
        limitations="one track",
    )


def changed(report: Report, change: Callable[[dict[str, Any]], None]) -> Report:
    content = json.loads(report.model_dump_json(exclude_unset=True))
    change(content)
    return Report.model_validate_json(json.dumps(content))


# ---- the original


@pytest.mark.parametrize(
    ("quantity", "kind", "words"),
    [
        ("number of pairs", Kind.AGREES, "0 of 4"),
        ("baseline: mean", Kind.AGREES, ""),
        ("baseline: std", Kind.AGREES, "divides by n"),
        ("baseline: standard deviation", Kind.DIFFERS, "n - 1"),
        ("idea: mean", Kind.AGREES, ""),
        ("idea: std", Kind.AGREES, ""),
        ("idea: standard deviation", Kind.DIFFERS, "n - 1"),
        ("mean difference", Kind.AGREES, ""),
        ("difference of pair 6", Kind.DIFFERS, "by 1.3e-12"),
        ("wins of the idea", Kind.AGREES, ""),
        ("p value", Kind.DIFFERS, "180 of 256"),
        ("correlation of the pairs", Kind.FINDING, "1.335 times"),
        ("mde", Kind.AGREES, "2.36462 standard errors; stated: 2.365"),
        ("mde at 80% power", Kind.DIFFERS, "53.1% power; one detected with 80% is 61.6%"),
        ("mde_rel_pct", Kind.AGREES, ""),
        ("mechanism: relative error", Kind.AGREES, "divided by the predicted value"),
        ("mechanism: divisor", Kind.FINDING, "divided by the prediction"),
        ("mechanism: confirmed", Kind.AGREES, ""),
        ("mechanism: trivial prediction", Kind.FINDING, "99.5 times less"),
        ("mechanism: error in log growth", Kind.FINDING, "0.024 and observed as 0.000241"),
        ("tuning budget", Kind.FINDING, "nobody can check"),
        ("baseline: best trial", Kind.AGREES, "best test score of 3 trials"),
        ("baseline: learning rate", Kind.FINDING, "edge"),
        ("baseline: tuning seeds", Kind.FINDING, "first 4 seeds"),
        ("verdict", Kind.AGREES, "could be chance"),
        ("worked", Kind.AGREES, ""),
        ("system verdict", Kind.AGREES, ""),
        ("pairs for the level", Kind.AGREES, "takes 6"),
        ("repeated values", Kind.AGREES, "no two networks"),
        ("comparison's words", Kind.AGREES, ""),
        ("idea: sweep", Kind.NOT_RECORDED, "without the sweep"),
        ("95% interval: low", Kind.NOT_RECORDED, "does not state"),
        ("95% interval: high", Kind.NOT_RECORDED, "does not state"),
        ("equivalence p", Kind.NOT_RECORDED, "margin"),
        ("verdict's words", Kind.NOT_RECORDED, ""),
        ("p in the verdict's words", Kind.NOT_RECORDED, ""),
        ("baseline: quoted mean", Kind.NOT_RECORDED, ""),
        ("idea: quoted mean", Kind.NOT_RECORDED, ""),
    ],
)
def test_what_the_original_says_recomputed(quantity: str, kind: Kind, words: str) -> None:
    row = original_rows()[quantity]
    assert row.kind is kind
    assert words in row.why


def test_every_row_of_the_original_is_accounted_for() -> None:
    assert len(original_rows()) == len(audit(read_report(ORIGINAL))) == 38


@pytest.mark.parametrize(
    ("quantity", "recomputed"),
    [
        ("baseline: standard deviation", 0.00076027),
        ("p value", 0.703125),
        ("correlation of the pairs", -0.33659),
        ("mde at 80% power", 0.0013811),
        ("mechanism: trivial prediction", 0.00024139),
        ("mechanism: error in log growth", 0.98993),
        ("baseline: tuning seeds", 0.0025760137650649995),
    ],
)
def test_recomputed_numbers_of_the_original(quantity: str, recomputed: float) -> None:
    assert original_rows()[quantity].recomputed == pytest.approx(recomputed, rel=1e-4)


def test_a_monte_carlo_p_is_placed_among_plausible_numbers_of_resamples() -> None:
    why = original_rows()["p value"].why
    # sqrt(0.703 * 0.297 / 4000) = 0.00722 and sqrt(0.703 * 0.297 / 20000) = 0.00323
    assert "2797 of 4000 (-0.5)" in why
    assert "13985 of 20000 (-1.2)" in why


# ---- any report


def test_a_clean_report_comes_out_clean() -> None:
    rows = audit(clean_report())
    assert {row.kind for row in rows} == {Kind.AGREES}
    names = [row.quantity for row in rows]
    assert len(set(names)) == len(names)
    assert {"95% interval: low", "equivalence p", "idea: penalty", "idea: tuning seeds"} <= {*names}


def put(*path: Any) -> Callable[[dict[str, Any]], None]:
    """Return a change that multiplies, flips or replaces what lies at a path."""

    def change(content: dict[str, Any]) -> None:
        inner: Any = content
        for part in path[:-1]:
            inner = inner[part]
        value = inner[path[-1]]
        if isinstance(value, bool):
            inner[path[-1]] = not value
        elif isinstance(value, str):
            inner[path[-1]] = "inconclusive"
        elif isinstance(value, int):
            inner[path[-1]] = value + 1
        else:
            inner[path[-1]] = value * (1 + 1e-7)

    return change


FIGURES = ("bench_report", "comparison")


@pytest.mark.parametrize(
    ("path", "quantity"),
    [
        (("bench_report", "n_seeds"), "number of pairs"),
        (("bench_report", "idea", "n"), "number of pairs"),
        (("bench_report", "baseline", "full", "mean"), "baseline: mean"),
        (("bench_report", "baseline", "full", "std"), "baseline: std"),
        (("bench_report", "idea", "std_ddof1"), "idea: standard deviation"),
        ((*FIGURES, "delta_mean"), "mean difference"),
        ((*FIGURES, "per_seed_diffs", 3), "difference of pair 4"),
        ((*FIGURES, "idea_wins"), "wins of the idea"),
        ((*FIGURES, "n_pairs"), "number of pairs"),
        ((*FIGURES, "p_value"), "p value"),
        ((*FIGURES, "mde"), "mde"),
        ((*FIGURES, "mde_power80"), "mde at 80% power"),
        ((*FIGURES, "mde_rel_pct"), "mde_rel_pct"),
        ((*FIGURES, "interval", 0), "95% interval: low"),
        ((*FIGURES, "interval", 1), "95% interval: high"),
        ((*FIGURES, "p_equivalence"), "equivalence p"),
        ((*FIGURES, "outcome"), "verdict"),
        ((*FIGURES, "system_worked"), "worked"),
        (("worked",), "worked"),
        (("practical_verdict",), "verdict"),
        (("bench_report", "mechanism_signature", "relative_error"), "mechanism: relative error"),
        (("bench_report", "baseline", "best_cfg", "lr"), "baseline: best trial"),
    ],
)
def test_a_single_altered_figure_is_found(path: tuple[Any, ...], quantity: str) -> None:
    rows = {row.quantity: row for row in audit(changed(clean_report(), put(*path)))}
    assert rows[quantity].kind is Kind.DIFFERS


def test_missing_differences_are_found() -> None:
    def drop(content: dict[str, Any]) -> None:
        content["bench_report"]["comparison"]["per_seed_diffs"].pop()

    rows = {row.quantity: row for row in audit(changed(clean_report(), drop))}
    assert rows["differences"].kind is Kind.DIFFERS


@pytest.mark.parametrize("k", [1, 2, 7, 10])
@pytest.mark.parametrize("arm", ["baseline", "idea"])
def test_tuning_on_the_seeds_of_the_confirmation_is_found(arm: str, k: int) -> None:
    def reuse(content: dict[str, Any]) -> None:
        part = content["bench_report"][arm]
        per_seed = part.get("full", part)["per_seed"]
        for trial in part["sweep"]:
            if trial["cfg"] == part["best_cfg"]:
                trial["mean"] = sum(per_seed[:k]) / k

    rows = {row.quantity: row for row in audit(changed(clean_report(), reuse))}
    assert rows[f"{arm}: tuning seeds"].kind is Kind.FINDING
    assert f"first {k} seeds" in rows[f"{arm}: tuning seeds"].why


@pytest.mark.parametrize(
    ("rates", "bracketed"),
    [((0.001, 0.01, 0.1), True), ((0.001, 0.01), False), ((0.01, 0.1), False), ((0.01,), False)],
)
def test_a_best_learning_rate_on_the_edge_is_found(
    rates: tuple[float, ...], bracketed: bool
) -> None:
    def narrow(content: dict[str, Any]) -> None:
        for arm in ("baseline", "idea"):
            part = content["bench_report"][arm]
            part["sweep"] = [t for t in part["sweep"] if t["cfg"]["lr"] in rates]

    rows = {row.quantity: row for row in audit(changed(clean_report(), narrow))}
    for arm in ("baseline", "idea"):
        assert rows[f"{arm}: learning rate"].agrees is bracketed
        assert rows[f"{arm}: learning rate"].recomputed == f"{rates[0]:g} to {rates[-1]:g}"


@pytest.mark.parametrize(("best", "bracketed"), [(0.0, True), (0.1, True), (1.0, False)])
def test_a_penalty_of_zero_is_no_edge_and_the_strongest_is(best: float, bracketed: bool) -> None:
    def choose(content: dict[str, Any]) -> None:
        content["bench_report"]["idea"]["best_cfg"]["penalty"] = best

    rows = {row.quantity: row for row in audit(changed(clean_report(), choose))}
    assert rows["idea: penalty"].agrees is bracketed


def test_the_best_trial_is_judged_on_validation_data_where_there_are_any() -> None:
    def contradict(content: dict[str, Any]) -> None:
        for trial in content["bench_report"]["baseline"]["sweep"]:
            trial["mean"] = 1 / trial["mean"]

    row = next(
        r for r in audit(changed(clean_report(), contradict)) if r.quantity.endswith("trial")
    )
    assert row.agrees
    assert "validation" in row.why


def test_unequal_budgets_are_found() -> None:
    def shorten(content: dict[str, Any]) -> None:
        content["bench_report"]["baseline"]["sweep"] = content["bench_report"]["baseline"]["sweep"][
            1:
        ]

    rows = {row.quantity: row for row in audit(changed(clean_report(), shorten))}
    assert (rows["tuning budget"].stated, rows["tuning budget"].recomputed) == (8, 9)
    assert rows["tuning budget"].kind is Kind.FINDING


@pytest.mark.parametrize(
    ("predicted", "observed", "trivial_ok", "log_ok"),
    [
        (0.5, 0.51, True, True),
        (1.02, 1.001, False, False),
        (1.0, 1.0, False, True),
        (0.9, 1.0, False, False),
    ],
)
def test_a_prediction_is_set_beside_the_trivial_one(
    predicted: float, observed: float, trivial_ok: bool, log_ok: bool
) -> None:
    def predict(content: dict[str, Any]) -> None:
        signature = content["bench_report"]["mechanism_signature"]
        signature["predicted_lifted_rho_mean"] = predicted
        signature["observed_hidden_second_moment_ratio_mean"] = observed
        signature["relative_error"] = abs(predicted - observed) / observed

    rows = {row.quantity: row for row in audit(changed(clean_report(), predict))}
    assert rows["mechanism: relative error"].agrees
    assert "divided by the observed value" in rows["mechanism: relative error"].why
    assert rows["mechanism: trivial prediction"].agrees is trivial_ok
    assert rows["mechanism: error in log growth"].agrees is log_ok


def test_random_signs_may_differ_by_their_own_error_only() -> None:
    report = clean_report(n=40, effect=-0.005)
    rows = {row.quantity: row for row in audit(report)}
    assert rows["p value"].agrees
    p = report.bench_report.comparison.p_value
    for shift, agrees in ((2, True), (8, False)):

        def move(content: dict[str, Any], shift: int = shift) -> None:
            error = (p * (1 - p) / 99_999) ** 0.5
            content["bench_report"]["comparison"]["p_value"] = p + shift * error

        rows = {row.quantity: row for row in audit(changed(report, move))}
        assert rows["p value"].agrees is agrees


def test_arms_that_never_differ_can_be_audited() -> None:
    def same(content: dict[str, Any]) -> None:
        bench = content["bench_report"]
        bench["idea"]["per_seed"] = bench["baseline"]["full"]["per_seed"]
        bench["comparison"]["p_value"] = 0.5

    rows = {row.quantity: row for row in audit(changed(clean_report(), same))}
    assert rows["verdict"].recomputed == "equivalent"
    assert rows["verdict"].kind is Kind.DIFFERS
    assert rows["p value"].recomputed == 1
    assert rows["p value"].why == "exact: 1024 of 1024 arrangements of signs"
    assert rows["mde at 80% power"].recomputed == 0


def test_the_level_and_margin_of_the_report_come_first() -> None:
    report = clean_report()
    assert all(row.agrees for row in audit(report, alpha=0.2, sesoi=0.5))
    # The original states neither; at so wide a margin its arms are equivalent.
    wide = {row.quantity: row for row in audit(read_report(ORIGINAL), sesoi=0.5)}
    assert wide["verdict"].recomputed == "equivalent"


# ---- the table


def test_table_has_the_columns_and_a_row_each() -> None:
    rows = audit(read_report(ORIGINAL))
    frame = to_frame(rows)
    assert list(frame.columns) == ["Quantity", "Stated", "Recomputed", "Agrees", "Why"]
    assert len(frame) == len(rows)
    words = {"agrees": "yes", "differs": "no", "finding": "finding"} | {
        "not recorded": "not recorded"
    }
    assert list(frame["Agrees"]) == [words[row.kind] for row in rows]


def test_table_shows_enough_digits_to_tell_differing_numbers_apart() -> None:
    frame = to_frame(audit(read_report(ORIGINAL))).set_index("Quantity")
    shown = {name: (row["Stated"], row["Recomputed"]) for name, row in frame.iterrows()}
    assert shown["p value"] == ("0.69925", "0.703125")
    assert shown["difference of pair 6"] == ("-6.81715332e-05", "-6.81715319e-05")
    assert frame.loc["correlation of the pairs", "Stated"] == "\N{EM DASH}"
    differing = frame[frame["Agrees"] == "no"]
    assert (differing["Stated"] != differing["Recomputed"]).all()
