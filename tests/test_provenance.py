import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from msstab import provenance
from msstab.study import Study, profile


def test_the_date_can_be_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert provenance.build_time() == datetime(1970, 1, 2, tzinfo=UTC)


def test_the_date_is_now_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert abs((datetime.now(UTC) - provenance.build_time()).total_seconds()) < 60


def test_the_command_repeats_every_changed_parameter() -> None:
    study = profile("quick").model_copy(update={"seeds": 16, "learning_rates": (0.1, 0.2)})
    assert provenance.rerun_command(study, "quick") == (
        'make book PROFILE=quick ARGS="-p learning_rates=0.1,0.2 -p seeds=16"'
    )
    assert provenance.rerun_command(profile("quick"), "quick") == "make book PROFILE=quick"


def test_the_table_marks_what_differs_from_the_defaults() -> None:
    lines = provenance.parameters_table(Study().model_copy(update={"hidden": 64})).splitlines()
    assert len(lines) == 2 + len(Study.model_fields)
    assert "| `hidden` | **64** | 32 | hidden units |" in lines
    assert sum("**" in line for line in lines) == 1


def test_how_to_cite_comes_from_the_citation_file(tmp_path: Path) -> None:
    facts = {"study_key": "abc", "built": "2026-01-02T03:04:05+00:00", "profile": "full"}
    more = {"versions": {}, "command": "make book", "citation": provenance.citation(tmp_path)}
    said = provenance.page_values(facts | more, Study())["how_to_cite"]
    assert said == f"study `abc`, built {provenance.DAY}"
    (tmp_path / "CITATION.cff").write_text(
        "title: Does it?\nversion: 1.2.0\nurl: https://example.org/\n"
        "authors:\n- name: The authors\n- given-names: Ada\n  family-names: Byron\n"
    )
    more["citation"] = provenance.citation(tmp_path)
    said = provenance.page_values(facts | more, Study())["how_to_cite"]
    assert said == (
        "The authors, Ada Byron: *Does it?* (version 1.2.0, study `abc`, built <time></time>). "
        "<https://example.org/>"
    )


def test_versions_name_the_commit_and_say_when_files_differ_from_it(tmp_path: Path) -> None:
    assert "commit" not in provenance.versions(tmp_path)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    (tmp_path / "file").write_text("1")
    for arguments in (["init", "-q"], ["add", "file"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *arguments], check=True)
    commit = provenance.versions(tmp_path)["commit"]
    assert len(commit) >= 7
    (tmp_path / "file").write_text("2")
    assert provenance.versions(tmp_path)["commit"] == f"{commit}+changes"
