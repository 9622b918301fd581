import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from msstab import cli, experiment, files, study, tracks, trials
from msstab.study import StudyError
from msstab.tracks import Array, Data, series
from msstab.tuning import Configuration

ROWS = 400


def table(rows: int = ROWS, **columns: Any) -> str:
    """Comma-separated text of a wave and a ramp, or of other columns."""
    n = np.arange(rows)
    held = {"wave": np.sin(0.3 * n).round(4), "ramp": (n % 17).astype(float), **columns}
    lines = [",".join(held)]
    lines += [",".join(str(values[k]) for values in held.values()) for k in range(rows)]
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The caller's folder, with nothing remembered."""
    monkeypatch.setenv(files.FOLDERS, "")
    monkeypatch.setenv("MSSTAB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def given(**parameters: Any) -> study.Study:
    return study.parse(
        {"arms": "baseline,output_variance", "window": 8, "n_train": 32, **parameters},
        study.profile("quick"),
    )


def drawn(**parameters: Any) -> Data:
    return trials.draw_data(given(**parameters), "tuning", 0)


# ---- faults, through the command line


def changed(text: str, row: int, cell: int, value: str) -> str:
    lines = text.splitlines()
    cells = lines[row].split(",")
    cells[cell] = value
    lines[row] = ",".join(cells)
    return "\n".join(lines) + "\n"


def sparse(share: float) -> str:
    text = table()
    for row in range(1, int(share * ROWS)):
        text = changed(text, row, 0, "")
    return text


def numbered(times: list[Any]) -> str:
    return table(time=times)


COUNT = list(range(ROWS))
FAULTS: dict[str, tuple[str | bytes | None, list[str], str]] = {
    "missing file": (None, [], "there is no file own.csv here"),
    "empty file": ("", [], "it is empty"),
    "only a header": ("wave,ramp\n", [], "there are no rows"),
    "not text": (b"\xff\xfe\x00wave", [], "it is not text in UTF-8"),
    "ragged": (table() + "1,2,3\n", [], "row 401 has 3 values for 2 columns"),
    "no header": (table().partition("\n")[2], [], "the first line holds numbers"),
    "semicolons": (table().replace(",", ";"), [], "separate the columns by commas"),
    "two of a name": (table().replace("ramp", "wave", 1), [], "2 columns are named wave"),
    "no name": (table().replace("ramp", "", 1), [], "a column has no name"),
    "too short": (table(60), [], "60 rows are too few for window = 8 and horizon = 1, which take"),
    "window too long": (table(), ["window=200"], "400 rows are too few for window = 200"),
    "horizon too long": (table(), ["horizon=300"], "400 rows are too few for window = 8"),
    "constant": (table(flat=[3] * ROWS), [], "column flat is constant in the part for training"),
    "text": (changed(table(), 8, 1, "high"), [], "column ramp holds text, 'high' in row 8"),
    "infinite": (changed(table(), 8, 1, "inf"), [], "column ramp is infinite in row 8"),
    "overflow": (changed(table(), 8, 1, "1e999"), [], "column ramp is infinite in row 8"),
    "unknown column": (table(), ["input_columns=wafe"], "no column wafe; did you mean wave?"),
    "unknown target": (table(), ["target_columns=wafe"], "no column wafe; did you mean wave?"),
    "much missing": (sparse(0.3), [], "119 of 400 rows lack a value, more than 20%"),
    "no time to come": (table(), ["horizon=0"], "with horizon = 0, ramp would be known"),
    "time twice": (
        numbered([*COUNT[:9], 8, *COUNT[10:]]), [], "column time repeats 8 in row 10",
    ),
    "time backwards": (
        numbered([*COUNT[:9], 4, *COUNT[10:]]), [], "column time goes back to 4 in row 10",
    ),
    "time with a hole": (
        numbered([*COUNT[:9], *range(10, ROWS + 1)]), [], "time steps unevenly, from 8 to 10",
    ),
    "time missing": (numbered([*COUNT[:9], "", *COUNT[10:]]), [], "lacks a time in row 10"),
    "no time": (numbered(["soon"] * ROWS), [], "column time holds what is no time"),
    "only time": ("time\n" + "\n".join(map(str, COUNT)), [], "there is no column of values"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_series_that_cannot_be_used_is_explained_before_anything_runs(
    folder: Path, fault: str
) -> None:
    content, parameters, said = FAULTS[fault]
    if content is not None:
        data = content if isinstance(content, bytes) else content.encode()
        (folder / "own.csv").write_bytes(data)
    before = sorted(folder.parent.rglob("*"))
    pairs = [f"-p{pair}" for pair in ("track=csv:own.csv", "window=8", *parameters)]
    arms = "-parms=baseline,output_variance"
    result = CliRunner().invoke(cli.app, ["build", "--profile", "quick", arms, *pairs])
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    assert "own.csv" in result.stderr
    assert sorted(folder.parent.rglob("*")) == before


def test_a_file_that_may_not_be_read_is_explained(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "own.csv").write_text(table())

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(StudyError, match=r"csv:own.csv cannot be read: Permission denied"):
        given(track="csv:own.csv")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"a": np.zeros((4, 2))}, "array a has 2 dimensions"),
        ({"a": np.arange(5.0), "b": np.arange(6.0)}, "arrays differ in length"),
        ({"a": np.array([{}, {}])}, "it is not an .npz file of plain arrays"),
        ({"a": np.array(["x"] * 300)}, "column a holds text, 'x' in row 1"),
        ({"a": np.r_[np.inf, np.arange(300.0)]}, "column a is infinite in row 1"),
        ({}, "it is empty"),
    ],
)
def test_faults_of_arrays_are_explained_too(arrays: dict[str, Any], said: str) -> None:
    np.savez("own.npz", **arrays)
    with pytest.raises(StudyError, match=said):
        given(track="npz:own.npz")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and then nothing", b"no archive"])
