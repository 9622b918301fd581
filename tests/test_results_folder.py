"""The results that the project publishes are whole, and the README says what they say."""

import pytest
from conftest import REPOSITORY

from msstab import audit, experiment, published
from msstab.published.folder import TRIALS
from msstab.published.readme import BEGIN, END, opening

MOST_BYTES = {TRIALS: 3_000_000, "kept.npz": 12_000_000}


@pytest.fixture(scope="module")
def found() -> published.Published:
    return published.open_results(published.DEFAULT)


def test_the_published_results_are_as_they_were_written(found: published.Published) -> None:
    assert found.report.bench_report.study_key == found.manifest["study_key"] == found.study.key
    roles = found.table[found.table.role.isin(["selected", "penalised"])]
    assert found.report.bench_report.n_seeds == roles.groupby(["arm", "role"]).size().max()


@pytest.mark.parametrize("name", MOST_BYTES)
def test_no_published_file_is_a_burden_on_a_clone(found: published.Published, name: str) -> None:
    assert (found.folder / name).stat().st_size <= MOST_BYTES[name]


def test_the_readme_opens_with_the_published_results(found: published.Published) -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert f"{BEGIN}\n\n{opening(found)}\n\n{END}" in text


def test_the_published_results_answer_all_that_their_study_asks(
    found: published.Published, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path))
    with published.reusing(found):
        seen = experiment.foresee(found.study)
    assert (len(seen.to_train), seen.to_score) == (0, 0)


def test_the_published_report_passes_the_audit(found: published.Published) -> None:
    assert not [row for row in audit.audit(found.report) if row.flagged]
