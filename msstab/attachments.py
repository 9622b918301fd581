"""The files of a chapter's figures and tables: written beside the pages, linked below each."""

import base64
import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = "downloads"
"""Folder of the files, in the results of a build and in the book."""

KINDS = {"image/svg+xml": "svg", "application/pdf": "pdf", "text/csv": "csv"}
"""What outputs offer as files, and the ending of each; a page itself shows none of these."""


def attach(notebook: Any, chapter: str, folder: Path) -> None:
    """Write what the outputs of an executed chapter offer, and put links to it below them.

    Files are named after the figure, or the cell, and lie in a subfolder of `folder` named after
    the chapter; the links lead there from a page in a folder beside `downloads`.
    """
    for stem, data in _offering(notebook):
        kinds = {kind: ending for kind, ending in KINDS.items() if kind in data}
        links = []
        for kind, ending in kinds.items():
            path = folder / chapter / f"{stem}.{ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            content = data.pop(kind)
            path.write_bytes(
                base64.b64decode(content) if ending == "pdf" else _joined(content).encode()
            )
            address = html.escape(f"../{FOLDER}/{chapter}/{path.name}")
            links.append(
                f'<a href="{address}" download aria-label="{ending.upper()}, {html.escape(stem)}">'
                f"{ending.upper()}</a>"
            )
        shown = f'<p class="msstab-files">{" ".join(links)}</p>'
        data["text/html"] = _joined(data["text/html"]) + shown


def _offering(notebook: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a name for each output that comes with its numbers, and its forms."""
    for cell in notebook.cells:
        figure = cell.metadata.get("mystnb", {}).get("figure", {})
        name = figure.get("name", cell.get("id", "")).removeprefix("fig-")
        offering = [
            output.data
            for output in cell.get("outputs", [])
            if {"text/csv", "text/html"} <= set(output.get("data", {}))
        ]
        for number, data in enumerate(offering, 1):
            yield (name if len(offering) == 1 else f"{name}-{number}"), data


def _joined(text: str | list[str]) -> str:
    """Return a text that a notebook may hold as its lines."""
    return text if isinstance(text, str) else "".join(text)
