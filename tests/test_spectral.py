import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from plain import networks, normal
from test_noise import STRUCTURES, every_structure
from torch import Tensor

from msstab import cells, noise, operators, spectral
from msstab.cells import Linearisation
from msstab.noise import NOISES, Noise
from msstab.noisy import noisy_step
from msstab.operators import Operator
from msstab.spectral import Method

CHECKS: dict[str, dict[str, Any]] = {
    check["name"]: check
    for check in json.loads(
        (Path(__file__).parent / "data" / "stability_checks.json").read_text(encoding="utf-8")
    )
}
METHODS: tuple[Method, ...] = get_args(Method)
every_method = pytest.mark.parametrize("method", METHODS)


def scale_free(hidden: int) -> dict[str, Noise]:
    """Structures for networks of any size."""
    rows = 3 * hidden
    return {
        **NOISES,
        "unit pattern": noise.unit(torch.linspace(0.1, 1.5, hidden)),
        "groups": noise.gain((torch.arange(hidden) % 2 == torch.arange(2)[:, None]).double()),
        "gate": noise.weight(noise.rows_of_gates([1], hidden)),
        "low rank": noise.low_rank(normal(rows, seed=5), normal(hidden, seed=6)),
        "sum": noise.total(
            [
                (NOISES["unit"], 0.5),
                (NOISES["gain"], 0.7),
                (NOISES["weight"], 1.0),
                (noise.low_rank(normal(rows, seed=7), normal(hidden, seed=8)), 0.3),
            ]
        ),
    }


def linearised(hidden: int, models: int = 2, batch: int = 2, gain: float = 1.8) -> Linearisation:
    parameters = networks(models, hidden, 2, gain=gain)
    state = torch.tanh(normal(models, hidden, batch))
    return cells.linearise(parameters, state, normal(models, 2, batch, seed=1))


def linear(
    jacobian: list[list[float]] | Tensor, maps: list[list[list[float]]] | None = None
) -> Operator:
    """P -> A P A^T + sum_m B_m P B_m^T."""
    clean = operators.noiseless(torch.as_tensor(jacobian, dtype=torch.float64))
    if maps is None:
        return clean
    return clean._replace(maps=torch.as_tensor(maps, dtype=torch.float64))


def radius(operator: Operator, method: Method = "auto") -> float:
    return float(spectral.spectral_radius(operator, method))


# ---- answers from elsewhere


@pytest.mark.parametrize("k", range(3))
def test_euler_maruyama_is_stable_where_higham_says(k: int) -> None:
    given, expected = CHECKS["higham_em_ms"]["inputs"], CHECKS["higham_em_ms"]["expected"]
    h = given["h"][k]
    clean, spread = 1 + h * given["lam"], math.sqrt(h) * math.sqrt(3)
    found = radius(linear([[clean]], [[[spread]]]))
    assert found == pytest.approx(expected["factor"][k], rel=1e-12)
    assert (found < 1) == (h < expected["h_crit"])


def test_a_scalar_with_gaussian_gain_has_the_sum_of_squares() -> None:
    given, expected = CHECKS["scalar_gaussian_ms"]["inputs"], CHECKS["scalar_gaussian_ms"]
    found = radius(linear([[given["a"]]], [[[given["b"]]]]))
    assert found == pytest.approx(expected["expected"]["rho_lift"], rel=1e-15)


@pytest.mark.parametrize("method", ["auto", "dense", "arnoldi", "reduced"])
def test_random_fibonacci_grows_by_the_golden_ratio(method: Method) -> None:
    """x_{n+1} = x_n +- x_{n-1}; as a channel, its noise reads x_{n-1} and drives x_{n+1}."""
    given = CHECKS["random_fibonacci"]["inputs"]
    expected = CHECKS["random_fibonacci"]["expected"]["rho_lift_E_sq"]
    clean = linear(given["A0"])
    channel = clean._replace(
        directions=torch.tensor([[1.0], [0.0]]).double(),
        weights=torch.tensor([[0.0, 1.0]]).double(),
    )
    assert radius(channel, method) == pytest.approx(expected, rel=1e-12)
    if method != "reduced":
        shared = linear(given["A0"], [given["B0"]])
        assert radius(shared, method) == pytest.approx(expected, rel=1e-12)


