import json
import re
import shutil
from pathlib import Path

import pytest
from shelves import report_of, write_book, write_page

from msstab import books, checks, sites
from msstab.books import BookError
from msstab.publishing import BuildError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def shelf(tmp_path: Path) -> list[Path]:
    small = report_of("aaaaaaaaaaaa", effect=-0.1)
    large = report_of("bbbbbbbbbbbb", effect=0.2).model_copy(
        update={"verdict": "It is <worse> & no better."}
    )
    return [
        write_book(tmp_path / "small", "aaaaaaaaaaaa", small),
        write_book(tmp_path / "a larger one", "bbbbbbbbbbbb", large),
    ]


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_page_shows_every_verdict_and_leads_to_every_book(
    shelf: list[Path], root: Path, tmp_path: Path
) -> None:
    index = sites.build(shelf, tmp_path / "site", root)
    text = index.read_text(encoding="utf-8")
    assert index == tmp_path / "site" / "index.html"
    for shown in ("The answer of aaaaaaaaaaaa.", "It is &lt;worse&gt; &amp; no better."):
        assert shown in text
    page = checks.read_page(text)
    assert page.outside == []
    assert page.problems == []
    assert page.headings == 1
    links = [address for tag, address in page.references if tag == "a"]
    assert links == [
        "small/index.html",
        "small/bench_report.json",
        "a%20larger%20one/index.html",
        "a%20larger%20one/bench_report.json",
    ]
    for folder in shelf:
        assert files(tmp_path / "site" / folder.name) == files(folder)
        assert books.problems(books.open_book(tmp_path / "site" / folder.name)) == []


def test_the_page_follows_the_readers_theme_and_fits_a_phone(
    shelf: list[Path], root: Path, tmp_path: Path
) -> None:
    text = sites.build(shelf, tmp_path / "site", root).read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport" content="width=device-width' in text
    assert "max-width: 100%" in text[text.index("<svg") :]
    assert "url(" not in re.sub(r"url\(#", "", text)


def test_books_in_folders_of_one_name_are_told_apart(root: Path, tmp_path: Path) -> None:
    shelf = [
        write_book(tmp_path / "one" / "html", "aaaaaaaaaaaa"),
        write_book(tmp_path / "two" / "html", "bbbbbbbbbbbb"),
    ]
    sites.build(shelf, tmp_path / "site", root)
    made = {path.name for path in (tmp_path / "site").iterdir() if path.is_dir()}
    assert made == {"html-aaaaaaaaaaaa", "html-bbbbbbbbbbbb"}


def test_a_second_site_takes_the_place_of_the_first_whole(
    shelf: list[Path], root: Path, tmp_path: Path
) -> None:
    out = tmp_path / "site"
    sites.build(shelf, out, root)
    sites.build(shelf[:1], out, root)
    assert {path.name for path in out.iterdir() if path.is_dir()} == {"small"}
    assert json.loads((out / sites.MARK).read_text()) == {"studies": {"small": "aaaaaaaaaaaa"}}
    assert [path.name for path in (root / "_build").iterdir()] == [".lock"]


def test_what_is_no_sound_book_is_refused_and_leaves_the_former_site(
    shelf: list[Path], root: Path, tmp_path: Path
) -> None:
    out = tmp_path / "site"
    sites.build(shelf, out, root)
    before = files(out)
    (tmp_path / "notes").mkdir()
    shutil.copytree(shelf[0], tmp_path / "again")
    broken = write_book(tmp_path / "broken", "cccccccccccc")
    write_page(broken, "index", "cccccccccccc", '<a href="gone.html">x</a>')
    for folders, message in (
        ([*shelf, tmp_path / "notes"], "holds no book"),
        ([*shelf, tmp_path / "again"], "hold the same study, aaaaaaaaaaaa"),
        ([*shelf, broken], r"does not pass its checks: index\.html: <a> gone\.html"),
    ):
        with pytest.raises(BookError, match=message):
            sites.build(folders, out, root)
    assert files(out) == before


def test_a_failure_while_it_is_written_leaves_the_former_site(
    shelf: list[Path], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "site"
    sites.build(shelf, out, root)
    before = files(out)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", "index.html")

    monkeypatch.setattr(sites, "index_page", fail)
    with pytest.raises(OSError, match="No space"):
        sites.build(shelf[:1], out, root)
    assert files(out) == before


def test_a_book_and_a_thesis_are_not_replaced_by_a_site(
    shelf: list[Path], root: Path, tmp_path: Path
) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    for out in (shelf[0], tmp_path / "thesis"):
        before = files(out)
        with pytest.raises(BuildError, match="something other than a site"):
            sites.build(shelf, out, root)
        assert files(out) == before
