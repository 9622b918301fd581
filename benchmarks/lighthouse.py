"""Measure how Lighthouse judges a built book: its first page and its heaviest chapter.

Scores are medians over the repetitions, of 100, for a phone: Lighthouse simulates its network and
processor from what loading took here, so nothing else may run. Needs Chromium or Chrome, and Node
with npm. The bar: 95 in each category.
"""

import argparse
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "book"))

from judging import STEADY, heaviest, install, judge  # noqa: E402
from visiting import serving  # noqa: E402

CATEGORIES = ("performance", *STEADY)
LEAST = 95


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("book", nargs="?", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    folder = ROOT / ".pytest_cache" / "lighthouse"
    folder.mkdir(parents=True, exist_ok=True)
    program, least = install(folder), 100.0
    with serving(arguments.book.resolve()) as site:
        for name in ("index.html", heaviest(arguments.book)):
            runs = [judge(program, site + name, CATEGORIES) for _ in range(arguments.repetitions)]
            for category in CATEGORIES:
                scores = [run.scores[category] for run in runs]
                least = min(least, statistics.median(scores))
                print(f"{name}: {category} {statistics.median(scores):g}, of {scores}", flush=True)
            print("  " + "\n  ".join(runs[-1].lost))
    print(f"the bar, {LEAST} in each: {'met' if least >= LEAST else 'missed'}")


if __name__ == "__main__":
    main()
