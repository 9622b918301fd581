from pathlib import Path

import numpy as np
import pytest
from conftest import TINY

from msstab import results, surveys
from msstab.study import Study, StudyError, parse

STUDY = parse({"survey_seeds": 3, "survey_tuning_seeds": 2, "survey_sizes": [2, 4]}, TINY)


@pytest.fixture(autouse=True)
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.npz")}


def test_a_variant_changes_what_it_is_told_and_keeps_what_the_reader_chose() -> None:
    given = Study(noise="gain", sesoi=0.1, study_seed=3)
    made = surveys.variant(given, hidden=8)
    assert (made.hidden, made.noise, made.sesoi, made.study_seed) == (8, "gain", 0.1, 3)
    assert made.seeds == made.other_seeds == given.survey_seeds
    assert made.tuning_seeds == given.survey_tuning_seeds
    assert made.sigma_grid == (given.sigma_test,)


@pytest.mark.parametrize(
    ("arms", "others", "expected"),
    [
        (Study().arms, ("output_variance",), ("baseline", "spectral_proxy", "output_variance")),
        (("baseline", "weight_decay"), ("output_variance",), ("baseline", "weight_decay")),
        (("baseline", "output_variance"), ("output_variance",), ("baseline", "output_variance")),
        (Study().arms, (), ("baseline", "spectral_proxy")),
    ],
)
def test_a_variant_compares_the_judged_arm_and_what_else_the_study_has(
    arms: tuple[str, ...], others: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert surveys.variant(Study(arms=arms, survey_arms=others)).arms == expected


def test_a_variant_never_has_more_draws_or_sequences_than_its_study() -> None:
    assert surveys.variant(TINY).draws == TINY.draws
    assert surveys.variant(Study()).draws == surveys.FEWER["draws"]


def test_a_study_without_noise_in_its_test_has_variants_too() -> None:
    assert surveys.variant(Study(sigma_test=0.0)).sigma_grid == (Study().sigma_grid[0],)


def test_an_impossible_change_is_refused_by_name() -> None:
    with pytest.raises(StudyError, match="hiden is not a parameter; did you mean hidden"):
        surveys.variant(Study(), hiden=8)


def test_a_survey_is_the_study_of_each_variant(cold: Path) -> None:
    told: list[tuple[int, int]] = []
    variants = {size: surveys.variant(STUDY, hidden=size) for size in STUDY.survey_sizes}
    found = surveys.collect(variants, jobs=1, progress=lambda *now: told.append(now))
    assert list(found) == [2, 4]
    for size, survey in found.items():
        assert survey.study == variants[size]
        alone = results.collect(variants[size], jobs=1).arms["spectral_proxy"]
        own = survey.arms["spectral_proxy"]
        np.testing.assert_array_equal(own.clean.idea, alone.clean.idea)
        assert own.noisy.evidence == alone.noisy.evidence
        assert own.clean.evidence.n == STUDY.survey_seeds
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_survey_that_has_run_is_read(cold: Path) -> None:
    variants = {"only": surveys.variant(STUDY)}
    surveys.collect(variants, jobs=1)
    before = files(cold)
    told: list[tuple[int, int]] = []
    surveys.collect(variants, jobs=1, progress=lambda *now: told.append(now))
    assert files(cold) == before
    assert not told
