"""Lighthouse's scores of the first page and of the heaviest chapter, as a phone gets them."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from visiting import find_browser, flags, missing, serving

HERE = Path(__file__).parent
LEAST = 95

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lighthouse(request: pytest.FixtureRequest) -> Path:
    """Install exactly what package-lock.json names, unless it is there already."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            missing(f"{program} is not installed")
    files = [HERE / "package.json", HERE / "package-lock.json"]
    folder = Path(request.config.cache.mkdir("lighthouse"))
    finished = folder / "finished.json"  # a copy of the lock, written last
    if not finished.is_file() or finished.read_bytes() != files[1].read_bytes():
        for file in files:
            shutil.copy(file, folder)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            missing(f"npm could not install Lighthouse: {done.stderr[-500:]}")
        shutil.copy(files[1], finished)
    return folder / "node_modules" / ".bin" / "lighthouse"


@pytest.fixture(scope="module")
def site(lighthouse: Path, shown_book: Path) -> Iterator[str]:
    with serving(shown_book) as address:
        yield address


def heaviest(book: Path) -> str:
    chapter = max((book / "notebooks").glob("*.html"), key=lambda path: path.stat().st_size)
    return f"notebooks/{chapter.name}"


def scores(lighthouse: Path, address: str) -> tuple[dict[str, float], list[str]]:
    """Return the score of each category, and what cost points.

    The network of a phone and its processor are simulated from what loading took here, which
    disturbs the score of a busy machine least.
    """
    options = ["--output=json", "--quiet", "--throttling-method=simulate", "--form-factor=mobile"]
    chrome = f"--chrome-flags=--headless=new {' '.join(flags())}"
    done = subprocess.run(
        [lighthouse, address, *options, chrome],
        env={**os.environ, "CHROME_PATH": find_browser()},
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
    )
    result = json.loads(done.stdout)
    lost = [
        f"{audit['id']}: {audit['score']} {audit.get('displayValue', '')} {audit['title']}"
        for audit in result["audits"].values()
        if audit["score"] is not None and audit["score"] < 1
    ]
    return {name: 100 * kind["score"] for name, kind in result["categories"].items()}, lost


@pytest.mark.parametrize("page", ["the first page", "the heaviest chapter"])
def test_a_page_scores_at_least_95(
    lighthouse: Path, shown_book: Path, site: str, page: str
) -> None:
    name = "index.html" if page == "the first page" else heaviest(shown_book)
    find_browser()
    found, lost = scores(lighthouse, site + name)
    assert set(found) == {"performance", "accessibility", "best-practices", "seo"}
    assert min(found.values()) >= LEAST, "\n".join([name, str(found), *lost])
