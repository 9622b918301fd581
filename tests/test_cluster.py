import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from distributed import Client
from typer.testing import CliRunner

import msstab
from msstab import (
    arms,
    book,
    cli,
    cluster,
    experiment,
    parcels,
    quantised,
    rerun,
    spreading,
    study,
)
from msstab.experiment import Experiment
from msstab.publishing import BuildError

QUICK = study.parse(
    {
        "arms": ["baseline", "spectral_proxy"],
        "hidden": 4,
        "epochs": 2,
        "n_train": 32,
        "n_validation": 8,
        "n_test": 8,
        "draws": 2,
        "mechanism_sequences": 4,
        "tuning_seeds": 2,
        "seeds": 4,
        "other_seeds": 2,
        "survey_seeds": 2,
        "bits": [4],
    },
    study.profile("quick"),
)


class Worker:
    """A worker on this machine, with a folder of its own and no way to a cache."""

    def __init__(self, address: str, folder: Path, before: str = "", *options: str) -> None:
        program = f"{before}\nfrom distributed.cli.dask_worker import main; main()"
        arguments = ("--no-nanny", "--no-dashboard", "--local-directory", str(folder))
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, address, *arguments, *(options or ("--nthreads", "1"))],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path(), "MSSTAB_CACHE": "/dev/null/none"},
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        self.process.kill()
        assert self.process.wait() == -signal.SIGKILL


def path() -> str:
    return os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))


class Scheduler(NamedTuple):
    address: str
    process: subprocess.Popen[bytes]


@contextmanager
def scheduler(folder: Path, **environment: str) -> Iterator[Scheduler]:
    """Start a scheduler on this machine."""
    file = folder / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"]
    command += ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stderr=subprocess.DEVNULL
    )
    try:
        wait(lambda: file.exists() and file.read_text().endswith("}"))
        yield Scheduler(json.loads(file.read_text())["address"], process)
    finally:
        process.kill()
        process.wait()


@contextmanager
def workers(address: str, folder: Path, *before: str) -> Iterator[list[Worker]]:
    """Start workers, each after a line of code, and wait until they are there."""
    with ExitStack() as stack:
        started = []
        for number, line in enumerate(before):
            (folder / str(number)).mkdir()
            worker = Worker(address, folder / str(number), line)
            stack.callback(worker.process.wait)
            stack.callback(worker.process.kill)
            started.append(worker)
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(len(before), timeout=600)
        yield started


def wait(done: Callable[[], bool], seconds: float = 600) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of two workers that all tests share."""
    folder = tmp_path_factory.mktemp("cluster")
    with scheduler(folder) as found, workers(found.address, folder, "", ""):
        yield found.address


@pytest.fixture(autouse=True)
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def contents(folder: Path) -> dict[str, dict[str, Any]]:
    """All that a store holds, the time that it took apart."""
    found = {}
    for file in sorted(folder.rglob("*.npz")):
        with np.load(file) as arrays:
            kept = {name: arrays[name] for name in arrays.files if name != "seconds"}
        found[file.relative_to(folder).as_posix()] = kept
    return found


def assert_same_store(first: Path, second: Path) -> None:
    """Equal to the last bit."""
    one, other = contents(first), contents(second)
    assert set(one) == set(other)
    for name, arrays in one.items():
        assert set(arrays) == set(other[name])
        for key, array in arrays.items():
            np.testing.assert_array_equal(array, other[name][key], strict=True)
            assert array.tobytes() == other[name][key].tobytes()


def assert_equal(first: Experiment, second: Experiment) -> None:
    a, b = (e.table.drop(columns="seconds") for e in (first, second))
    pd.testing.assert_frame_equal(a, b, check_exact=True)


# ---- the same numbers


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a run on this machine."""
    folder = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MSSTAB_CACHE", str(folder))
        quantised.collect(QUICK, jobs=1)
    return folder


