from typing import NamedTuple

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from msstab import tracks
from msstab.seeding import generator
from msstab.tracks import Array, Data, Split

SPLITS = ("train", "validation", "test")


def draw(sizes: tuple[int, int, int], seed: int = 0, purpose: str = "tuning") -> Data:
    streams = [generator(0, "dynamics", purpose, seed, split) for split in SPLITS]
    return tracks.track("dynamics").generate(streams, sizes)


def lorenz_x(starts: Array) -> Array:
    """The first coordinate at 27 times, (N, 27), from starts (3, N), as exactly as can be had."""
    times = np.linspace(0, 0.02 * 26, 27)

    def derivative(_: float, s: Array) -> list[float]:
        return [10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 * s[2] / 3]

    rows = []
    for start in starts.T:
        solution = solve_ivp(
            derivative, (0, times[-1]), start, "DOP853", times, rtol=1e-11, atol=1e-11
        )
        rows.append(solution.y[0])
    return np.array(rows)


class Recorded(NamedTuple):
    data: Data
    starts: Array


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """A draw of the track and the states on the attractor from which its sequences start."""
    integrate, starts = tracks.runge_kutta, []

    def record(derivative, state, *steps):  # type: ignore[no-untyped-def]
        starts.append(state)
        return integrate(derivative, state, *steps)

    monkeypatch.setattr(tracks, "runge_kutta", record)
    return Recorded(draw((40, 20, 10)), starts[-1])


# ---- the integrator


def test_the_integrator_is_of_fourth_order() -> None:
    def errors(substeps: int) -> float:
        path = tracks.runge_kutta(lambda s: np.array([s[1], -s[0]]), np.eye(2), 0.5, 4, substeps)
        t = 0.5 * np.arange(5)
        exact = np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]])
        return float(np.abs(path - exact.transpose(2, 0, 1)).max())

    assert errors(1) < 5e-3
    assert errors(2) / errors(4) == pytest.approx(16, rel=0.1)
    assert errors(4) / errors(8) == pytest.approx(16, rel=0.1)


def test_the_path_holds_the_start_and_every_interval() -> None:
    path = tracks.runge_kutta(lambda s: np.ones_like(s), np.array([[0.0, 5.0]]), 0.1, 3, 2)
    expected = np.array([[0.0, 5.0], [0.1, 5.1], [0.2, 5.2], [0.3, 5.3]])
    np.testing.assert_allclose(path[:, 0], expected)


# ---- the dynamics track


def test_sequences_follow_lorenz_to_a_ten_thousandth_of_the_signal(recorded: Recorded) -> None:
    x = lorenz_x(recorded.starts)
    x = (x - x[:40].mean()) / x[:40].std()  # scaled by the training sequences alone
    data = recorded.data
    targets = np.vstack([split.targets for split in data])
    noise = np.vstack([split.inputs[..., 0] for split in data]) - x[:, :24]
    # The target is the noise-free value three steps after the last input.
    np.testing.assert_allclose(targets[:, 0], x[:, 26], atol=1e-4, rtol=0)
    # The inputs carry noise of 0.02 standard deviations: independent, and not hidden errors.
    assert noise.std() == pytest.approx(0.02, rel=0.06)
    assert abs(noise.mean()) < 4 * 0.02 / np.sqrt(noise.size)
    assert abs(np.corrcoef(noise[:, 1:].ravel(), noise[:, :-1].ravel())[0, 1]) < 0.1


def test_sequences_start_all_over_the_attractor() -> None:
    x = draw((2000, 0, 0)).train.targets[:, 0] * 7.92
    # x is symmetric about 0 with a deviation of 7.92; on the attractor it stays within 20.
    assert abs(x.mean()) < 4 * 7.92 / np.sqrt(2000)
    assert np.abs(x).max() < 22
    # A cloud of synchronised trajectories would leave gaps.
    counts, _ = np.histogram(x, bins=12, range=(-16, 16))
    assert counts.min() > 50


def test_shapes() -> None:
    data = draw((9, 8, 11))
    assert [split.inputs.shape for split in data] == [(9, 24, 1), (8, 24, 1), (11, 24, 1)]
    assert [split.targets.shape for split in data] == [(9, 1), (8, 1), (11, 1)]
    described = tracks.track("dynamics")
    assert (described.length, described.horizon) == (24, 3)


@pytest.mark.parametrize("sizes", [(16, 8, 30), (16, 30, 8), (16, 0, 0)])
def test_a_split_depends_neither_on_the_size_nor_the_scale_of_the_others(
    sizes: tuple[int, int, int],
) -> None:
    before, after = draw((16, 8, 8)), draw(sizes)
    for first, second in zip(before, after, strict=True):
        if len(first.inputs) == len(second.inputs):
            same(first, second)
    same(before.train, after.train)


def same(first: Split, second: Split) -> None:
    np.testing.assert_array_equal(first.inputs, second.inputs)
    np.testing.assert_array_equal(first.targets, second.targets)


def test_equal_streams_give_equal_data() -> None:
    for first, second in zip(draw((8, 8, 8)), draw((8, 8, 8)), strict=True):
        same(first, second)


def test_splits_seeds_and_purposes_share_no_sequence() -> None:
    draws = [draw((8, 8, 8)), draw((8, 8, 8), seed=1), draw((8, 8, 8), purpose="confirmation")]
    starts = [row for data in draws for split in data for row in split.inputs[:, 0, 0]]
    assert len(set(starts)) == len(starts) == 3 * 3 * 8
