from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msstab import archive, store

CODE, OTHER_CODE = "-" + 32 * "0", "-" + 32 * "1"
NAMES = [f"{n:032x}{CODE}" for n in range(4)]
RESULTS: list[tuple[str, str, dict[str, Any]]] = [
    ("score", NAMES[0], {"test_mse": np.asarray(0.1), "arms": np.array(["normal", "t"])}),
    ("score", NAMES[1], {"test_mse": np.asarray(np.nan), "arms": np.array(["t", "nor"])}),
    ("train", NAMES[0], {"w/hh": np.arange(6, dtype=np.float32).reshape(2, 3)}),
    ("train", NAMES[2], {"w/hh": np.zeros((3, 3), np.float32)}),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "kept.npz"
    file.write_bytes(archive.pack(RESULTS))
    return file


def test_results_come_back_to_the_last_bit(path: Path) -> None:
    for kind, name, arrays in RESULTS:
        found = archive.load(path, kind, name)
        assert found is not None
        assert list(found) == list(arrays)
        for array in arrays:
            np.testing.assert_array_equal(found[array], arrays[array])


def test_shapes_and_types_come_back(path: Path) -> None:
    found = archive.load(path, "train", NAMES[0])
    assert found is not None
    assert (found["w/hh"].dtype, found["w/hh"].shape) == (np.dtype(np.float32), (2, 3))


def test_the_same_results_give_the_same_bytes_in_any_order() -> None:
    assert archive.pack(RESULTS) == archive.pack(reversed(RESULTS))


def test_a_result_is_found_by_its_question_whatever_code_answered(path: Path) -> None:
    asked = NAMES[1].replace(CODE, OTHER_CODE)
    assert archive.load(path, "score", asked) is not None
    assert archive.name_of(path, "score", asked) == NAMES[1]


def test_kinds_and_questions_are_kept_apart(path: Path) -> None:
    assert archive.load(path, "score", NAMES[2]) is None
    assert archive.load(path, "train", NAMES[3]) is None
    assert archive.name_of(path, "pace", NAMES[0]) is None


def test_two_answers_to_one_question_are_refused() -> None:
    twice = [RESULTS[0], ("score", NAMES[0].replace(CODE, OTHER_CODE), RESULTS[0][2])]
    with pytest.raises(ValueError, match="answer the same question"):
        archive.pack(twice)


def test_a_file_that_is_no_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "kept.npz"
    with pytest.raises(ValueError, match=r"kept\.npz cannot be read"):
        archive.load(path, "score", NAMES[0])
    path.write_bytes(archive.pack(RESULTS)[:-40])
    with pytest.raises(ValueError, match=r"kept\.npz cannot be read"):
        archive.load(path, "score", NAMES[0])


@pytest.fixture
def reused(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(store.REUSE, str(path))


@pytest.mark.usefixtures("reused")
def test_the_store_reads_what_is_not_kept_from_the_archive() -> None:
    asked = NAMES[0].replace(CODE, OTHER_CODE)
    assert store.has("score", asked)
    assert store.is_reused("score", asked)
    found = store.load("score", asked)
    assert found is not None
    assert found["test_mse"] == RESULTS[0][2]["test_mse"]
    assert not store.has("score", NAMES[3])


@pytest.mark.usefixtures("reused")
def test_what_is_kept_goes_before_the_archive() -> None:
    asked = NAMES[0].replace(CODE, OTHER_CODE)
    store.save("score", asked, {"test_mse": 7.0})
    found = store.load("score", asked)
    assert found is not None
    assert found["test_mse"] == 7.0
    assert not store.is_reused("score", asked)


@pytest.mark.usefixtures("reused")
def test_exactly_asks_for_the_same_code() -> None:
    asked = NAMES[0].replace(CODE, OTHER_CODE)
    assert store.has("score", NAMES[0], exactly=True)
    assert not store.has("score", asked, exactly=True)
    assert store.load("score", asked, exactly=True) is None


def test_what_is_read_is_noted_where_asked(
    reused: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = tmp_path / "reads"
    noted.mkdir()
    monkeypatch.setenv(store.READS, str(noted))
    store.load("score", NAMES[0])
    store.load("score", NAMES[3])
    assert [file.read_text() for file in noted.iterdir()] == [f"score {NAMES[0]}\n"]