def test_a_run_that_loses_a_worker_has_the_numbers_of_one_on_this_machine(
    tmp_path: Path, cold: Path, alone: Path
) -> None:
    """Every trial's arrays: trained networks, scores and what is measured of them."""
    told: list[tuple[int, int]] = []
    with (
        scheduler(tmp_path) as (address, _),
        workers(address, tmp_path, "", "") as (lost, _),
        Client(address, set_as_default=False) as other,
    ):
        (name,) = (n for n, process in other.run(os.getpid).items() if process == lost.process.pid)

        def advance(done: int, total: int) -> None:
            told.append((done, total))
            half_way = 2 * done > total
            if half_way and lost.process.poll() is None and other.processing()[name]:
                lost.kill()

        with cluster.joined(address) as found:
            assert found == 2
            quantised.collect(QUICK, jobs=found, progress=advance)
        assert lost.process.poll() == -signal.SIGKILL
        assert name not in other.run(os.getpid)
    assert told[-1][0] == told[-1][1]
    assert_same_store(cold, alone)
    assert {folder.name for folder in cold.iterdir()} >= {"train", "score", "rounding"}


OWN_ARM = """
import torch
from msstab.arms import Penalty, Step, arm

def size(step: Step) -> torch.Tensor:
    return step.parameters.weight_hh.square().mean((1, 2))

@arm(strengths=(0, 1, 10))
def small_weights(step: Step) -> Penalty:
    value = size(step)
    return Penalty(value, torch.ones_like(value))
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """An arm and a series of the reader's own, in folders that only this machine knows."""
    (tmp_path / "here").mkdir()
    (tmp_path / "ideas.py").write_text(OWN_ARM, encoding="utf-8")
    rows = np.random.default_rng(0).normal(size=600).cumsum()
    (tmp_path / "mine.csv").write_text("x\n" + "\n".join(map(str, rows)), encoding="utf-8")
    monkeypatch.chdir(tmp_path / "here")
    name = "../ideas.py:small_weights"
    yield {"arms": ["baseline", name], "track": "csv:../mine.csv", "window": 8}
    arms.ARMS.pop(name, None)


def test_an_arm_and_a_series_of_ones_own_go_along(
    address: str, own: dict[str, Any], cold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = study.parse(own, QUICK)
    with cluster.joined(address) as found:
        there = experiment.run(given, jobs=found)
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path / "other"))
    assert_equal(there, experiment.run(given))
    assert_same_store(cold, tmp_path / "other")


def test_a_second_run_sends_nothing(
    address: str, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSSTAB_CACHE", str(alone))

    def never(_: object) -> None:
        raise AssertionError("something was sent")

    monkeypatch.setattr(parcels, "pack", never)
    with cluster.joined(address) as found:
        quantised.collect(QUICK, jobs=found)


def test_work_runs_on_the_workers_even_if_there_is_one_job(address: str) -> None:
    with cluster.joined(address):
        (there,) = spreading.spread(os.getpid, [()], 1)
    assert there != os.getpid()


@pytest.mark.parametrize(("jobs", "expected"), [([], 7), (["--jobs", "3"], 3)])
@pytest.mark.parametrize("command", ["build", "run"])
def test_trials_are_cut_for_the_workers_there_are_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, command: str, jobs: list[str], expected: int
) -> None:
    asked: list[tuple[int, bool]] = []
    inside: list[str] = []

    @contextmanager
    def joined(address: str) -> Iterator[int]:
        inside.append(address)
        yield 7
        inside.clear()

    def work(*_: object, jobs: int, **__: object) -> book.BuildResult:
        asked.append((jobs, inside == ["tcp://host:8786"]))
        return book.BuildResult(Path("index.html"), "An answer.", {})

    monkeypatch.setattr(cluster, "joined", joined)
    monkeypatch.setattr(book, "build", work)
    monkeypatch.setattr(rerun, "run", work)
    chapter = ["03_penalty"] if command == "run" else []
    result = CliRunner().invoke(cli.app, [command, *chapter, "--dask", "tcp://host:8786", *jobs])
    assert result.exit_code == 0, result.output
    assert asked == [(expected, True)]
    assert not inside


