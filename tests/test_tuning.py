import itertools

import numpy as np
import pytest

from msstab.tuning import Configuration, Grid, choose, configurations, widen

IDEA, OTHER = "idea", "another"
ORIGINAL = Grid((0.001, 0.003, 0.01), {IDEA: (0.0, 0.1, 1.0), OTHER: (0.0, 20.0, 30.0)})
WIDER = {IDEA: (0.0, 0.1, 1.0, 10.0), OTHER: (0.0, 20.0, 30.0, 45.0)}


def random_grid(seed: int) -> Grid:
    rng = np.random.default_rng(seed)
    rungs = np.cumprod(rng.uniform(1.5, 10, size=rng.integers(2, 6))) * 1e-4
    n = rng.integers(1, 5)
    strengths = [np.cumprod(rng.uniform(1.5, 10, size=n)) * scale for scale in (1e-2, 10)]
    own = {arm: (0.0, *s.tolist()) for arm, s in zip((IDEA, OTHER), strengths, strict=True)}
    return Grid(tuple(rungs.tolist()), own)


def rates(grid: Grid, arm: str) -> list[float]:
    return sorted({c.learning_rate for c in configurations(grid, arm)})


# ---- equal budgets


@pytest.mark.parametrize("seed", range(50))
def test_every_arm_tries_equally_many_configurations(seed: int) -> None:
    grid = random_grid(seed)
    plain = configurations(grid, "baseline")
    assert len(plain) == len(set(plain)) == len(grid.rungs) * grid.n_strengths
    assert {c.strength for c in plain} == {0.0}
    for arm, strengths in grid.strengths.items():
        penalised = configurations(grid, arm)
        # Equally many different ones.
        assert len(penalised) == len(set(penalised)) == len(plain)
        assert set(penalised) == {
            Configuration(*pair) for pair in itertools.product(grid.rungs, strengths)
        }
    # What a penalised arm finds at strength 0, the baseline could have found too.
    assert set(grid.rungs) <= {c.learning_rate for c in plain}
    assert [c.learning_rate for c in plain] == sorted(c.learning_rate for c in plain)


def test_the_baselines_extra_rates_lie_evenly_between_the_rungs_and_beyond() -> None:
    found = rates(Grid((0.001, 0.008), {IDEA: (0.0, 1.0, 10.0)}), "baseline")
    assert found == pytest.approx([0.001, 0.002, 0.004, 0.008, 0.016, 0.032])


@pytest.mark.parametrize("strengths", [{}, {IDEA: (0.0, 1.0), OTHER: (0.0, 1.0, 2.0)}])
def test_unequal_budgets_are_refused(strengths: dict[str, tuple[float, ...]]) -> None:
    with pytest.raises(ValueError, match="unequally many"):
        configurations(Grid((0.1, 0.2), strengths), "baseline")


# ---- choosing


def test_the_lowest_mean_error_is_chosen() -> None:
    a, b, c = (Configuration(rate, 0.0) for rate in (0.01, 0.001, 0.1))
    errors = {a: [2.0, 3.0, 1.0], b: [0.1, 0.2, 9.0], c: [2.5, 2.4, 2.3]}
    assert choose({key: np.array(values) for key, values in errors.items()}) == a


def test_of_equals_the_weaker_and_then_the_slower_is_chosen() -> None:
    same = np.array([1.0, 2.0])
    pairs = [(0.001, 1.0), (0.01, 0.1), (0.1, 0.0), (0.01, 0.0)]
    for order in itertools.permutations(pairs):
        assert choose({Configuration(*p): same for p in order}) == (0.01, 0.0)
    assert choose({Configuration(*p): same for p in pairs[:2]}) == (0.01, 0.1)


# ---- widening


def pick(rate: float, strength: float = 0.0, arm: str = IDEA) -> tuple[str, Configuration]:
    return arm, Configuration(rate, strength)


@pytest.mark.parametrize("strength", [0.0, 0.1])
def test_a_bracketed_choice_keeps_the_grid(strength: float) -> None:
    assert widen(ORIGINAL, [pick(0.003, strength)]) == ORIGINAL
    inside = rates(ORIGINAL, "baseline")[1:-1]
    assert widen(ORIGINAL, [pick(rate, arm="baseline") for rate in inside]) == ORIGINAL


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (pick(0.01, 0.1), ((0.001, 0.003, 0.01, 0.033), ORIGINAL.strengths)),
        (pick(0.001, 0.1), ((0.00033, 0.001, 0.003, 0.01), ORIGINAL.strengths)),
        # Budgets stay equal: what one arm tries more, all do.
        (pick(0.003, 1.0), (ORIGINAL.rungs, WIDER)),
        (pick(0.003, 30.0, OTHER), (ORIGINAL.rungs, WIDER)),
        (pick(0.01, 1.0), ((0.001, 0.003, 0.01, 0.033), WIDER)),
        # The baseline has rates beyond the last rung, of which the last is its edge.
        (pick(0.01, arm="baseline"), ORIGINAL),
        (pick(0.001, arm="baseline"), ((0.00033, 0.001, 0.003, 0.01), ORIGINAL.strengths)),
    ],
)
def test_each_edge_is_moved_outwards_by_a_step(
    chosen: tuple[str, Configuration],
    expected: tuple[tuple[float, ...], dict[str, tuple[float, ...]]],
) -> None:
    assert widen(ORIGINAL, [chosen]) == Grid(*expected)
    # Whatever the other arms chose.
    assert widen(ORIGINAL, [pick(0.003, 0.1), chosen]) == Grid(*expected)


def test_the_baselines_last_rate_is_an_edge() -> None:
    last = rates(ORIGINAL, "baseline")[-1]
    assert last > 0.01
    wider = widen(ORIGINAL, [pick(last, arm="baseline")])
    assert wider.rungs[:-1] == ORIGINAL.rungs
    assert rates(wider, "baseline")[-1] > last
    assert wider.strengths == ORIGINAL.strengths


def test_strength_zero_is_no_edge_even_where_it_is_the_only_other() -> None:
    grid = Grid((0.001, 0.003, 0.01), {IDEA: (0.0, 1.0)})
    assert widen(grid, [pick(0.003, 0.0)]) == grid
    assert widen(grid, [pick(0.003, 1.0)]).strengths == {IDEA: (0.0, 1.0, 10.0)}


def test_edges_on_both_sides_move_at_once() -> None:
    wider = widen(ORIGINAL, [pick(0.001, 0.1), pick(0.01, 0.1)])
    assert wider.rungs == (0.00033, 0.001, 0.003, 0.01, 0.033)


@pytest.mark.parametrize("seed", range(20))
def test_a_widened_grid_holds_the_former_one_in_order(seed: int) -> None:
    grid = random_grid(seed)
    edges = [pick(grid.rungs[0], grid.strengths[IDEA][-1]), pick(grid.rungs[-1])]
    wider = widen(grid, edges)
    assert wider.rungs[1:-1] == grid.rungs
    assert list(wider.rungs) == sorted(set(wider.rungs))
    for arm, strengths in grid.strengths.items():
        assert wider.strengths[arm][:-1] == strengths
        assert list(wider.strengths[arm]) == sorted(set(wider.strengths[arm]))
        # A penalised arm's former trials are still among the grid's.
        assert set(configurations(grid, arm)) <= set(configurations(wider, arm))
