import json
from pathlib import Path

import pytest

from msstab.checks import MANIFEST, check

HEAD = '<meta name="msstab-study-key" content="abc123">'


def write(root: Path, name: str, body: str, head: str = HEAD) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    page = f"<!DOCTYPE html><html><head>{head}</head><body><h1>Title</h1>{body}</body></html>"
    path.write_text(page, encoding="utf-8")


def problems_of(root: Path, body: str, head: str = HEAD) -> list[str]:
    write(root, "index.html", body, head)
    return check(root, ["index"])


def test_a_sound_book_has_no_problem(tmp_path: Path) -> None:
    write(tmp_path, "notebooks/01_data.html", '<h2 id="part two">Part</h2>')
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "a b.css").write_text("p { background: url(data:image/png;base64,) }")
    (tmp_path / "file.json").write_text("{}")
    body = """
    <a href="https://example.org/">out</a> <a href="mailto:a@example.org">mail</a>
    <a href="#">up</a>
    <a href="notebooks/01_data.html#part%20two">in</a> <a href="file.json" download>file</a>
    <a href="notebooks/01_data.html?highlight=x">query</a>
    <img src="data:image/png;base64,AAAA" alt=""> <svg role="img" aria-label="A line"></svg>
    <code>{{ a_template }}</code> <span class="math">\\frac{{a}}{b} {{ c }}</span>"""
    head = HEAD + '<link rel="stylesheet" href="_static/a%20b.css?v=1">'
    head += '<link rel="canonical" href="https://example.org/index.html">'
    write(tmp_path, "index.html", body, head)
    assert check(tmp_path, ["index", "notebooks/01_data"]) == []


def test_a_missing_chapter_is_named(tmp_path: Path) -> None:
    write(tmp_path, "index.html", "")
    assert check(tmp_path, ["index", "notebooks/01_data"]) == ["notebooks/01_data.html is missing"]


def test_a_page_without_content_is_reported(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("")
    assert "index.html is empty: it has no heading" in check(tmp_path, ["index"])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<a href="gone.html">x</a>', "<a> gone.html leads nowhere"),
        ('<a href="data/gone.csv" download>x</a>', "<a> data/gone.csv leads nowhere"),
        ('<img src="gone.png" alt="x">', "<img> gone.png leads nowhere"),
        ('<img srcset="gone.png 2x" alt="x">', "<img> gone.png leads nowhere"),
        ('<script src="gone.js"></script>', "<script> gone.js leads nowhere"),
        ('<a href="#gone">x</a>', "<a> #gone leads to an anchor that isn't there"),
        ('<a href="index.html#gone">x</a>', "<a> index.html#gone leads to an anchor"),
        ('<a href="/index.html">x</a>', "works only where the book is a site's root"),
        ('<a href="../other.html">x</a>', "<a> ../other.html leads out of the book"),
        ('<script src="https://cdn.example/x.js"></script>', "<script> fetches https://cdn.exam"),
        ('<script src="//cdn.example/x.js"></script>', "<script> fetches //cdn.example/x.js"),
        ('<img src="HTTP://example.org/x.png" alt="x">', "<img> fetches HTTP://example.org/x"),
        ('<iframe src="https://example.org"></iframe>', "<iframe> fetches https://example.org"),
        ("<pre>Traceback (most recent call last):</pre>", "shows a traceback"),
        ('<div class="output traceback highlight"></div>', "shows the error of a failed cell"),
        ('<span id="papermill-error-cell"></span>', "shows the error of a failed cell"),
        ("<p>In {{ pairs }} pairs</p>", "nothing replaced {{ pairs }}"),
        ("<p>In {{<em>p</em>}} {{ x|round }}</p>", "nothing replaced {{ x|round }}"),
        ('<img src="data:image/png;base64,AA">', "has no alt text"),
        ('<svg role="img"></svg>', "an <svg> shown as an image has no aria-label"),
    ],
)
def test_what_is_wrong_with_a_page_is_said(tmp_path: Path, body: str, expected: str) -> None:
    (tmp_path / "other.html").write_text("")
    problems = problems_of(tmp_path / "book", body)
    assert [p for p in problems if p.startswith("index.html: ") and expected in p], problems


def test_prose_after_code_is_looked_at_again(tmp_path: Path) -> None:
    body = '<pre><pre>{{ a }}</pre>{{ b }}</pre><div class="math"><div></div>{{ c }}</div>{{ d }}'
    assert problems_of(tmp_path, body) == ["index.html: nothing replaced {{ d }}"]


@pytest.mark.parametrize("relation", ["stylesheet", "icon", "preload", "shortcut icon"])
def test_assets_of_other_sites_are_refused(tmp_path: Path, relation: str) -> None:
    head = HEAD + f'<link rel="{relation}" href="https://cdn.example/x">'
    assert problems_of(tmp_path, "", head) == ["index.html: <link> fetches https://cdn.example/x"]


@pytest.mark.parametrize(
    "css", ["@import 'https://f.example/f.css'", "@font-face { src: url(//f.example/f.css) }"]
)
def test_style_sheets_that_fetch_from_other_sites_are_refused(tmp_path: Path, css: str) -> None:
    (tmp_path / "x.css").write_text(css)
    problems = problems_of(tmp_path, "")
    assert len(problems) == 1
    assert problems[0].startswith("x.css fetches ")


def test_a_page_that_names_no_study_is_reported(tmp_path: Path) -> None:
    assert problems_of(tmp_path, "", "") == ["index.html doesn't say which study it shows"]


def test_pages_of_different_studies_are_reported(tmp_path: Path) -> None:
    write(tmp_path, "old.html", "", '<meta name="msstab-study-key" content="old456">')
    assert problems_of(tmp_path, "") == ["pages come from different studies: abc123, old456"]


def test_a_manifest_of_another_study_is_reported(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(json.dumps({"study_key": "old456"}))
    assert problems_of(tmp_path, "") == ["pages come from different studies: abc123, old456"]
