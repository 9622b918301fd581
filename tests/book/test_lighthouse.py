"""Lighthouse's scores of the first page and of the heaviest chapter.

Performance is left to `benchmarks/lighthouse.py`: here other tests run beside it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from judging import STEADY, heaviest, install, judge
from visiting import find_browser, missing, serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lighthouse(pytestconfig: pytest.Config) -> Path:
    find_browser()
    folder = Path(pytestconfig.rootpath, ".pytest_cache", "lighthouse")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return install(folder)
    except (FileNotFoundError, RuntimeError) as error:
        missing(str(error))


@pytest.fixture(scope="module")
def site(lighthouse: Path, shown_book: Path) -> Iterator[str]:
    with serving(shown_book) as address:
        yield address


@pytest.mark.parametrize("page", ["the first page", "the heaviest chapter"])
def test_a_page_scores_at_least_95(
    lighthouse: Path, shown_book: Path, site: str, page: str
) -> None:
    name = "index.html" if page == "the first page" else heaviest(shown_book)
    found = judge(lighthouse, site + name, STEADY)
    assert set(found.scores) == set(STEADY)
    assert min(found.scores.values()) >= 95, "\n".join([name, str(found.scores), *found.lost])
