from collections.abc import Iterator
from typing import Any

from msstab import measures, spreading
from msstab.spreading import Calls, Work


def add(first: int, second: int) -> int:
    return first + second


def test_every_call_is_made_once() -> None:
    calls = [(number, 1) for number in range(7)]
    assert sorted(spreading.spread(add, calls, 1)) == [1, 2, 3, 4, 5, 6, 7]
    assert list(spreading.spread(add, [], 1)) == []


def test_another_place_is_given_all_that_is_spread_in_the_block() -> None:
    seen: list[tuple[Work, Calls, int]] = []

    def place(work: Work, calls: Calls, jobs: int) -> Iterator[Any]:
        seen.append((work, calls, jobs))
        yield from (work(*call) for call in calls)

    with spreading.elsewhere(place):
        assert list(spreading.spread(add, [(1, 2)], 3)) == [3]
        assert measures.measure("none", lambda *_: {}, [], {}, (), jobs=2) == []
    assert seen == [(add, [(1, 2)], 3), (measures._keep, [], 2)]
    assert list(spreading.spread(add, [(1, 2)], 1)) == [3]
    assert len(seen) == 2
