import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
import pytest
from outcomes import BASELINE, SHIFTS, evidence_for

from msstab.report import Arm, Report, ReportError, build_report, read_report, write_report
from msstab.verdict import Outcome

ORIGINAL = Path(__file__).parents[1] / "msstab" / "data" / "stage2_report.json"
WORDS = {
    Outcome.BETTER: "lowers",
    Outcome.WORSE: "raises",
    Outcome.EQUIVALENT: "by less than",
    Outcome.INCONCLUSIVE: "cannot tell",
}


def build(outcome: Outcome = Outcome.BETTER, **changes: Any) -> Report:
    rates = (0.001, 0.01, 0.1)
    sweep = [({"lr": lr, "penalty": 0.0}, 1.0 + lr, 1.1 + lr, 0) for lr in rates]
    pieces: dict[str, Any] = {
        "track": "dynamics",
        "model": "gru_32",
        "study": {"alpha": 0.05, "arms": ["baseline", "spectral_proxy"]},
        "study_key": "0123456789ab",
        "versions": {"numpy": "2.0"},
        "baseline": Arm({"lr": 0.01, "penalty": 0.0}, sweep, BASELINE),
        "idea": Arm({"lr": 0.01, "penalty": 0.0}, sweep, BASELINE + SHIFTS[outcome]),
        "evidence": evidence_for(outcome),
        "signature": {
            "noise_sigma": 0.2,
            "predicted_lifted_rho_mean": 0.8,
            "observed_hidden_second_moment_ratio_mean": 0.81,
            "relative_error": 0.01 / 0.81,
            "confirmed": True,
            "source": "trained networks",
        },
        "mechanism_ok": True,
        "mechanism_reason": "R1 to R4 hold.",
        "how_to_run": "msstab build",
        "limitations": "one track",
    }
    return build_report(**{**pieces, **changes})


@pytest.mark.parametrize("mechanism_ok", [True, False])
@pytest.mark.parametrize("outcome", Outcome)
def test_prose_and_fields_of_a_report_tell_one_outcome(
    outcome: Outcome, mechanism_ok: bool
) -> None:
    report = build(outcome, mechanism_ok=mechanism_ok)
    comparison = report.bench_report.comparison
    assert report.practical_verdict == comparison.outcome == outcome.value
    assert report.worked == comparison.system_worked == (outcome is Outcome.BETTER)
    assert comparison.verdict.startswith("no ") == (outcome is not Outcome.BETTER)
    assert report.verdict
    for other, words in WORDS.items():
        assert (words in report.verdict) == (other is outcome)
    assert report.verdict.endswith("; R1 to R4 hold.")
    assert report.mechanism_ok == mechanism_ok
    assert report.metrics
    assert comparison.reason
    assert report.metrics["idea"].endswith(comparison.reason)


def test_built_report_holds_every_field_and_the_numbers() -> None:
    report = build(Outcome.WORSE)
    e, bench = evidence_for(Outcome.WORSE), report.bench_report
    idea = BASELINE + SHIFTS[Outcome.WORSE]
    assert bench.bench_version == 1
    assert bench.n_seeds == bench.idea.n == bench.comparison.n_pairs == 10
    assert bench.baseline.full.std == np.std(BASELINE)
    assert bench.baseline.full.std_ddof1 == np.std(BASELINE, ddof=1)
    assert bench.idea.mean == idea.mean()
    assert bench.comparison.per_seed_diffs == tuple(idea - BASELINE)
    assert bench.comparison.mde == e.mde_half_width
    assert bench.comparison.mde_rel_pct == 100 * e.mde_half_width / BASELINE.mean()
    assert bench.comparison.interval == e.interval
    assert bench.baseline.sweep[2].cfg.lr == 0.1
    assert bench.baseline.sweep[2].validation_mean == 1.1 + 0.1
    content = json.loads(report.model_dump_json())
    first = json.loads(ORIGINAL.read_text())
    assert missing(first, content) == []
    for name in ("verdict", "metrics", "limitations"):
        assert content[name]
    assert content["bench_report"]["study_key"] == "0123456789ab"


def missing(expected: Any, given: Any, path: str = "") -> list[str]:
    if not isinstance(expected, dict):
        return []
    gaps = [f"{path}.{name}" for name in expected if name not in given]
    for name in expected.keys() & given.keys():
        gaps += missing(expected[name], given[name], f"{path}.{name}")
    return gaps