@every_method
def test_ginibre_matrices_multiply_squared_lengths_by_their_size(method: Method) -> None:
    """Newman's product of matrices of standard normal numbers: weight noise without weights."""
    n = CHECKS["ginibre_newman"]["inputs"]["N"]
    zero = linear(torch.zeros(n, n))
    every_entry = zero._replace(directions=torch.eye(n).double(), weights=torch.ones(n, n).double())
    expected = CHECKS["ginibre_newman"]["expected"]["rho_lift"]
    assert radius(every_entry, method) == pytest.approx(expected, rel=1e-12)
    left = spectral.eigenmatrices(every_entry, method).left
    torch.testing.assert_close(left, torch.eye(n).double() / n)


@pytest.mark.parametrize("form", ["channels", "maps"])
def test_switching_between_unstable_modes_can_be_stable(form: str) -> None:
    """A Markov jump linear system, whose modes' second moments are blocks of one."""
    given = CHECKS["mjls_unstable_modes_stable"]["inputs"]
    modes, chain = np.array(given["A"], dtype=float), np.array(given["P"])
    maps = []
    for i in range(2):
        for j in range(2):
            jump = np.zeros((2, 2))
            jump[j, i] = math.sqrt(chain[i, j])
            maps.append(np.kron(jump, modes[i]))
    zero = linear(torch.zeros(4, 4))
    if form == "maps":
        operator = zero._replace(maps=torch.as_tensor(np.array(maps)))
    else:
        # Every map has rank one, so that it is a channel along u that reads v.
        u, s, v = np.linalg.svd(np.array(maps))
        assert s[:, 1:].max() < 1e-12
        operator = zero._replace(
            directions=torch.as_tensor(u[:, :, 0].T),
            weights=torch.diag(torch.as_tensor(s[:, 0] ** 2)),
            readers=torch.as_tensor(v[:, 0].T),
        )
    expected = CHECKS["mjls_unstable_modes_stable"]["expected"]["rho"]
    assert radius(operator) == pytest.approx(expected, rel=1e-12)
    for mode in modes:
        assert max(abs(np.linalg.eigvals(mode))) > 1


@pytest.mark.parametrize("case", range(3))
def test_control_under_uncertainty_has_a_threshold(case: int) -> None:
    """Athans, Ku & Gershwin: x' = a x + b u can be stabilised iff m = E a^2 - (E ab)^2 / E b^2 < 1.

    Under u = -g x the gain g = E ab / E b^2 makes the radius smallest, which is then m.
    """
    check = CHECKS["uncertainty_threshold"]
    a, b = check["inputs"]["abar"], check["inputs"]["bbar"]
    var_a, var_b = check["inputs"]["cases"][case]
    g = a * b / (b * b + var_b)

    def closed(gain: float) -> float:
        maps = [[[math.sqrt(var_a)]], [[gain * math.sqrt(var_b)]]]
        return radius(linear([[a - b * gain]], maps))

    expected = check["expected"]["m"][case]
    assert closed(g) == pytest.approx(expected, rel=1e-9)
    assert (closed(g) < 1) == check["expected"]["riccati_converges"][case]
    assert min(closed(g - 0.01), closed(g + 0.01)) > closed(g)


@every_method
def test_gain_noise_scales_the_squared_spectral_radius(method: Method) -> None:
    assert CHECKS["iso_noise_lift"]["expected"]["rho_lift"] == "(1+s^2) rho(J)^2"
    step = linearised(5)
    found = spectral.spectral_radius(NOISES["gain"].operator(step, 0.6), method)
    moduli = np.abs(np.linalg.eigvals(step.jacobian.numpy())).max(-1)
    np.testing.assert_allclose(found.numpy(), (1 + 0.6**2) * moduli**2, rtol=1e-12)


