import time

import numpy as np
import pandas as pd
import pytest
import torch

from msstab import figures, noise, operators, solvers, spectral
from msstab.cells import Linearisation
from msstab.noise import NOISES


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Compare on two matrices each of 4, 6 and 10 states, the last beyond the dense solver."""
    steps = [solvers.random_steps(n, 2) for n in (4, 6, 10)]
    return solvers.compare(steps, largest_dense=6, repeats=2)


def rows(frame: pd.DataFrame, method: str) -> pd.DataFrame:
    return frame[frame.method == method].set_index("n")


def test_there_is_a_row_for_each_size_and_method_that_is_affordable(frame: pd.DataFrame) -> None:
    assert tuple(frame.columns) == solvers.COLUMNS
    assert list(rows(frame, "dense").index) == [4, 6]
    for method in ("reduced", "arnoldi", "spectral norm"):
        assert list(rows(frame, method).index) == [4, 6, 10]
    assert (frame.matrices == 2).all()
    assert (frame.seconds > 0).all()


def test_solvers_are_measured_against_the_best_that_is_not_themselves(frame: pd.DataFrame) -> None:
    assert rows(frame, "reduced").reference.tolist() == ["dense", "dense", "arnoldi"]
    assert rows(frame, "arnoldi").reference.tolist() == ["dense", "dense", "reduced"]
    assert rows(frame, "spectral norm").reference.tolist() == ["dense", "dense", "arnoldi"]
    assert (rows(frame, "dense").reference == "").all()
    assert rows(frame, "dense").relative_error.isna().all()


def test_solvers_are_exact_and_the_proxys_error_is_that_of_the_largest_lift(
    frame: pd.DataFrame,
) -> None:
    for method in ("reduced", "arnoldi"):
        assert (rows(frame, method).relative_error < 1e-10).all()
    for n in (4, 6):
        step = solvers.random_steps(n, 2)
        lifted = operators.matrix(NOISES["unit"].operator(step, 0.2))[0].numpy()
        exact = np.abs(np.linalg.eigvals(lifted)).max(-1)
        proxy = 1.04 * np.linalg.norm(step.jacobian[0].numpy(), 2, axis=(-2, -1)) ** 2
        expected = (proxy / exact - 1).max()
        found = rows(frame, "spectral norm").relative_error[n]
        assert found == pytest.approx(expected)
        assert found > 0.01


def test_all_but_the_times_is_the_same_twice(frame: pd.DataFrame) -> None:
    steps = [solvers.random_steps(n, 2) for n in (4, 6, 10)]
    again = solvers.compare(steps, largest_dense=6, repeats=1)
    pd.testing.assert_frame_equal(again.drop(columns="seconds"), frame.drop(columns="seconds"))


def test_times_are_those_of_a_matrix_and_medians(monkeypatch: pytest.MonkeyPatch) -> None:
    durations = iter([0.1, 0.9, 0.2])
    clock = [0.0]

    def tick() -> float:
        return clock[0]

    def work(operator: object, method: str) -> spectral.Eigen:
        # The first call of all warms up, and is not timed.
        clock[0] += next(durations, 0.0) if warmed else 0.0
        warmed.append(True)
        return spectral.Eigen(torch.ones(1, 4), torch.ones(0), torch.ones(0))

    warmed: list[bool] = []
    monkeypatch.setattr(time, "process_time", tick)
    monkeypatch.setattr(spectral, "eigenmatrices", work)
    found = solvers.compare([solvers.random_steps(3, 4)], repeats=3, methods=["reduced"])
    # The third repetition is left out, for the first two have taken LONGEST already.
    assert found.seconds.tolist() == pytest.approx([(0.1 + 0.9) / 2 / 4])


def test_a_given_stack_noise_and_strength_are_what_is_compared() -> None:
    jacobian = torch.tensor([[0.0, 2.0], [0.3, 0.0]], dtype=torch.float64)
    column = torch.zeros(2, 1, dtype=torch.float64)
    step = Linearisation(
        jacobian[None], column[None], column[None], column.mT[None], jacobian[None]
    )
    found = solvers.compare([step], noise=NOISES["gain"], sigma=0.5, repeats=1)
    proxy = rows(found, "spectral norm").relative_error[2]
    assert proxy == pytest.approx(4 / 0.6 - 1)


def test_a_solver_that_does_not_apply_is_not_a_number() -> None:
    groups = torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]], dtype=torch.float64)
    found = solvers.compare([solvers.random_steps(4)], noise=noise.gain(groups), repeats=1)
    reduced = rows(found, "reduced")
    assert reduced.seconds.isna().all()
    assert reduced.relative_error.isna().all()
    assert (rows(found, "arnoldi").relative_error < 1e-10).all()
    assert len(figures.solvers(found).svg) > 1000


def test_unknown_methods_are_refused() -> None:
    with pytest.raises(ValueError, match="no method power; known: dense, reduced"):
        solvers.compare([], methods=["power", "dense"])


def test_the_random_steps_depend_on_size_and_seed_alone() -> None:
    first, again = solvers.random_steps(5, 3), solvers.random_steps(5, 3)
    assert torch.equal(first.jacobian, again.jacobian)
    assert first.jacobian.shape == (1, 3, 5, 5)
    assert not torch.equal(first.jacobian, solvers.random_steps(5, 3, seed=1).jacobian)


def test_the_figure_is_drawn_alike_twice_and_says_errors_and_times(frame: pd.DataFrame) -> None:
    first, again = figures.solvers(frame), figures.solvers(frame)
    pd.testing.assert_frame_equal(first.data, frame)
    assert first.svg == again.svg
    norm = rows(frame, "spectral norm").relative_error
    assert f"spectral norm {norm.min():.1g} to {norm.max():.1g}" in first.alt
    dense = rows(frame, "dense").seconds[6]
    assert f"dense {1000 * dense:.3g} ms at 6" in first.alt
    assert "for 4 to 10 states" in first.alt
