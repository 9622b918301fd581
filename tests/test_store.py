import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from msstab import store

ARRAYS = {"weights": np.arange(6.0).reshape(2, 3), "seconds": np.asarray(0.25)}
KEY = "ab" + 62 * "0"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def assert_kept() -> None:
    loaded = store.load("train", KEY)
    assert loaded is not None
    assert loaded.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(loaded[name], array)
        assert loaded[name].dtype == array.dtype


def test_a_result_comes_back_as_it_was_saved(folder: Path) -> None:
    assert store.load("train", KEY) is None
    assert not folder.exists()
    store.save("train", KEY, ARRAYS)
    assert_kept()
    assert files(folder) == [f"{KEY}.npz"]
    assert store.path_of("train", KEY).is_file()


def test_kinds_and_keys_are_kept_apart() -> None:
    store.save("train", KEY, ARRAYS)
    assert store.load("score", KEY) is None
    assert store.load("train", "ac" + KEY[2:]) is None


def test_a_later_result_replaces_an_earlier_one() -> None:
    store.save("train", KEY, {"weights": [0.0]})
    store.save("train", KEY, ARRAYS)
    assert_kept()


def test_a_result_that_is_being_written_cannot_be_seen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def check(source: str, target: Path) -> None:
        assert store.load("train", KEY) is None
        assert not store.path_of("train", KEY).exists()
        assert len(files(folder)) == 1
        replace(source, target)

    monkeypatch.setattr(os, "replace", check)
    store.save("train", KEY, ARRAYS)
    assert_kept()


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("former", [True, False])
def test_an_interrupted_write_leaves_what_there_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch, former: bool, error: BaseException
) -> None:
    if former:
        store.save("train", KEY, ARRAYS)

    def fail(*_: object) -> None:
        assert len(files(folder)) == 1 + former
        raise error

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(type(error)):
        store.save("train", KEY, {"weights": [1.0]})
    if former:
        assert_kept()
    assert files(folder) == ([f"{KEY}.npz"] if former else [])


def assert_discarded() -> None:
    with pytest.warns(RuntimeWarning, match="recomputing a damaged cache entry"):
        assert store.load("train", KEY) is None
    assert not store.path_of("train", KEY).exists()
    # The second time there is nothing to warn of.
    assert store.load("train", KEY) is None


def test_a_result_cut_short_anywhere_is_discarded() -> None:
    store.save("train", KEY, ARRAYS)
    whole = store.path_of("train", KEY).read_bytes()
    for length in range(0, len(whole), 7):
        store.path_of("train", KEY).write_bytes(whole[:length])
        assert_discarded()


def test_a_result_with_any_byte_damaged_is_discarded() -> None:
    store.save("train", KEY, ARRAYS)
    whole = store.path_of("train", KEY).read_bytes()
    for place in range(len(whole)):
        damaged = whole[:place] + bytes([whole[place] ^ 0x39]) + whole[place + 1 :]
        store.path_of("train", KEY).write_bytes(damaged)
        assert_discarded()


def test_an_entry_is_an_npz_to_other_readers() -> None:
    store.save("train", KEY, ARRAYS)
    with np.load(store.path_of("train", KEY), allow_pickle=False) as file:
        assert set(file.files) == ARRAYS.keys()


def test_pickled_objects_are_neither_written_nor_read(folder: Path) -> None:
    objects = np.array([{"a": 1}], dtype=object)
    with pytest.raises(ValueError, match="allow_pickle"):
        store.save("train", KEY, {"weights": objects})
    assert not folder.exists()
    path = store.path_of("train", KEY)
    path.parent.mkdir(parents=True)
    np.savez(path, weights=objects)
    content = path.read_bytes()
    path.write_bytes(content + hashlib.sha256(content).digest())
    with pytest.raises(ValueError, match="allow_pickle"):
        store.load("train", KEY)


@pytest.mark.parametrize("repository", [True, False])
def test_results_lie_in_the_repository_or_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: bool
) -> None:
    monkeypatch.delenv("MSSTAB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setattr(store, "__file__", str(tmp_path / "code" / "msstab" / "store.py"))
    (tmp_path / "code" / "msstab").mkdir(parents=True)
    if repository:
        (tmp_path / "code" / "pyproject.toml").touch()
    expected = tmp_path / "code" / ".cache" if repository else tmp_path / "user" / "msstab"
    assert store.cache_folder() == expected
