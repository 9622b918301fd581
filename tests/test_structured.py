from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import TINY
from scipy import stats
from structured_outcomes import ARMS, FACTORS, PAIRS, made

from msstab import experiment, structured, structures, trials
from msstab.results import Results
from msstab.structured import Structured
from msstab.study import parse

STUDY = parse(
    {"survey_seeds": 4, "survey_tuning_seeds": 2, "survey_structures": ["weight", "unit"]}, TINY
)


@pytest.fixture
def tiny(tiny_results: Results, tiny_cache: Path) -> Structured:
    """What the chapter shows of real networks, trained once for all tests."""
    # The scores that both share are then the other study's own, which other tests take for granted.
    assert tiny_results.study == TINY
    return collected()


@cache
def collected() -> Structured:
    return structured.collect(STUDY, jobs=1)


def test_every_network_is_measured_under_every_structure(tiny: Structured) -> None:
    runs = experiment.run(STUDY, jobs=1)
    assert tiny.arms == ["spectral_proxy"]
    counts = tiny.table.groupby(["arm", "structure"]).seed.agg(list)
    assert all(seeds == [0, 1, 2, 3] for seeds in counts)
    assert set(tiny.table.structure) == {*tiny.strengths, "weight, frozen"}
    for arm in ("baseline", "spectral_proxy"):
        chosen = runs.table[(runs.table.arm == arm) & (runs.table.role == "robust")]
        own = tiny.table[(tiny.table.arm == arm) & (tiny.table.structure == "unit")]
        # The same networks on the same sequences as the scores of the second question.
        expected = chosen.sort_values("seed").clean_mse.to_numpy()[:4]
        np.testing.assert_allclose(own.clean, expected, rtol=1e-6)
        variance = chosen.sort_values("seed").predicted_variance.to_numpy()[:4]
        np.testing.assert_allclose(own.predicted, variance, rtol=1e-5)


def test_the_studys_own_noise_keeps_its_level_and_the_others_are_matched_to_it(
    tiny: Structured,
) -> None:
    assert tiny.strengths["unit"] == STUDY.sigma_test
    for value in tiny.disturbances.values():
        assert value == pytest.approx(tiny.disturbances["unit"], rel=0.011)


def test_arms_are_trained_for_every_named_structure_and_tested_under_all(tiny: Structured) -> None:
    assert tiny.trained == ["weight", "unit"]
    cells = tiny.crossed.groupby(["arm", "trained", "structure"]).size()
    assert (cells == STUDY.survey_seeds).all()
    assert len(cells) == 2 * 2 * 2
    assert set(structured.transfer(tiny)) == {
        ("spectral_proxy", trained, tested)
        for trained in ("weight", "unit")
        for tested in ("weight", "unit")
    }


def test_what_has_been_run_is_read(tiny: Structured, tiny_cache: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in tiny_cache.rglob("*.npz")}
    told: list[tuple[int, int]] = []
    again = structured.collect(STUDY, jobs=1, progress=lambda *now: told.append(now))
    assert {p: p.stat().st_mtime_ns for p in tiny_cache.rglob("*.npz")} == before
    assert not told
    assert again.table.equals(tiny.table)
    assert again.crossed.equals(tiny.crossed)


def test_a_diverged_network_counts_as_the_constant_forecast() -> None:
    scores = {
        "clean": np.array(0.1),
        "constant": np.array(1.0),
        "error": np.array([0.2, np.nan, 101.0, 99.0]),
        "observed": np.arange(4.0),
    }
    at = [(name, 0.1) for name in "abcd"]
    networks = [NETWORK]
    rows = structured._rows("baseline", networks, at, [scores])
    assert rows.diverged.tolist() == [False, True, True, False]
    assert rows.error.tolist() == [0.2, 1.0, 1.0, 99.0]
    assert rows.clean.tolist() == [0.1, 1.0, 1.0, 0.1]
    lost = structured._rows("baseline", networks, at, [{**scores, "clean": np.array(np.inf)}])
    assert lost.diverged.all()
    assert (lost.error == 1).all()


NETWORK = trials.Trial(
    track="dynamics", cell="gru", hidden=4, layers=1, epochs=1, batch=8, n_train=8,
    arm="baseline", learning_rate=0.01, strength=0.0, noise="unit", sigma=0.0, target=1.0,
    purpose="confirmation", index=0, study_seed=0, dtype="float32", device="cpu",
)  # fmt: skip


# ---- results that are known


def test_harm_is_the_factor_over_the_clean_error() -> None:
    for arm in ARMS:
        for name, e in structured.harm(made(), arm).items():
            assert e.ratio == pytest.approx(FACTORS[name], rel=0.05)
            assert e.n == PAIRS


def test_structures_are_compared_with_the_studys_own_network_by_network() -> None:
    found = made()
    against = structured.against_own(found)
    assert set(against) == set(FACTORS) - {"unit"}
    assert against["gain"].ratio == pytest.approx(2, rel=0.05)
    wide = found.table[found.table.arm == "baseline"].pivot(
        index="seed", columns="structure", values="error"
    )
    expected = stats.ttest_rel(np.log(wide["gain"]), np.log(wide["unit"])).confidence_interval()
    assert np.log(against["gain"].interval) == pytest.approx((expected.low, expected.high))


def test_benefits_pair_each_arm_with_the_baseline_under_the_same_structure() -> None:
    found = structured.benefits(made())
    assert set(found) == {(a, s) for a in ("spectral_proxy", "output_variance") for s in FACTORS}
    for (arm, _), e in found.items():
        assert e.ratio == pytest.approx(ARMS[arm], rel=0.06)


def test_freezing_compares_a_structure_with_itself() -> None:
    ((name, e),) = structured.freezing(made()).items()
    assert name == "weight"
    assert e.ratio == pytest.approx(FACTORS["weight, frozen"] / FACTORS["weight"], rel=0.05)


def test_predictions_are_over_all_networks_and_the_placebo_is_worse() -> None:
    found = structured.predictions(made(wrong=1.1))
    assert list(found) == list(FACTORS)
    for name, own in found.items():
        assert own["predicted"].log_rmse == pytest.approx(np.log(1.1))
        assert own["predicted"].n == PAIRS * len(ARMS)
        assert own["placebo"].log_rmse > 1
        expected = np.log(3) if name.endswith(structures.FROZEN) else np.log(1.1)
        assert own["white"].log_rmse == pytest.approx(expected)


def test_transfer_is_against_the_baseline_of_the_tested_structure() -> None:
    found = made()
    crossed = found.crossed.copy()
    # A baseline that was tuned for another structure, and is bad here, must not count.
    other = (crossed.arm == "baseline") & (crossed.trained != crossed.structure)
    crossed.loc[other, "error"] *= 100
    for (arm, trained, tested), e in structured.transfer(found._replace(crossed=crossed)).items():
        expected = ARMS[arm] * (0.7 if trained == tested else 1)
        assert e.ratio == pytest.approx(expected, rel=0.07)


@pytest.mark.parametrize("own", [0.7, 1.0, 1.3])
def test_matching_finds_what_training_for_the_tested_structure_gains(own: float) -> None:
    for e in structured.matching(made(own=own)).values():
        assert e.interval.low <= own <= e.interval.high
        assert e.ratio == pytest.approx(own, rel=0.05)
        assert (e.p < 0.01) == (own != 1)


def test_one_structure_alone_has_none_to_be_compared_with() -> None:
    found = made({"unit": 2.0})
    assert structured.matching(found) == {}
    assert structured.freezing(found) == {}