def test_report_comes_back_as_written_in_the_same_bytes(tmp_path: Path) -> None:
    report = build()
    write_report(report, tmp_path / "bench_report.json")
    again = read_report(tmp_path / "bench_report.json")
    assert again == report
    write_report(again, tmp_path / "again.json")
    first, second = ((tmp_path / n).read_bytes() for n in ("bench_report.json", "again.json"))
    assert first == second


def test_the_originals_figures_come_back_without_its_sentences(tmp_path: Path) -> None:
    report = read_report(ORIGINAL)
    assert (report.verdict, report.metrics, report.limitations) == (None, None, None)
    write_report(report, tmp_path / "copy.json")
    assert (tmp_path / "copy.json").read_bytes() == ORIGINAL.read_bytes()


def test_added_fields_are_kept(tmp_path: Path) -> None:
    content = json.loads(ORIGINAL.read_text())
    content["bench_report"]["comparison"]["remark"] = "new"
    (tmp_path / "in.json").write_text(json.dumps(content))
    write_report(read_report(tmp_path / "in.json"), tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == content


DROPPED = object()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("worked",), 1, "worked: "),
        (("mechanism_ok",), True, "mechanism_ok: "),
        (("mechanism_ok",), 2, "mechanism_ok: "),
        (("confidence",), 11, "confidence: "),
        (("files",), DROPPED, "files: Field required"),
        (("bench_report", "n_seeds"), "8", "bench_report.n_seeds: "),
        (("bench_report", "idea", "per_seed", 3), None, "bench_report.idea.per_seed[3]: "),
        (("bench_report", "idea", "per_seed", 3), math.nan, "bench_report.idea.per_seed[3]: "),
        (("bench_report", "idea", "per_seed"), [1.0, 2.0], "bench_report: 8 baseline and 2 idea"),
        (
            ("bench_report", "baseline", "sweep", 1, "cfg", "lr"),
            DROPPED,
            "bench_report.baseline.sweep[1].cfg.lr: Field required",
        ),
        (
            ("bench_report", "mechanism_signature", "predicted_lifted_rho_mean"),
            -1,
            "bench_report.mechanism_signature.predicted_lifted_rho_mean: ",
        ),
    ],
)
def test_a_wrong_field_is_named(
    tmp_path: Path, path: tuple[Any, ...], value: object, message: str
) -> None:
    content = json.loads(ORIGINAL.read_text())
    inner = content
    for part in path[:-1]:
        inner = inner[part]
    if value is DROPPED:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    file = tmp_path / "report.json"
    file.write_text(json.dumps(content))
    with pytest.raises(ReportError) as caught:
        read_report(file)
    assert str(caught.value).startswith(f"{file}: {message}")


def test_several_wrong_fields_are_all_named(tmp_path: Path) -> None:
    content = json.loads(ORIGINAL.read_text())
    del content["worked"], content["bench_report"]["track"]
    (tmp_path / "report.json").write_text(json.dumps(content))
    with pytest.raises(ReportError) as caught:
        read_report(tmp_path / "report.json")
    assert len(str(caught.value).splitlines()) == 2


def test_text_that_is_not_json_is_a_report_error(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text('{"worked": fal')
    with pytest.raises(ReportError, match="Invalid JSON"):
        read_report(tmp_path / "report.json")


def test_a_report_that_cannot_be_written_leaves_the_former_one(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    write_report(build(), file)
    before = file.read_bytes()
    broken = build().model_copy(update={"remark": math.nan})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_report(broken, file)
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["report.json"]


def test_an_interrupted_write_leaves_the_former_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "report.json"
    write_report(build(), file)
    before = file.read_bytes()

    def fail(source: object, target: object) -> None:
        assert file.read_bytes() == before
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(build(Outcome.WORSE), file)
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["report.json"]


def test_a_written_report_can_be_read_by_others(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_report(build(), tmp_path / "report.json")
    modes = {(tmp_path / name).stat().st_mode for name in ("plain", "report.json")}
    assert len(modes) == 1


def test_a_piece_that_is_not_a_number_is_refused() -> None:
    signature = build().bench_report.mechanism_signature.model_dump()
    with pytest.raises(pydantic.ValidationError, match="finite"):
        build(signature={**signature, "relative_error": math.nan})
