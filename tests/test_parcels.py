import os
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import TINY

from msstab import experiment, files, parcels, store, trials
from msstab.parcels import Parcel
from msstab.publishing import BuildError
from msstab.rollouts import measured
from msstab.study import parse
from msstab.trials import Trial

NOTHING = Parcel({}, {}, parcels.VERSIONS)
OPTIONS = '{"horizon": 1, "input_columns": [], "target_columns": [], "window": 4}'
SMALL = parse({"epochs": 1, "seeds": 2}, TINY)


@pytest.fixture(autouse=True)
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def some_trials(track: str = "dynamics") -> list[Trial]:
    rows = experiment._tuning_rows(SMALL, experiment._first_grid(SMALL))
    baseline = [row.scoring.trial for row in rows if row.arm == "baseline"]
    return [trials.Trial(**{**vars(t), "track": track}) for t in baseline[:2]]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def keep_one(name: str) -> int:
    store.save("made", name, {"value": 1.0})
    return 7


def test_what_a_call_keeps_comes_back_and_not_into_the_store(cold: Path) -> None:
    value, made = parcels.run(NOTHING, keep_one, ("abc",))
    assert value == 7
    assert list(made) == ["made/ab/abc.npz"]
    assert not cold.exists()
    parcels.keep(made)
    assert contents(cold) == made
    found = store.load("made", "abc")
    assert found is not None
    assert found["value"] == 1


def test_trained_networks_come_back_as_they_are_trained_here(cold: Path) -> None:
    networks = some_trials()
    assert parcels.pack((networks, None)) == NOTHING
    done, made = parcels.run(NOTHING, trials.train_trials, (networks, None))
    assert (done, len(made)) == (2, 2)
    trials.train_trials(networks, None)
    assert set(made) == set(contents(cold))
    for trial in networks:
        here = store.load("train", trial.key)
        parcels.keep(made)
        there = store.load("train", trial.key)
        assert here is not None
        assert there is not None
        assert set(here) == set(there)
        for name in set(here) - {"seconds"}:
            np.testing.assert_array_equal(here[name], there[name], strict=True)


def weigh(trial: Trial) -> float:
    assert store.load("train", trial.key) is not None, "the network did not travel"
    return float(trials.load_trained(trial).parameters.weight_hh.abs().sum())


def test_a_call_has_the_networks_it_names_and_brings_back_none_of_them() -> None:
    first, second = some_trials()
    trials.train_trials([first, second], None)
    parcel = parcels.pack(("any", [(second, 3)]))
    assert len(parcel.kept) == 1
    expected = float(trials.load_trained(second).parameters.weight_hh.abs().sum())
    assert parcels.run(parcel, weigh, (second,)) == (expected, {})
    with pytest.raises(AssertionError, match="did not travel"):
        parcels.run(parcel, weigh, (first,))


def read(name: str) -> str:
    return files.find(name).read_text()


@pytest.mark.parametrize("name", ["mine.csv", "data/mine.csv", "../../mine.csv"])
def test_a_series_of_ones_own_lies_where_its_name_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    rows = np.random.default_rng(0).normal(size=400)
    path.write_text("x\n" + "\n".join(map(str, rows)))
    parcel = parcels.pack((some_trials(f"csv:{name} {OPTIONS}"),))
    assert list(parcel.own) == [name]
    path.unlink()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(files.FOLDERS, raising=False)
    text, _ = parcels.run(parcel, read, (name,))
    assert text.startswith("x\n")
    assert files.FOLDERS not in os.environ
    changed = parcel._replace(own={name: b"x\n1\n"})
    assert parcels.run(changed, read, (name,))[0] == "x\n1\n"


def test_a_changed_series_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even by what remembers data by the series' name, on a worker that outlives the command."""
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(2, 400))
    name = f"csv:mine.csv {OPTIONS}"
    sums = []
    for values in rows:
        Path("mine.csv").write_text("x\n" + "\n".join(map(str, values)))
        parcel = parcels.pack((some_trials(name),))
        sums.append(parcels.run(parcel, first_input, (name,))[0])
    assert sums[0] != sums[1]


def first_input(name: str) -> float:
    split = measured._test(name, 0, "tuning", 0, (8, 0, 4), 1, 2)
    return float(split.inputs[0, 0, 0])


def test_other_versions_are_refused_by_name() -> None:
    meant = {**parcels.VERSIONS, "torch": "1.0"}
    with pytest.raises(BuildError, match=r"torch .*, where 1\.0 runs here"):
        parcels.run(Parcel({}, {}, meant), keep_one, ("abc",))


def fill_disk() -> None:
    raise OSError(28, "No space left on device")


def err() -> None:
    raise ZeroDivisionError("mine")


def test_what_a_machine_cannot_do_is_said_in_a_line_and_a_mistake_stays_one() -> None:
    with pytest.raises(BuildError, match=r"could not go on: OSError: .* No space left on device"):
        parcels.run(NOTHING, fill_disk, ())
    with pytest.raises(ZeroDivisionError, match="mine"):
        parcels.run(NOTHING, err, ())


BUSY: list[int] = []


def overlap() -> int:
    BUSY.append(1)
    most = len(BUSY)
    time.sleep(0.02)
    BUSY.pop()
    return most


def test_threads_of_a_worker_take_turns(cold: Path) -> None:
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(parcels.run(NOTHING, overlap, ())[0]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1, 1, 1, 1]
    assert os.environ["MSSTAB_CACHE"] == str(cold)


def test_the_code_is_part_of_the_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(parcels.__file__).parent
    copy = shutil.copytree(package, tmp_path / "msstab", ignore=shutil.ignore_patterns("*.pyc"))
    monkeypatch.setattr(parcels, "__file__", str(copy / "parcels.py"))
    assert parcels._versions() == parcels.VERSIONS
    (copy / "cells" / "gru.py").write_text("changed = 1\n")
    changed = parcels._versions()
    assert parcels.differences(changed, parcels.VERSIONS).startswith("msstab 0.1.0 (code ")
    assert {k for k in changed if changed[k] != parcels.VERSIONS[k]} == {"msstab"}
