"""A book that was built: what it says of itself, and whether it is whole and of one run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msstab import checks
from msstab.report import Report, ReportError, read_report

REPORT = "bench_report.json"

GENERATED = {"index", "search", "genindex", "404"}
"""Pages that Sphinx makes by itself; `index` may also be a page that leads to the first."""


class BookError(ValueError):
    """A folder or a file that is not what was asked for, described for the person who named it."""


class Book(NamedTuple):
    """A built book: its folder and its manifest (`provenance.manifest`)."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def report(self) -> Report:
        """The bench report; raises ReportError for one that cannot be used."""
        return _report(self.folder / REPORT)


def open_book(folder: Path) -> Book:
    """Return the book in a folder; raise BookError for anything else."""
    path = folder / checks.MANIFEST
    if not folder.is_dir():
        raise BookError(f"{folder} is not a folder; name that of a built book, such as _build/html")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BookError(
            f"{folder} holds no book of msstab: there is no {checks.MANIFEST} in it"
        ) from None
    except (OSError, ValueError) as error:
        raise BookError(f"{path} cannot be read: {error}") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("study_key"), str):
        raise BookError(f"{path} names no study")
    pages = manifest.get("pages", [])
    if not isinstance(pages, list) or not all(isinstance(page, str) for page in pages):
        raise BookError(f"{path} does not list the pages of the book")
    return Book(folder, manifest)


def open_report(path: Path) -> Report:
    """Return the report in a file, or that of a book in a folder; raise BookError."""
    if not path.exists():
        raise BookError(
            f"{path}: No such file or directory; name a {REPORT} or the folder of a built book"
        )
    try:
        return open_book(path).report if path.is_dir() else _report(path)
    except ReportError as error:
        first, *others = str(error).splitlines()
        raise BookError(first + (f" ({len(others)} more)" if others else "")) from None


def problems(book: Book) -> list[str]:
    """Return all that is wrong with a book, one sentence each, as `checks.check` and more.

    Besides: a report that breaks its schema or is of another study than the pages, and pages
    that the manifest does not list, which an earlier build must have left.
    """
    pages = book.manifest.get("pages", ["index"])
    found = checks.check(book.folder, pages)
    return [*found, *_report_problems(book), *_left_over(book, pages)]


def _report(path: Path) -> Report:
    try:
        return read_report(path)
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror}") from None


def _report_problems(book: Book) -> Iterator[str]:
    try:
        key = book.report.bench_report.study_key
    except ReportError as error:
        yield from str(error).replace(f"{book.folder / REPORT}", REPORT).splitlines()
        return
    if key != book.manifest["study_key"]:
        yield f"{REPORT} is of study {key}, the book of {book.manifest['study_key']}"


def _left_over(book: Book, pages: list[str]) -> Iterator[str]:
    if "pages" not in book.manifest:  # a book of before pages were listed
        return
    for path in sorted(book.folder.rglob("*.html")):
        name = path.relative_to(book.folder).with_suffix("")
        if "_static" in name.parts or name.as_posix() in {*pages, *GENERATED}:
            continue
        yield f"{name.as_posix()}.html is not a page of this book"
