import time

import numpy as np
import pytest

from msstab import sensitivity
from msstab.evidence import Scale, summarise
from msstab.results import Comparison, compare
from msstab.verdict import decide


def compared(n: int, shift: float, *, seed: int = 0, spread: float = 0.1) -> Comparison:
    generator = np.random.default_rng(seed)
    baseline = generator.lognormal(0, 0.3, n) / 100
    idea = baseline * np.exp(generator.normal(shift, spread, n))
    return compare("error", baseline, idea, alpha=0.05, sesoi=0.05)


@pytest.mark.parametrize(("n", "shift"), [(8, 0.1), (30, -0.05), (33, 0.0)])
def test_every_row_is_what_the_whole_evidence_decides(n: int, shift: float) -> None:
    c = compared(n, shift)
    a, b = c.baseline, c.idea
    frame = sensitivity.vary(c)
    for row in frame.to_dict("records"):
        match row["varied"]:
            case sensitivity.AS_JUDGED:
                e = c.evidence
            case sensitivity.MARGIN:
                e = summarise(a, b, margin=row["value"] * a.mean())
            case sensitivity.LEVEL:
                e = summarise(a, b, margin=0.05 * a.mean(), alpha=row["value"])
            case sensitivity.SEED:
                rest = np.delete(a, int(row["value"]))
                e = summarise(rest, np.delete(b, int(row["value"])), margin=0.05 * rest.mean())
            case _:
                continue
        assert row["outcome"] == decide(e.judged).outcome.value
        assert row["p_value"] == e.judged.p_value
        assert row["p_equivalence"] == pytest.approx(e.judged.p_equivalence, rel=1e-9)
        assert row["effect"] == pytest.approx(e.judged.effect, rel=1e-12)
    assert (frame.varied == sensitivity.SEED).sum() == n
    assert list(frame.differs) == list(frame.outcome != c.decision.outcome.value)


def test_the_other_scale_is_decided_by_the_same_tree() -> None:
    c = compared(12, -0.2)
    e = summarise(c.baseline, c.idea, margin=0.05 * c.baseline.mean())
    (row,) = sensitivity.vary(c).query("varied == 'scale'").to_dict("records")
    assert row["outcome"] == decide(e.on(Scale.DIFFERENCES)).outcome.value == "better"
    assert row["effect"] == pytest.approx((c.idea - c.baseline).mean() / c.baseline.mean())
    assert row["p_value"] == e.p_value


@pytest.mark.parametrize("n", [9, 40])
def test_errors_without_logarithms_are_varied_on_differences(n: int) -> None:
    c = compared(n, -0.1)
    baseline = np.append(c.baseline, 0.0)
    idea = np.append(c.idea, 0.001)
    frame = sensitivity.vary(compare("error", baseline, idea, alpha=0.05, sesoi=0.05))
    for row in frame[frame.varied == sensitivity.SEED].to_dict("records"):
        seed = int(row["value"])
        rest = np.delete(baseline, seed)
        e = summarise(rest, np.delete(idea, seed), margin=0.05 * rest.mean())
        judged = e.on(Scale.DIFFERENCES)
        assert row["outcome"] == decide(judged).outcome.value
        assert row["effect"] == pytest.approx(judged.effect, rel=1e-12)


def test_one_seed_that_makes_the_verdict_is_named() -> None:
    baseline = np.random.default_rng(3).uniform(0.9, 1.1, 40)
    idea = baseline * (1 + np.random.default_rng(4).normal(0, 0.02, 40))
    idea[17] *= 9
    frame = sensitivity.vary(compare("error", baseline, idea, alpha=0.05, sesoi=0.05))
    assert frame.outcome[0] == "inconclusive"
    seeds = frame[frame.varied == sensitivity.SEED]
    assert list(seeds.value[seeds.differs]) == [17]
    found = sensitivity.most_influential(frame)
    assert found is not None
    assert found.value == 17
    said = sensitivity.sentence(frame)
    assert "equivalent without seed 17 of 40" in said
    assert "Seed 17 matters most" in said


