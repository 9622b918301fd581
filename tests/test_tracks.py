from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from msstab import keys, store, study, tracks, trials
from msstab.seeding import generator
from msstab.tracks import Array, Data, Split, driven, maps, simulation
from msstab.trials import Trial

SPLITS = ("train", "validation", "test")
SIMULATED = (
    "dynamics",
    "lorenz_state",
    "van_der_pol",
    "van_der_pol_step",
    "henon",
    "fitzhugh_nagumo",
    "duffing",
    "two_tank",
    "ricker",
)
every_track = pytest.mark.parametrize("name", SIMULATED)
Derivative = Callable[[float, Array], list[float]]


def streams(name: str, seed: int = 0, purpose: str = "tuning") -> list[np.random.Generator]:
    return [generator(0, name, purpose, seed, split) for split in SPLITS]


def draw(
    name: str, sizes: tuple[int, int, int], seed: int = 0, purpose: str = "tuning", future: int = 0
) -> Data:
    return tracks.track(name).generate(streams(name, seed, purpose), sizes, future)


def joined(data: Data) -> Split:
    """The three splits one after the other."""
    return Split(*(np.concatenate(part) for part in list(zip(*data, strict=True))[:2]))


def same(first: Split, second: Split) -> None:
    np.testing.assert_array_equal(first.inputs, second.inputs)
    np.testing.assert_array_equal(first.targets, second.targets)


# ---- the integrator


def test_the_integrator_is_of_fourth_order() -> None:
    def errors(substeps: int) -> float:
        advance = simulation.runge_kutta(lambda s: np.array([s[1], -s[0]]), 0.5, substeps)
        path = simulation.trajectory(advance, np.eye(2), 4)
        t = 0.5 * np.arange(5)
        exact = np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]])
        return float(np.abs(path - exact.transpose(2, 0, 1)).max())

    assert errors(1) < 5e-3
    assert errors(2) / errors(4) == pytest.approx(16, rel=0.1)
    assert errors(4) / errors(8) == pytest.approx(16, rel=0.1)


def test_the_path_holds_the_start_and_every_interval() -> None:
    advance = simulation.runge_kutta(lambda s: np.ones_like(s), 0.1, 2)
    path = simulation.trajectory(advance, np.array([[0.0, 5.0]]), 3)
    expected = np.array([[0.0, 5.0], [0.1, 5.1], [0.2, 5.2], [0.3, 5.3]])
    np.testing.assert_allclose(path[:, 0], expected)


# ---- every simulated track against an independent solution, written anew here


def lorenz(_: float, s: Array) -> list[float]:
    return [10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 * s[2] / 3]


def van_der_pol(_: float, s: Array) -> list[float]:
    return [s[1], (1 - s[0] ** 2) * s[1] - s[0]]


def fitzhugh_nagumo(_: float, s: Array) -> list[float]:
    return [s[0] - s[0] ** 3 / 3 - s[1] + 0.5, 0.08 * (s[0] + 0.7 - 0.8 * s[1])]


def exactly(derivative: Derivative, start: Array, times: Array) -> Array:
    """The states (n, L) at these times, as exactly as can be had."""
    solution = solve_ivp(
        derivative, (times[0], times[-1]), start, "DOP853", times, rtol=1e-11, atol=1e-11
    )
    found: Array = solution.y
    return found


FREE: dict[str, tuple[Derivative, float, list[int]]] = {
    "dynamics": (lorenz, 0.02, [0]),
    "lorenz_state": (lorenz, 0.02, [0, 1, 2]),
    "van_der_pol": (van_der_pol, 0.2, [0]),
    "van_der_pol_step": (van_der_pol, 0.2, [0]),
    "fitzhugh_nagumo": (fitzhugh_nagumo, 1.0, [0]),
}