def test_what_is_no_archive_is_explained(content: bytes) -> None:
    Path("own.npz").write_bytes(content)
    with pytest.raises(StudyError, match=r"it is not an \.npz file of plain arrays"):
        given(track="npz:own.npz")


@pytest.mark.usefixtures("folder")
def test_parameters_of_a_series_are_refused_for_another_track() -> None:
    with pytest.raises(StudyError, match="window is for a series of your own; track dynamics has"):
        given()


# ---- what is drawn


def rows_of(data: Array, column: Array) -> Array:
    """Where in a column each window begins, by its own values undone from the scale."""
    training = column[: len(series.parts(len(column), 9)[0])]
    raw = data * np.nanstd(training) + np.nanmean(training)
    shown = np.lib.stride_tricks.sliding_window_view(column, data.shape[1])
    found = [int(np.argmin(np.abs(shown - own).max(axis=1))) for own in raw]
    for own, start in zip(raw, found, strict=True):
        np.testing.assert_allclose(own, column[start : start + data.shape[1]], atol=1e-9)
    return np.array(found)


@pytest.mark.parametrize("horizon", [1, 4])
def test_windows_and_targets_are_those_of_the_file(folder: Path, horizon: int) -> None:
    noise = np.random.default_rng(0).normal(size=ROWS)
    (folder / "own.csv").write_text(table(noise=noise))
    data = drawn(track="csv:own.csv", horizon=horizon, input_columns="noise")
    assert [split.inputs.shape[1:] for split in data] == [(8, 1)] * 3
    blocks = series.parts(ROWS, 8 + horizon)
    training = noise[: len(blocks[0])]
    scaled = (noise - training.mean()) / training.std()
    for split, block in zip(data, blocks, strict=True):
        starts = rows_of(split.inputs[..., 0], noise)
        assert starts.min() >= block.start
        assert starts.max() + 7 + horizon < block.stop
        np.testing.assert_allclose(split.targets[:, 0, 0], scaled[starts + 7 + horizon])


