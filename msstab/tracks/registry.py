"""What a track is, and the tracks by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from msstab.study import KNOWN_NAMES, declare, nearest
from msstab.tracks.simulation import System

Array = NDArray[np.float64]

_NONE = np.empty((0, 0, 0))


class Split(NamedTuple):
    """Sequences for one purpose.

    `inputs` (N, T, D), and `targets` (N, K, O) after each of the last K steps. `future` (N, F, D)
    is how the quantity of the inputs goes on after the last of them, free of observation noise;
    empty unless asked for.
    """

    inputs: Array
    targets: Array
    future: Array = _NONE


class Data(NamedTuple):
    """The three splits of a track, in standard deviations of the training signal."""

    train: Split
    validation: Split
    test: Split


class Generate(Protocol):
    """Draws a track's data."""

    def __call__(
        self, streams: Sequence[np.random.Generator], sizes: Sequence[int], future: int = 0
    ) -> Data:
        """Draw each split from a stream of its own, the test split with `future` further steps.

        The size of one split changes neither the sequences nor the scale of another, and a future
        changes nothing but itself. Raises ValueError for a future where inputs are no quantity
        that could be forecast.
        """


@dataclass(frozen=True)
class Track:
    """A track's description, for readers, beside the function that draws its data.

    `length` T and `horizon`, the steps from the last input to its target; `step`, what one step
    is; `steps` K, after how many of the last steps there is a target. `autonomous`: targets are
    later values of the inputs' own quantities, in the same order. `module` draws it, and its
    results depend on the code of that, besides what all tracks share, and on `source_digest` of
    data that are read, as one series (`measured`). `system` is what was simulated, if it runs
    freely and is not random.
    """

    title: str
    description: str
    source: str
    licence: str
    length: int
    horizon: int
    step: str
    generate: Generate
    module: str
    steps: int = 1
    autonomous: bool = True
    source_digest: str = ""
    measured: bool = False
    system: System | None = None

    @property
    def closed(self) -> bool:
        """Whether forecasts can be fed back as the next inputs: a free run makes sense."""
        return self.autonomous and self.horizon == 1

    @property
    def rooms(self) -> tuple[str, ...]:
        """The rooms of code that its data depend on; see `keys.key`."""
        own = self.module.removeprefix("msstab.").replace(".", "/")
        shared = ("series", "reading") if self.measured else ("simulation", "windows")
        return ("tracks/registry", *(f"tracks/{room}" for room in shared), own)


TRACKS: dict[str, Track] = {}


def add(name: str, made: Track) -> None:
    """Make a track known by its name, here and in a Study."""
    TRACKS[name] = made
    declare("track", name)


OPENERS: list[Callable[[str], Track | None]] = []
"""What makes a track of a name that is none of `TRACKS`, and nothing of a name it does not know."""


def track(name: str) -> Track:
    """Return a track by its name, or of a reader's own series by its full name (see `name_of`).

    Raises ValueError for a name that is not known, or a series that cannot be used.
    """
    if name in TRACKS:
        return TRACKS[name]
    for opener in OPENERS:
        if found := opener(name):
            return found
    raise ValueError(f"no such track; {nearest(name, KNOWN_NAMES['track'])}")
