import hashlib

import numpy as np
import pytest

from msstab.seeding import generator


def draw(study_seed: int, *purpose: str | int, size: int = 8) -> list[float]:
    numbers: list[float] = generator(study_seed, *purpose).normal(size=size).tolist()
    return numbers


def test_a_stream_follows_from_its_words_alone() -> None:
    word = int(hashlib.sha256(b"order").hexdigest()[:16], 16)
    expected = np.random.default_rng([5, 2, 3, word]).normal(size=8).tolist()
    assert draw(5, 3, "order") == draw(5, 3, "order") == expected


@pytest.mark.parametrize(
    "other",
    [
        (0, "dynamics", "confirmation", 3, "order"),
        (0, "dynamics", "tuning", 4, "order"),
        (0, "dynamics", "tuning", 3, "weights"),
        (0, "dynamics", "tuning", 3),
        (0, "tuning", "dynamics", 3, "order"),
        (1, "dynamics", "tuning", 3, "order"),
    ],
)
def test_another_purpose_or_study_has_another_stream(
    other: tuple[int, *tuple[str | int, ...]],
) -> None:
    assert not set(draw(0, "dynamics", "tuning", 3, "order")) & set(draw(*other))


def test_a_zero_at_the_end_makes_another_stream() -> None:
    assert not set(draw(0, "order")) & set(draw(0, "order", 0))
    assert not set(draw(0, 7)) & set(draw(0, 7, 0))


def test_neighbouring_streams_are_uncorrelated() -> None:
    streams = np.array([draw(0, "order", seed, size=2000) for seed in range(30)])
    correlations = np.corrcoef(streams)[np.triu_indices(30, 1)]
    # Of 435 correlations of independent streams, one beyond 5 deviations is a chance of 0.0002.
    assert np.abs(correlations).max() < 5 / np.sqrt(2000)
