import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from msstab.evidence import trend

SIZES = np.log2([8, 16, 32, 64, 128])


def values(*counts: int, slope: float = 0.1, seed: int = 0) -> list[NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    shared = rng.normal(0, 0.3, max(counts))
    return [
        -0.5 + slope * x + shared[:n] + rng.normal(0, 0.2, n)
        for x, n in zip(SIZES, counts, strict=False)
    ]


def test_the_line_is_that_of_least_squares_through_all_values() -> None:
    rows = values(12, 12, 9, 5, 5)
    found = trend(SIZES, rows)
    line = stats.linregress(np.repeat(SIZES, [12, 12, 9, 5, 5]), np.concatenate(rows))
    assert found.slope == pytest.approx(line.slope)
    assert found.intercept == pytest.approx(line.intercept)
    assert (found.n, found.seeds) == (43, 12)


def test_where_seeds_have_all_places_the_interval_is_that_of_their_own_slopes() -> None:
    rows = values(7, 7, 7, 7, 7)
    found = trend(SIZES, rows, 0.9)
    slopes = np.polyfit(SIZES, np.stack(rows), 1)[0]
    test = stats.ttest_1samp(slopes, 0)
    assert found.slope == pytest.approx(slopes.mean())
    expected = test.confidence_interval(0.9)
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert found.p == pytest.approx(test.pvalue)


@pytest.mark.parametrize("counts", [(32, 32, 32, 16, 8), (6, 6, 6, 6, 6)])
def test_the_interval_covers_the_true_slope_as_often_as_it_says(counts: tuple[int, ...]) -> None:
    found = [trend(SIZES, values(*counts, seed=k)).interval for k in range(1_000)]
    covered = np.mean([low <= 0.1 <= high for low, high in found])
    # Two standard errors of a share of 1000 are 1.4%.
    assert 0.93 <= covered <= 0.97


def test_a_seed_that_is_alone_somewhere_is_left_out_there() -> None:
    rows = values(9, 9, 8, 8, 8)
    cut = [row[:8] for row in rows]
    assert trend(SIZES, rows) == trend(SIZES, cut)
    assert trend(SIZES, values(10, 10, 8, 8, 8)).seeds == 10


def test_values_on_a_line_have_an_interval_without_width() -> None:
    found = trend([0.0, 1.0], [[1.0, 1.0], [3.0, 3.0]])
    assert (found.slope, *found.interval, found.p) == (2.0, 2.0, 2.0, 0.0)


@pytest.mark.parametrize(
    ("scale", "rows"),
    [([1.0, 1.0], [[1, 2], [1, 2]]), ([1.0], [[1, 2]]), ([1.0, 2.0], [[1, 2]])],
)
def test_a_scale_that_gives_no_line_is_refused(scale: list[float], rows: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="a scale of shape"):
        trend(scale, rows)


def test_values_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        trend([0.0, 1.0], [[1.0, np.nan], [1.0, 2.0]])
