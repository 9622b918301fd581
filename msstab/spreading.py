"""Spread calls over processes of this machine, or over wherever else they are to run."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import joblib

Work = Callable[..., Any]
"""What a process can import, or what can be sent to it whole; keeps its results in the store."""

Calls = Sequence[tuple[Any, ...]]
"""The arguments of each call."""

Place = Callable[[Work, Calls, int], Iterator[Any]]
"""Where calls run: see `spread`."""


def here(work: Work, calls: Calls, jobs: int) -> Iterator[Any]:
    """Run calls in `jobs` processes of this machine, or in this one if that is enough."""
    if not calls:
        return
    parallel = joblib.Parallel(n_jobs=min(jobs, len(calls)), return_as="generator_unordered")
    with warnings.catch_warnings():
        # A process that has grown is replaced, and its work given to another: nothing is lost.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        yield from parallel(joblib.delayed(work)(*arguments) for arguments in calls)


_PLACE: ContextVar[Place] = ContextVar("place", default=here)


def spread(work: Work, calls: Calls, jobs: int) -> Iterator[Any]:
    """Yield what each call of `work` returns, in the order in which they are done.

    `jobs` is how many may run at a time. Once its return value is there, what a call has kept is
    in the store of this machine, wherever it ran.
    """
    return _PLACE.get()(work, calls, jobs)


@contextmanager
def elsewhere(place: Place) -> Iterator[None]:
    """Spread calls over another place in the block."""
    token = _PLACE.set(place)
    try:
        yield
    finally:
        _PLACE.reset(token)
