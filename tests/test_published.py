import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import PARAMETERS, TINY, code, make_project, markdown, write_notebook
from scipy import stats
from typer.testing import CliRunner

from msstab import archive, downloads, experiment, published, results, store
from msstab.cli import app
from msstab.published.agreement import differs
from msstab.published.folder import digest_of
from msstab.published.readme import BEGIN, END
from msstab.publishing import BuildError
from msstab.results import Results

CHAPTER = """\
from msstab import results
from msstab.study import notebook_study
found = results.collect(notebook_study(globals()), jobs=1)
results.learning_curves(found)"""


@pytest.fixture(scope="module")
def folder(tiny_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return published results of the tiny study, which no test may change."""
    root = make_project(tmp_path_factory.mktemp("project"))
    cells = [markdown("# Only"), PARAMETERS, code(CHAPTER)]
    write_notebook(root / "notebooks" / "00_only.ipynb", cells)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MSSTAB_CACHE", str(tiny_cache))
        return published.write(TINY, root / "results", root)


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "results"))


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def reseal(folder: Path, name: str) -> None:
    """Let the manifest take a changed file for what was published."""
    path = folder / published.MANIFEST
    manifest = json.loads(path.read_text())
    manifest["files"][name] = digest_of(folder / name)
    path.write_text(json.dumps(manifest))


def test_the_table_is_published_to_the_last_bit(folder: Path, tiny_results: Results) -> None:
    table = published.open_results(folder).table
    pd.testing.assert_frame_equal(table, tiny_results.table, check_exact=True)
    assert published.open_results(folder).study == TINY


def test_reusing_gives_the_same_results_without_training(
    folder: Path, empty_cache: Path, tiny_results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSSTAB_CACHE", str(empty_cache))
    with published.reusing(published.open_results(folder)):
        seen = experiment.foresee(TINY)
        found = results.collect(TINY, jobs=1)
        curves = results.learning_curves(found)
        reused = sum(store.is_reused("score", s.key) for s in found.experiment.scorings)
    assert (len(seen.to_train), seen.to_score) == (0, 0)
    pd.testing.assert_frame_equal(found.table, tiny_results.table, check_exact=True)
    assert reused == len(found.table)
    assert not list(empty_cache.glob("train/**/*.npz"))
    assert not list(empty_cache.glob("score/**/*.npz"))
    assert curves[0].keys() == {f"{rate:g}" for rate in found.experiment.grid.rungs}
    assert store.REUSE not in os.environ


def test_a_changed_parameter_trains_only_what_depends_on_it(
    folder: Path, empty_cache: Path
) -> None:
    more = TINY.model_copy(update={"seeds": 7})
    with published.reusing(published.open_results(folder)):
        runs = experiment.run(more)
    trained = {path.stem for path in empty_cache.glob("train/**/*.npz")}
    # One seed more for each arm and role; the network after it, for the placebo, and of each
    # group the last one, whose placebo was the first, are trained to be measured.
    new = {s.trial.key for s in runs.scorings if s.trial.index == 6}
    assert new <= trained
    tuned = {s.trial.key for s in runs.scorings if s.trial.purpose == "tuning"}
    assert not tuned & trained


def test_networks_of_other_code_are_shown_but_not_measured_further(
    folder: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msstab.keys._versions", lambda: ("another torch",))
    with published.reusing(published.open_results(folder)):
        found = results.collect(TINY, jobs=1)
        results.learning_curves(found)
        assert not list(empty_cache.glob("train/**/*.npz"))
        experiment.run(TINY.model_copy(update={"draws": 5}))
    assert list(empty_cache.glob("train/**/*.npz"))


@pytest.mark.parametrize("name", ["trials.csv", "bench_report.json", "kept.npz", "README.md"])
def test_results_that_were_edited_are_refused(copied: Path, name: str) -> None:
    path = copied / name
    path.write_bytes(path.read_bytes()[:-2] + b"9\n")
    with pytest.raises(published.PublishedError, match=f"{name} is not what was published"):
        published.open_results(copied)


def test_a_folder_without_results_says_what_is_missing(copied: Path, tmp_path: Path) -> None:
    (copied / "plan.json").unlink()
    with pytest.raises(published.PublishedError, match=r"there is no plan\.json in it"):
        published.open_results(copied)
    with pytest.raises(published.PublishedError, match="is not a folder"):
        published.open_results(tmp_path / "nothing")
    (copied / published.MANIFEST).write_text("[]")
    with pytest.raises(published.PublishedError, match="cannot be read"):
        published.open_results(copied)


def test_a_sample_runs_again_to_the_same_bits(folder: Path, empty_cache: Path) -> None:
    found = published.verify(published.open_results(folder), 4, seed=1)
    assert (found.found.networks, found.found.identical) == (4, 4)
    assert found.found.agrees
    assert not empty_cache.exists()
    assert os.environ["MSSTAB_CACHE"] == str(empty_cache)


def test_a_sample_notices_a_score_that_was_made_up(copied: Path, empty_cache: Path) -> None:
    path = copied / "trials.csv"
    table = pd.read_csv(path)
    table["test_mse"] *= 0.99
    table.to_csv(path, index=False, lineterminator="\n")
    reseal(copied, "trials.csv")
    found = published.verify(published.open_results(copied), 4, seed=1).found
    assert (found.identical, found.agrees) == (0, False)
    assert np.exp(found.log_ratio) == pytest.approx(1 / 0.99)
    outcome = CliRunner().invoke(app, ["verify", "--results", str(copied), "--sample", "2"])
    assert outcome.exit_code == 1
    assert "a systematic difference" in outcome.stdout


def test_the_command_verifies_and_prints_json(folder: Path, empty_cache: Path) -> None:
    asked = ["verify", "--results", str(folder), "--sample", "2", "--seed", "3", "--json"]
    outcome = CliRunner().invoke(app, asked)
    assert outcome.exit_code == 0
    said = json.loads(outcome.stdout)
    assert (said["networks"], said["identical"], said["agrees"]) == (2, 2, True)
    assert len(said["trials"]) == 2


def frame(errors: np.ndarray, **scores: Any) -> pd.DataFrame:
    n = len(errors)
    which = {"arm": "baseline", "role": "selected", "seed": range(n), "learning_rate": 0.01}
    return pd.DataFrame(
        {**which, "strength": 0.0, "test_mse": errors, "radius": 1.0, "seconds": 0.1, **scores}
    )


ERRORS = np.exp(np.random.default_rng(0).normal(size=40))


def test_seconds_do_not_count_and_a_last_bit_does() -> None:
    first = frame(ERRORS)
    assert published.agreement(first, frame(ERRORS, seconds=0.2)).identical == 40
    nearly = ERRORS.copy()
    nearly[3] = np.nextafter(nearly[3], 1)
    assert published.agreement(first, frame(nearly)).identical == 39
    assert published.agreement(first, frame(ERRORS, radius=[1.0] * 39 + [np.nan])).identical == 39


def test_rounding_agrees_and_a_shift_does_not() -> None:
    noise = np.random.default_rng(1).normal(scale=0.01, size=40)
    rounded = published.agreement(frame(ERRORS), frame(ERRORS * np.exp(noise)))
    assert rounded.agrees
    assert rounded.p_value == pytest.approx(stats.ttest_1samp(noise, 0).pvalue)
    shifted = published.agreement(frame(ERRORS), frame(ERRORS * np.exp(noise + 0.02)))
    assert not shifted.agrees
    assert "a systematic difference" in published.agreement_sentence(shifted)


def test_errors_of_other_networks_do_not_agree() -> None:
    shuffled = published.agreement(frame(ERRORS), frame(ERRORS[::-1].copy()))
    assert not shuffled.agrees
    assert "as other networks do" in published.agreement_sentence(shuffled)


def test_untrained_networks_without_a_learning_rate_are_matched() -> None:
    first = frame(ERRORS, learning_rate=np.nan)
    assert published.agreement(first, first.sample(frac=1, random_state=0)).identical == 40


def test_tables_without_common_networks_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="share 0 networks"):
        published.agreement(frame(ERRORS), frame(ERRORS, seed=range(100, 140)))


def test_a_book_says_how_its_run_compares(
    folder: Path, tiny_results: Results, tmp_path: Path
) -> None:
    report = downloads.report(tiny_results)
    own = published.sentences(tiny_results, report, folder)
    assert any("identical, to the last bit" in sentence for sentence in own)
    assert not any("differ" in sentence for sentence in own)
    nothing = published.sentences(tiny_results, report, tmp_path / "nothing")
    assert nothing == ["There are no published results beside this project to compare with."]


def test_a_book_of_another_study_names_the_parameters(copied: Path, tiny_results: Results) -> None:
    path = copied / published.MANIFEST
    manifest = json.loads(path.read_text())
    manifest["study_key"] = "0" * 64
    path.write_text(json.dumps(manifest))
    report = copied / "bench_report.json"
    content = json.loads(report.read_text())
    content["bench_report"]["study"]["hidden"] = 7
    report.write_text(json.dumps(content))
    reseal(copied, "bench_report.json")
    said = published.sentences(tiny_results, downloads.report(tiny_results), copied)
    assert "Parameters that differ: hidden." in said
    assert any("asks something else" in sentence for sentence in said)


def test_a_book_of_reused_results_says_so(
    folder: Path, tiny_results: Results, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSSTAB_CACHE", str(empty_cache))
    with published.reusing(published.open_results(folder)):
        said = published.sentences(tiny_results, downloads.report(tiny_results), folder)
    total = len(tiny_results.table)
    assert any(f"The scores of {total} of the {total} networks" in line for line in said)
    assert any(f"again; {total} of these" in line for line in said)
    monkeypatch.setattr("msstab.keys._versions", lambda: ("another torch",))
    with published.reusing(published.open_results(folder)):
        said = published.sentences(tiny_results, downloads.report(tiny_results), folder)
    assert any("again; 0 of these" in line for line in said)
    assert not any("identical" in sentence for sentence in said)


def test_only_networks_that_were_run_are_compared(
    folder: Path, tiny_results: Results, tiny_cache: Path, empty_cache: Path
) -> None:
    names = [scoring.key for scoring in tiny_results.experiment.scorings]
    for name in names[:3]:
        path = Path("score", name[:2], f"{name}.npz")
        (empty_cache / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tiny_cache / path, empty_cache / path)
    with published.reusing(published.open_results(folder)):
        said = published.sentences(tiny_results, downloads.report(tiny_results), folder)
    # Rows of other arms at strength 0 are of the same networks.
    rows = sum(name in names[:3] for name in names)
    assert 3 <= rows < len(names)
    assert any(line.startswith(f"All {rows} networks came out identical") for line in said)


def test_another_version_is_named(copied: Path) -> None:
    path = copied / published.MANIFEST
    manifest = json.loads(path.read_text())
    manifest["versions"]["torch"] = "0.1"
    manifest["platform"]["vectors"] = "none"
    path.write_text(json.dumps(manifest))
    assert "(torch, vectors differ" in differs(published.open_results(copied))


def test_the_same_study_is_published_as_the_same_archive(folder: Path, tiny_cache: Path) -> None:
    names = {"score", "curves"}
    places = archive._open(folder / "kept.npz").places
    assert {kind for kind, _ in places} >= names
    for kind, question in places:
        name = places[kind, question].name
        assert (tiny_cache / kind / name[:2] / f"{name}.npz").is_file()


def test_a_readme_opens_with_the_published_answer(copied: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"# msstab\n\n{BEGIN}\nold\n{END}\n\n## Quick start\n")
    found = published.open_results(copied)
    published.update_readme(readme, found)
    text = readme.read_text()
    assert "old" not in text
    assert " pairs of networks, one seed each" in text
    assert text.startswith(f"# msstab\n\n{BEGIN}\n\n**")
    assert text.endswith(f"{END}\n\n## Quick start\n")
    assert "(results/effect.svg)" in text
    readme.write_text("# msstab\n")
    with pytest.raises(published.PublishedError, match="has no lines"):
        published.update_readme(readme, found)


def test_a_folder_without_results_cannot_be_reused(tmp_path: Path) -> None:
    other = tmp_path / "mine"
    other.mkdir()
    outcome = CliRunner().invoke(app, ["build", "--reuse", str(other)])
    assert outcome.exit_code == 2
    assert "no published results" in outcome.stderr


def test_a_folder_of_something_else_is_not_replaced(
    folder: Path, tmp_path: Path, tiny_cache: Path
) -> None:
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    with pytest.raises(BuildError, match="something other than results"):
        published.write(TINY, other, folder.parent)
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]
