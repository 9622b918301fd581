"""Data: from a track's name and a random stream to training, validation and test sequences."""

from msstab.tracks import driven, lorenz, maps, oscillators  # noqa: F401  (each adds its tracks)
from msstab.tracks.lyapunov import lyapunov_exponent
from msstab.tracks.registry import TRACKS, Array, Data, Split, Track, add, track

__all__ = [
    "TRACKS",
    "Array",
    "Data",
    "Split",
    "Track",
    "add",
    "lyapunov_exponent",
    "track",
]