def test_parts_are_blocks_with_a_windows_gap_between() -> None:
    assert series.parts(1000, 40) == [range(360), range(400, 600), range(640, 1000)]


@pytest.mark.usefixtures("folder")
def test_some_columns_may_drive_another() -> None:
    n = np.arange(ROWS)
    Path("own.csv").write_text(table(answer=n % 11, time=n))
    data = drawn(track="csv:own.csv", input_columns="wave,ramp", target_columns="answer", horizon=0)
    assert data.train.inputs.shape == (32, 8, 2)
    assert data.train.targets.shape == (32, 1, 1)
    made = tracks.of(given(track="csv:own.csv", input_columns="wave", target_columns="answer"))
    assert not made.autonomous
    assert not made.closed
    ramp = data.train.inputs[:, -1, 1] * (n[:144] % 17).std() + (n[:144] % 17).mean()
    answer = data.train.targets[:, 0, 0] * (n[:144] % 11).std() + (n[:144] % 11).mean()
    # Both count the same rows, so they agree on which row it is.
    rows = {(k % 17, k % 11) for k in range(144)}
    assert {(round(a), round(b)) for a, b in zip(ramp, answer, strict=True)} <= rows


@pytest.mark.usefixtures("folder")
def test_no_window_holds_a_missing_value() -> None:
    text = table()
    for row in (40, 41, 90, 200, 350):
        text = changed(text, row, 0, "NA")
    Path("own.csv").write_text(text)
    for split in drawn(track="csv:own.csv", n_test=400):
        assert np.isfinite(split.inputs).all()
        assert np.isfinite(split.targets).all()


@pytest.mark.usefixtures("folder")
def test_rows_that_are_missing_leave_too_few_windows() -> None:
    text = table()
    for row in range(8, ROWS, 8):
        text = changed(text, row, 0, "")
    Path("own.csv").write_text(text)
    with pytest.raises(StudyError, match="too few windows are without a missing value"):
        given(track="csv:own.csv")


@pytest.mark.usefixtures("folder")
def test_later_rows_change_no_bit_of_the_training_windows_or_the_scale() -> None:
    Path("own.csv").write_text(table())
    before = drawn(track="csv:own.csv")
    text = table()
    for row in range(150, ROWS + 1):
        text = changed(text, row, 0, "77")
    Path("own.csv").write_text(text)
    after = drawn(track="csv:own.csv")
    np.testing.assert_array_equal(before.train.inputs, after.train.inputs)
    np.testing.assert_array_equal(before.train.targets, after.train.targets)
    assert (before.test.inputs != after.test.inputs).any()


@pytest.mark.usefixtures("folder")
def test_dates_may_be_months() -> None:
    months = [f"{1990 + k // 12}-{k % 12 + 1:02d}" for k in range(ROWS)]
    Path("own.csv").write_text(table(Date=months))
    made = tracks.of(given(track="csv:own.csv"))
    assert made.step == "month"
    assert drawn(track="csv:own.csv").train.inputs.shape[2] == 2
    days = [f"2001-01-{k % 28 + 1:02d}T{k // 28:02d}:00" for k in range(ROWS)]
    Path("own.csv").write_text(table(Date=days))
    with pytest.raises(StudyError, match=r"Date (steps unevenly|goes back)"):
        given(track="csv:own.csv")


@pytest.mark.usefixtures("folder")
def test_arrays_and_text_give_the_same_data() -> None:
    noise = np.random.default_rng(0).normal(size=ROWS)
    noise[7] = np.nan
    np.savez("own.npz", wave=noise)
    lines = ["wave", *(repr(float(x)) for x in noise)]
    Path("own.csv").write_text("\n".join(lines))
    first = tracks.of(given(track="npz:own.npz"))
    second = tracks.of(given(track="csv:own.csv"))
    one, other = (
        made.generate([np.random.default_rng(k) for k in range(3)], (9, 9, 9))
        for made in (first, second)
    )
    np.testing.assert_array_equal(one.test.inputs, other.test.inputs)