def test_unit_noise_has_the_radius_of_power_iteration() -> None:
    step = linearised(4)
    found = spectral.spectral_radius(NOISES["unit"].operator(step, 0.5))
    j = step.jacobian.numpy()
    for index in np.ndindex(found.shape):
        moment = np.eye(4)
        for _ in range(3000):
            image = j[index] @ (moment + 0.25 * np.diag(np.diag(moment))) @ j[index].T
            # The shift makes iteration converge where a complex pair ties with the radius.
            moment = image / np.trace(image) + 0.5 * moment / np.trace(moment)
        image = j[index] @ (moment + 0.25 * np.diag(np.diag(moment))) @ j[index].T
        expected = np.trace(image) / np.trace(moment)
        assert float(found[index]) == pytest.approx(expected, rel=1e-8)


# ---- solvers against the dense oracle


@pytest.mark.parametrize("hidden", [1, 2, 3, 5, 8, 12])
@pytest.mark.parametrize("name", scale_free(2))
@pytest.mark.parametrize("strength", [0.05, 0.8])
def test_solvers_agree_with_the_dense_lift(hidden: int, name: str, strength: float) -> None:
    structure = scale_free(hidden)[name]
    batch = 1 if hidden == 12 else 2
    operator = structure.operator(linearised(hidden, 2, batch), strength)
    lifted = operators.matrix(operator).numpy()
    expected = np.linalg.eigvals(lifted).real.max(-1)
    others: list[Method] = ["auto", "dense", "arnoldi"]
    if operator.maps.shape[-3] == 0:
        others.append("reduced")
    for method in others:
        eigen = spectral.eigenmatrices(operator, method)
        np.testing.assert_allclose(eigen.radius.numpy(), expected, rtol=1e-10)
        for matrix, act in ((eigen.right, operators.apply), (eigen.left, operators.adjoint)):
            image, limit = act(operator, matrix), 1e-8 * float(eigen.radius.max())
            assert (image - eigen.radius[..., None, None] * matrix).abs().max() < limit
            assert torch.linalg.eigvalsh(matrix).min() > -1e-8
            traces = torch.diagonal(matrix, dim1=-2, dim2=-1).sum(-1)
            torch.testing.assert_close(traces, torch.ones_like(traces))


@every_method
def test_noise_that_the_leading_mode_does_not_meet_changes_nothing(method: Method) -> None:
    jacobian = torch.diag(torch.tensor([0.9, 0.5, 0.4], dtype=torch.float64))
    weights = torch.diag(torch.tensor([0.0, 0.3, 0.3])).double()
    operator = linear(jacobian)._replace(directions=torch.eye(3).double(), weights=weights)
    assert radius(operator, method) == pytest.approx(0.81, rel=1e-10)


@every_method
def test_vanishing_noise_and_vanishing_jacobians_have_their_limits(method: Method) -> None:
    step = linearised(4, 1, 1)
    clean = np.abs(np.linalg.eigvals(step.jacobian.numpy())).max() ** 2
    for strength in (0.0, 1e-9, 1e-6):
        found = spectral.spectral_radius(NOISES["unit"].operator(step, strength), method)
        assert float(found) == pytest.approx(clean * (1 + strength**2), rel=1e-9)
    assert radius(linear(torch.zeros(3, 3)), method) == 0


@pytest.mark.parametrize("method", ["auto", "dense"])
def test_defective_jacobians_fall_back_on_another_solver(method: Method) -> None:
    jacobian = torch.tensor([[0.7, 1.0, 0.0], [0.0, 0.7, 1.0], [0.0, 0.0, 0.7]]).double()
    step = Linearisation(jacobian, jacobian, jacobian, jacobian, jacobian)
    operator = NOISES["unit"].operator(step, 0.3)
    expected = np.linalg.eigvals(operators.matrix(operator).numpy()).real.max()
    assert radius(operator, method) == pytest.approx(expected, rel=1e-9)


def test_the_reduced_solver_says_where_it_cannot_be_trusted() -> None:
    jacobian = torch.tensor([[0.7, 1.0, 0.0], [0.0, 0.7, 1.0], [0.0, 0.0, 0.7]]).double()
    step = Linearisation(jacobian, jacobian, jacobian, jacobian, jacobian)
    with pytest.raises(ValueError, match="nearly defective"):
        spectral.spectral_radius(NOISES["unit"].operator(step, 0.3), "reduced")


