import json
from collections.abc import Callable
from pathlib import Path

import pytest
from shelves import report_of, write_book, write_page

from msstab import books
from msstab.books import BookError
from msstab.checks import MANIFEST
from msstab.report import write_report

KEY = "a1b2c3d4e5f6"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_book(tmp_path / "html", KEY)


def problems(folder: Path) -> list[str]:
    return books.problems(books.open_book(folder))


def test_a_sound_book_has_no_problem(folder: Path) -> None:
    write_page(folder, "search", KEY)  # Sphinx's own
    (folder / "_static").mkdir()
    (folder / "_static" / "frame.html").write_text("<p>part of the theme</p>")
    assert problems(folder) == []


def test_a_page_of_an_earlier_build_is_reported(folder: Path) -> None:
    write_page(folder, "notebooks/00_dropped", KEY)
    assert problems(folder) == ["notebooks/00_dropped.html is not a page of this book"]


def test_a_missing_page_of_the_manifest_is_reported(folder: Path) -> None:
    (folder / "notebooks" / "01_data.html").unlink()
    assert "notebooks/01_data.html is missing" in problems(folder)


def test_a_page_of_another_study_is_reported(folder: Path) -> None:
    write_page(folder, "notebooks/01_data", "0000")
    assert problems(folder) == [f"pages come from different studies: 0000, {KEY}"]


def test_what_the_checks_of_pages_find_is_reported(folder: Path) -> None:
    write_page(folder, "index", KEY, '<a href="gone.html"></a><img src="https://x.example/y.png">')
    assert len(problems(folder)) == 3  # the link, the request, and no alt text


def test_a_report_of_another_study_is_reported(folder: Path) -> None:
    write_report(report_of("0000"), folder / "bench_report.json")
    assert problems(folder) == [f"bench_report.json is of study 0000, the book of {KEY}"]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.unlink(), "No such file"),
        (lambda path: path.write_text("{}"), "bench_report: Field required"),
        (lambda path: path.write_text("{"), "Invalid JSON"),
    ],
)
def test_a_report_that_breaks_its_schema_is_reported(
    folder: Path, damage: Callable[[Path], object], words: str
) -> None:
    damage(folder / "bench_report.json")
    found = problems(folder)
    assert any(words in problem for problem in found)
    assert all(problem.startswith("bench_report.json: ") for problem in found)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "holds no book of msstab"),
        ("{", "cannot be read"),
        ("[]", "names no study"),
        ('{"study_key": 3}', "names no study"),
    ],
)
def test_a_folder_without_a_book_is_refused(
    tmp_path: Path, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(BookError, match=message):
        books.open_book(tmp_path)


def test_a_file_is_no_book_and_a_missing_folder_neither(tmp_path: Path) -> None:
    for path in (tmp_path / "gone", Path(__file__)):
        with pytest.raises(BookError, match="is not a folder"):
            books.open_book(path)


def test_a_report_is_found_in_its_file_and_in_its_book(folder: Path, tmp_path: Path) -> None:
    found = books.open_report(folder)
    assert found == books.open_report(folder / "bench_report.json")
    assert found.bench_report.study_key == json.loads((folder / MANIFEST).read_text())["study_key"]
    with pytest.raises(BookError, match=r"gone\.json: No such file"):
        books.open_report(tmp_path / "gone.json")
