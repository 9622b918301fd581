"""Small built books, for tests of what reads them."""

import json
from pathlib import Path

from test_audit import clean_report

from msstab.checks import KEY_META, MANIFEST
from msstab.report import Report, write_report


def report_of(key: str, *, effect: float = -0.1, **study: object) -> Report:
    """Return a report without fault of a study with this key and these parameters."""
    report = clean_report(effect=effect)
    bench = report.bench_report.model_copy(update={"study_key": key, "study": study})
    return report.model_copy(update={"bench_report": bench, "verdict": f"The answer of {key}."})


def write_page(book: Path, name: str, key: str, body: str = "") -> None:
    path = book / f"{name}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f'<meta name="{KEY_META}" content="{key}">'
    path.write_text(f"<html><head>{head}</head><body><h1>{name}</h1>{body}</body></html>")


def write_book(folder: Path, key: str = "a1b2c3d4e5f6", report: Report | None = None) -> Path:
    """Write a sound book of two pages."""
    write_page(folder, "index", key, '<a href="notebooks/01_data.html">data</a>')
    write_page(folder, "notebooks/01_data", key, '<a href="../index.html">home</a>')
    manifest = {
        "study_key": key,
        "profile": "full",
        "command": "make book PROFILE=full",
        "built": "2026-01-02T03:04:05+00:00",
        "pages": ["index", "notebooks/01_data"],
    }
    (folder / MANIFEST).write_text(json.dumps(manifest))
    write_report(report or report_of(key), folder / "bench_report.json")
    return folder
