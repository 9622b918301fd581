import numpy as np
import pandas as pd
import pytest

from msstab import calibration, calibration_bars


@pytest.fixture(scope="module")
def small() -> pd.DataFrame:
    generator = np.random.default_rng(1)
    return calibration.simulate(generator, studies=20, sizes=(8, 12), effect=-0.4, resamples=99)


@pytest.fixture
def perfect(small: pd.DataFrame) -> pd.DataFrame:
    """Return a calibration whose rates all lie within their bars, but for raw differences."""
    made = small.assign(rate=(small.low + small.high) / 2, holds=True)
    on_errors = made.procedure.isin([calibration.ERRORS, *calibration.INTERVALS[4:]])
    made.loc[on_errors, ["rate", "holds"]] = [0.5, False]
    return made


def with_a_miss(frame: pd.DataFrame, bar: str) -> pd.DataFrame:
    effect, quantity, procedure = {
        "false better or worse": (0.0, "rejected", "decision on log ratios"),
        "false better or worse, stopping at any pair": (0.0, "rejected", "sequential test"),
        "false equivalence": (-0.4, "equivalent", "decision on log ratios"),
        "power, against the plan": (-0.4, "rejected", "decision on log ratios"),
        "coverage, t": (0.0, "covered", "t"),
        "coverage, sign flip": (0.0, "covered", "sign flip"),
        "coverage, BCa bootstrap": (0.0, "covered", "BCa bootstrap"),
        "coverage, Hodges-Lehmann": (0.0, "covered", "Hodges-Lehmann"),
    }[bar]
    at = (frame.effect == effect) & (frame.quantity == quantity)
    at &= (frame.procedure == procedure) & (frame.family == "log t(3)")
    assert at.any()
    return frame.assign(rate=frame.rate.mask(at, 0.99), holds=frame.holds.mask(at, False))


def test_bars_hold_where_every_rate_on_the_scale_that_decides_is_within(
    perfect: pd.DataFrame,
) -> None:
    found = calibration_bars.bars(perfect)
    assert found.holds.all()
    assert (found.missed == 0).all()
    total = found.rates.sum()
    assert f"decides, {total} of {total} rates are within" in calibration_bars.sentence(perfect)
    assert "Outside" not in calibration_bars.sentence(perfect)


@pytest.mark.parametrize("bar", calibration_bars.BARS)
def test_a_rate_outside_fails_its_own_bar_alone_and_is_named(
    perfect: pd.DataFrame, bar: str
) -> None:
    bad = with_a_miss(perfect, bar)
    marked = calibration_bars.bars(bad).set_index("bar")
    assert list(marked.index[~marked.holds]) == [bar]
    assert marked.highest[bar] == 0.99
    said = calibration_bars.sentence(bad)
    assert f"Outside: {bar}, log t(3) errors, " in said
    assert f"pairs: 99.0%, asked {marked.low[bar]:.1%} to {marked.high[bar]:.1%}" in said
    missed = int(marked.missed[bar])
    total = int(marked.rates.sum())
    assert f"{total - missed} of {total} rates" in said


def test_a_bar_without_rates_does_not_hold(small: pd.DataFrame) -> None:
    assert not calibration_bars.bars(small[:0]).holds.any()
