from pathlib import Path

import pytest

from msstab import experiment, parameter_files, study
from msstab.study import StudyError

assert experiment  # importing it declares what a study may name


def write(folder: Path, text: str) -> Path:
    path = folder / "run.yml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_says_the_same_as_the_command_line(tmp_path: Path) -> None:
    text = "hidden: 16\nlearning_rates: [1e-3, 0.01]\nbits: [8, 4]\narms: baseline,weight_decay\n"
    given = parameter_files.read(write(tmp_path, text + "strengths: []\n"))
    typed = {
        "hidden": "16",
        "learning_rates": "0.001,0.01",
        "bits": "8,4",
        "arms": "baseline,weight_decay",
        "strengths": "",
    }
    assert study.parse(given) == study.parse(typed)


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert parameter_files.read(write(tmp_path, "# nothing yet\n")) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- hidden", "must map names to values"),
        ("hidden", "must map names to values"),
        ("hidden: [", "is not YAML: while parsing"),
        ("hidden: 8\nhidden: 16", "names hidden more than once"),
        ("at: 2026-99-99", "is not YAML"),
        ("a: !!python/object/apply:os.system ['true']", "is not YAML: could not determine"),
    ],
)
def test_an_unusable_file_is_explained_in_a_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StudyError, match=message) as error:
        parameter_files.read(write(tmp_path, text))
    assert str(error.value).startswith(str(tmp_path / "run.yml"))
    assert "\n" not in str(error.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "image.yml").write_bytes(b"\xff\xfe\x00")
    for name, message in (("gone.yml", "No such file"), ("image.yml", "is not text")):
        with pytest.raises(StudyError, match=message):
            parameter_files.read(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hiden: 16", "hiden is not a parameter; did you mean hidden?"),
        ("1: 16", "1 is not a parameter"),
        ("hidden: no", "hidden = False: "),
        ("hidden:", "hidden = None: "),
        ("hidden: 16.5", "hidden = 16.5: "),
        ("learning_rates: {a: 1}", "learning_rates = "),
        ("seeds: 1", "seeds = 1: give at least 2"),
    ],
)
def test_names_and_values_are_checked_as_on_the_command_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(StudyError) as error:
        study.parse(parameter_files.read(write(tmp_path, text)))
    assert message in str(error.value)
