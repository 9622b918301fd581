import pytest
from test_sizes import tiny, with_effects

from msstab import sentences_sizes as sentences
from msstab import sizes
from msstab.agreements import Agreement
from msstab.evidence import Interval, Trend
from msstab.sizes import Sizes

__all__ = ["tiny"]


def line(slope: float, intercept: float) -> Trend:
    return Trend(slope, Interval(slope - 0.01, slope + 0.01), 0.001, intercept, 40, 10)


@pytest.mark.parametrize(
    ("slope", "intercept", "word"),
    [
        (0.1, -1.0, "shrinks"),
        (-0.1, 1.0, "shrinks"),
        (-0.1, -0.1, "grows"),
        (0.1, 0.1, "grows"),
        (0.2, -1.0, "changes sign"),
    ],
)
def test_an_effect_grows_or_shrinks_whichever_its_sign(
    slope: float, intercept: float, word: str
) -> None:
    assert sentences.grows_or_shrinks(line(slope, intercept), (8, 64), 0.001, 0.05).startswith(word)


def test_a_trend_that_could_be_chance_is_none() -> None:
    text = sentences.grows_or_shrinks(line(0.1, -1.0), (8, 64), 0.06, 0.05)
    assert text.startswith("shows no trend")
    # exp(-1 + 0.3) - 1 and exp(-1 + 0.6) - 1
    assert "-50% at 8 to -33% at 64 units" in text


def test_trends_are_told_for_every_cell(tiny: Sizes) -> None:
    found = with_effects(tiny, {"gru": 0.1, "rnn": -0.1, "lstm": 0.0})
    text = sentences.trends(found)
    for cell, word in (("GRU", "shrinks"), ("RNN", "grows"), ("LSTM", "shows no trend")):
        assert text.count(f"in the {cell} it {word}") == 2
    one = tiny._replace(surveys={("gru", 2): tiny.surveys["gru", 2]})
    assert sentences.trends(one) == "One size alone was run, which shows no trend."


def test_everywhere_counts_both_directions(tiny: Sizes) -> None:
    # The ratios are below 1 at all sizes of the one, and above at the larger two of the other.
    text = sentences.everywhere(with_effects(tiny, {"gru": 0.0, "rnn": 0.2}))
    assert "spectral proxy lowers the clean error at 6 and raises it at 2 of 8" in text
    assert "spectral proxy lowers the error under noise at 6 and raises it at 2 of 8" in text


def test_prediction_names_where_the_theory_is_off(
    tiny: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = Agreement(1.0, 0.99, 0.05, 20, 0), Agreement(1.0, 0.99, 0.2, 20, 0)
    by_place = {("gru", 2): {"predicted": good}, ("gru", 4): {"predicted": good}}
    monkeypatch.setattr(sizes, "predictions", lambda found: by_place)
    assert sentences.prediction(tiny).startswith("At 2 of 2 combinations")
    by_place["gru", 4] = {"predicted": bad}
    assert sentences.prediction(tiny).endswith("outside are GRU of 4.")


def test_what_is_left_out_is_named(tiny: Sizes) -> None:
    assert sentences.left_out(tiny) == "Every combination of cell and size was run."
    text = sentences.left_out(tiny._replace(left_out=[("lstm", 128)]))
    assert "Not run: LSTM of 128 units" in text


def test_the_simulations_own_error_follows_from_its_runs(tiny: Sizes) -> None:
    study = tiny.surveys["gru", 2].study
    runs = study.draws * study.mechanism_sequences
    text = sentences.simulation_error(tiny)
    assert f"rests on {runs} runs" in text
    assert f"{(2 / runs) ** 0.5:.0%}" in text
