import hashlib
import importlib.util
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm

from msstab import study, tracks
from msstab.tracks import Array, measured, series

SHIPPED = ("sunspots", "el_nino", "ecg")
every_series = pytest.mark.parametrize("name", SHIPPED)


def column(name: str) -> Array:
    rows = np.loadtxt(measured.DATA / f"{name}.csv", delimiter=",", skiprows=1, dtype=str)
    found: Array = rows.reshape(len(rows), -1)[:, -1].astype(float)
    return found


def streams(seed: int = 0) -> list[np.random.Generator]:
    return [np.random.default_rng([seed, k]) for k in range(3)]


def test_public_series_are_those_of_their_source() -> None:
    np.testing.assert_array_equal(
        column("sunspots"), sm.datasets.sunspots.load_pandas().data.SUNACTIVITY
    )
    monthly = sm.datasets.elnino.load_pandas().data.drop(columns="YEAR").to_numpy().ravel()
    np.testing.assert_array_equal(column("el_nino"), monthly)


def test_the_electrocardiogram_beats_as_a_heart_does() -> None:
    volts = column("ecg")
    assert len(volts) == 7500
    peaks = np.flatnonzero(
        (volts[1:-1] > 0.6) & (volts[1:-1] >= volts[:-2]) & (volts[1:-1] > volts[2:])
    )
    assert 60 < 60 * 360 / np.median(np.diff(peaks)) < 90


@pytest.mark.parametrize("name", [*SHIPPED, "ODC-By-1.0"])
def test_every_shipped_file_is_described_with_source_and_licence(name: str) -> None:
    text = (measured.DATA / "README.md").read_text(encoding="utf-8")
    assert f"`{name}." in text
    licence = (measured.DATA / "ODC-By-1.0.txt").read_text(encoding="utf-8")
    assert "ODC Attribution License" in licence
    assert "4.2 Notices" in licence
    described = {path.name for path in measured.DATA.iterdir()}
    others = {"README.md", "ODC-By-1.0.txt", "stage2_report.json"}
    assert described == others | {f"{own}.csv" for own in SHIPPED}


@every_series
def test_windows_lie_in_their_own_part_of_the_series(name: str) -> None:
    made, raw = tracks.track(name), column(name)
    span = made.length + made.horizon
    blocks = series.parts(len(raw), span)
    training = raw[: len(blocks[0])]
    scaled = (raw - training.mean()) / training.std()
    data = made.generate(streams(), (200, 200, 200))
    for split, block in zip(data, blocks, strict=True):
        shown = np.lib.stride_tricks.sliding_window_view(scaled[block.start : block.stop], span)
        windows = np.concatenate([split.inputs[..., 0], split.targets[:, 0]], axis=1)
        own = {row.tobytes() for row in np.delete(shown, range(made.length, span - 1), axis=1)}
        assert all(row.tobytes() in own for row in windows)
    # Two parts are a window apart at least.
    for first, second in itertools.pairwise(blocks):
        assert second.start - first.stop == span


@every_series
def test_seeds_draw_other_windows_of_the_same_series_and_this_is_said(name: str) -> None:
    made = tracks.track(name)
    first, second = (made.generate(streams(seed), (50, 0, 0)).train.inputs for seed in (0, 1))
    assert not np.array_equal(first, second)
    assert series.RESAMPLED in made.description
    assert (
        made.source_digest
        == hashlib.sha256((measured.DATA / f"{name}.csv").read_bytes()).hexdigest()
    )


def test_the_laser_is_refused_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    measured._laser.cache_clear()
    with pytest.raises(study.StudyError, match=r"pip install 'msstab\[laser\]'"):
        study.parse({"track": "laser", "arms": "baseline,output_variance"})


def test_the_laser_is_read_from_the_package_that_holds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "reservoirpy" / "datasets").mkdir(parents=True)
    (tmp_path / "reservoirpy" / "__init__.py").write_text("raise ImportError('slow')")
    intensity = np.random.default_rng(0).integers(0, 255, size=(10093, 1))
    np.save(tmp_path / "reservoirpy" / "datasets" / "santafe_laser.npy", intensity)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    measured._laser.cache_clear()
    made = tracks.track("laser")
    measured._laser.cache_clear()
    assert made.closed
    assert made.generate(streams(), (5, 5, 5)).train.inputs.shape == (5, 32, 1)
