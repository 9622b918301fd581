import os
from pathlib import Path

import pytest

from msstab import targets


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "note.txt").write_text("")
    return tmp_path


def test_a_folder_may_be_there_or_still_to_be_made(here: Path) -> None:
    for path in (here, here / "new", here / "new" / "deep"):
        targets.require_folder(path)
    assert [path.name for path in here.iterdir()] == ["note.txt"]


@pytest.mark.parametrize("name", ["note.txt", "note.txt/new", "note.txt/new/deep"])
def test_nothing_can_lie_in_a_file(here: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"note\.txt is a file, and not a folder"):
        targets.require_folder(here / name)


def test_the_nearest_folder_that_is_there_must_take_files(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != here)
    with pytest.raises(ValueError, match=f"no permission to write in {here}"):
        targets.require_folder(here / "new" / "deep")


def test_a_path_is_taken_from_the_working_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here)
    targets.require_folder(Path("new"))
    with pytest.raises(ValueError, match="is a file"):
        targets.require_folder(Path("note.txt", "new"))


def test_a_file_has_its_ending_and_a_folder_to_lie_in(here: Path) -> None:
    targets.require_file(here / "new" / "page.html", ".html")
    targets.require_file(here / "note.txt", ".txt")
    for name, message in (
        (".", "is a folder; name a file that ends in .html"),
        ("page.txt", "page.txt does not end in .html"),
        ("page", "page does not end in .html"),
        ("note.txt/page.html", "note.txt is a file"),
    ):
        with pytest.raises(ValueError, match=message):
            targets.require_file(here / name, ".html")
