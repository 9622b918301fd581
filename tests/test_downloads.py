import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from msstab import audit, downloads
from msstab.report import original_report, read_report
from msstab.results import Results


def keys(content: object) -> set[str]:
    """Return all field names of nested JSON, with their paths."""
    if not isinstance(content, dict):
        return set()
    return {
        path
        for name, value in content.items()
        for path in (name, *(f"{name}.{inner}" for inner in keys(value)))
    }


def test_the_report_has_every_field_of_the_originals_schema(
    tiny_results: Results, tmp_path: Path
) -> None:
    downloads.write(tiny_results, tmp_path)
    written = json.loads((tmp_path / "bench_report.json").read_text(encoding="utf-8"))
    theirs = keys(original_report().model_dump(mode="json", exclude_unset=True))
    assert theirs | {"verdict", "metrics", "limitations"} <= keys(written)
    bench = written["bench_report"]
    assert bench["bench_version"] == 1
    assert bench["study_key"] == tiny_results.study.key
    assert bench["baseline"]["full"]["per_seed"] == tiny_results.clean.baseline.tolist()
    assert bench["idea"]["per_seed"] == tiny_results.clean.idea.tolist()
    assert len(bench["baseline"]["sweep"]) == len(bench["idea"]["sweep"])
    assert written["practical_verdict"] == tiny_results.clean.decision.outcome.value
    assert written["mechanism_ok"] == int(tiny_results.mechanism.confirmed)
    assert read_report(tmp_path / "bench_report.json").worked == written["worked"]


def test_questions_are_answered_each_on_its_track(tiny_results: Results) -> None:
    asked = downloads.report(tiny_results).questions
    assert asked is not None
    assert list(asked) == ["Q1", "Q2"]
    # Any comparison will do for the third; that of the free choice is none of the others.
    free = tiny_results.tuned
    asked = downloads.report(tiny_results, ("lorenz", free)).questions
    assert asked is not None
    assert list(asked) == ["Q1", "Q2", "Q3"]
    assert [question.track for question in asked.values()] == ["dynamics", "dynamics", "lorenz"]
    found = asked["Q3"]
    assert (found.title, found.n_pairs) == (free.title, len(free.idea))
    assert found.outcome == free.decision.outcome.value
    assert found.reason == free.decision.reason
    logs = np.log(free.idea) - np.log(free.baseline)
    assert found.decided_on.effect == pytest.approx(np.expm1(logs.mean()), abs=1e-12)


def test_our_own_report_is_audited_without_a_contradiction(tiny_results: Results) -> None:
    for row in audit.audit(downloads.report(tiny_results)):
        assert row.kind is not audit.Kind.DIFFERS, row


def test_every_network_is_in_the_table_of_runs(tiny_results: Results, tmp_path: Path) -> None:
    downloads.write(tiny_results, tmp_path)
    table = pd.read_csv(tmp_path / "trials.csv")
    assert len(table) == len(tiny_results.table)
    confirmed = table[(table.arm == "spectral_proxy") & (table.role == "penalised")]
    assert list(confirmed.test_mse) == tiny_results.clean.idea.tolist()
    assert {"seed", "learning_rate", "strength", "diverged", "hinge_active"} <= set(table.columns)


def test_the_landing_pages_numbers_are_texts_without_gaps(
    tiny_results: Results, tmp_path: Path
) -> None:
    sentence = downloads.write(tiny_results, tmp_path)
    numbers = json.loads((tmp_path / "numbers.json").read_text(encoding="utf-8"))
    assert numbers["verdict_sentence"] == sentence
    assert all(isinstance(text, str) and text.strip() for text in numbers.values())
    assert "nan" not in json.dumps(numbers)
    e = tiny_results.clean.evidence
    assert numbers["pairs"] == str(e.n)
    assert f"Clean error: {e.judged.written(e.ratio - 1, '+')} with" in numbers["found_text"]
    assert "<svg" in (tmp_path / "effect.html").read_text(encoding="utf-8")
    assert (tmp_path / "card.png").read_bytes().startswith(b"\x89PNG")


def test_writing_twice_gives_the_same_bytes(tiny_results: Results, tmp_path: Path) -> None:
    names = ("bench_report.json", "trials.csv", "numbers.json", "effect.html", "card.png")
    downloads.write(tiny_results, tmp_path)
    first = [(tmp_path / name).read_bytes() for name in names]
    downloads.write(tiny_results, tmp_path)
    assert [(tmp_path / name).read_bytes() for name in names] == first
