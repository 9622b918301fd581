from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from plain import jacobian, networks, normal, step_of
from torch import Tensor

from msstab import arms, study
from msstab.arms import ARMS, Penalty, Step, spectral_proxy, squared_spectral_norm
from msstab.cells import Parameters


def gradients(parameters: Parameters, penalty: Tensor) -> list[Tensor]:
    found = torch.autograd.grad(penalty.sum(), list(parameters), allow_unused=True)
    return [
        g if g is not None else torch.zeros_like(p) for g, p in zip(found, parameters, strict=True)
    ]


# ---- the spectral norm


@pytest.mark.parametrize("n", [1, 2, 5, 32])
def test_squared_norm_and_gradient_are_those_of_linear_algebra(n: int) -> None:
    matrices = normal(4, n, n).requires_grad_()
    weights = normal(4, seed=1)
    value = squared_spectral_norm(matrices)
    expected = torch.linalg.matrix_norm(matrices, ord=2) ** 2
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=0)
    (found,) = torch.autograd.grad((weights * value).sum(), matrices)
    (oracle,) = torch.autograd.grad((weights * expected).sum(), matrices)
    torch.testing.assert_close(found, oracle, rtol=0, atol=1e-11 * float(oracle.abs().max()))


def test_squared_norm_of_nothing_is_zero() -> None:
    matrices = torch.zeros(2, 3, 3, requires_grad=True)
    value = squared_spectral_norm(matrices)
    assert torch.equal(value, torch.zeros(2))
    (found,) = torch.autograd.grad(value.sum(), matrices)
    assert torch.equal(found, torch.zeros_like(matrices))


@pytest.mark.parametrize("broken", [torch.nan, torch.inf, -torch.inf])
def test_a_matrix_that_is_not_finite_has_no_finite_norm_and_no_influence(broken: float) -> None:
    matrices = normal(3, 4, 4, dtype=torch.float32)
    clean = squared_spectral_norm(matrices)
    matrices[1, 2, 0] = broken
    matrices.requires_grad_()
    value = squared_spectral_norm(matrices)
    assert torch.equal(value[[0, 2]], clean[[0, 2]])
    assert not torch.isfinite(value[1])
    (found,) = torch.autograd.grad(value.sum(), matrices)
    assert torch.isfinite(found[[0, 2]]).all()
    assert not torch.isfinite(found[1]).all()


def test_many_equal_singular_values_have_a_norm_and_a_gradient() -> None:
    # The Jacobian of a network that training had saturated: 19 singular values of 1, and for the
    # last of 32 eigenvalues by its index LAPACK returned nothing.
    saturated = np.load(Path(__file__).parent / "data" / "saturated_jacobian.npy")
    matrices = torch.tensor(np.stack([saturated, 2 * saturated]), requires_grad=True)
    value = squared_spectral_norm(matrices)
    exact = np.linalg.svd(saturated.astype(np.float64), compute_uv=False)[0] ** 2
    np.testing.assert_allclose(value.detach(), [exact, 4 * exact], rtol=1e-5)
    (gradient,) = torch.autograd.grad(value.sum(), matrices)
    # Euler's identity for a function of degree 2.
    np.testing.assert_allclose((gradient * matrices).sum((1, 2)).detach(), 2 * value.detach())


@pytest.mark.parametrize("scale", [1e12, 1e16, 1e25])
def test_a_matrix_of_huge_entries_has_a_huge_norm_and_no_influence(scale: float) -> None:
    matrices = normal(3, 4, 4, dtype=torch.float32)
    clean = squared_spectral_norm(matrices)
    expected = scale**2 * float(clean[1])
    matrices[1] *= scale
    matrices.requires_grad_()
    value = squared_spectral_norm(matrices)
    assert torch.equal(value[[0, 2]], clean[[0, 2]])
    largest = torch.finfo(torch.float32).max
    assert float(value[1].detach()) == (
        pytest.approx(expected) if expected < largest else torch.inf
    )
    (found,) = torch.autograd.grad(value[[0, 2]].sum(), matrices)
    assert torch.isfinite(found).all()


# ---- the original's proxy


@pytest.mark.parametrize("gain", [1.0, 2.2, 5.0])
def test_the_proxy_is_a_hinge_on_the_norm_at_the_mean_state(gain: float) -> None:
    parameters = networks(3, 6, 2, gain=gain)
    step = step_of(parameters, target=0.3)
    penalty = spectral_proxy(step)
    for model in range(3):
        state, inputs = step.states[:, model].mean((0, 2)), step.inputs[:, model].mean((0, 2))
        norm = torch.linalg.matrix_norm(jacobian(parameters, model, state, inputs), ord=2)
        excess = float(torch.log((1 + 0.2**2) * norm**2 / 0.3))
        assert float(penalty.value[model]) == pytest.approx(max(0.0, excess), rel=1e-12)
        assert bool(penalty.active[model]) == (excess > 0)


def test_the_proxys_gradient_reaches_weights_through_the_states() -> None:
    parameters = networks(1, 3, gain=2.0).require_grad()
    inputs = normal(4, 1, 1, 5)

    def penalty(*tensors: Tensor) -> Tensor:
        return spectral_proxy(step_of(Parameters(*tensors), target=0.1, inputs=inputs)).value

    assert float(penalty(*parameters).detach()) > 0
    assert torch.autograd.gradcheck(penalty, tuple(parameters))


