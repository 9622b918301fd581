from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import plain
import pytest
import torch
from conftest import TINY
from drawn import assert_drawn

from msstab import (
    evaluation,
    evidence,
    experiment,
    figures,
    measures,
    quantised,
    sentences_quantisation,
    tables,
    trials,
    under_rounding,
)
from msstab.bits_bought import Bought
from msstab.quantised import Key, Quantised
from msstab.study import Study, parse
from msstab.trials import Trial

STUDY = parse({"bits": [8, 4, 3], "survey_seeds": 4}, TINY)


@pytest.fixture
def found(tiny_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Quantised:
    """What rounding does to the networks of a tiny study, trained once for all tests."""
    monkeypatch.setenv("MSSTAB_CACHE", str(tiny_cache))
    return collected()


@cache
def collected() -> Quantised:
    return quantised.collect(STUDY, jobs=1)


def test_every_network_is_measured_in_every_case(found: Quantised) -> None:
    groups = found.table.groupby(["tuned_for", "arm", "rounded", "per", "bits"])
    assert len(groups) == 2 * 2 * 2 * 2 * 3
    assert all(sorted(own.seed) == [0, 1, 2, 3] for _, own in groups)
    assert np.isfinite(found.table.select_dtypes("number").to_numpy()).all()
    assert found.arms == ["spectral_proxy"]
    once = found.networks.groupby(["rounded", "per", "bits"]).network
    assert all(own.is_unique for _, own in once)


@pytest.mark.parametrize("per", ["tensor", "channel"])
def test_the_error_is_that_of_torchs_network_with_rounded_weights(
    found: Quantised, per: str
) -> None:
    runs = experiment.run(STUDY, jobs=1)
    trial = experiment.confirmed(runs, "baseline", "selected")[2]
    recurrent, linear = plain.modules(trials.load_trained(trial).parameters)
    with torch.no_grad():
        weights = [w for w in (*recurrent.parameters(), *linear.parameters()) if w.dim() == 2]
        for weight in weights:
            largest = weight.abs().max() if per == "tensor" else weight.abs().amax(1, keepdim=True)
            step = largest / 7
            weight.copy_((weight / step).round() * step)
        test = trials.draw_data(STUDY, "confirmation", 2).test
        inputs, targets = (torch.as_tensor(part).float() for part in test[:2])
        states, _ = recurrent(inputs.transpose(0, 1))
        expected = (linear(states[-1]) - targets.flatten(1)).square().mean()
    t = found.table
    row = t[
        (t.tuned_for == "clean error") & (t.arm == "baseline") & (t.seed == 2)
        & (t.rounded == "weights") & (t["per"] == per) & (t.bits == 4)
    ]  # fmt: skip
    assert row.error.item() == pytest.approx(float(expected), rel=1e-4)


def test_the_unrounded_error_is_the_studys_own(found: Quantised) -> None:
    scored = experiment.run(STUDY, jobs=1).table
    own = scored[(scored.arm == "spectral_proxy") & (scored.role == "robust")]
    t = found.table
    rows = t[(t.tuned_for == "error under noise") & (t.arm == "spectral_proxy")]
    for seed, group in rows.groupby("seed"):
        expected = own[own.seed == seed].test_mse.item()
        np.testing.assert_allclose(group.clean, expected, rtol=1e-5)


def test_what_has_been_measured_is_read(found: Quantised, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(measures, "_keep", never)
    told: list[tuple[int, int]] = []
    again = quantised.collect(STUDY, jobs=1, progress=lambda *now: told.append(now))
    pd.testing.assert_frame_equal(again.table, found.table)
    assert not told


def test_a_network_that_diverges_counts_as_the_constant_forecast() -> None:
    error = np.array([[[0.1, np.nan], [101.0, 99.0]], [[0.2, 0.2], [0.2, 0.2]]])
    rows = list(
        quantised._rows({"error": error, "clean": np.array(0.1), "constant": np.array(1.0)}, (8, 4))
    )
    assert [row["error"] for row in rows[:4]] == [0.1, 1.0, 1.0, 99.0]
    assert [row["diverged"] for row in rows[:4]] == [False, True, True, False]
    assert [(r["rounded"], r["per"], r["bits"]) for r in rows[:4]] == [
        ("weights", "tensor", 8), ("weights", "tensor", 4),
        ("weights", "channel", 8), ("weights", "channel", 4),
    ]  # fmt: skip


def test_a_track_with_a_target_after_every_step_is_measured_at_all_of_them(
    tiny_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSSTAB_CACHE", str(tiny_cache))
    trial = Trial(
        "duffing", "gru", 4, 1, 1, 32, 64, "baseline", 0.02, 0.0, "unit", 0.0, 1.0,
        "confirmation", 0, 0, "float32", "cpu",
    )  # fmt: skip
    settings = {"bits": [8], "sequences": 16, "roundings": 64, "n_validation": 8, "n_test": 16}
    found = under_rounding.measure(trial, settings)
    assert found["error"].shape == (2, 2, 1)
    np.testing.assert_allclose(found["random"], found["predicted_random"], rtol=0.35)
    network = trials.load_trained(trial).parameters
    study = Study(track="duffing", n_train=64, n_validation=8, n_test=16, mechanism_sequences=16)
    test = trials.draw_data(study, "confirmation", 0).test
    error = evaluation.squared_error(network, *evaluation.stack(test, network.weight_ih))
    assert test.targets.shape[1] > 1
    assert float(found["clean"]) == pytest.approx(float(error))


# ---- what it says, on made-up numbers


def made_up(
    ratio: Callable[[str, int], float] = lambda rounded, bits: 1.0,
    advantage: float = 1.0,
    bits: tuple[int, ...] = (8, 4, 3),
) -> Quantised:
    """Deviations at a ratio to the predicted ones, and an arm whose errors are a factor off."""
    rng, rows = np.random.default_rng(0), []
    study = Study(**{**STUDY.model_dump(), "bits": bits})
    for tuned_for in quantised.SELECTIONS:
        for arm in ("baseline", "spectral_proxy"):
            for seed in range(12):
                luck = rng.lognormal(0, 0.01)
                for case in quantised.cases(Quantised(study, pd.DataFrame())):
                    part, per, own = case
                    deviation = ratio(part, own) * luck * 4.0**-own
                    row: dict[str, object] = {
                        **{"tuned_for": tuned_for, "arm": arm, "seed": seed, "diverged": False},
                        **{"network": f"{arm} {seed}", "rounded": part, "per": per, "bits": own},
                        **{"random": deviation, "nearest": deviation, "clean": 0.01},
                        "standard_error": 0.1 * deviation,
                        "error": luck * 4.0**-own * (1 if arm == "baseline" else advantage),
                        "predicted_random": 4.0**-own,
                        "predicted_nearest": 4.0**-own,
                    }
                    rows.append(row)
    return Quantised(study, pd.DataFrame(rows))


def test_a_theory_that_holds_is_said_to_and_one_that_fails_is_named() -> None:
    holds = sentences_quantisation.rounding_predicted(made_up())
    assert "within 15% of the predicted one in 8 of 8 cases." in holds
    assert "At 3 bits" in holds
    assert "it is in 4 of 4 cases." in holds
    fails = sentences_quantisation.rounding_predicted(
        made_up(lambda rounded, bits: 0.8 if (rounded, bits) == ("states", 4) else 1.0)
    )
    assert "in 6 of 8 cases; outside are states at 4 bits per tensor (factor 0.80)" in fails
    coarse = sentences_quantisation.rounding_predicted(made_up(lambda r, b: 2.0 if b < 4 else 1))
    assert "it is in 0 of 4 cases; outside are" in coarse


def test_bits_that_are_not_studied_are_not_spoken_of() -> None:
    fine = sentences_quantisation.rounding_predicted(made_up(bits=(8,)))
    assert "linear theory" not in fine
    coarse = sentences_quantisation.rounding_predicted(made_up(bits=(3, 2)))
    assert coarse.startswith("At 2 and 3 bits")


def test_a_single_rounding_is_compared_apart_for_weights_and_states() -> None:
    said = sentences_quantisation.one_rounding(
        made_up(lambda rounded, bits: 3.0 if rounded == "states" else 1.0)
    )
    assert "weights 1.00 to 1.00 times the predicted deviation (within 15% in 6 of 6" in said
    assert "states 3.00 to 3.00 times the predicted deviation (within 15% in 0 of 6" in said


@pytest.mark.parametrize(
    ("advantage", "bits", "errors"),
    [
        (0.25, "buys bits: of 12 cases it reaches the baseline's error at fewer bits in 12", "12"),
        (4.0, "costs bits: of 12 cases", "0"),
        (1.0, "is not shown to buy or to cost bits: of 12 cases", "0"),
    ],
)
def test_who_buys_bits_and_who_does_not_is_said(advantage: float, bits: str, errors: str) -> None:
    made = made_up(advantage=advantage)
    bought, compared = quantised.bought(made), quantised.comparisons(made)
    for tuned_for in quantised.SELECTIONS:
        assert bits in sentences_quantisation.bits_bought(bought, tuned_for)
        said = sentences_quantisation.errors_at_bits(compared, tuned_for)
        assert f"errs less than the baseline at the same bits in {errors} of 12 cases" in said


def test_an_arm_may_buy_here_and_cost_there() -> None:
    keys: list[Key] = [("clean error", "mine", "weights", "tensor", b) for b in (3, 4)]
    made = dict(zip(keys, [Bought(1, 0.5, 2), Bought(-1, -2, -0.5)], strict=True))
    said = sentences_quantisation.bits_bought(made, "clean error")
    assert "mine buys bits in some cases and costs bits in others: of 2 cases" in said


def test_what_differs_does_so_after_holms_adjustment_within_its_selection() -> None:
    made = made_up(advantage=0.985)
    compared = quantised.comparisons(made)
    family = [c.evidence.ratios.p_value for k, c in compared.items() if k[0] == "clean error"]
    expected = int((evidence.holm(family) <= made.study.alpha).sum())
    assert len(quantised.differing(compared, "clean error")) == expected
    assert expected > 0


def test_a_fit_without_any_usable_number_holds_nothing() -> None:
    broken = made_up(lambda rounded, bits: float("nan"))
    for fit in quantised.fits(broken, "random").values():
        assert (fit.n, fit.n_unusable, fit.holds) == (0, 24, False)


# ---- tables and figures


def test_the_tables_show_every_case_once(found: Quantised) -> None:
    predictions = tables.rounding_predictions(found)
    assert len(predictions) == 12
    first = quantised.fits(found, "random")["weights", "tensor", 8]
    assert predictions["At random"][0] == tables.number(first.ratio)
    divergence = tables.rounding_divergence(found)
    assert set(divergence["8 bits"]) == {"0 of 16"}


def test_an_error_is_starred_where_it_differs_and_bits_are_shown_with_their_ends() -> None:
    made = made_up(advantage=0.25)
    errors = tables.rounded_errors(quantised.comparisons(made), "clean error")
    assert list(errors.columns) == ["Arm", "Rounded", "Step per", "8 bits", "4 bits", "3 bits"]
    assert len(errors) == 4
    assert errors["8 bits"].str.fullmatch(r"0\.25 \[0\.2\d, 0\.2\d\]\*").all()
    assert not (
        tables.rounded_errors(quantised.comparisons(made_up()), "clean error")["8 bits"]
        .str.contains("*", regex=False)
        .any()
    )
    bits = tables.bits_bought(quantised.bought(made), "clean error")
    assert bits["3 bits"][0] == "over 0 [over 0, over 0]"
    assert bits["8 bits"].str.fullmatch(r"\+1\.00 \[\+(0\.99|1\.0\d), \+1\.0\d\]").all()
    behind = tables.bits_bought(quantised.bought(made_up(advantage=4.0)), "clean error")
    assert behind["8 bits"][0] == "never [never, never]"


def test_figures_say_in_words_what_they_show(found: Quantised) -> None:
    ratio = quantised.fits(found, "random")["states", "channel", 3].ratio
    picture = figures.rounding_predictions(found)
    assert_drawn(picture, "predicted_random", "random")
    alt = picture.alt
    assert f"states at 3 bits per channel {ratio:.2f}" in alt
    rows = quantised.errors(found, "clean error")
    picture = figures.rounded_errors(found, "clean error")
    assert_drawn(picture, "bits", "error", "clean")
    alt = picture.alt
    first = rows[(rows.arm == "baseline") & (rows.rounded == "weights") & (rows.bits == 3)]
    assert f"weights per tensor, baseline: {first.error.iloc[0]:.2g} at 3" in alt