# ---- trouble


def lines(*arguments: str) -> list[str]:
    """What a command says when it ends with exit code 2."""
    result = CliRunner().invoke(cli.app, list(arguments))
    assert result.exit_code == 2
    assert result.stdout == ""
    return result.stderr.splitlines()


@pytest.mark.parametrize("command", [["build"], ["run", "03_penalty"]])
@pytest.mark.parametrize("where", ["tcp://127.0.0.1:1", "127.0.0.1:1", "nowhere://x", "tcp://x:y"])
def test_an_address_that_does_not_answer_is_refused(
    monkeypatch: pytest.MonkeyPatch, command: list[str], where: str
) -> None:
    monkeypatch.setattr(cluster, "ANSWER", 0.3)
    (line,) = lines(*command, "--dask", where)
    assert line.startswith(f"error: no Dask scheduler answers at {where}: ")
    assert lines(*command, "--dask", "") == [
        "error: --dask needs an address, such as tcp://host:8786"
    ]


def test_without_dask_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "msstab.cluster")
    monkeypatch.delattr(msstab, "cluster")
    assert lines("build", "--dask", "tcp://127.0.0.1:1") == [
        'error: --dask needs distributed: pip install "msstab[cluster]"'
    ]


def test_workers_of_other_versions_are_refused_by_name(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = parcels.VERSIONS["torch"]
    monkeypatch.setitem(parcels.VERSIONS, "torch", "1.0")
    (line,) = lines("build", "--dask", address)
    assert line.startswith("error: 2 of 2 workers, tcp://127.0.0.1:")
    assert line.endswith(f" for one: torch {torch}, where 1.0 runs here")


def test_workers_without_msstab_are_refused(tmp_path: Path) -> None:
    without = "import sys; sys.modules['msstab'] = None"
    with scheduler(tmp_path) as (address, _), workers(address, tmp_path, without):
        (line,) = lines("build", "--dask", address)
        assert "1 of 1 workers" in line
        assert "it cannot run msstab: " in line
        assert "No module named 'msstab" in line.replace("\\", "")


def test_a_cluster_without_workers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.2)
    with scheduler(tmp_path) as (address, _):
        assert lines("build", "--dask", address) == [
            f"error: no worker has come to {address} for 0.2 s: start some"
        ]


def test_trials_that_end_every_worker_end_the_run_with_a_line(tmp_path: Path) -> None:
    # Of the four workers that Dask lets die, one will do.
    once = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with (
        scheduler(tmp_path, **once) as (address, _),
        workers(address, tmp_path, "", ""),
        cluster.joined(address),
        pytest.raises(BuildError, match="the same trials ended worker after worker, 1 in all"),
    ):
        list(spreading.spread(os._exit, [(1,)], 2))


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("worker", r"no worker has been left for 0\.5 s; finished trials are kept"),
        ("scheduler", "lost the connection to the scheduler.*; finished trials are kept"),
    ],
)
def test_the_end_of_a_cluster_is_said_in_a_line_and_what_is_done_is_kept(
    tmp_path: Path,
    cold: Path,
    alone: Path,
    monkeypatch: pytest.MonkeyPatch,
    gone: str,
    message: str,
) -> None:
    told: list[int] = []
    with (
        scheduler(tmp_path) as (address, process),
        workers(address, tmp_path, "") as (worker,),
    ):
        ends = worker.process.kill if gone == "worker" else process.kill

        def advance(done: int, total: int) -> None:
            told.append(done)
            if len(told) == 4:
                ends()

        with cluster.joined(address):
            monkeypatch.setattr(cluster, "PATIENCE", 0.5)
            with pytest.raises(BuildError, match=message) as error:
                experiment.run(QUICK, jobs=4, progress=advance)
    assert error.value.exit_code == 1
    assert "\n" not in str(error.value)
    assert len(contents(cold)) >= told[-1] > 0
    quantised.collect(QUICK, jobs=1)
    assert_same_store(cold, alone)