@pytest.mark.usefixtures("folder")
def test_a_future_is_how_the_series_goes_on_as_far_as_it_does() -> None:
    noise = np.random.default_rng(0).normal(size=ROWS)
    Path("own.csv").write_text(table(noise=noise))
    used = given(track="csv:own.csv", input_columns="noise")
    data = trials.draw_data(used, "tuning", 0, future=50)
    same = trials.draw_data(used, "tuning", 0)
    np.testing.assert_array_equal(data.test.inputs, same.test.inputs)
    starts = rows_of(data.test.inputs[..., 0], noise)
    for start, later in zip(starts, data.test.future[..., 0], strict=True):
        there = len(noise[start + 8 : start + 58])
        assert np.isfinite(later[:there]).all()
        assert np.isnan(later[there:]).all()
    np.testing.assert_array_equal(data.test.future[:, 0], data.test.targets[:, 0])


# ---- where the file lies, and when it changes


def test_a_path_works_from_the_callers_folder_and_from_a_chapters(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "data").mkdir()
    (folder / "notebooks").mkdir()
    (folder / "data" / "own.csv").write_text(table())
    expected = given(track="csv:data/own.csv")
    monkeypatch.chdir(folder / "notebooks")
    assert given(track="csv:data/own.csv") == expected


def test_a_path_beside_the_callers_folder_means_the_callers_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.parent / "own.csv").write_text(table())
    (folder / "own.csv").write_text("wrong")
    (folder / "notebooks").mkdir()
    files.remember(folder)
    monkeypatch.chdir(folder / "notebooks")
    assert given(track="csv:../own.csv").track == "csv:../own.csv"


def test_no_page_can_show_where_an_absolute_path_leads(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = folder.parent / "secret"
    secret.mkdir()
    (secret / "own.csv").write_text(table())
    used = given(track=f"csv:{secret}/own.csv")
    assert used.track == "csv:own.csv"
    made = tracks.of(used)
    shown = json.dumps([used.model_dump(mode="json"), made.title, made.description, made.source])
    assert "secret" not in shown
    # In a process that starts from here, the short name is enough.
    monkeypatch.chdir(folder.parent)
    assert str(secret) in os.environ[files.FOLDERS]
    assert given(track="csv:own.csv") == used
    with pytest.raises(StudyError, match="there is no file"):
        given(track=f"csv:{secret}/other.csv")


@pytest.fixture
def keyed(folder: Path) -> Callable[..., str]:
    """Returns the key of a trial on a series of some content."""

    def key(content: str = table(), **parameters: Any) -> str:
        (folder / "own.csv").write_text(content)
        used = given(track="csv:own.csv", **parameters)
        trial = experiment._trial(used, "baseline", Configuration(0.01, 0.0), "tuning", 0)
        return trial.key

    return key


def test_the_content_and_the_use_of_a_series_are_in_the_key(keyed: Callable[..., str]) -> None:
    keys = [
        keyed(),
        keyed(changed(table(), 300, 0, "0.5")),
        keyed(window=9),
        keyed(horizon=2),
        keyed(input_columns="wave"),
        keyed(target_columns="ramp", input_columns="wave"),
    ]
    assert len(set(keys)) == len(keys)
    assert keyed() == keys[0]


@pytest.mark.usefixtures("folder")
def test_a_series_is_trained_on_and_scored() -> None:
    Path("own.csv").write_text(table())
    used = given(
        **{"track": "csv:own.csv", "arms": "baseline,output_variance", "hidden": 4, "epochs": 2},
        **{"seeds": 2, "other_seeds": 2, "tuning_seeds": 2, "n_test": 32, "n_validation": 16},
        **{"draws": 2, "mechanism_sequences": 4, "learning_rates": (0.01, 0.03)},
    )
    table_ = experiment.run(used).table
    assert np.isfinite(table_.test_mse).all()
    assert np.isfinite(table_.ridge_mse).all()
