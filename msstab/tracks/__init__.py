"""Data: from a track's name and a random stream to training, validation and test sequences."""

from msstab.tracks import (  # noqa: F401  (each adds its tracks)
    driven,
    lorenz,
    maps,
    measured,
    oscillators,
)
from msstab.tracks.lyapunov import lyapunov_exponent
from msstab.tracks.own import FIELDS, is_own, name_of, of
from msstab.tracks.registry import TRACKS, Array, Data, Split, Track, add, track

__all__ = [
    "FIELDS",
    "TRACKS",
    "Array",
    "Data",
    "Split",
    "Track",
    "add",
    "is_own",
    "lyapunov_exponent",
    "name_of",
    "of",
    "track",
]
