"""Measured series: sunspots, the sea's temperature, an electrocardiogram, and a laser."""

import functools
import hashlib
import importlib.util
from pathlib import Path

import numpy as np

from msstab.study import declare
from msstab.tracks.registry import OPENERS, Array, Track, add
from msstab.tracks.series import RESAMPLED, of_series

DATA = Path(__file__).parents[1] / "data"


def _measured(
    values: Array,
    content: bytes,
    *,
    title: str,
    what: str,
    source: str,
    licence: str,
    step: str,
    length: int,
    horizon: int,
) -> Track:
    """Return the track of one series (L,), read from a file of that content."""
    ahead = "the next one" if horizon == 1 else f"the one {horizon} steps after the last"
    series = values[:, None]
    return Track(
        title=title,
        description=(
            f"{what}, {len(values)} values, sampled every {step}. {length} values go in; {ahead} "
            f"is to be predicted. {RESAMPLED}"
        ),
        source=source,
        licence=licence,
        length=length,
        horizon=horizon,
        step=step,
        generate=of_series(series, series, length, horizon),
        module=__name__,
        source_digest=hashlib.sha256(content).hexdigest(),
        measured=True,
    )


def _read(name: str) -> tuple[Array, bytes]:
    """Return the last column of a file that is part of the package, and its content."""
    content = (DATA / f"{name}.csv").read_bytes()
    rows = content.decode().splitlines()[1:]
    return np.array([float(row.rpartition(",")[2]) for row in rows]), content


add(
    "sunspots",
    _measured(
        *_read("sunspots"),
        title="Sunspots",
        what="The number of sunspots from 1700 to 2008",
        source="National Geophysical Data Center (NOAA)",
        licence="public domain",
        step="year",
        length=24,
        horizon=6,
    ),
)
add(
    "el_nino",
    _measured(
        *_read("el_nino"),
        title="El Niño",
        what="The sea's temperature off Ecuador and Peru (region Niño 1+2) from 1950 to 2010",
        source="National Weather Service (NOAA), ERSST.V3B",
        licence="public domain",
        step="month",
        length=24,
        horizon=3,
    ),
)
add(
    "ecg",
    _measured(
        *_read("ecg"),
        title="Electrocardiogram",
        what="The voltage of an electrocardiogram with one abnormal beat",
        source="MIT-BIH Arrhythmia Database, Moody & Mark (2001), PhysioNet, Goldberger et al. "
        "(2000), an excerpt",
        licence="Open Data Commons Attribution License 1.0",
        step="1/360 s",
        length=32,
        horizon=4,
    ),
)


def _open(name: str) -> Track | None:
    return _laser() if name == "laser" else None


@functools.cache
def _laser() -> Track:
    """Read the laser's intensity from the package that holds it, for no licence allows shipping.

    Raises ValueError where that is not installed.
    """
    found = importlib.util.find_spec("reservoirpy")
    folders = (found.submodule_search_locations if found else None) or []
    for folder in folders:
        file = Path(folder) / "datasets" / "santafe_laser.npy"
        if file.is_file():
            return _measured(
                np.load(file).ravel().astype(np.float64),
                file.read_bytes(),
                title="Santa Fe laser",
                what="The intensity of a far-infrared laser that pulsates chaotically",
                source="Hübner, Abraham & Weiss (1989), from the package reservoirpy",
                licence="not known: it is read from the package reservoirpy",
                step="sample",
                length=32,
                horizon=1,
            )
    raise ValueError(
        "track laser is read from the package reservoirpy, which is not here: "
        "pip install 'msstab[laser]'"
    )


OPENERS.append(_open)
declare("track", "laser")
