"""The first page's sentences, each with the outcomes that change its words."""

from collections.abc import Iterable

import pytest
from outcomes import BASELINE, SHIFTS

from msstab import judgement, landing, results
from msstab.mediation import Mediator
from msstab.results import ArmComparison, Comparison, Results
from msstab.rules import Finding, Rule
from msstab.verdict import Outcome


def compared(outcome: Outcome, title: str = "Q1: clean error", shift: float = 0.0) -> Comparison:
    """Compare made-up errors that come out so; `shift` moves the second ones further."""
    made = results.compare(
        title, BASELINE, BASELINE + SHIFTS[outcome] + shift, alpha=0.05, sesoi=0.05
    )
    assert made.decision.outcome is outcome
    return made


def own(
    clean: Outcome = Outcome.INCONCLUSIVE,
    noisy: Outcome = Outcome.BETTER,
    price: Outcome = Outcome.EQUIVALENT,
    *,
    further: float = 0.0,
) -> ArmComparison:
    under_noise = compared(noisy, "Q2: error under noise of 0.2", further)
    return ArmComparison("arm", compared(clean), under_noise, compared(price))


def with_arms(found: Results, judged: ArmComparison, **others: ArmComparison) -> Results:
    return found._replace(arms={found.idea: judged, **others})


def with_rules(found: Results, outcomes: Iterable[Rule]) -> Results:
    findings = {f"R{n}": Finding(rule, "figures") for n, rule in enumerate(outcomes, 1)}
    return found._replace(mechanism=found.mechanism._replace(findings=findings))


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome.BETTER, "Without noise, the penalty lowers the test error by 20%;"),
        (Outcome.WORSE, "Without noise, the penalty raises the test error by 20%;"),
        (Outcome.EQUIVALENT, "Without noise, the penalty changes the test error by less than 5.0%"),
        (Outcome.INCONCLUSIVE, "Without noise, these runs cannot tell whether the penalty changes"),
    ],
)
def test_the_answer_says_what_came_of_the_clean_error(
    tiny_results: Results, outcome: Outcome, words: str
) -> None:
    assert landing.answer(with_arms(tiny_results, own(clean=outcome))).startswith(words)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome.BETTER, "under noise, it lowers the test error by 20%."),
        (Outcome.WORSE, "under noise, it raises the test error by 20%."),
        (Outcome.EQUIVALENT, "under noise, it changes the test error by less than 5.0%."),
        (Outcome.INCONCLUSIVE, "under noise, these runs cannot tell whether it changes the test"),
    ],
)
def test_the_answer_says_what_came_of_the_error_under_noise(
    tiny_results: Results, outcome: Outcome, words: str
) -> None:
    assert words in landing.answer(with_arms(tiny_results, own(noisy=outcome)))


def test_the_answer_counts_the_rules_that_hold(tiny_results: Results) -> None:
    all_hold = with_rules(tiny_results, [Rule.CONFIRMED] * 4)
    assert "passes all 4 rules of its test" in landing.answer(all_hold)
    one = with_rules(tiny_results, [Rule.CONFIRMED, *[Rule.REFUTED] * 3])
    assert "passes 1 of 4 rules of its test" in landing.answer(one)


def test_what_was_found_is_a_list_with_every_question(tiny_results: Results) -> None:
    free = compared(Outcome.EQUIVALENT, "Q3: free-run error over one window")
    found = with_arms(tiny_results, own())
    lines = landing.texts(found, ("henon", free))["found_text"].splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "- Clean error",
        "- Error under noise of 0.2",
        "- Free-run error over one window",
    ]
    e = free.evidence.judged
    assert lines[2].endswith(
        f"{100 * e.effect:+.1f}% with the penalty (95% interval {100 * e.interval.low:+.1f}% to "
        f"{100 * e.interval.high:+.1f}%, p = {e.p_value:.2g}), *equivalent*."
    )
    assert len(landing.texts(found)["found_text"].splitlines()) == 2


def test_other_arms_are_counted_where_they_lower_the_error_under_noise(
    tiny_results: Results,
) -> None:
    better, more = own(), own(further=-0.1)
    worse = own(noisy=Outcome.WORSE)
    assert landing.others(with_arms(tiny_results, better)) == ""
    none = landing.others(with_arms(tiny_results, better, a_b=worse))
    assert none == "None of the 1 other arms lowers the error under noise."
    text = landing.others(with_arms(tiny_results, better, a_b=better, c_d=more, e=worse))
    assert text == "Of the 3 other arms 2 lower the error under noise, c d most (-30%)."


def test_the_reason_names_rules_by_what_they_ask(
    tiny_results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judgement, "mediators", lambda _: {})
    mixed = [Rule.CONFIRMED, Rule.REFUTED, Rule.NOT_DISCRIMINATING, Rule.CONFIRMED]
    text = landing.reason(with_rules(tiny_results, mixed))
    assert text == (
        "Of the rules that test the theory, R1 and R4 hold. “Does it predict how training changes "
        "that variance?” (R2) is refuted. “Is that variance what noise costs?” (R3) is not "
        "discriminating."
    )
    assert landing.reason(with_rules(tiny_results, [Rule.CONFIRMED] * 4)).endswith(
        "R1, R2, R3 and R4 hold (all of them)."
    )
    assert landing.reason(with_rules(tiny_results, [Rule.REFUTED] * 4)).startswith("None of")