@pytest.mark.parametrize("name", FREE)
def test_sequences_follow_the_equations_to_a_ten_thousandth_of_the_signal(name: str) -> None:
    derivative, dt, coordinates = FREE[name]
    made, sizes, future = tracks.track(name), (12, 6, 4), 5
    assert made.system is not None
    begun = simulation.starts(made.system, list(zip(streams(name), sizes, strict=True)))
    last = made.length - 1 + made.horizon
    times = np.arange(max(last, made.length - 1 + future) + 1) * np.float64(dt)
    exact = np.array([exactly(derivative, start, times)[coordinates].T for start in begun.T])
    training = exact[: sizes[0], : last + 1].reshape(-1, len(coordinates))
    exact = (exact - training.mean(0)) / training.std(0)  # by the training sequences alone
    data = draw(name, sizes, future=future)
    # What is neither input nor of training carries no noise.
    held_out = np.concatenate([data.validation.targets, data.test.targets])
    np.testing.assert_allclose(held_out, exact[sizes[0] :, last:][:, :1], atol=1e-4, rtol=0)
    after = exact[-sizes[2] :, made.length : made.length + future]
    np.testing.assert_allclose(data.test.future, after, atol=1e-4, rtol=0)
    # The inputs carry independent noise, and no hidden errors.
    noise = joined(data).inputs - exact[:, : made.length]
    level = {"dynamics": 0.02, "lorenz_state": 0.03}.get(name, 0.05)
    assert noise.std() == pytest.approx(level, rel=0.15)
    assert abs(np.corrcoef(noise[:, 1:].ravel(), noise[:, :-1].ravel())[0, 1]) < 0.2
    target_noise = data.train.targets - exact[: sizes[0], last:][:, :1]
    if name == "lorenz_state":
        assert target_noise.std() == pytest.approx(0.03, rel=0.5)
        assert abs(np.corrcoef(target_noise.ravel(), noise[: sizes[0], -1].ravel())[0, 1]) < 0.6
    else:
        np.testing.assert_allclose(target_noise, 0, atol=1e-4)


def test_the_henon_map_is_the_published_one() -> None:
    made, sizes = tracks.track("henon"), (300, 0, 5)
    assert made.system is not None
    x, y = simulation.starts(made.system, list(zip(streams("henon"), sizes, strict=True)))
    path = [x]
    for _ in range(16 + 4):
        x, y = 1 - 1.4 * x**2 + y, 0.3 * x
        path.append(x)
    exact = np.array(path).T
    training = exact[:300, :17]
    exact = (exact - training.mean()) / training.std()
    data = draw("henon", sizes, future=5)
    np.testing.assert_allclose(data.train.targets[:, 0, 0], exact[:300, 16], atol=1e-9)
    np.testing.assert_allclose(data.test.future[..., 0], exact[300:, 16:], atol=1e-9)
    assert (data.train.inputs[..., 0] - exact[:300, :16]).std() == pytest.approx(0.02, rel=0.05)
    # Published bounds of the attractor.
    assert -1.29 < np.array(path).min() < np.array(path).max() < 1.28


def forced_duffing(drive: Array) -> Array:
    state, found = np.zeros(2), []
    for u in drive:
        state = exactly(
            lambda _, s, u=u: [s[1], u - 0.3 * s[1] - s[0] - s[0] ** 3],  # type: ignore[misc]
            state,
            np.array([0, 0.2]),
        )[:, -1]
        found.append(state[0])
    return np.array(found)


def forced_tanks(drive: Array) -> Array:
    def tanks(u: float) -> Derivative:
        def derivative(_: float, h: Array) -> list[float]:
            upper, lower = np.sqrt(np.maximum(h, 0))
            return [-0.5 * upper + 0.4 * u, 0.5 * upper - 0.5 * lower]

        return derivative

    levels, found = np.array([2.0, 2.0]), []
    for u in drive:
        levels = exactly(tanks(u), levels, np.array([0, 0.5]))[:, -1]
        found.append(levels[1])
    return np.array(found)


