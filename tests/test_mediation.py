import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from msstab.mediation import mediators


def table(*shape: int, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=shape)


def test_correlation_and_explained_share_are_scipys() -> None:
    change = table(7, 5)
    benefit = np.exp(change) + table(7, 5, seed=1)
    found = mediators(benefit, {"a": change}, np.random.default_rng(0), resamples=10)["a"]
    pair = change.ravel(), benefit.ravel()
    assert found.correlation == pytest.approx(stats.spearmanr(*pair).statistic, rel=1e-12)
    assert found.explained == pytest.approx(stats.linregress(*pair).rvalue ** 2, rel=1e-12)
    assert (found.n, found.n_unusable) == (35, 0)


def test_what_carries_the_benefit_stands_out_from_what_does_not() -> None:
    cause = table(12, 16)
    benefit = 0.8 * cause + 0.1 * table(12, 16, seed=1)
    candidates = {"cause": cause, "opposite": -cause, "chance": table(12, 16, seed=2)}
    found = mediators(benefit, candidates, np.random.default_rng(0), resamples=300)
    assert list(found) == list(candidates)
    assert found["cause"].correlation_interval[0] > 0.95
    assert found["cause"].explained_interval[0] > 0.95
    assert found["opposite"].correlation == pytest.approx(-found["cause"].correlation)
    low, high = found["chance"].correlation_interval
    assert low < 0 < high
    assert found["chance"].explained < 0.05
    for mediator in found.values():
        low, high = mediator.correlation_interval
        assert low <= mediator.correlation <= high


def test_variants_of_one_seed_do_not_count_as_independent() -> None:
    """Where all variants of a seed are copies, the interval is that of the seeds alone."""
    change, noise = table(1, 12), table(1, 12, seed=1)
    rng = np.random.default_rng
    alone = mediators(change + noise, {"a": change}, rng(0))["a"]
    copied = mediators(
        np.tile(change + noise, (20, 1)), {"a": np.tile(change, (20, 1))}, rng(0)
    )["a"]  # fmt: skip
    assert copied.correlation == pytest.approx(alone.correlation)
    assert copied.correlation_interval == pytest.approx(alone.correlation_interval)
    assert copied.n == 20 * alone.n


def test_the_interval_covers_a_correlation_over_seeds_about_as_often_as_it_says() -> None:
    hits = 0
    for k in range(60):
        # Unrelated, but each shared by the variants of a seed.
        change, benefit = (np.tile(table(1, 40, seed=k + s), (3, 1)) for s in (0, 1000))
        found = mediators(benefit, {"a": change}, np.random.default_rng(k), resamples=200)["a"]
        low, high = found.correlation_interval
        hits += low <= 0 <= high
    assert 52 <= hits <= 60


def test_candidates_are_compared_on_the_same_networks() -> None:
    benefit, first, second = table(6, 4), table(6, 4, seed=1), table(6, 4, seed=2)
    first[2, 1], benefit[0, 0], second[3, 3] = np.nan, np.inf, -np.inf
    found = mediators(benefit, {"a": first, "b": second}, np.random.default_rng(0), resamples=50)
    keep = np.ones((6, 4), dtype=bool)
    keep[[2, 0, 3], [1, 0, 3]] = False
    for name, change in (("a", first), ("b", second)):
        expected = stats.spearmanr(change[keep], benefit[keep]).statistic
        assert found[name].correlation == pytest.approx(expected)
        assert (found[name].n, found[name].n_unusable) == (21, 3)
        assert np.isfinite(found[name].correlation_interval).all()


def test_what_does_not_vary_mediates_nothing() -> None:
    flat, varied = np.zeros((4, 3)), table(4, 3)
    for benefit, change in ((flat, varied), (varied, flat), (varied, np.full((4, 3), np.nan))):
        found = mediators(benefit, {"a": change}, np.random.default_rng(0), resamples=5)["a"]
        assert np.isnan([found.correlation, found.explained]).all()
        assert np.isnan([found.correlation_interval, found.explained_interval]).all()


def test_the_same_stream_gives_the_same_interval() -> None:
    benefit, change = table(5, 6), table(5, 6, seed=1)
    first, second = (
        mediators(benefit, {"a": change}, np.random.default_rng(3), resamples=20) for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize(
    ("benefit", "change"), [((3, 4), (4, 3)), ((12,), (12,)), ((12, 1), (12, 1))]
)
def test_other_shapes_are_refused(benefit: tuple[int, ...], change: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="with at least 2 seeds"):
        mediators(table(*benefit), {"a": table(*change)}, np.random.default_rng(0))