def test_the_reason_sets_the_best_candidate_against_what_is_penalised(
    tiny_results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explaining(**shares: float) -> None:
        names = {"bound": "the original's spectral-norm bound", "variance": "output variance"}
        made = {
            names[short]: Mediator(0.5, (0.0, 1.0), share, (0.0, 1.0), 40, 0)
            for short, share in shares.items()
        }
        monkeypatch.setattr(judgement, "mediators", lambda _: made)

    explaining(bound=0.1, variance=0.8)
    assert landing.reason(tiny_results).endswith(
        "go with the output variance, which explains 80% of their variance, the original's "
        "spectral-norm bound 10%."
    )
    explaining(bound=0.8, variance=0.1)
    assert landing.reason(tiny_results).endswith(
        "go with the original's spectral-norm bound, which explains 80% of their variance."
    )
    explaining(bound=float("nan"), variance=0.1)
    assert "their variance" not in landing.reason(tiny_results)


def test_certainty_gives_pairs_and_what_they_detect(tiny_results: Results) -> None:
    found = with_arms(tiny_results, own())
    clean, noisy = found.clean.evidence.judged, found.noisy.evidence.judged
    text = landing.certainty(found)
    assert text.startswith(f"{clean.n} pairs of networks")
    assert clean.written(clean.mde_power80) != noisy.written(noisy.mde_power80)
    assert text.index(clean.written(clean.mde_power80)) < text.index(
        noisy.written(noisy.mde_power80)
    )


@pytest.mark.parametrize(
    ("clean", "rules", "words"),
    [
        (Outcome.BETTER, Rule.CONFIRMED, "The claim holds here"),
        (Outcome.WORSE, Rule.REFUTED, "The claim does not hold here"),
        (Outcome.INCONCLUSIVE, Rule.CONFIRMED, "neither upheld nor refuted"),
    ],
)
def test_the_meaning_judges_the_claim(
    tiny_results: Results, clean: Outcome, rules: Rule, words: str
) -> None:
    found = with_arms(with_rules(tiny_results, [rules] * 4), own(clean=clean))
    assert words in landing.meaning(found)


def test_the_meaning_follows_from_every_outcome(tiny_results: Results) -> None:
    texts = {
        (clean, noisy, price): landing.meaning(with_arms(tiny_results, own(clean, noisy, price)))
        for clean in Outcome
        for noisy in Outcome
        for price in Outcome
    }
    for (clean, noisy, price), text in texts.items():
        assert ("pays even" in text) == (clean is Outcome.BETTER)
        assert ("there is no noise it does harm" in text) == (clean is Outcome.WORSE)
        assert ("to be expected it helps" in text) == (noisy is Outcome.BETTER)
        assert ("to be expected it does harm" in text) == (noisy is Outcome.WORSE)
        # A price is paid for something.
        assert ("The price is 20%" in text) == ((noisy, price) == (Outcome.BETTER, Outcome.WORSE))
        assert ("falls too, by 20%" in text) == ((noisy, price) == (Outcome.BETTER,) * 2)


def test_the_meaning_names_arms_that_do_more(tiny_results: Results) -> None:
    judged, more = own(), own(further=-0.1)
    less = own(further=0.05)
    assert "further" not in landing.meaning(with_arms(tiny_results, judged))
    assert "no other arm lowers" in landing.meaning(with_arms(tiny_results, judged, a_b=less))
    text = landing.meaning(with_arms(tiny_results, judged, a_b=less, c_d=more))
    assert text.endswith("these arms lower the error under noise further: c d.")
    harmful = own(noisy=Outcome.WORSE)
    assert landing.meaning(with_arms(tiny_results, harmful, a_b=less)).endswith("further: a b.")


def test_a_study_without_noise_says_nothing_of_any(tiny_results: Results) -> None:
    quiet = tiny_results.study.model_copy(update={"sigma_test": 0.0})
    found = with_arms(tiny_results, own(), a_b=own(further=-0.1))
    found = found._replace(experiment=found.experiment._replace(study=quiet))
    texts = landing.texts(found)
    assert landing.answer(found).startswith("Without noise, these runs cannot tell")
    assert len(texts["found_text"].splitlines()) == 1
    for name in ("answer_text", "found_text", "certainty_text", "meaning_text"):
        assert "under noise" not in texts[name]
        assert "expected" not in texts[name]


def test_networks_that_comparisons_share_are_counted_once(tiny_results: Results) -> None:
    networks, seconds = landing.trained(tiny_results)
    runs = tiny_results.table[tiny_results.table.role != "untrained"]
    assert networks < len(runs)
    # Whoever shares a network shares its errors and the time that it took.
    shared = runs.drop_duplicates(["seconds", "seed", "train_mse"])
    assert networks == len(shared)
    assert seconds == pytest.approx(shared.seconds.sum())
