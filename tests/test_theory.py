"""The theory page: what it promises to the code that cites it, and its worked examples."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from msstab import operators, rules, spectral
from msstab.cells import Linearisation
from msstab.noise import NOISES
from msstab.operators import Operator

REPOSITORY = Path(__file__).parents[1]
PAGE = (REPOSITORY / "book" / "theory.md").read_text(encoding="utf-8")
LABELS = re.findall(r"^:label: *(\S+)", PAGE, re.MULTILINE)
CITATION = re.compile(r"theory page, equation \((\d+)\)")

CITED = {
    "arms.spectral_proxy.spectral_proxy": "eq-spectral-proxy",
    "cells.gru.step": "eq-gru",
    "cells.gru.linearise": "eq-gru-jacobians",
    "cells.lstm.step": "eq-lstm",
    "cells.lstm.linearise": "eq-lstm-jacobians",
    "cells.rnn.linearise": "eq-rnn-jacobians",
    "mechanism.power_ratio": "eq-telescope",
    "mechanism.proxy_radius": "eq-bound",
    "moments.forced_second_moment": "eq-second-moment",
    "moments.frozen_output_variance": "eq-frozen",
    "moments.growth_rate": "eq-growth",
    "moments.linearisations": "eq-closed-loop",
    "moments.output_variance": "eq-output-variance",
    "noise.gain": "eq-gain",
    "noise.low_rank": "eq-low-rank",
    "noise.quantisation": "eq-quantisation",
    "noise.total": "eq-sum",
    "noise.unit": "eq-unit",
    "noise.weight": "eq-weight",
    "operators.": "eq-operator",
    "operators.adjoint": "eq-adjoint",
    "operators.apply": "eq-operator",
    "operators.combine": "eq-sum",
    "operators.matrix": "eq-lift",
    "operators.propagate": "eq-second-moment",
    "quantisation.at_random": "eq-rounding-at-random",
    "quantisation.state_step": "eq-grid",
    "quantisation.states_at_random_variance": "eq-rounded-states",
    "quantisation.states_to_nearest_variance": "eq-rounded-states",
    "quantisation.weight_step": "eq-grid",
    "quantisation.weights_at_random_variance": "eq-rounded-weights",
    "quantisation.weights_to_nearest_variance": "eq-rounded-weights",
    "reduced.": "eq-root",
    "reduced._root": "eq-newton",
    "reduced._small": "eq-modes",
    "reduced.solve": "eq-root",
    "spectral.eigenmatrices": "eq-perron",
    "spectral.spectral_radius": "eq-gradient",
}
"""What each docstring cites; one that is not listed may cite any equation that exists."""


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield every docstring of the package on one line, by its module and function."""
    package = REPOSITORY / "msstab"
    for path in sorted(package.rglob("*.py")):
        module = ".".join(path.relative_to(package).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = " ".join((ast.get_docstring(node) or "").split())
                yield f"{module}.{getattr(node, 'name', '')}", text


def numbers() -> dict[str, list[int]]:
    """Return the numbers of the equations that each docstring cites."""
    found = {name: [int(n) for n in CITATION.findall(text)] for name, text in docstrings()}
    return {name: cited for name, cited in found.items() if cited}


def test_every_equation_of_the_page_has_a_label_of_its_own() -> None:
    assert len(LABELS) > 40
    assert len(set(LABELS)) == len(LABELS)
    assert all(label.startswith("eq-") for label in LABELS)
    # An unlabelled display would have no number, and dollars would hide one from this test.
    assert PAGE.count("```{math}") == len(LABELS)
    assert "$$" not in PAGE


def test_the_page_refers_to_its_own_equations_alone() -> None:
    referred = re.findall(r"\{eq\}`([^`]+)`", PAGE)
    assert len(referred) > 20
    assert set(referred) <= set(LABELS)


def test_the_code_cites_equations_that_exist() -> None:
    for name, cited in numbers().items():
        assert all(1 <= number <= len(LABELS) for number in cited), name


@pytest.mark.parametrize(("name", "label"), CITED.items(), ids=CITED)
def test_a_docstring_cites_the_equation_that_it_means(name: str, label: str) -> None:
    assert [LABELS[number - 1] for number in numbers().get(name, [])] == [label]


def test_the_theory_is_cited_in_one_form() -> None:
    for name, text in docstrings():
        for mention in re.findall(r"theory(?: page|,|'s)[^.;]{0,24}", text):
            assert CITATION.match(mention), f"{name}: {mention}"


def test_equations_are_numbered_by_page_so_that_the_numbers_are_those_of_the_labels() -> None:
    assert "math_numfig: false" in (REPOSITORY / "_config.yml").read_text(encoding="utf-8")


def test_the_page_states_the_rules_limits_as_the_code_has_them() -> None:
    section = " ".join(PAGE[PAGE.index("## The rules of the mechanism test") :].split())
    change, ratio = rules.CHANGE_SLOPES, rules.EXCESS_RATIOS
    for shown in (
        f"the slope is within {rules.SLOPE_TOLERANCE:g} of 1",
        f"log ratio at most {rules.LARGEST_LOG_RMSE:.2f}",
        f"correlation at least {rules.SMALLEST_CORRELATION:g}",
        f"err at least {rules.PLACEBO_FACTOR:g} times as much",
        f"slope is from {change[0]:g} to {change[1]:g}",
        f"signs agree in at least {100 * rules.SMALLEST_SIGN_AGREEMENT:g}%",
        f"median is from {ratio[0]:g} to {ratio[1]:g}",
        f"within {rules.LARGEST_GROWTH_ERROR:g}",
        f"at least {rules.FEWEST_VARIANTS} variants of at least {rules.FEWEST_SEEDS} seeds",
        "at most half of its limit",
    ):
        assert shown in section, shown
    assert pytest.approx(rules.LARGEST_GROWTH_ERROR / 2) == rules.LARGEST_STANDARD_ERROR


# ---- worked examples


def operator(jacobian: list[list[float]], noise: str, sigma: float) -> Operator:
    j = torch.tensor(jacobian, dtype=torch.float64)
    column = torch.zeros(len(j), 1, dtype=torch.float64)
    return NOISES[noise].operator(Linearisation(j, column, column, column.mT, j), sigma)


def test_the_scalar_example_is_right() -> None:
    one = operator([[0.9]], "unit", 0.2)
    moment, state = torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    found = []
    for _ in range(300):
        moment = operators.propagate(one, moment, state)
        found.append(float(moment))
    assert found[0] == pytest.approx(0.0324)
    assert found[1] == pytest.approx(0.0597, abs=5e-5)
    assert found[-1] == pytest.approx(0.2056, abs=5e-5)
    assert float(spectral.spectral_radius(one)) == pytest.approx(0.8424)
    edge = operator([[0.9]], "unit", 0.484)
    assert float(spectral.spectral_radius(edge)) == pytest.approx(1, abs=1e-3)
    for shown in ("0.8424", "0.0324", "0.0597", "0.2056", "0.484"):
        assert shown in PAGE


@pytest.mark.parametrize("noise", ["unit", "gain"])
def test_the_example_of_a_loose_bound_is_right(noise: str) -> None:
    found = operator([[0, 2], [0.3, 0]], noise, 0.2)
    assert float(spectral.spectral_radius(found, "dense")) == pytest.approx(0.624)
    bound = (1 + 0.2**2) * np.linalg.norm(found.jacobian.numpy(), 2) ** 2
    assert bound == pytest.approx(4.16)
    assert "= 0.624$" in PAGE
    assert "= 4.16$" in PAGE


def test_the_example_of_rank_one_is_right() -> None:
    jacobian = np.outer([1.0, 1.0], [3.0, -3.0]).tolist()
    unit = spectral.spectral_radius(operator(jacobian, "unit", 0.236))
    assert float(unit) == pytest.approx(18 * 0.236**2)
    assert float(unit) == pytest.approx(1, abs=3e-3)
    gain = operator(jacobian, "gain", 5.0)
    identity = torch.eye(2, dtype=torch.float64)
    assert not operators.apply(gain, operators.apply(gain, identity)).any()
