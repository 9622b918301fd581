"""One page over several built studies: their verdicts side by side, the books copied below it."""

import html
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msstab import books, comparing, publishing
from msstab.books import Book, BookError

MARK = "msstab-site.json"
"""The file in a site that says it is one, and may be replaced."""

TITLE = "Mean-square stability: the studies"

STYLE = """
:root { color-scheme: light dark; --ink: #222; --soft: #595959; --paper: #fff; --line: #ccc;
  --link: #0b5a8c; --pst-color-background: var(--paper); }
@media (prefers-color-scheme: dark) { :root { --ink: #ddd; --soft: #aaa; --paper: #14181e;
  --line: #444; --link: #7cc4f8; } }
body { margin: 0 auto; max-width: 46rem; padding: 1rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
a { color: var(--link); }
article { border-top: 1px solid var(--line); padding-block: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; }
h2 { font-size: 1.2rem; margin: 0 0 0.5rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; }
code { font-size: 0.9em; }
@media (max-width: 30rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: 0.4rem; } }
"""


def build(folders: Sequence[Path], out: Path, root: Path) -> Path:
    """Copy the books in these folders to `out`, with an index page over them; return that page.

    A site already at `out` stays as it is until the new one is whole. Raises BookError for a
    folder without a book, a book that fails `books.problems`, and two of the same study;
    publishing.BuildError where `out` holds anything but a site. `root` has `_build`.
    """
    found = _named([_sound(folder) for folder in folders])
    out = out.resolve()
    with publishing.staging_area(root, out, mark=MARK) as staging:
        site = staging / "site"
        site.mkdir()
        for name, book in found.items():
            shutil.copytree(book.folder, site / name)
        (site / "index.html").write_text(index_page(found), encoding="utf-8")
        (site / ".nojekyll").touch()
        keys = {name: book.manifest["study_key"] for name, book in found.items()}
        (site / MARK).write_text(json.dumps({"studies": keys}) + "\n", encoding="utf-8")
        publishing.publish(site, out, root, mark=MARK)
    return out / "index.html"


def index_page(found: dict[str, Book]) -> str:
    """Return the page over books by the name of their folder in the site."""
    picture = comparing.picture({name: book.report for name, book in found.items()})
    studies = "\n".join(_article(name, book) for name, book in found.items())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{TITLE}</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>{TITLE}</h1>
<p>Effect of the judged penalty on the test error in each study, with its interval.</p>
{picture.svg}
{studies}
</main>
</body>
</html>
"""


def _article(name: str, book: Book) -> str:
    facts, report, folder = book.manifest, book.report, quote(name)
    bench = report.bench_report
    answer = report.verdict or f"{report.practical_verdict}, {bench.comparison.verdict}"
    lines = {
        "Run": f"<code>{html.escape(facts.get('command', ''))}</code>",
        "Asked of": html.escape(f"{bench.model} on {bench.track}, {bench.n_seeds} pairs"),
        "Built": html.escape(_date(facts)),
        "Study": f"<code>{html.escape(facts['study_key'])}</code>",
        "For programs": f'<a href="{folder}/{books.REPORT}">{books.REPORT}</a>',
    }
    listed = "\n".join(f"<dt>{term}</dt><dd>{text}</dd>" for term, text in lines.items())
    return f"""<article>
<h2><a href="{folder}/index.html">{html.escape(name)}</a></h2>
<p>{html.escape(answer)}</p>
<dl>
{listed}
</dl>
</article>"""


def _date(facts: dict[str, Any]) -> str:
    return str(facts.get("built", "")).partition("T")[0]


def _sound(folder: Path) -> Book:
    book = books.open_book(folder)
    if found := books.problems(book):
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        raise BookError(f"{folder} does not pass its checks: {found[0]}{more}")
    return book


def _named(found: Sequence[Book]) -> dict[str, Book]:
    """Name each book after its folder and, where two share that, after its study."""
    names = [book.folder.resolve().name for book in found]
    named: dict[str, Book] = {}
    for name, book in zip(names, found, strict=True):
        key = book.manifest["study_key"]
        same = next((b for b in named.values() if b.manifest["study_key"] == key), None)
        if same is not None:
            raise BookError(f"{same.folder} and {book.folder} hold the same study, {key}")
        named[f"{name}-{key}" if names.count(name) > 1 else name] = book
    return named
