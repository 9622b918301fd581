from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import TINY
from numpy.typing import NDArray

from msstab import measures, store, trials
from msstab.experiment import confirmed, run
from msstab.trials import Trial


@pytest.fixture
def networks(tiny_cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[Trial]:
    """Some networks, trained once for all tests; measurements are kept apart for each test."""
    monkeypatch.setenv("MSSTAB_CACHE", str(tiny_cache))
    return confirmed(run(TINY, jobs=1), "baseline", "selected")


def size(trial: Trial, settings: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
    weights = trials.load_trained(trial).parameters.weight_hh.numpy()
    return {"size": np.abs(weights).sum(dtype=np.float64) * settings["times"]}


def never(trial: Trial, settings: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
    raise AssertionError(f"measured again: {trial.index}, {settings}")


def test_each_network_is_measured_in_its_place(networks: list[Trial]) -> None:
    found = measures.measure("in-place", size, networks, {"times": 2}, ("measures",), jobs=1)
    expected = [size(trial, {"times": 2})["size"] for trial in networks]
    assert [float(one["size"]) for one in found] == expected
    assert len(set(expected)) == len(networks)


def test_what_is_kept_is_read(networks: list[Trial]) -> None:
    first = measures.measure("kept", size, networks, {"times": 2}, ("measures",), jobs=1)
    again = measures.measure("kept", never, networks[::-1], {"times": 2}, ("measures",), jobs=1)
    assert [one["size"] for one in again] == [one["size"] for one in first[::-1]]


@pytest.mark.parametrize("changed", ["settings", "rooms", "trial", "kind"])
def test_what_a_result_depends_on_is_part_of_its_name(networks: list[Trial], changed: str) -> None:
    measures.measure("named", size, networks[:1], {"times": 2}, ("measures",), jobs=1)
    kind = "other" if changed == "kind" else "named"
    settings = {"times": 3} if changed == "settings" else {"times": 2}
    rooms = ("measures", "rules") if changed == "rooms" else ("measures",)
    trial = replace(networks[0], sigma=0.5) if changed == "trial" else networks[0]
    with pytest.raises(AssertionError, match="measured again"):
        measures.measure(kind, never, [trial], settings, rooms, jobs=1)


def test_a_damaged_entry_is_measured_anew_with_a_warning(
    networks: list[Trial], tiny_cache: Path
) -> None:
    first = measures.measure("damaged", size, networks[:1], {"times": 2}, ("measures",), jobs=1)
    (entry,) = (tiny_cache / "damaged").rglob("*.npz")
    entry.write_bytes(entry.read_bytes()[:-5])
    with pytest.warns(RuntimeWarning, match="recomputing a damaged cache entry"):
        again = measures.measure("damaged", size, networks[:1], {"times": 2}, ("measures",), jobs=1)
    assert again[0]["size"] == first[0]["size"]
    assert store.cache_folder() == tiny_cache


def test_progress_is_told_of_what_is_missing_alone(networks: list[Trial]) -> None:
    told: list[tuple[int, int]] = []
    measures.measure("progress", size, networks[:2], {"times": 2}, ("measures",), jobs=1)
    measures.measure(
        "progress", size, networks, {"times": 2}, ("measures",), jobs=1,
        progress=lambda *now: told.append(now),
    )  # fmt: skip
    missing = len(networks) - 2
    assert told == [(done, missing) for done in range(missing + 1)]


def test_the_number_of_jobs_changes_no_number(networks: list[Trial]) -> None:
    alone, shared = (
        measures.measure(f"jobs-{jobs}", size, networks, {"times": 2}, ("measures",), jobs=jobs)
        for jobs in (1, 2)
    )
    assert [one["size"] for one in alone] == [one["size"] for one in shared]
