import numpy as np
import pandas as pd
import pytest
from drawn import assert_drawn
from structured_outcomes import ARMS, FACTORS, PAIRS, made
from test_sizes import tiny, with_effects

from msstab import effects, figures, rules, sizes, structured, tables
from msstab.sizes import Sizes
from msstab.svg import Picture

__all__ = ["tiny"]

FOUND = made()


def by_structure(frame: pd.DataFrame) -> dict[str, dict[str, str]]:
    rows = frame.astype(str).to_dict("records")
    return {str(row["Structure"]): {str(k): str(v) for k, v in row.items()} for row in rows}


def of_structures(name: str) -> Picture:
    drawn: Picture = getattr(figures, name)(FOUND)
    return drawn


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("structure_harm", ("ratio", "low", "high")),
        ("structure_predictions", ("predicted", "observed", "placebo")),
        ("structure_benefits", ("ratio", "low", "high")),
        ("structure_transfer", ()),
        ("frozen_errors", ("predicted", "observed", "white")),
    ],
)
def test_a_figure_of_structures_names_them_in_its_alt_text(
    name: str, columns: tuple[str, ...]
) -> None:
    picture = of_structures(name)
    if columns:
        assert_drawn(picture, *columns)
    assert picture.svg.startswith("<svg")
    expected = ["weight, frozen"] if name == "frozen_errors" else ["unit", "gain", "weight"]
    assert all(structure in picture.alt for structure in expected)


def test_the_figures_say_what_the_effects_are() -> None:
    harm = structured.harm(FOUND)
    assert f"gain {harm['gain'].ratio:.3g}" in of_structures("structure_harm").alt
    benefit = structured.benefits(FOUND)["output_variance", "unit"]
    assert f"unit {benefit.ratio:.3g} (differs)" in of_structures("structure_benefits").alt
    transfer = structured.transfer(FOUND)["output_variance", "gain", "weight"]
    assert (
        f"output variance trained for gain, tested under weight: {transfer.percent[0]:+.0f}%"
        in of_structures("structure_transfer").alt
    )
    data = of_structures("structure_transfer").data.set_index(["arm", "trained", "tested"])
    assert data.loc[("output_variance", "gain", "weight"), "ratio"] == transfer.ratio


def test_an_arm_that_changes_nothing_is_not_marked() -> None:
    same = made(arms={"baseline": 1.0, "spectral_proxy": 1.0})
    assert "differs" not in figures.structure_benefits(same).alt


def test_strengths_and_costs_stand_beside_each_other() -> None:
    rows = by_structure(tables.structure_strengths(FOUND))
    assert list(rows) == list(FACTORS)
    assert rows["weight, frozen"]["Strength"] == rows["weight"]["Strength"]
    assert rows["weight, frozen"]["Mean square of a step"] == "not of one step"
    assert rows["unit"]["Over that of unit"] == "1"
    against = structured.against_own(FOUND)
    assert rows["gain"]["Over that of unit"].startswith(f"{against['gain'].ratio:.3g} [")
    assert {row["Networks"] for row in rows.values()} == {str(PAIRS)}


def test_predictions_are_held_against_the_limits_of_rule_r1() -> None:
    column = "Within rule R1's limits"
    rows = by_structure(tables.structure_predictions(FOUND))
    assert {row[column] for row in rows.values()} == {"yes"}
    table = FOUND.table.copy()
    table.loc[table.structure == "gain", "predicted"] *= 1.3
    table.loc[table.structure == "unit", "placebo"] = 1.05 * table.observed
    rows = by_structure(tables.structure_predictions(FOUND._replace(table=table)))
    assert rows["gain"][column] == "no"
    assert rows["unit"][column].startswith("yes, but the placebo")
    assert f"{rules.PLACEBO_FACTOR:g} times" in rows["unit"][column]


def test_benefits_are_adjusted_over_arms_and_structures() -> None:
    rows = by_structure(tables.structure_benefits(FOUND))
    compared = structured.benefits(FOUND)
    adjusted = effects.holm(compared)
    assert len(compared) == (len(ARMS) - 1) * len(FACTORS)
    shown = rows["gain"]["p, Holm (output variance)"]
    assert shown == f"{adjusted['output_variance', 'gain']:.2g}"
    change = compared["output_variance", "gain"].percent[0]
    assert rows["gain"]["Output variance"].startswith(f"{change:+.0f}% [")
    lost = FOUND.table.assign(diverged=FOUND.table.structure == "gain")
    rows = by_structure(tables.structure_benefits(FOUND._replace(table=lost)))
    assert rows["gain"]["Diverged"] == str(PAIRS * len(ARMS))
    assert rows["unit"]["Diverged"] == "0"


