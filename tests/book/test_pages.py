"""Every page of a book, in a browser: what readers, screen readers and networks meet.

MSSTAB_BOOK=FOLDER looks at a book that is already built, in place of the tests' own.
"""

import os
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize
from visiting import PREFIX, browsing, find_browser, opened, probe, serving, settle

from msstab.book import read_toc
from msstab.checks import read_page

ROOT = Path(__file__).parents[2]
GIVEN = os.environ.get("MSSTAB_BOOK")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
WIDE: ViewportSize = {"width": 1280, "height": 800}
NARROW: ViewportSize = {"width": 390, "height": 800}
PAPER: ViewportSize = {"width": 720, "height": 1000}
HEAVIEST = 2_000_000


def pages_of(book: Path) -> list[str]:
    found = (path.relative_to(book) for path in book.rglob("*.html"))
    return sorted(path.as_posix() for path in found if path.parts[0] != "_static")


PAGES = (
    pages_of(Path(GIVEN))
    if GIVEN
    else sorted(f"{name}.html" for name in [*read_toc(ROOT), "search", "404"])
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def book(request: pytest.FixtureRequest) -> Path:
    find_browser()  # building the book takes minutes
    found: Path = request.getfixturevalue("shown_book")
    return found


@pytest.fixture(scope="module")
def browser(book: Path) -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def site(book: Path) -> Iterator[str]:
    with serving(book) as address:
        yield address


@dataclass(frozen=True)
class Visit:
    """What one page showed: sentences about what is wrong, by the test that asks for them."""

    wrong: dict[str, list[str]]
    requests: list[str]
    bytes: int
    links: list[str]


@pytest.fixture(scope="module")
def visit(browser: Browser, site: str) -> Callable[[str], Visit]:
    """Look at a page once for all the tests about it."""

    @cache
    def visited(name: str) -> Visit:
        wrong: dict[str, list[str]] = {}
        with opened(browser, site + name, viewport=WIDE, color_scheme="light") as (page, seen):
            weight = seen.bytes
            links: list[str] = page.evaluate("[...document.links].map(link => link.href)")
            wrong["formulas"] = probe(page, "formulas")
            wrong["wide"], wrong["letters"] = probe(page, "wide"), probe(page, "letters")
            resize(page, NARROW, color_scheme="dark")
            wrong["wide"] += probe(page, "wide")
            wrong["letters"] += probe(page, "letters")
            page.evaluate("dispatchEvent(new Event('beforeprint'))")
            resize(page, PAPER, media="print")
            wrong["print"] = [
                fault for kind in ("pale", "frame", "wide") for fault in probe(page, kind)
            ]
            page.evaluate("dispatchEvent(new Event('afterprint'))")
            # axe itself fetches style sheets, from where they are not.
            requests, wrong["complaints"] = [*seen.requests], [*seen.complaints]
            resize(page, NARROW, media="screen")
            wrong["dark"] = violations(page)
            resize(page, WIDE, color_scheme="light")
            wrong["light"] = violations(page)
        return Visit(wrong, requests, weight, links)

    return visited


def resize(page: Page, size: ViewportSize, **media: Any) -> None:
    page.set_viewport_size(size)
    page.emulate_media(**media)
    settle(page)


def violations(page: Page) -> list[str]:
    found = Axe().run(page, options={"runOnly": RULES, "resultTypes": ["violations"]})
    return [
        f"{rule['id']} ({rule['help']}): {node['html'][:200]} {node['failureSummary']}"
        for rule in found.response["violations"]
        for node in rule["nodes"]
    ]


def test_these_are_all_pages(book: Path) -> None:
    assert pages_of(book) == PAGES


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_breaks_no_rule_of_accessibility(
    visit: Callable[[str], Visit], name: str, theme: str
) -> None:
    assert visit(name).wrong[theme] == []


@pytest.mark.parametrize("name", PAGES)
def test_letters_in_figures_stand_out(visit: Callable[[str], Visit], name: str) -> None:
    assert visit(name).wrong["letters"] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_nobody_else_and_has_no_error(
    visit: Callable[[str], Visit], site: str, name: str
) -> None:
    seen = visit(name)
    assert [url for url in seen.requests if not url.startswith((site, "data:"))] == []
    assert seen.wrong["complaints"] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_light(visit: Callable[[str], Visit], name: str) -> None:
    assert 10_000 < visit(name).bytes <= HEAVIEST


@pytest.mark.parametrize("name", PAGES)
def test_a_page_never_scrolls_sideways(visit: Callable[[str], Visit], name: str) -> None:
    assert visit(name).wrong["wide"] == []


@pytest.mark.parametrize("name", PAGES)
def test_mathematics_is_set(visit: Callable[[str], Visit], name: str) -> None:
    assert visit(name).wrong["formulas"] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_printed_from_a_dark_screen(visit: Callable[[str], Visit], name: str) -> None:
    assert visit(name).wrong["print"] == []


@pytest.mark.parametrize("name", [name for name in PAGES if name != "404.html"])
def test_a_page_opened_as_a_file_is_the_same(browser: Browser, book: Path, name: str) -> None:
    with opened(browser, (book / name).as_uri()) as (page, seen):
        inside = (book.as_uri(), "data:")
        assert [url for url in seen.requests if not url.startswith(inside)] == []
        assert seen.complaints == []
        assert probe(page, "formulas") == []


def test_every_link_into_the_book_leads_somewhere(visit: Callable[[str], Visit], site: str) -> None:
    links = {link for name in PAGES for link in visit(name).links if link.startswith(site)}
    files = {link.partition("#")[0] for link in links}
    anchors: dict[str, set[str]] = {}
    for file in files:
        with urllib.request.urlopen(file) as answer:  # raises for what is not there
            content = answer.read()
        assert content, file
        if file.endswith(".html"):
            anchors[file] = read_page(content.decode()).anchors
    assert len(files) > len(PAGES)
    for link in links:
        file, _, anchor = link.partition("#")
        assert not anchor or file not in anchors or anchor in anchors[file], link


@pytest.mark.parametrize("address", ["http", "file"])
def test_search_finds_a_word_without_a_network(
    browser: Browser, site: str, book: Path, address: str
) -> None:
    home = site if address == "http" else f"{book.as_uri()}/"
    with opened(browser, f"{home}search.html?q=penalty") as (page, seen):
        page.locator("#search-results li a").first.wait_for()
        found = page.locator("#search-results li a").all_inner_texts()
        assert len(found) >= 3
        assert [url for url in seen.requests if not url.startswith(home)] == []
        assert seen.complaints == []


def test_search_is_reached_with_the_keyboard(browser: Browser, site: str) -> None:
    with opened(browser, f"{site}index.html", viewport=WIDE) as (page, _):
        page.keyboard.press("Control+k")
        page.keyboard.type("mechanism")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search.html?q=mechanism**")
        page.locator("#search-results li a").first.wait_for()


@pytest.mark.parametrize("name", ["index.html", "notebooks/03_penalty.html"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_focus_can_be_followed(browser: Browser, site: str, name: str, theme: str) -> None:
    with opened(browser, site + name, viewport=WIDE, color_scheme=theme) as (page, _):
        passed = []
        for _ in range(400):
            page.keyboard.press("Tab")
            focus = page.evaluate("probes.focus()")
            if focus is None:
                break
            passed.append(focus)
        else:
            pytest.fail("the focus never leaves the page")
        assert len(passed) > 20
        assert [focus for focus in passed if not focus["changed"] or not focus["inside"]] == []


def test_the_keyboard_skips_what_every_page_repeats(browser: Browser, site: str) -> None:
    with opened(browser, f"{site}index.html", viewport=WIDE) as (page, _):
        page.keyboard.press("Tab")
        skip = page.locator(":focus")
        assert skip.inner_text() == "Skip to main content"
        assert skip.is_visible()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate(
            "document.querySelector('#main-content').contains(document.activeElement)"
        )


def test_the_theme_button_changes_the_theme_and_the_choice_stays(
    browser: Browser, site: str
) -> None:
    with opened(browser, f"{site}index.html", viewport=WIDE, color_scheme="light") as (page, _):
        theme = "document.documentElement.dataset.theme"
        themes = []
        for _ in range(3):
            page.locator(".theme-switch-button:visible").click()
            themes.append(page.evaluate(theme))
        assert set(themes) == {"light", "dark"}
        while page.evaluate(theme) != "dark":
            page.locator(".theme-switch-button:visible").click()
        page.goto(f"{site}theory.html")
        assert page.evaluate(theme) == "dark"


def test_what_is_not_there_leads_back(browser: Browser, site: str) -> None:
    assert urlsplit(site).path == PREFIX
    with opened(browser, f"{site}notebooks/gone/03_penalty.html") as (page, seen):
        assert [said for said in seen.complaints if "404" not in said] == []
        assert "Page not found" in page.title()
        assert len([url for url in seen.requests if url.startswith(site)]) > 10
        page.get_by_role("link", name="the first page").click()
        page.wait_for_url(f"{site}index.html")


def test_a_printed_page_is_the_light_one(browser: Browser, site: str) -> None:
    with opened(browser, f"{site}theory.html", color_scheme="dark") as (page, _):
        theme = "document.documentElement.dataset.theme"
        page.evaluate(f"addEventListener('beforeprint', () => (window.printed = {theme}))")
        assert page.pdf().startswith(b"%PDF")
        assert page.evaluate("window.printed") == "light"
        assert page.evaluate(theme) == "dark"
