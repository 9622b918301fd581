import types
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from conftest import CARD
from docutils import nodes
from docutils.utils import new_document

from msstab import discovery

BASE = "https://ada.github.io/report/"


@pytest.fixture
def app(tmp_path: Path) -> Any:
    config = types.SimpleNamespace(
        html_baseurl=BASE,
        html_title="msstab",
        project="msstab",
        root_doc="index",
        myst_substitutions={"answer_text": "It is so."},
    )
    return types.SimpleNamespace(config=config, srcdir=tmp_path)


def page(*paragraphs: str) -> nodes.document:
    made = new_document("page")
    made += [nodes.paragraph(text=text) for text in paragraphs]
    return made


def described(app: Any, name: str = "index", metatags: str = "", **context: Any) -> str:
    given = {"title": "A <em>title</em> &amp; more", "metatags": metatags, **context}
    discovery.describe_page(app, name, "page.html", given, page("What\nis it?", "More."))
    text: str = given["metatags"]
    return text


def test_a_page_is_described_by_its_first_paragraph(app: Any) -> None:
    text = described(app)
    assert '<meta name="description" content="What is it?" />' in text
    assert '<meta property="og:description" content="What is it?" />' in text
    assert '<meta property="og:title" content="A title &amp; more" />' in text
    assert f'<meta property="og:url" content="{BASE}index.html" />' in text
    assert 'og:type" content="website"' in text
    assert 'og:type" content="article"' in described(app, "notebooks/03_penalty")


def test_a_page_that_describes_itself_keeps_its_words(app: Any) -> None:
    text = described(app, metatags='<meta content="Own &amp; words" name="description" />')
    assert text.count('name="description"') == 1
    assert 'property="og:description" content="Own &amp; words"' in text


def test_a_long_description_ends_between_words() -> None:
    text = discovery.description(page("word, " * 100))
    assert len(text) <= discovery.LONGEST
    assert text.endswith("word …")
    assert discovery.description(page()) == ""


def test_the_preview_has_a_picture_where_there_is_one(app: Any) -> None:
    assert "og:image" not in described(app)
    assert 'twitter:card" content="summary"' in described(app)
    (app.srcdir / "_results").mkdir()
    (app.srcdir / "_results" / "card.png").write_bytes(CARD)
    text = described(app)
    for name, value in (
        ("og:image", f"{BASE}card.png"),
        ("og:image:width", "1200"),
        ("og:image:height", "630"),
        ("og:image:alt", "It is so."),
    ):
        assert f'<meta property="{name}" content="{value}" />' in text
    assert 'twitter:card" content="summary_large_image"' in text
    # Without an address nobody could fetch it.
    app.config.html_baseurl = ""
    assert "og:image" not in described(app)
    assert "og:url" not in described(app)


def test_the_lost_page_resolves_its_links_from_the_books_own_folder(app: Any) -> None:
    assert described(app, "404").startswith('<base href="/report/" />')
    app.config.html_baseurl = ""
    assert described(app, "404").startswith('<base href="/" />')
    ((name, context, template),) = discovery.add_lost_page(app)
    assert (name, template) == ("404", "page.html")
    assert "<h1>Page not found</h1>" in context["body"]


def test_the_sitemap_lists_pages_below_the_address() -> None:
    root = ElementTree.fromstring(discovery.sitemap(BASE, ["index", "notebooks/a&b"]))
    spaces = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}
    assert [place.text for place in root.findall("s:url/s:loc", spaces)] == [
        f"{BASE}index.html",
        f"{BASE}notebooks/a&b.html",
    ]


def finish(app: Any, tmp_path: Path) -> Path:
    site = tmp_path / "site"
    site.mkdir(exist_ok=True)
    (site / "404.html").write_text('<a href="#main">x</a> <a href="index.html#a">y</a>')
    app.outdir, app.builder = site, types.SimpleNamespace(format="html")
    app.env = types.SimpleNamespace(found_docs={"b", "a"})
    discovery.list_pages(app, None)
    return site


def test_robots_are_told_of_the_sitemap(app: Any, tmp_path: Path) -> None:
    site = finish(app, tmp_path)
    assert f"Sitemap: {BASE}sitemap.xml\n" in (site / "robots.txt").read_text()
    listed = (site / "sitemap.xml").read_text()
    assert listed.index("report/a.html") < listed.index("report/b.html")
    assert (site / "404.html").read_text() == (
        '<a href="404.html#main">x</a> <a href="index.html#a">y</a>'
    )


def test_without_an_address_there_is_no_sitemap(app: Any, tmp_path: Path) -> None:
    app.config.html_baseurl = ""
    site = finish(app, tmp_path)
    assert not (site / "sitemap.xml").exists()
    assert "Sitemap" not in (site / "robots.txt").read_text()


def test_a_failed_build_writes_nothing(app: Any, tmp_path: Path) -> None:
    app.outdir, app.builder = tmp_path / "none", types.SimpleNamespace(format="html")
    discovery.list_pages(app, ValueError())
    assert not (tmp_path / "none").exists()