def test_every_entry_of_the_matrix_is_in_the_table() -> None:
    frame = tables.structure_transfer(FOUND)
    assert len(frame) == 2 * 3 * 3
    own = frame[(frame["Trained for"] == "gain") & (frame["Tested under"] == "unit")]
    assert list(own["Arm"]) == ["spectral proxy", "output variance"]


def test_frozen_errors_stand_beside_fresh_ones() -> None:
    (row,) = tables.frozen_errors(FOUND).to_dict("records")
    assert row["Structure"] == "weight"
    assert row["Of the theory of fresh noise"] == "1.1"
    assert row["Log-rmse of the theory of frozen errors"] == "0.02"


# ---- sizes


def test_the_figures_of_sizes_say_what_they_show(tiny: Sizes) -> None:
    made_up = with_effects(tiny, {"gru": 0.1, "rnn": -0.1})
    drawn = figures.effects_by_size(made_up)
    r = sizes.comparisons(made_up, "spectral_proxy", "clean")["rnn", 64].evidence.ratios
    assert f"{r.ratio:.2f} at 64" in drawn.alt
    assert_drawn(drawn, "ratio", "low", "high")
    theory = figures.theory_by_size(sizes.mechanism(tiny))
    assert "GRU, spectral proxy, radius of L" in theory.alt
    assert_drawn(theory, "size", "radius", "predicted_variance")
    agreement = figures.agreement_by_size(tiny, rules.LARGEST_LOG_RMSE)
    real = sizes.predictions(tiny)["gru", 4]["predicted"]
    assert f"{real.log_rmse:.2f} at 4" in agreement.alt
    assert_drawn(agreement, "hidden_units")
    rows = agreement.data.set_index(["cell", "hidden_units"])
    for place, by_kind in sizes.predictions(tiny).items():
        for kind in ("predicted", "placebo"):
            own = rows.loc[place, f"{kind}_log_rmse"]
            np.testing.assert_equal(own, by_kind[kind].log_rmse)


def test_the_plan_is_shown_for_every_size(tiny: Sizes) -> None:
    frame = tables.size_plan(tiny)
    assert list(frame["Hidden units"]) == ["2", "4"]
    assert set(frame["Pairs"]) == {"4"}
    assert set(frame["Tuning seeds"]) == {"2"}


def test_effects_of_all_sizes_are_adjusted_together(tiny: Sizes) -> None:
    made_up = with_effects(tiny, {"gru": 0.1, "rnn": -0.1})
    frame = tables.size_effects(made_up)
    assert len(frame) == 8
    compared = sizes.comparisons(made_up, "spectral_proxy", "clean")
    smallest = min(c.evidence.ratios.p_value for c in compared.values())
    shown = pd.to_numeric(frame["p, Holm (clean error)"])
    assert shown.min() == pytest.approx(8 * smallest, rel=0.05)
    ratio = compared["gru", 8].evidence.ratios.ratio
    assert frame["Clean error"][0].startswith(f"{100 * (ratio - 1):+.0f}% [")


def test_trends_are_shown_as_factors_of_a_doubling(tiny: Sizes) -> None:
    made_up = with_effects(tiny, {"gru": 0.1, "rnn": -0.1})
    frame = tables.size_trends(made_up)
    assert list(frame["Cell"]) == ["GRU", "RNN", "GRU", "RNN"]
    factors = [float(text.split()[0]) for text in frame["A doubling multiplies it by"]]
    assert factors == pytest.approx([1.105, 0.905, 1.105, 0.905], abs=0.02)
    one = tiny._replace(surveys={("gru", 2): tiny.surveys["gru", 2]})
    assert tables.size_trends(one).empty


def test_the_theorys_figures_are_shown_for_every_size(tiny: Sizes) -> None:
    frame = tables.size_mechanism(tiny)
    assert list(frame["Hidden units"]) == ["2", "4"]
    real = sizes.predictions(tiny)["gru", 2]["predicted"]
    assert frame["Networks compared"][0] == str(real.n)
    assert frame["Slope"][0] == tables.number(real.slope)
