import pytest
from structured_outcomes import ARMS, FACTORS, made

from msstab import sentences_structures as sentences
from msstab import structured


def test_the_most_and_the_least_harmful_structures_are_named() -> None:
    text = sentences.most_harmful(made())
    assert "“gain” costs the baseline most" in text
    assert "“weight, frozen” costs least" in text
    assert f"{structured.harm(made())['gain'].ratio:.2f}" in text
    assert "Of 3 structures, 1 cost more than “unit”, 2 less" in text
    swapped = {**FACTORS, "unit": 20.0, "gain": 1.2}
    text = sentences.most_harmful(made(swapped))
    assert "“unit” costs the baseline most" in text
    assert "“gain” costs least" in text
    assert "0 cost more than “unit”, 3 less" in text


def test_structures_that_differ_by_chance_alone_are_not_counted() -> None:
    text = sentences.most_harmful(made(dict.fromkeys(FACTORS, 3.0), noise=0.5))
    assert "0 cost more than “unit”, 0 less" in text


def test_predicted_structures_are_counted_and_the_others_named() -> None:
    assert sentences.predicted_structures(made()).startswith("For 4 of 4 structures")
    assert "outside" not in sentences.predicted_structures(made())
    found = made()
    table = found.table.copy()
    table.loc[table.structure == "gain", "predicted"] *= 1.5
    table.loc[table.structure == "weight", "predicted"] *= 1.2
    text = sentences.predicted_structures(found._replace(table=table))
    assert text.startswith("For 2 of 4 structures")
    assert "outside are “gain”, “weight”" in text
    assert "that of “gain”, 0.43." in text


def test_who_bears_it_counts_both_directions() -> None:
    text = sentences.who_bears_it(made())
    assert (
        "Spectral proxy lowers the error under 4 of 4 structures and raises it under none" in text
    )
    worse = {**ARMS, "spectral_proxy": 1.5, "output_variance": 1.0}
    text = sentences.who_bears_it(made(arms=worse))
    assert "Spectral proxy lowers the error under 0 of 4 structures and raises it under 4" in text
    assert (
        "Output variance lowers the error under 0 of 4 structures and raises it under none" in text
    )


@pytest.mark.parametrize(
    ("own", "word"), [(0.7, "% less"), (1.4, "% more"), (1.0, "no difference is detected")]
)
def test_trained_for_it_says_whether_training_for_the_tested_structure_helps(
    own: float, word: str
) -> None:
    text = sentences.trained_for_it(made(own=own))
    assert text.count(word) == 2
    for e in structured.matching(made(own=own)).values():
        assert f"{abs(e.percent[0]):.1f}%" in text


def test_one_structure_alone_transfers_nothing() -> None:
    assert "one structure alone" in sentences.trained_for_it(made({"unit": 2.0}))


def test_frozen_and_fresh_says_which_costs_more_and_which_theory_holds() -> None:
    text = sentences.frozen_and_fresh(made())
    assert "“weight” costs less when frozen" in text
    assert "the theory of frozen errors errs less (log-rmse 0.02 against 1.10)" in text
    more = made({**FACTORS, "weight, frozen": 3.0}, wrong=4.0)
    text = sentences.frozen_and_fresh(more)
    assert "“weight” costs more when frozen" in text
    assert "the theory of fresh noise errs less (log-rmse 1.10 against 1.39)" in text
    same = made({**FACTORS, "weight, frozen": FACTORS["weight"]}, noise=0.5)
    assert "as far as can be told" in sentences.frozen_and_fresh(same)
    assert "None of the compared" in sentences.frozen_and_fresh(made({"unit": 2.0, "gain": 3.0}))


def test_diverged_networks_are_counted() -> None:
    found = made()
    total = len(found.table) + len(found.crossed)
    assert sentences.diverged(found).startswith(f"None of the {total} measurements")
    crossed = found.crossed.assign(diverged=found.crossed.index < 3)
    assert sentences.diverged(found._replace(crossed=crossed)).startswith(f"3 of the {total}")
