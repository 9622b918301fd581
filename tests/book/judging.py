"""Installs Lighthouse, exactly as package-lock.json names it, and lets it judge a page."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from visiting import find_browser, flags

HERE = Path(__file__).parent
STEADY = ("accessibility", "best-practices", "seo")
"""Categories whose scores do not depend on what else the machine does."""


@dataclass(frozen=True)
class Judgement:
    """The score of each category, of 100, and what cost points."""

    scores: dict[str, float]
    lost: list[str]


def install(folder: Path) -> Path:
    """Install Lighthouse into a folder, unless it is there, and return the program.

    Raises FileNotFoundError without Node or npm, RuntimeError where npm fails.
    """
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise FileNotFoundError(f"{program} is not installed")
    lock, finished = HERE / "package-lock.json", folder / "finished.json"
    if not finished.is_file() or finished.read_bytes() != lock.read_bytes():
        for file in (HERE / "package.json", lock):
            shutil.copy(file, folder)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"npm could not install Lighthouse: {done.stderr[-500:]}")
        shutil.copy(lock, finished)  # written last, so that half of it is never taken for all
    return folder / "node_modules" / ".bin" / "lighthouse"


def judge(lighthouse: Path, address: str, categories: tuple[str, ...]) -> Judgement:
    """Judge a page as a phone gets it.

    For performance, Lighthouse simulates a phone's network and processor from what loading took
    here, so that category needs a machine that does nothing else.
    """
    options = ["--output=json", "--quiet", "--throttling-method=simulate", "--form-factor=mobile"]
    done = subprocess.run(
        [
            str(lighthouse),
            address,
            *options,
            f"--only-categories={','.join(categories)}",
            f"--chrome-flags=--headless=new {' '.join(flags())}",
        ],
        env={**os.environ, "CHROME_PATH": find_browser()},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    result = json.loads(done.stdout)
    lost = [
        f"{audit['id']}: {audit['score']} {audit.get('displayValue', '')} {audit['title']}"
        for audit in result["audits"].values()
        if audit["score"] is not None and audit["score"] < 1
    ]
    return Judgement(
        {name: round(100 * kind["score"]) for name, kind in result["categories"].items()}, lost
    )


def heaviest(book: Path) -> str:
    """Return the name of the chapter with the largest page."""
    chapter = max((book / "notebooks").glob("*.html"), key=lambda path: path.stat().st_size)
    return f"notebooks/{chapter.name}"
