import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from msstab.checks import MANIFEST
from msstab.publishing import BuildError, publish, require_replaceable, staging_area


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "_build" / "html"


def make_book(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "index.html").write_text(text)
    (folder / MANIFEST).write_text("{}")
    return folder


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_new_book_takes_the_place_of_the_former_one_whole(tmp_path: Path, out: Path) -> None:
    make_book(out, "old")
    (out / "dropped.html").write_text("a page that is no longer there")
    publish(make_book(tmp_path / "new", "new"), out, tmp_path)
    assert names(out) == {"index.html", MANIFEST}
    assert (out / "index.html").read_text() == "new"
    assert names(out.parent) == {"html", ".lock"}


def test_an_empty_folder_may_hold_the_book(tmp_path: Path) -> None:
    (tmp_path / "_build").mkdir()
    empty = tmp_path / "elsewhere"
    empty.mkdir()
    publish(make_book(tmp_path / "new", "new"), empty, tmp_path)
    assert (empty / "index.html").read_text() == "new"


def test_a_folder_with_anything_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "_build").mkdir()
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "chapter.txt").write_text("years of work")
    with pytest.raises(BuildError, match="left alone") as error:
        publish(make_book(tmp_path / "new", "new"), thesis, tmp_path)
    assert error.value.exit_code == 2
    assert (thesis / "chapter.txt").read_text() == "years of work"
    assert names(thesis) == {"chapter.txt"}


def test_a_file_is_not_taken_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "book").write_text("")
    with pytest.raises(BuildError, match="is a file"):
        require_replaceable(tmp_path / "book")


def test_a_failing_swap_puts_the_former_book_back(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_book(out, "old")
    rename = os.rename

    def fail_to_place(source: Path, target: Path) -> None:
        if target == out and ".incoming" in str(source):
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail_to_place)
    with pytest.raises(KeyboardInterrupt):
        publish(make_book(tmp_path / "new", "new"), out, tmp_path)
    assert (out / "index.html").read_text() == "old"
    assert names(out.parent) == {"html", ".lock"}


def test_a_book_set_aside_by_a_killed_swap_comes_back(tmp_path: Path, out: Path) -> None:
    make_book(out.parent / ".html.former", "old")
    with staging_area(tmp_path, out):
        assert (out / "index.html").read_text() == "old"


def test_what_a_killed_build_left_is_removed_and_a_running_one_is_spared(
    tmp_path: Path, out: Path
) -> None:
    program = (
        "import sys, time; from pathlib import Path; from msstab.publishing import staging_area\n"
        "with staging_area(Path(sys.argv[1]), Path(sys.argv[2])) as area:\n"
        "    print(area, flush=True); time.sleep(60)"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path, out], stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        with staging_area(tmp_path, out) as mine:
            assert mine != theirs
            assert theirs.is_dir()
        assert not mine.exists()
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert theirs.is_dir()
        with staging_area(tmp_path, out):
            assert not theirs.exists()
    finally:
        other.kill()
        other.communicate()


def test_builds_of_one_clone_do_not_wait_for_each_other(tmp_path: Path, out: Path) -> None:
    start = time.monotonic()
    with staging_area(tmp_path, out) as first, staging_area(tmp_path, out) as second:
        assert first != second
    assert time.monotonic() - start < 5