def test_what_does_not_change_the_outcome_is_said_to_leave_it() -> None:
    said = sensitivity.sentence(sensitivity.vary(compared(40, -0.9)))
    assert said.startswith("The outcome is better. It stays the same with a smallest effect of ")
    assert "from 1% to 20%, at levels from 0.01 to 0.1, on differences and without any one" in said
    assert "would be" not in said


def test_what_changes_the_outcome_is_said_with_the_outcome() -> None:
    frame = sensitivity.vary(compared(8, 0.1))
    said = sensitivity.sentence(frame)
    differing = frame[frame.differs]
    assert len(differing) > 0
    for outcome in differing.outcome.unique():
        assert f"{outcome} " in said.partition("It would be ")[2].partition(". ")[0]


def test_two_pairs_leave_none_out() -> None:
    frame = sensitivity.vary(compare("error", [1.0, 2.0], [1.5, 2.0], alpha=0.05, sesoi=0.05))
    assert sensitivity.most_influential(frame) is None
    assert "Seed" not in sensitivity.sentence(frame)


def test_errors_without_logarithms_have_no_other_scale() -> None:
    c = compare("error", [1.0, 2.0, 1.5], [0.0, 2.0, 1.0], alpha=0.05, sesoi=0.05)
    assert sensitivity.SCALE not in set(sensitivity.vary(c).varied)


def test_tracks_are_pooled_alike_and_each_is_left_out_once() -> None:
    generator = np.random.default_rng(0)
    tracks, means = {}, {}
    for track, (n, shift) in {"a": (8, -0.2), "b": (30, 0.1), "c": (8, 0.0)}.items():
        tracks[track] = compared(n, shift, seed=int(generator.integers(100)))
        ratios = tracks[track].idea / tracks[track].baseline
        means[track] = float(np.log(ratios).mean())
    frame = sensitivity.vary_tracks(tracks)
    a, b, c = means.values()
    expected = [(a + b + c) / 3, (b + c) / 2, (a + c) / 2, (a + b) / 2]
    assert list(frame["mean"]) == pytest.approx(expected, rel=1e-12)
    assert list(frame.effect) == pytest.approx(np.exp(expected) - 1, rel=1e-12)
    assert list(frame.change) == pytest.approx([m - expected[0] for m in expected], abs=1e-15)
    assert list(frame.left_out) == ["", "a", "b", "c"]
    assert list(frame.tracks) == [3, 2, 2, 2]


def test_a_track_that_makes_the_sign_is_named() -> None:
    same = {track: compared(8, -0.2, seed=k) for k, track in enumerate("abc")}
    said = sensitivity.tracks_sentence(sensitivity.vary_tracks(same))
    assert said.startswith("Pooled over 3 tracks, the error changes by -")
    assert "It keeps its sign: with any one track left out" in said
    said = sensitivity.tracks_sentence(sensitivity.vary_tracks({**same, "b": compared(8, 2.0)}))
    assert "changes by +" in said
    assert "It changes sign without b: " in said
    assert said.endswith("and b matters most.")
    alone = sensitivity.tracks_sentence(sensitivity.vary_tracks({"a": same["a"]}))
    assert alone.startswith("On the one track that was run, the error changes by -")


def test_a_single_track_is_not_left_out_and_none_is_refused() -> None:
    assert len(sensitivity.vary_tracks({"a": compared(8, 0.1)})) == 1
    with pytest.raises(ValueError, match="at least one track"):
        sensitivity.vary_tracks({})


def test_a_thousand_seeds_are_left_out_in_seconds() -> None:
    c = compared(1000, 0.01)
    began = time.process_time()
    assert len(sensitivity.vary(c)) > 1000
    assert time.process_time() - began < 5
