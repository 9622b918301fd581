"""What search engines, link previews and lost readers find: descriptions, sitemap, page 404."""

import html
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from docutils import nodes
from sphinx.application import Sphinx

CARD = "card.png"
"""The picture that announces a link to the book, in `_results` and in the site's root."""

LOST = "404"

LONGEST = 300
"""Characters of a description; more is cut off by those who show it."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect everything to Sphinx; called by Sphinx itself."""
    app.connect("html-collect-pages", add_lost_page)
    # After Sphinx has written the page's own metadata, and before msstab.sphinxext finishes it.
    app.connect("html-page-context", describe_page, priority=600)
    app.connect("build-finished", list_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def add_lost_page(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Make the page that a web server shows for an address that is none."""
    body = (
        "<h1>Page not found</h1>\n<p>There is no page at this address. It may have moved: "
        '<a href="index.html">the first page</a> leads to every chapter, and '
        '<a href="search.html">the search</a> finds words.</p>\n'
    )
    yield LOST, {"title": "Page not found", "body": body}, "page.html"


def describe_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Add a description and what a link's preview shows; let page 404 work at any address."""
    base = app.config.html_baseurl
    tags = context.get("metatags", "")
    if pagename == LOST:
        # It is shown for addresses in any folder, from which its relative links would lead astray.
        root = urlsplit(base).path or "/"
        context["metatags"] = f'<base href="{html.escape(root)}" />\n{tags}'
        return
    if doctree is None:
        return
    found = re.search(r'<meta content="([^"]*)" name="description"', tags)
    said = html.unescape(found[1]) if found else description(doctree)
    if said and not found:
        tags += f'\n<meta name="description" content="{html.escape(said)}" />'
    title = html.unescape(re.sub("<[^>]+>", "", context.get("title", "")))
    card = Path(app.srcdir, "_results", CARD)
    alt = app.config.myst_substitutions.get("answer_text", "")
    context["metatags"] = tags + preview(
        {
            "og:type": "website" if pagename == app.config.root_doc else "article",
            "og:site_name": app.config.html_title or app.config.project,
            "og:title": title,
            "og:description": said,
            "og:url": f"{base}{pagename}.html" if base else "",
            **(_picture(card, base, alt) if base and card.is_file() else {}),
        }
    )


def description(doctree: nodes.document) -> str:
    """Return a page's first paragraph, which in a chapter is its question, on one line."""
    paragraph = doctree.next_node(nodes.paragraph)
    text = " ".join(paragraph.astext().split()) if paragraph is not None else ""
    if len(text) <= LONGEST:
        return text
    return text[:LONGEST].rpartition(" ")[0].rstrip(",;:") + " …"


def preview(properties: dict[str, str]) -> str:
    """Return Open Graph properties as elements, the empty ones left out, with Twitter's own."""
    shown = {name: value for name, value in properties.items() if value}
    tags = [
        f'<meta property="{name}" content="{html.escape(value)}" />'
        for name, value in shown.items()
    ]
    kind = "summary_large_image" if "og:image" in shown else "summary"
    return "\n".join(["", *tags, f'<meta name="twitter:card" content="{kind}" />'])


def list_pages(app: Sphinx, error: Exception | None) -> None:
    """Write the sitemap, name it to robots, and put the preview's picture into the site."""
    if error is not None or app.builder.format != "html":
        return
    site, base = Path(app.outdir), app.config.html_baseurl
    card = Path(app.srcdir, "_results", CARD)
    if card.is_file():
        shutil.copy(card, site)
    # A link within page 404 would be taken to be one of the first page.
    lost = site / f"{LOST}.html"
    lost.write_text(
        lost.read_text(encoding="utf-8").replace('href="#', f'href="{LOST}.html#'),
        encoding="utf-8",
    )
    robots = "User-agent: *\nAllow: /\n"
    if base:
        (site / "sitemap.xml").write_bytes(sitemap(base, sorted(app.env.found_docs)))
        robots += f"Sitemap: {base}sitemap.xml\n"
    (site / "robots.txt").write_text(robots, encoding="utf-8")


def sitemap(base: str, pages: list[str]) -> bytes:
    """Return the sitemap of pages, named as in the table of contents, below an address."""
    root = ElementTree.Element("urlset", xmlns="http://www.sitemaps.org/schemas/sitemap/0.9")
    for page in pages:
        place = ElementTree.SubElement(ElementTree.SubElement(root, "url"), "loc")
        place.text = f"{base}{page}.html"
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _picture(card: Path, base: str, alt: str) -> dict[str, str]:
    # A PNG's first chunk gives its size, right after the signature and the chunk's own head.
    head = card.read_bytes()[16:24]
    width, height = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")
    return {
        "og:image": f"{base}{CARD}",
        "og:image:type": "image/png",
        "og:image:width": str(width),
        "og:image:height": str(height),
        "og:image:alt": alt,
    }
