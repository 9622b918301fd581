"""Where two builds of one study differ, byte by byte, but for the times that have to."""

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

EXCERPT = 60
"""Bytes that are shown of each side where two files part."""


class Varying(NamedTuple):
    """What may differ: where `pattern` matches in `files`, paths in a book that may hold a *."""

    what: str
    files: str
    pattern: bytes


_PENALTY = "notebooks/03_penalty.html"
_CELL = rb"<td>[^<]*</td>"

VARYING = (
    Varying("when the book was built", "*.html", rb"<time [^>]*>[^<]*</time>"),
    # Sphinx writes the year of SOURCE_DATE_EPOCH, where there is one.
    Varying("when the book was built", "*.html", rb"(?<=Copyright )\d{4}"),
    Varying("when the book was built", "msstab-build.json", rb'"built": "[^"]*"'),
    Varying("how long the solvers took", _PENALTY, rb'<figure[^>]*id="fig-solvers">.*?</figure>'),
    Varying("how long the solvers took", _PENALTY, rb"<figcaption>Processor time.*?</table>"),
    Varying("how long the solvers took", "downloads/03_penalty/solvers*", rb".*"),
    # The cell before the radii, which are a number to another.
    Varying("how long training took", _PENALTY, _CELL + rb"(?=\s*<td>[^<]* to [^<]*</td>)"),
    Varying("how long training took", "downloads/03_penalty/interventions.csv", rb"(?<=%,)[^,%]*"),
    Varying("how long training took", "*/trials.csv", rb"(?<=,)[^,\n]*(?=\n)"),
)
"""All that differs between two builds of one study with the same code on the same machine."""


def differences(first: Path, second: Path) -> list[str]:
    """Return a sentence for each file that one of two built books lacks, or that differs.

    What `VARYING` lists is passed over.
    """
    names = [
        {path.relative_to(book).as_posix() for path in book.rglob("*") if path.is_file()}
        for book in (first, second)
    ]
    found = [f"{name} is in {first} only" for name in sorted(names[0] - names[1])]
    found += [f"{name} is in {second} only" for name in sorted(names[1] - names[0])]
    for name in sorted(names[0] & names[1]):
        one, other = (masked(name, (book / name).read_bytes()) for book in (first, second))
        if one != other:
            found.append(f"{name} differs: {_parting(one, other)}")
    return found


def masked(name: str, content: bytes) -> bytes:
    """Return what must be the same of a file of a book, with what may differ named instead."""
    for what, files, pattern in VARYING:
        if fnmatch(name, files):
            content = re.sub(pattern, what.encode(), content, flags=re.DOTALL)
    return content


def _parting(one: bytes, other: bytes) -> str:
    """Show where two contents part."""
    length = min(len(one), len(other))
    start = next((k for k in range(length) if one[k] != other[k]), length)
    shown = (
        part[max(0, start - EXCERPT // 2) : start + EXCERPT].decode("utf-8", "replace")
        for part in (one, other)
    )
    return " against ".join(repr(text) for text in shown)