def test_one_defective_jacobian_spoils_no_other_of_its_batch() -> None:
    jacobian = normal(3, 4, 4)
    jacobian[1] = torch.diag(torch.full((4,), 0.5)) + torch.diag(torch.ones(3), 1)
    step = Linearisation(jacobian, jacobian, jacobian, jacobian, jacobian)
    operator = NOISES["unit"].operator(step, 0.3)
    found = spectral.spectral_radius(operator)
    expected = np.linalg.eigvals(operators.matrix(operator).numpy()).real.max(-1)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9)


def test_a_matrix_has_the_same_eigenmatrices_in_any_company() -> None:
    jacobian = linearised(3, 1, 60).jacobian[0]
    step = Linearisation(jacobian, jacobian, jacobian, jacobian, jacobian)
    together = spectral.eigenmatrices(NOISES["unit"].operator(step, 0.8))
    for k in range(60):
        own = Linearisation(*(tensor[k : k + 1] for tensor in step))
        alone = spectral.eigenmatrices(NOISES["unit"].operator(own, 0.8))
        for one, many in zip(alone, together, strict=True):
            assert torch.equal(one[0], many[k])


def test_leading_dimensions_are_kept_and_single_precision_returned() -> None:
    operator = NOISES["weight"].operator(linearised(4, 3, 2), 0.3)
    found = spectral.spectral_radius(operator)
    assert found.shape == (3, 2)
    single = Operator(*(t.float() if isinstance(t, Tensor) else t for t in operator))  # type: ignore[arg-type]
    eigen = spectral.eigenmatrices(single)
    assert {t.dtype for t in eigen} == {torch.float32}
    torch.testing.assert_close(eigen.radius, found.float(), rtol=1e-5, atol=0)
    assert eigen.right.shape == eigen.left.shape == (3, 2, 4, 4)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda j: j * torch.nan, "not finite"),
        (lambda j: j + torch.inf, "not finite"),
        (lambda j: j * 1e160, "overflows"),
    ],
)
def test_operators_without_finite_numbers_are_refused(
    spoil: Callable[[Tensor], Tensor], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        spectral.spectral_radius(linear(spoil(normal(3, 3))))


def test_unknown_methods_and_inapplicable_ones_are_refused() -> None:
    with pytest.raises(ValueError, match="known: auto, dense, reduced, arnoldi"):
        spectral.spectral_radius(linear(normal(3, 3)), "power")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="many units share"):
        spectral.spectral_radius(linear(normal(3, 3), normal(1, 3, 3).tolist()), "reduced")


# ---- gradients


@pytest.mark.parametrize("name", scale_free(2))
def test_gradients_match_finite_differences(name: str) -> None:
    hidden = 5
    structure = scale_free(hidden)[name]
    parameters = networks(1, hidden, 2, gain=1.8)
    state, inputs = torch.tanh(normal(1, hidden, 1)), normal(1, 2, 1, seed=1)

    def of(weight_hh: Tensor) -> Tensor:
        step = cells.linearise(dataclasses.replace(parameters, weight_hh=weight_hh), state, inputs)
        return spectral.spectral_radius(structure.operator(step, 0.5))[0, 0]

    weight = parameters.weight_hh.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(of(weight), [weight])
    for seed in range(3):
        direction = normal(*weight.shape, seed=seed)
        h = 1e-5
        ahead, behind = of(weight.detach() + h * direction), of(weight.detach() - h * direction)
        expected = float(ahead - behind) / (2 * h)
        assert float((gradient * direction).sum()) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_a_defective_eigenvalue_has_no_gradient() -> None:
    jacobian = torch.tensor([[0.5, 1.0], [0.0, 0.5]]).double().requires_grad_()
    operator = operators.noiseless(jacobian)
    with pytest.raises(ValueError, match="no gradient"):
        spectral.spectral_radius(operator, "dense")


# ---- simulation