@pytest.mark.parametrize(
    ("name", "respond"), [("duffing", forced_duffing), ("two_tank", forced_tanks)]
)
def test_driven_tracks_answer_their_drive_as_the_equations_say(
    name: str, respond: Callable[[Array], Array]
) -> None:
    draws = {"duffing": driven.push, "two_tank": driven.pump}[name]
    drive = np.vstack([draws(rng, n) for rng, n in zip(streams(name), (4, 1, 1), strict=True)])
    response = np.array([respond(own) for own in drive])
    found = joined(draw(name, (4, 1, 1)))
    for own, raw in ((found.inputs, drive), (found.targets, response)):
        expected = (raw - raw[:4].mean()) / raw[:4].std()
        np.testing.assert_allclose(own[..., 0], expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("memory", [0.8, 0.9])
def test_what_drives_remembers_its_past(memory: float) -> None:
    drive = driven.autoregression(np.random.default_rng(0), 4000, memory)
    assert np.abs(drive.std(axis=0) - 1).max() < 0.06
    for lag in (1, 3):
        product = (drive[:, lag:] * drive[:, :-lag]).mean()
        assert product == pytest.approx(memory**lag, abs=0.02)


def test_rickers_model_moves_by_its_equation_and_chance() -> None:
    sizes, paths = (30, 5, 5), []
    for rng, n in zip(streams("ricker"), sizes, strict=True):
        chance, y = rng.normal(size=(n, 116)), np.zeros(n)
        path = []
        for step in range(116):
            y = y + 2.8 * (1 - np.exp(y)) + 0.2 * chance[:, step]
            path.append(y)
        paths.append(np.array(path[99:]).T)
    raw = np.vstack(paths)
    raw = (raw - paths[0].mean()) / paths[0].std()
    found = joined(draw("ricker", sizes))
    rows = np.concatenate([found.inputs, found.targets], axis=1)[..., 0]
    np.testing.assert_allclose(rows, raw, atol=1e-9)


def population(seed: int) -> list[float]:
    """The model once more, one population at a time."""
    rng, y, found = np.random.default_rng(seed), 0.0, []
    for step in range(130):
        y += 2.8 * (1 - np.exp(y)) + 0.2 * rng.normal()
        if step >= 100:
            found.append(y)
    return found


def test_rickers_model_leaves_the_known_error_to_every_forecast() -> None:
    raw = np.array([population(seed) for seed in range(2000)])
    assert maps.CHANCE**2 / raw.var() == pytest.approx(0.0234, abs=4e-4)
    # The same floor in the track: what the right equation leaves over.
    data = draw("ricker", (4000, 0, 0))
    y, target = raw.mean() + raw.std() * data.train.inputs[:, -1, 0], data.train.targets[:, 0, 0]
    forecast = (y + 2.8 * (1 - np.exp(y)) - raw.mean()) / raw.std()
    assert np.mean((forecast - target) ** 2) == pytest.approx(0.0234, rel=0.1)


# ---- chaos


@pytest.mark.parametrize(("name", "per_step"), [("dynamics", 0.9056 * 0.02), ("henon", 0.4192)])
def test_neighbours_part_as_fast_as_published(name: str, per_step: float) -> None:
    system = tracks.track(name).system
    assert system is not None
    rate, error = tracks.lyapunov_exponent(system, np.random.default_rng(0))
    assert rate == pytest.approx(per_step, rel=0.05)
    assert error < 0.01 * per_step


def test_neighbours_on_a_limit_cycle_do_not_part() -> None:
    system = tracks.track("van_der_pol").system
    assert system is not None
    rate, _ = tracks.lyapunov_exponent(system, np.random.default_rng(0), trajectories=8)
    assert abs(rate) < 1e-3


def test_an_exponent_is_the_growth_of_a_linear_map() -> None:
    matrix = np.array([[1.5, 0.3], [0.0, 0.7]])
    linear = simulation.System(lambda rng, n: rng.normal(size=(2, n)), lambda s: matrix @ s / 1.5)
    rate, error = tracks.lyapunov_exponent(linear, np.random.default_rng(0), steps=50)
    assert rate == pytest.approx(0, abs=1e-6)
    assert error < 1e-6


# ---- what holds of every track


@every_track
def test_shapes_are_those_described(name: str) -> None:
    made, data = tracks.track(name), draw(name, (9, 8, 11))
    for split, n in zip(data, (9, 8, 11), strict=True):
        assert split.inputs.shape[:2] == (n, made.length)
        assert split.targets.shape[:2] == (n, made.steps)
        assert np.isfinite(split.inputs).all()
        assert np.isfinite(split.targets).all()
        if made.autonomous:
            assert split.inputs.shape[2] == split.targets.shape[2]
    assert all((made.title, made.description, made.source, made.licence, made.step))
    assert made.description.endswith(".")


def test_closed_tracks_forecast_their_next_input() -> None:
    closed = {name for name in SIMULATED if tracks.track(name).closed}
    assert closed == {"lorenz_state", "van_der_pol_step", "henon", "ricker"}


@every_track
@pytest.mark.parametrize("sizes", [(16, 8, 30), (16, 30, 8), (16, 0, 0)])
def test_a_split_depends_neither_on_the_size_nor_the_scale_of_the_others(
    name: str, sizes: tuple[int, int, int]
) -> None:
    before, after = draw(name, (16, 8, 8)), draw(name, sizes)
    for first, second in zip(before, after, strict=True):
        if len(first.inputs) == len(second.inputs):
            same(first, second)
    same(before.train, after.train)


@every_track
def test_other_streams_for_validation_and_test_leave_training_as_it_is(name: str) -> None:
    train = streams(name)[0]
    other = [train, *(generator(9, name, split) for split in SPLITS[1:])]
    changed = tracks.track(name).generate(other, (16, 8, 8))
    kept = draw(name, (16, 8, 8))
    same(changed.train, kept.train)
    assert not (changed.test.inputs == kept.test.inputs).all((1, 2)).any()


@every_track
def test_the_scale_is_that_of_the_training_sequences(name: str) -> None:
    made, data = tracks.track(name), draw(name, (3000, 0, 0))
    np.testing.assert_allclose(data.train.targets.mean((0, 1)), 0, atol=0.1)
    np.testing.assert_allclose(data.train.targets.std((0, 1)), 1, atol=0.1)
    np.testing.assert_allclose(data.train.inputs.std((0, 1)), 1, atol=0.1)
    if made.steps > 1:
        assert data.train.targets.std() == pytest.approx(1, abs=1e-12)


@every_track
def test_a_future_changes_nothing_but_itself(name: str) -> None:
    made, sizes = tracks.track(name), (8, 4, 4)
    if not made.autonomous:
        with pytest.raises(ValueError, match=f"{name} has no free run"):
            draw(name, sizes, future=3)
        return
    short, long = draw(name, sizes, future=made.horizon), draw(name, sizes, future=60)
    for first, second in zip(draw(name, sizes), long, strict=True):
        same(first, second)
    assert long.test.future.shape == (4, 60, long.test.inputs.shape[2])
    np.testing.assert_array_equal(short.test.future, long.test.future[:, : made.horizon])
    # What is to be predicted is part of it.
    np.testing.assert_array_equal(long.test.future[:, made.horizon - 1], long.test.targets[:, 0])
    assert not draw(name, sizes).test.future.size


def test_equal_streams_give_equal_data() -> None:
    for first, second in zip(draw("dynamics", (8, 8, 8)), draw("dynamics", (8, 8, 8)), strict=True):
        same(first, second)


@every_track
def test_splits_seeds_and_purposes_share_no_sequence(name: str) -> None:
    draws = [
        draw(name, (8, 8, 8)),
        draw(name, (8, 8, 8), seed=1),
        draw(name, (8, 8, 8), purpose="confirmation"),
    ]
    rows = [row.tobytes() for data in draws for split in data for row in split.inputs]
    assert len(set(rows)) == len(rows) == 3 * 3 * 8


def test_sequences_start_all_over_the_attractor() -> None:
    x = draw("dynamics", (2000, 0, 0)).train.targets[:, 0, 0] * 7.92
    # x is symmetric about 0 with a deviation of 7.92; on the attractor it stays within 20.
    assert abs(x.mean()) < 4 * 7.92 / np.sqrt(2000)
    assert np.abs(x).max() < 22
    # A cloud of synchronised trajectories would leave gaps.
    counts, _ = np.histogram(x, bins=12, range=(-16, 16))
    assert counts.min() > 50


# ---- keys


def trial(name: str) -> Trial:
    return Trial(
        name, "gru", 8, 1, 1, 8, 16, "baseline", 0.01, 0.0, "unit", 0.0, 1.0, "tuning", 0, 0,
        "float32", "cpu",
    )  # fmt: skip


def test_a_tracks_results_depend_on_its_own_module_and_the_shared_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, ...]] = []

    def record(_: object, rooms: tuple[str, ...]) -> str:
        asked.append(rooms)
        return ""

    monkeypatch.setattr(trials, "key", record)
    assert trial("henon").key == trial("duffing").key
    shared = {"tracks/registry", "tracks/simulation", "tracks/windows"}
    for rooms, own in zip(asked, ("tracks/maps", "tracks/driven"), strict=True):
        assert {room for room in rooms if room.startswith("tracks")} == {*shared, own}
        assert keys._code(rooms)


@pytest.mark.parametrize("name", ["dynamics", "duffing"])
def test_no_bit_of_trained_weights_depends_on_validation_or_test_sequences(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path))

    def weights() -> dict[str, Array]:
        trials._drawn.cache_clear()
        trials.train_trials([trial(name)], None)
        found = store.load("train", trial(name).key)
        assert found is not None
        store.path_of("train", trial(name).key).unlink()
        return {part: values for part, values in found.items() if part != "seconds"}

    before = weights()
    monkeypatch.setattr(
        trials,
        "generator",
        lambda seed, *use: generator(seed + (use[-1] in SPLITS[1:]), *use),
    )
    after = weights()
    trials._drawn.cache_clear()
    for part, values in before.items():
        np.testing.assert_array_equal(values, after[part])


# ---- arms that need forecasts of the next input


def test_a_closed_loop_is_refused_where_forecasts_are_no_next_inputs() -> None:
    arms = ("baseline", "moment_growth_closed")
    assert study.Study(track="henon", arms=arms).arms == arms
    for name in ("dynamics", "duffing"):
        with pytest.raises(study.StudyError, match=f"arm moment_growth_closed .* track {name}"):
            study.parse({"track": name, "arms": arms})
