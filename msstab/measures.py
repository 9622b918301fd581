"""Further measurements of trained networks, beside their scores, each kept once it is made."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import joblib
from numpy.typing import ArrayLike, NDArray

from msstab import spreading, store
from msstab.experiment import Progress
from msstab.keys import key
from msstab.trials import ROOMS_OF_TRAINING, Trial

Measurement = Callable[[Trial, Mapping[str, Any]], Mapping[str, ArrayLike]]


def measure(
    kind: str,
    function: Measurement,
    trials: Sequence[Trial],
    settings: Mapping[str, Any],
    rooms: tuple[str, ...],
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[dict[str, NDArray[Any]]]:
    """Return function(trial, settings) for each trial, in their order; what is kept is read.

    `kind` names the measurement among those that are kept. `settings` is what JSON can hold; with
    the trial's key and the code of `rooms` (module names, beside those that train) it is all the
    result may depend on. The function is one that other processes can import, and returns arrays
    by name. `jobs` processes share what is missing, by default one for each core;
    `progress(done, total)` is told of it.
    """
    names = [key(settings, (*ROOMS_OF_TRAINING, *rooms), of=(trial.key,)) for trial in trials]
    missing = {
        name: trial for name, trial in zip(names, trials, strict=True) if not store.has(kind, name)
    }
    calls = [(kind, name, function, trial, settings) for name, trial in missing.items()]
    if progress and calls:
        progress(0, len(calls))
    for done, _ in enumerate(spreading.spread(_keep, calls, jobs or joblib.cpu_count()), 1):
        if progress:
            progress(done, len(calls))
    return [
        _load(kind, name, function, trial, settings)
        for name, trial in zip(names, trials, strict=True)
    ]


def _keep(
    kind: str, name: str, function: Measurement, trial: Trial, settings: Mapping[str, Any]
) -> None:
    store.save(kind, name, function(trial, settings))


def _load(
    kind: str, name: str, function: Measurement, trial: Trial, settings: Mapping[str, Any]
) -> dict[str, NDArray[Any]]:
    found = store.load(kind, name)
    if found is None:  # damaged since
        _keep(kind, name, function, trial, settings)
        found = store.load(kind, name)
    assert found is not None
    return found
