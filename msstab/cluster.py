"""Join a Dask cluster: what is spread in the block runs on its workers, through joblib."""

import pickle
import sys
import threading
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import partial
from operator import call
from typing import Any

import cloudpickle
import joblib
from distributed import Client, Future, KilledWorker
from joblib.parallel import ParallelBackendBase, SequentialBackend
from toolz import compose

from msstab import parcels, spreading
from msstab.publishing import BuildError
from msstab.spreading import Calls, Work

ANSWER, PATIENCE = 30.0, 60.0
"""Seconds to wait for a scheduler; for a first worker, and for another one when all are gone."""

KEPT = "finished trials are kept, and the same command goes on from there"


@contextmanager
def joined(address: str) -> Iterator[int]:
    """Spread work over a cluster in the block; yield its number of workers.

    `address` is the scheduler's, such as `tcp://host:8786`. Workers compute what this machine
    would, to the last bit, and this machine keeps it. Raises BuildError where none answers, or a
    worker has other versions; in the block, where work cannot go on.
    """
    with _connected(address) as client:
        workers = _require_usable(client, address)
        print(f"{workers} worker{'s' if workers > 1 else ''} at {address}", flush=True)
        with spreading.elsewhere(partial(_spread, client, workers)):
            yield workers


class _Dask(ParallelBackendBase):  # type: ignore[misc]  # joblib ships without types
    """Joblib's way to a Dask client.

    Its own one hears nothing of a call that kills its worker or cannot be read there, and then
    waits for ever; and where a single worker is left it computes on this machine instead.
    """

    supports_retrieve_callback = True

    def __init__(self, client: Client) -> None:
        super().__init__()
        self.client = client
        self.pending: set[Future[Any]] = set()

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Take any number but 1, with which joblib would not ask a backend."""
        return max(2, n_jobs)

    def get_nested_backend(self) -> tuple[ParallelBackendBase, None]:
        """Let nothing on a worker start processes of its own."""
        return SequentialBackend(nesting_level=1), None

    def submit(
        self, func: Callable[[], Any], callback: Callable[[Future[Any]], None]
    ) -> Future[Any]:
        """Send a call as bytes, so that the scheduler need not have what only workers use."""
        future = self.client.submit(
            compose(call, pickle.loads),
            cloudpickle.dumps(func),
            key=f"msstab-{uuid.uuid4().hex}",
            pure=False,
        )
        self.pending.add(future)
        future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, future: Future[Any]) -> Any:
        """Return what a call returned, or raise what it raised."""
        self.pending.discard(future)
        return future.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Take back what has not been computed yet."""
        self.give_up()

    def give_up(self, why: str | None = None) -> None:
        """End all calls, for a reason."""
        if self.client.status == "running":
            self.client.cancel(list(self.pending), msg=why)


def _spread(client: Client, workers: int, work: Work, calls: Calls, jobs: int) -> Iterator[Any]:
    """Run calls on the workers; see `spreading.spread`."""
    if not calls:
        return
    backend = _Dask(client)
    # A worker has its next call before it has done one, unless it is to leave room for others.
    ahead = jobs if jobs < workers else 2 * jobs
    parallel = joblib.Parallel(
        n_jobs=jobs, backend=backend, pre_dispatch=ahead, return_as="generator_unordered"
    )
    run = joblib.delayed(parcels.run)
    done = parallel(run(parcels.pack(arguments), work, arguments) for arguments in calls)
    with _patient(client, backend), _quietly_ended(done):
        while (found := _next(done)) is not None:
            value, made = found
            parcels.keep(made)
            yield value


def _next(done: Iterator[Any]) -> Any:
    """Return the next result, None after the last; raise BuildError for what ends the work."""
    try:
        return next(done, None)
    except KilledWorker as error:
        raise BuildError(
            f"the same trials ended worker after worker, {error.allowed_failures + 1} in all, "
            f"perhaps for want of memory; {KEPT}"
        ) from None
    except CancelledError as error:
        why = getattr(error, "msg", None) or "the cluster has ended the work"
        raise BuildError(f"{' '.join(why.split())}; {KEPT}") from None
    except ImportError as error:
        raise BuildError(f"a worker that came later cannot be used: {error}; {KEPT}") from None


@contextmanager
def _quietly_ended(done: Generator[Any]) -> Iterator[None]:
    """Take back what is left at the end of the block, of which joblib would warn."""
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"\d+ tasks", UserWarning)
            done.close()


@contextmanager
def _patient(client: Client, backend: _Dask) -> Iterator[None]:
    """Give up in the block when no worker has been there for too long."""
    ended = threading.Event()

    def watch() -> None:
        lacking = 0.0
        while not ended.wait(PATIENCE / 20):
            try:
                lacking = 0.0 if client.ncores() else lacking + PATIENCE / 20
            except Exception:  # the scheduler is busy, or the client closing
                continue
            if lacking >= PATIENCE:
                backend.give_up(f"no worker has been left for {PATIENCE:g} s")

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    """Connect to a scheduler; raise BuildError where none answers."""
    if not address.strip():
        raise BuildError("--dask needs an address, such as tcp://host:8786", exit_code=2)
    try:
        client = Client(address, timeout=ANSWER, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise BuildError(
            f"no Dask scheduler answers at {address}: {' '.join(str(error).split())}", exit_code=2
        ) from None
    try:
        yield client
    finally:
        # A scheduler that is gone does not answer, and what was said of it goes before.
        with suppress(OSError):
            client.close()


def _require_usable(client: Client, address: str) -> int:
    """Return the number of workers; raise BuildError where there is none, or one of no use."""
    try:
        # Work that waits makes a cluster grow that adapts.
        client.submit(int, pure=False).result(timeout=PATIENCE)
    except TimeoutError:
        raise BuildError(
            f"no worker has come to {address} for {PATIENCE:g} s: start some", exit_code=2
        ) from None
    found = client.run(parcels.machine, on_error="return")
    refused = {worker: _unusable(there) for worker, there in found.items()}
    if any(refused.values()):
        raise BuildError("\n".join(_grouped(refused)), exit_code=2)
    own = parcels.machine()[parcels.VECTORS]
    if any(there[parcels.VECTORS] != own for there in found.values()):
        _note(f"not all workers have {own}, as this machine has: last digits may differ")
    if any(threads > 1 for threads in client.ncores().values()):
        _note("a worker of several threads computes on one: start workers with --nthreads 1")
    return len(found)


def _unusable(there: dict[str, str] | Exception) -> str:
    """Say why a worker that has answered so is of no use; empty if it is of use."""
    if isinstance(there, Exception):
        return f"it cannot run msstab: {there}"
    return parcels.differences(there, parcels.VERSIONS)


def _grouped(refused: Mapping[str, str]) -> Iterator[str]:
    """Say once of all workers that are of no use for the same reason."""
    for why, count in Counter(filter(None, refused.values())).items():
        example = next(worker for worker, own in refused.items() if own == why)
        yield f"{count} of {len(refused)} workers, {example} for one: {why}"


def _note(line: str) -> None:
    print(f"note: {line}", file=sys.stderr, flush=True)
