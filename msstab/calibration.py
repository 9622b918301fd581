"""How often the project's own decisions are wrong, counted in simulated studies of known effect."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from msstab import evidence, store
from msstab.evidence import Interval
from msstab.keys import key
from msstab.verdict import TREE, Facts, Outcome, branch_taken

Draw = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]

CORRELATION = 0.3
"""Correlation of two arms' log errors that share a seed; simulated, not measured."""

NOMINAL, COVERAGE, POWER_SLACK, MONTE_CARLO = 0.95, (0.93, 0.97), 0.05, 2.0
"""Level of the intervals and the bars: coverage, how far power may be from the plan, and by how
many of its standard errors a simulated rate may exceed the level of its test."""

COLUMNS = (
    *("family", "effect", "pairs", "quantity", "procedure"),
    *("rate", "standard_error", "studies", "low", "high", "holds"),
)
"""The columns of a calibration."""


def _contaminated(generator: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    scale = np.where(generator.random(shape) < 0.05, 5.0, 1.0)
    return scale * generator.standard_normal(shape) / math.sqrt(0.95 + 0.05 * 25)


FAMILIES: dict[str, Draw] = {
    "lognormal": lambda generator, shape: generator.standard_normal(shape),
    "log t(3)": lambda generator, shape: generator.standard_t(3, shape) / math.sqrt(3),
    "contaminated": _contaminated,
}
"""Log errors of standard deviation 1: normal, Student's t of 3 degrees of freedom (errors then
have no mean), and normal with one run in 20 five times as far out."""

ERRORS, LOGS = "decision on errors", "decision on log ratios"
SEQUENTIAL, PEEKING = "sequential test", "t test at every pair"
INTERVALS = (
    *("t", "sign flip", "BCa bootstrap", "Hodges-Lehmann"),
    *("t, on errors", "sign flip, on errors"),
)
"""The intervals whose coverage is counted, the first four on log ratios."""


class Setting(NamedTuple):
    """What a simulated study looks like; `effect` and `margin` are shares of the error.

    `sd` is that of the paired log ratios; `planned` marks the number of pairs planned for power,
    where stopping early is tried too; intervals are looked at elsewhere.
    """

    family: str
    effect: float
    pairs: int
    planned: bool
    studies: int
    sd: float
    margin: float
    alpha: float
    resamples: int


def simulate(
    generator: np.random.Generator,
    *,
    studies: int = 2_000,
    sizes: Sequence[int] = (8, 64, 256),
    effect: float = -0.05,
    sd: float = 0.4,
    power: float = 0.9,
    margin: float = 0.05,
    alpha: float = 0.05,
    resamples: int = 999,
    jobs: int = 1,
) -> pd.DataFrame:
    """Count in simulated studies how often decisions are wrong, intervals cover, tests detect.

    Studies of no effect at each of `sizes`, by default those of a Study, and of no effect and of
    `effect`, a share of the error within -1 and 1, at the number of pairs that detects it with
    `power` if the log ratios' standard deviation is `sd`. -> a row for each family of errors,
    setting and rate (COLUMNS): `rate` of `studies` with its Monte Carlo `standard_error`, and
    whether it lies within its bar, `low` to `high`, 0 and 1 where none was set. Quantities:
    "rejected" (a false "better or worse" without an effect, the right one with it), "covered",
    "equivalent" and "inconclusive".

    Decisions are those of `verdict.TREE`, from the figures of `evidence.summarise` that decide;
    the others are left out. Random arrangements of signs and bootstrap resamples are `resamples`,
    fewer than in a report. The numbers do not depend on `jobs`. Raises ValueError for no effect,
    one of 100% or more, or fewer than 1 study, and as the functions of `evidence` do.
    """
    if not -1 < effect < 1 or effect == 0:
        raise ValueError(f"effect = {effect}: it must lie between -1 and 1 and not be 0")
    if studies < 1:
        raise ValueError(f"studies = {studies}: at least 1 is needed")
    planned = evidence.pairs_needed(math.log1p(effect), sd, power, alpha)
    common = (studies, sd, margin, alpha, resamples)
    settings = [
        Setting(family, true, pairs, pairs == planned, *common)
        for family in FAMILIES
        for true, pairs in [(0.0, n) for n in sizes if n != planned]
        + [(0.0, planned), (effect, planned)]
    ]
    streams = generator.spawn(len(settings))
    counted = joblib.Parallel(n_jobs=jobs)(
        joblib.delayed(_count)(stream, setting)
        for stream, setting in zip(streams, settings, strict=True)
    )
    return pd.DataFrame([row for rows in counted for row in rows], columns=list(COLUMNS))


def quick(seed: int = 0, *, studies: int = 400) -> pd.DataFrame:
    """Return a small calibration, in 10 seconds: at 64 pairs, and at those for a power of 80%.

    It is kept, and read the next time. So few studies leave rates uncertain by some points; the
    bars are meant for 2,000 and more.
    """
    name = key([seed, studies], ("calibration", "evidence", "verdict"))
    if (kept := store.load("calibration", name)) is None:
        generator = np.random.default_rng(seed)
        frame = simulate(generator, studies=studies, sizes=(64,), power=0.8, resamples=499)
        # Texts as arrays of a fixed width, for objects are not kept.
        kept = {c: np.array(frame[c].tolist()) for c in COLUMNS}
        store.save("calibration", name, kept)
        kept = store.load("calibration", name) or kept
    return pd.DataFrame(kept)


def errors(
    generator: np.random.Generator, family: str, effect: float, sd: float, shape: tuple[int, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw errors (studies, pairs) of the baseline and of an idea that changes them by `effect`.

    Log errors are the seed's part, the same for both arms, and the arm's own, of one family; their
    differences have standard deviation `sd` and the centre log(1 + effect), about which they are
    symmetric: without an effect the arms are exchangeable.
    """
    draw, scale = FAMILIES[family], sd / math.sqrt(2 * (1 - CORRELATION))
    shared = math.sqrt(CORRELATION) * draw(generator, shape)
    own = math.sqrt(1 - CORRELATION) * draw(generator, (2, *shape))
    baseline, idea = np.exp(scale * (shared + own))
    return baseline, (1 + effect) * idea


def outcome(differences: ArrayLike, margin: float, alpha: float, resamples: int) -> Outcome:
    """Return the decision of `verdict.TREE` from those figures of the evidence that decide."""
    d = np.asarray(differences, dtype=np.float64)
    p = evidence.sign_flip_test(d, resamples=resamples).p
    facts = Facts(d.size, alpha, float(d.mean()), p, evidence.equivalence_p(d, margin))
    return TREE[branch_taken(facts)].outcome


def covered(
    interval: Callable[[NDArray[np.float64]], Interval],
    differences: NDArray[np.float64],
    centre: float,
) -> NDArray[np.bool_]:
    """Return for each study's differences (studies, pairs) whether the interval has the centre."""
    ends = np.array([interval(d) for d in differences])
    return np.asarray((ends[:, 0] <= centre) & (centre <= ends[:, 1]))


def stopped(differences: NDArray[np.float64], alpha: float) -> NDArray[np.bool_]:
    """Return whether the sequential test of each study (studies, pairs) ever reaches alpha."""
    return np.array([evidence.sequential_test(d).p_values.min() <= alpha for d in differences])


def peeked(differences: NDArray[np.float64], alpha: float) -> NDArray[np.bool_]:
    """Return whether a t test after every pair of a study (studies, pairs) ever reaches alpha.

    What the sequential test is there to avoid; from the pair on at which a sign-flip test could.
    """
    first, n = evidence.pairs_for_level(alpha), np.arange(1, differences.shape[1] + 1)
    mean = np.cumsum(differences, axis=1) / n
    squares = np.cumsum(differences**2, axis=1) - n * mean**2
    with np.errstate(divide="ignore", invalid="ignore"):
        t = mean / np.sqrt(squares / (n * (n - 1)))
    p = 2 * special.stdtr(n - 1, -np.abs(t))
    return np.asarray((p[:, first - 1 :] <= alpha).any(axis=1))


def _count(generator: np.random.Generator, setting: Setting) -> list[dict[str, Any]]:
    """Return the rows of one setting."""
    s = setting
    a, b = errors(generator, s.family, s.effect, s.sd, (s.studies, s.pairs))
    by_scale = {ERRORS: b - a, LOGS: np.log(b) - np.log(a)}
    margins = {
        ERRORS: s.margin * a.mean(axis=1),
        LOGS: np.full(s.studies, evidence.log_margin(s.margin)),
    }
    found: dict[tuple[str, str], NDArray[np.bool_]] = {}
    for name, differences in by_scale.items():
        outcomes = [
            outcome(d, float(margin), s.alpha, s.resamples)
            for d, margin in zip(differences, margins[name], strict=True)
        ]
        found["rejected", name] = np.isin(outcomes, _right(s.effect))
        for kind in (Outcome.EQUIVALENT, Outcome.INCONCLUSIVE):
            found[kind.value, name] = np.isin(outcomes, [kind])
    logs = by_scale[LOGS]
    if s.planned:
        found["rejected", SEQUENTIAL] = stopped(logs, s.alpha)
        found["rejected", PEEKING] = peeked(logs, s.alpha)
    else:
        for name, interval in _intervals(s.resamples).items():
            differences = by_scale[ERRORS] if name.endswith("errors") else logs
            found["covered", name] = covered(interval, differences, 0.0)
    return [_row(s, *key, hits) for key, hits in found.items()]


def _right(effect: float) -> list[Outcome]:
    """Return the outcomes that count as a rejection: with an effect, only the right one."""
    if effect == 0:
        return [Outcome.BETTER, Outcome.WORSE]
    return [Outcome.BETTER if effect < 0 else Outcome.WORSE]


def _intervals(resamples: int) -> dict[str, Callable[[NDArray[np.float64]], Interval]]:
    def t(d: NDArray[np.float64]) -> Interval:
        return evidence.mean_interval(d, NOMINAL)

    def sign_flip(d: NDArray[np.float64]) -> Interval:
        return evidence.sign_flip_interval(d, NOMINAL, resamples=resamples)

    def bootstrap(d: NDArray[np.float64]) -> Interval:
        return evidence.bootstrap_interval(d, NOMINAL, resamples=resamples)

    def ranks(d: NDArray[np.float64]) -> Interval:
        return evidence.signed_rank_interval(d, NOMINAL)

    return dict(zip(INTERVALS, (t, sign_flip, bootstrap, ranks, t, sign_flip), strict=True))


def _row(s: Setting, quantity: str, procedure: str, hits: NDArray[np.bool_]) -> dict[str, Any]:
    rate = float(hits.mean())
    low, high = _bar(s, quantity, procedure)
    return {
        "family": s.family,
        "effect": s.effect,
        "pairs": s.pairs,
        "quantity": quantity,
        "procedure": procedure,
        "rate": rate,
        "standard_error": math.sqrt(rate * (1 - rate) / hits.size),
        "studies": hits.size,
        "low": low,
        "high": high,
        "holds": low <= rate <= high,
    }


def _bar(s: Setting, quantity: str, procedure: str) -> tuple[float, float]:
    """Return the lowest and highest rate that a procedure may have; 0 and 1 where none is set."""
    false = (quantity == "rejected" and s.effect == 0) or (
        quantity == Outcome.EQUIVALENT and abs(s.effect) >= s.margin
    )
    if quantity == "covered":
        return COVERAGE
    if procedure == PEEKING:
        return 0.0, 1.0
    if false:
        return 0.0, s.alpha + MONTE_CARLO * math.sqrt(s.alpha * (1 - s.alpha) / s.studies)
    if quantity == "rejected" and procedure in (ERRORS, LOGS):
        planned = evidence.power(math.log1p(s.effect), s.sd, s.pairs, s.alpha)
        return planned - POWER_SLACK, min(1.0, planned + POWER_SLACK)
    return 0.0, 1.0