def test_an_inactive_hinge_has_exactly_no_gradient() -> None:
    parameters = networks(3, 6, gain=2.2).require_grad()
    radii = spectral_proxy(step_of(parameters, target=1e-6)).value.detach().exp() * 1e-6
    # A target between the radii: one network is above it.
    target = float(radii.sort().values[1:].mean())
    penalty = spectral_proxy(step_of(parameters, target=target))
    above = radii > target
    assert torch.equal(penalty.active, above.to(penalty.active))
    assert penalty.active.sum() == 1
    found = gradients(parameters, penalty.value)
    for gradient in found:
        assert torch.equal(gradient[~above], torch.zeros_like(gradient[~above]))
    assert found[1][above].abs().max() > 0


def test_a_diverged_model_stays_so_and_alone() -> None:
    parameters = networks(3, 6, gain=2.2, dtype=torch.float32)
    clean = spectral_proxy(step_of(parameters, target=0.1))
    parameters.weight_hh[1, 0, 0] = torch.nan
    parameters = parameters.require_grad()
    penalty = spectral_proxy(step_of(parameters, target=0.1))
    assert torch.equal(penalty.value[[0, 2]], clean.value[[0, 2]])
    assert torch.isnan(penalty.value[1])
    found = gradients(parameters, penalty.value)
    for gradient in found:
        assert torch.isfinite(gradient[[0, 2]]).all()
    assert not torch.isfinite(found[1][1]).all()


def test_a_saturated_model_has_neither_penalty_nor_gradient() -> None:
    """Its slopes are zero and so is its Jacobian, of which the logarithm is minus infinity."""
    parameters = networks(2, 3, cell="rnn", gain=2.0)
    parameters.bias_hh[0] = 1e3
    parameters = parameters.require_grad()
    penalty = spectral_proxy(step_of(parameters, target=0.1))
    assert penalty.value[0] == 0 < penalty.value[1]
    assert penalty.active.tolist() == [0, 1]
    for gradient in gradients(parameters, penalty.value):
        assert not gradient[0].any()
        assert gradient[1].isfinite().all()


# ---- the registry


@pytest.fixture
def registry() -> Iterator[None]:
    """Forget afterwards what a test registers."""
    arms_before, names_before = dict(ARMS), list(study.KNOWN_NAMES["arm"])
    yield
    ARMS.clear()
    ARMS.update(arms_before)
    study.KNOWN_NAMES["arm"][:] = names_before


def test_the_baseline_adds_nothing() -> None:
    assert ARMS["baseline"] is None


@pytest.mark.usefixtures("registry")
def test_an_arm_of_ones_own_can_be_studied() -> None:
    with pytest.raises(study.StudyError, match="no such arm"):
        study.parse({"arms": ["baseline", "small_weights"]})

    @arms.arm(strengths=(0, 0.1, 1))
    def small_weights(step: Step) -> Penalty:
        value = step.parameters.weight_hh.square().mean((1, 2))
        return Penalty(value, torch.ones_like(value))

    made = study.parse({"arms": ["baseline", "small_weights"]})
    assert made.arms == ("baseline", "small_weights")
    assert ARMS["small_weights"] is small_weights


@pytest.mark.usefixtures("registry")
def test_an_arm_may_be_defined_anew_but_not_one_of_the_packages_own() -> None:
    def spectral_proxy(step: Step) -> Penalty:
        raise NotImplementedError

    with pytest.raises(ValueError, match="own arms"):
        arms.arm(strengths=(0, 1, 2))(spectral_proxy)

    def mine(step: Step) -> Penalty:
        raise NotImplementedError

    for strengths in ((0.0, 1.0, 2.0), (0.0, 3.0, 4.0)):
        arms.arm(strengths=strengths)(mine)
        found = arms.find("mine")
        assert found is not None
        assert found.strengths == strengths


@pytest.mark.parametrize("grid", [(0, 1), (0, 1, 2, 3), (0.1, 1, 2), (0, 2, 1), (0, 1, 1)])
def test_a_default_grid_that_would_tune_an_arm_differently_is_refused(
    grid: tuple[float, ...],
) -> None:
    with pytest.raises(ValueError, match="start with 0 and increase"):
        arms.Arm("mine", grid)


GOOD = """
from msstab.arms import Penalty, Step, arm

@arm(strengths=(0, 1, 2))
def mine(step: Step) -> Penalty:
    raise NotImplementedError
"""


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (None, "ideas.py:mine", "there is no file ideas.py"),
        (GOOD, "ideas.py:mime", "no arm mime in ideas.py; did you mean mine"),
        ("x = 1", "ideas.py:x", "no arm x in ideas.py"),
        ("import nothing_like_it", "ideas.py:mine", "ideas.py does not run: ModuleNotFoundError"),
        ("def", "ideas.py:mine", "ideas.py does not run: SyntaxError"),
        (GOOD.replace("mine", "weightless").replace("(0, 1, 2)", "(1, 2)"), "ideas.py:weightless",
         "ideas.py does not run: ValueError: strengths"),
        (GOOD, "ideas.txt:mine", "no such arm"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("registry")
def test_a_file_that_has_no_such_arm_is_named(
    content: str | None, name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if content:
        (tmp_path / "ideas.py").write_text(content, encoding="utf-8")
    with pytest.raises(study.StudyError, match=said):
        study.parse({"arms": ["baseline", name]})
    if "no such arm" not in said:
        with pytest.raises(ValueError, match=said):
            arms.find(name)
    assert list(ARMS) == list(dict.fromkeys(ARMS))
    assert name not in ARMS


@pytest.mark.usefixtures("registry")
def test_a_file_s_arm_is_known_by_its_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ideas.py").write_text(GOOD, encoding="utf-8")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    before = set(ARMS)
    assert study.parse({"arms": "baseline,ideas.py:mine"}).arms == ("baseline", "ideas.py:mine")
    assert set(ARMS) - before == {"ideas.py:mine"}