@pytest.mark.parametrize("name", ["unit", "gain", "weight"])
@pytest.mark.parametrize("gain", [2.0, 2.5])
def test_deviations_from_rest_grow_as_the_radius_says(name: str, gain: float) -> None:
    """Without biases and inputs the state rests at zero, where nothing forces a deviation."""
    hidden, draws, steps, settle, sigma = 8, 40_000, 30, 15, 0.2
    structure = NOISES[name]
    parameters = networks(1, hidden, gain=gain)
    parameters = dataclasses.replace(
        parameters,
        bias_ih=torch.zeros_like(parameters.bias_ih),
        bias_hh=torch.zeros_like(parameters.bias_hh),
    )
    inputs = torch.zeros(1, 1, draws, dtype=torch.float64)
    rest = torch.zeros(1, hidden, 1, dtype=torch.float64)
    operator = structure.operator(cells.linearise(parameters, rest, inputs[..., :1]), sigma)
    expected = math.log(float(spectral.spectral_radius(operator)))
    count = structure.state_numbers(hidden) + structure.weight_numbers(3 * hidden)
    # So small that the network is linear, from the eigenmatrix, in which growth is steady.
    right = spectral.eigenmatrices(operator).right[0, 0]
    values, vectors = torch.linalg.eigh(right)
    state = 1e-9 * (vectors * values.clamp_min(0).sqrt() @ normal(hidden, draws))[None]
    power = []
    for t in range(steps):
        normals = normal(count, draws, seed=t + 1)
        state = noisy_step(parameters, state, inputs, structure, sigma, normals)
        power.append(float(state.square().sum(1).mean()))
    growth = math.log(power[-1] / power[settle]) / (steps - 1 - settle)
    assert abs(growth - expected) < 0.005
    assert (expected > 0) == (gain > 2.2)


@every_structure
def test_the_radius_is_that_of_long_products(structure: Noise) -> None:
    step = linearised(4, 1, 1)
    operator = structure.operator(step, 0.5)
    moment = torch.eye(4).double()
    logs = []
    for _ in range(600):
        moment = operators.apply(operator, moment)
        trace = float(moment[0, 0].trace())
        moment = moment / trace
        logs.append(math.log(trace))
    found = float(spectral.spectral_radius(operator))
    assert math.log(found) == pytest.approx(np.mean(logs[300:]), abs=1e-3)


def test_the_structures_tested_cover_every_registered_one() -> None:
    assert set(NOISES) <= set(STRUCTURES)


# ---- what cannot be used


def test_a_jacobian_that_is_not_square_is_refused() -> None:
    with pytest.raises(ValueError, match="a Jacobian of 3 x 4: it must be square"):
        spectral.spectral_radius(operators.noiseless(torch.zeros(3, 4)))


def test_what_is_too_large_for_the_dense_solver_is_refused_before_it_takes_the_memory() -> None:
    large = operators.noiseless(0.5 * torch.eye(65))
    with pytest.raises(ValueError, match="n = 65 states are too many for the dense solver"):
        spectral.spectral_radius(large, "dense")
    assert float(spectral.spectral_radius(large)) == pytest.approx(0.25)


@pytest.mark.parametrize("method", ["auto", "arnoldi"])
def test_nothing_has_radius_zero_at_any_size(method: Method) -> None:
    assert float(spectral.spectral_radius(operators.noiseless(torch.zeros(130, 130)), method)) == 0


def test_an_iteration_that_does_not_converge_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    # A Jordan block: its powers grow like polynomials, and Arnoldi's residuals shrink as slowly.
    n, applied = 16, 0
    jacobian = torch.diag(torch.full((n,), 0.9)) + torch.diag(torch.ones(n - 1), 1)
    operator = NOISES["unit"].operator(Linearisation(*(5 * [jacobian.double()])), 0.0)
    apply = operators.apply

    def counted(*arguments: Any) -> Tensor:
        nonlocal applied
        applied += 1
        return apply(*arguments)

    monkeypatch.setattr(operators, "apply", counted)
    monkeypatch.setattr(spectral, "MOST_RESTARTS", 10)
    with pytest.raises(ValueError, match="found no accurate eigenmatrices"):
        spectral.spectral_radius(operator, "arnoldi")
    # A restart takes at most ncv = 20 products.
    assert applied < 11 * 20 + 10
