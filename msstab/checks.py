"""What a built book must satisfy before anybody sees it."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

MANIFEST = "msstab-build.json"
"""The file in a built book that says which run made it."""

KEY_META = "msstab-study-key"
"""The name of the `<meta>` element that gives a page's study key."""

# What a browser fetches by itself on opening a page; a plain <a href> is fetched by the reader.
FETCHED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "iframe": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "input": ("src",),
}
FETCHED_LINKS = {
    *("stylesheet", "icon", "preload", "prefetch", "modulepreload", "manifest"),
    *("dns-prefetch", "preconnect", "apple-touch-icon"),
}
LINKED = {"a": "href", "area": "href", "form": "action"}
# Code and formulas may well hold what would be a mistake in prose.
QUOTING = {"script", "style", "pre", "code"}

SUBSTITUTION = re.compile(r"\{\{\s*[A-Za-z_][^{}]*\}\}")
CSS_REQUEST = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)")


@dataclass
class Page:
    """What one page refers to and what is wrong with it by itself."""

    references: list[tuple[str, str]] = field(default_factory=list)  # (tag, address)
    outside: list[tuple[str, str]] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    keys: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    headings: int = 0


def check(html_dir: Path, expected_pages: Iterable[str]) -> list[str]:
    """Return all problems of a built book, one sentence each; an empty list means it may go out.

    `expected_pages` are document names as in the table of contents, such as `index` and
    `notebooks/01_data`. A problem is a missing or empty page, a link, source or anchor that
    leads nowhere, anything fetched from another site, a traceback, a substitution nobody
    replaced, a picture without alt text, or a page of another study.
    """
    problems = []
    for name in expected_pages:
        path = html_dir / f"{name}.html"
        if not path.is_file():
            problems.append(f"{name}.html is missing")
    pages = {
        path.relative_to(html_dir).as_posix(): read_page(_read(path))
        for path in sorted(html_dir.rglob("*.html"))
        if "_static" not in path.relative_to(html_dir).parts
    }
    for name, page in pages.items():
        if not page.headings:
            problems.append(f"{name} is empty: it has no heading")
        problems += [f"{name}: {problem}" for problem in page.problems]
        problems += [f"{name}: <{tag}> fetches {url}" for tag, url in page.outside]
        problems += [f"{name}: {problem}" for problem in _dangling(html_dir, name, pages)]
    return [*problems, *_key_problems(html_dir, pages), *_css_problems(html_dir)]


def _read(path: Path) -> str:
    # Bytes that are no text are shown as such by a browser too.
    return path.read_text(encoding="utf-8", errors="replace")


def read_page(text: str) -> Page:
    """Parse one page."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    reader.finish()
    return reader.page


class _Reader(HTMLParser):
    """Collects a Page from the tags of a document."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self._quote = ""  # the tag whose end closes the present piece of code or mathematics
        self._depth = 0
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        classes = given.get("class", "").split()
        self.page.anchors.update(
            v for k, v in given.items() if k == "id" or (k, tag) == ("name", "a")
        )
        self.page.headings += tag == "h1"
        self._collect(tag, given)
        self._inspect(tag, given, classes)
        if self._quote:
            self._depth += tag == self._quote
        elif tag in QUOTING or "math" in classes:
            self._quote, self._depth = tag, 1

    def handle_endtag(self, tag: str) -> None:
        if tag == self._quote:
            self._depth -= 1
            if not self._depth:
                self._quote = ""

    def handle_data(self, data: str) -> None:
        if "Traceback (most recent call last)" in data:
            self.page.problems.append("shows a traceback")
        if not self._quote:
            self._text.append(data)

    def finish(self) -> None:
        found = SUBSTITUTION.findall("".join(self._text))
        self.page.problems += [f"nothing replaced {name}" for name in dict.fromkeys(found)]

    def _collect(self, tag: str, given: dict[str, str]) -> None:
        addresses = [given[name] for name in FETCHED.get(tag, ()) if name in given]
        if tag == "link" and FETCHED_LINKS.intersection(given.get("rel", "").lower().split()):
            addresses.append(given.get("href", ""))
        if "srcset" in given:
            addresses.remove(given["srcset"])
            addresses += [part.split()[0] for part in given["srcset"].split(",") if part.strip()]
        for address in addresses:
            is_outside = re.match(r"(https?:)?//", address.strip(), re.IGNORECASE)
            (self.page.outside if is_outside else self.page.references).append((tag, address))
        if tag in LINKED and LINKED[tag] in given:
            self.page.references.append((tag, given[LINKED[tag]]))

    def _inspect(self, tag: str, given: dict[str, str], classes: list[str]) -> None:
        if tag == "meta" and given.get("name") == KEY_META:
            self.page.keys.append(given.get("content", ""))
        if {"output", "traceback"} <= set(classes) or "papermill-error-cell-tag" in classes:
            self.page.problems.append("shows the error of a failed cell")
        if given.get("id") == "papermill-error-cell":
            self.page.problems.append("shows the error of a failed cell")
        named = given.get("aria-label") or given.get("aria-labelledby")
        if tag == "img" and "alt" not in given:
            self.page.problems.append(f"<img> {given.get('src', '')[:80]} has no alt text")
        if tag == "svg" and given.get("role") == "img" and not named:
            self.page.problems.append("an <svg> shown as an image has no aria-label")


def _dangling(root: Path, name: str, pages: dict[str, Page]) -> Iterator[str]:
    """Yield a sentence for each reference of a page to a file or an anchor that isn't there."""
    here = (root / name).parent
    for tag, address in dict.fromkeys(pages[name].references):
        parts = urlsplit(address.strip())
        if parts.scheme or parts.netloc:
            continue
        target = here / unquote(parts.path) if parts.path else root / name
        if parts.path.startswith("/"):
            yield f"<{tag}> {address} works only where the book is a site's root"
            continue
        if target.is_dir():
            target /= "index.html"
        if not target.is_file():
            yield f"<{tag}> {address} leads nowhere"
            continue
        try:
            page = pages.get(target.resolve().relative_to(root.resolve()).as_posix())
        except ValueError:
            yield f"<{tag}> {address} leads out of the book"
            continue
        anchor = unquote(parts.fragment)
        if anchor and page is not None and anchor not in {*page.anchors, "top"}:
            yield f"<{tag}> {address} leads to an anchor that isn't there"


def _key_problems(root: Path, pages: dict[str, Page]) -> Iterator[str]:
    """Yield what contradicts that all pages were made by one run."""
    keys = {key for page in pages.values() for key in page.keys}
    for name, page in pages.items():
        if not any(page.keys):
            yield f"{name} doesn't say which study it shows"
    manifest = root / MANIFEST
    if manifest.is_file():
        keys.add(json.loads(manifest.read_text(encoding="utf-8"))["study_key"])
    if len(keys) > 1:
        yield f"pages come from different studies: {', '.join(sorted(keys))}"


def _css_problems(root: Path) -> Iterator[str]:
    """Yield what a style sheet would fetch from another site."""
    for path in sorted(root.rglob("*.css")):
        for url in CSS_REQUEST.findall(_read(path)):
            yield f"{path.relative_to(root).as_posix()} fetches {url}"
