"""The bench report that carries a verdict: its schema, building, reading and writing."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from msstab.evidence import Judged, PairedEvidence
from msstab.verdict import combine, decide, headline


class ReportError(ValueError):
    """A report that cannot be used, with the field at fault."""


class _Model(BaseModel):
    # "constants" lets NaN in an added field reach the writer, which refuses it.
    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="allow",
        allow_inf_nan=False,
        ser_json_inf_nan="constants",
    )


Positive = Annotated[float, Field(gt=0)]


class Config(_Model):
    """One configuration that was tried."""

    lr: Positive
    penalty: float


class SweepEntry(_Model):
    """A configuration's mean errors over the tuning seeds: test, and validation where known."""

    cfg: Config
    mean: float
    validation_mean: float | None = None
    n_diverged: int | None = None


class Scores(_Model):
    """Test errors by seed; `std` divides by n, as the first such report did, `std_ddof1` by n-1."""

    mean: float
    std: float
    std_ddof1: float | None = None
    per_seed: tuple[float, ...] = Field(min_length=2)
    n: int


class Baseline(_Model):
    """The baseline's tuning and confirmation."""

    best_cfg: Config
    sweep: tuple[SweepEntry, ...] = Field(min_length=1)
    full: Scores


class Idea(Scores):
    """The idea's confirmation and, where recorded, its tuning."""

    best_cfg: Config | None = None
    sweep: tuple[SweepEntry, ...] | None = None


class Decisive(_Model):
    """What the outcome rests on: effects are shares of the baseline's error, see `Judged`."""

    scale: Literal["log ratios", "differences"]
    effect: float
    interval: tuple[float, float]
    margin: Positive
    p_value: float
    p_equivalence: float
    p_improvement: float
    mde_power80: float
    power_at_margin: float


class Comparison(_Model):
    """The paired comparison; `mde` is a half-width, `mde_power80` the effect with 80% power.

    All of it is on the scale of differences, but for `decided_on`, from which the outcome follows;
    in a report without that, it follows from the differences.
    """

    delta_mean: float
    idea_wins: int
    n_pairs: int
    per_seed_diffs: tuple[float, ...]
    p_value: float
    p_exact: bool | None = None
    mde: float
    mde_rel_pct: float
    mde_power80: float | None = None
    interval: tuple[float, float] | None = None
    alpha: float | None = None
    margin: Positive | None = None
    p_equivalence: float | None = None
    decided_on: Decisive | None = None
    outcome: str | None = None
    reason: str | None = None
    verdict: str
    system_worked: bool


class Question(_Model):
    """One question that was put to the judged arm, on one track, and its outcome."""

    title: str
    track: str
    n_pairs: int
    outcome: str
    reason: str
    decided_on: Decisive


class Signature(_Model):
    """Predicted and observed second-moment growth of the trained networks.

    `relative_to`: which of the two `relative_error` is a share of.
    """

    noise_sigma: float
    predicted_lifted_rho_mean: Positive
    observed_hidden_second_moment_ratio_mean: Positive
    relative_error: float
    relative_to: Literal["predicted", "observed"] | None = None
    confirmed: bool
    source: str


class BenchReport(_Model):
    """The figures."""

    bench_version: int
    track: str
    model: str
    metric_direction: str
    n_seeds: int
    study: dict[str, Any] | None = None
    study_key: str | None = None
    versions: dict[str, str] | None = None
    baseline: Baseline
    idea: Idea
    comparison: Comparison
    mechanism_signature: Signature

    @model_validator(mode="after")
    def _paired(self) -> "BenchReport":
        baseline, idea = len(self.baseline.full.per_seed), len(self.idea.per_seed)
        if baseline != idea:
            raise ValueError(f"{baseline} baseline and {idea} idea values do not pair up")
        return self


class Report(_Model):
    """A bench report; its sentences may be missing in one that is only read."""

    worked: bool
    confidence: int = Field(ge=0, le=10)
    verdict: str | None = None
    metrics: dict[Literal["baseline", "idea"], str] | None = None
    how_to_run: str
    files: tuple[str, ...]
    limitations: str | None = None
    bench_report: BenchReport
    system_verdict: str
    practical_verdict: str
    mechanism_ok: int = Field(ge=0, le=1)
    system_judged: bool
    reasons: dict[str, str] | None = None
    questions: dict[str, Question] | None = None


def read_report(path: str | Path) -> Report:
    """Read a report and check it; raises ReportError that names each field at fault."""
    try:
        return Report.model_validate_json(Path(path).read_bytes())
    except ValidationError as error:
        lines = [
            f"{path}: {_where(e['loc'])}{e['msg'].removeprefix('Value error, ')}"
            for e in error.errors()
        ]
        raise ReportError("\n".join(lines)) from None


def write_report(report: Report, path: str | Path) -> None:
    """Write a report whole or not at all, the same bytes for the same report.

    Raises ValueError, and leaves a former file alone, where an added field holds NaN.
    """
    content = report.model_dump(mode="json", exclude_unset=True)
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    target = Path(path)
    # Not a temporary file of tempfile's, which only its owner could read.
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


class Arm(NamedTuple):
    """What tuning and confirming an arm gave.

    A trial of the sweep is (configuration {lr, penalty}, mean test error, mean validation error,
    runs that diverged); per_seed holds the (n,) test errors of the best configuration.
    """

    best: Mapping[str, float]
    sweep: Sequence[tuple[Mapping[str, float], float, float, int]]
    per_seed: ArrayLike


class Asked(NamedTuple):
    """A question as `build_report` takes it: title, track, and the evidence that answers it."""

    title: str
    track: str
    evidence: PairedEvidence


def build_report(
    *,
    track: str,
    model: str,
    study: Mapping[str, Any],
    study_key: str,
    versions: Mapping[str, str],
    baseline: Arm,
    idea: Arm,
    evidence: PairedEvidence,
    signature: Mapping[str, Any],
    mechanism_ok: bool,
    mechanism_reason: str,
    how_to_run: str,
    limitations: str,
    files: Sequence[str] = ("bench_report.json",),
    questions: Mapping[str, Asked] | None = None,
) -> Report:
    """Assemble the report of a comparison from its pieces; every sentence follows the numbers.

    evidence: `summarise` of the two arms' per_seed; signature: the fields of `Signature`;
    questions: by a short name such as "Q2".
    Raises pydantic.ValidationError for a piece of the wrong type or a value that isn't finite.
    """
    e, judged = evidence, evidence.judged
    decision = decide(judged)
    judgement = combine(decision, judged, mechanism_ok, mechanism_reason)
    comparison = Comparison(
        delta_mean=e.mean_difference,
        idea_wins=e.wins,
        n_pairs=e.n,
        per_seed_diffs=tuple(np.subtract(idea.per_seed, baseline.per_seed).tolist()),
        p_value=e.p_value,
        p_exact=e.p_exact,
        mde=e.mde_half_width,
        mde_rel_pct=e.percent(e.mde_half_width),
        mde_power80=e.mde_power80,
        interval=(e.interval.low, e.interval.high),
        alpha=e.alpha,
        margin=e.margin,
        p_equivalence=e.p_equivalence,
        decided_on=_decisive(judged),
        outcome=decision.outcome.value,
        reason=decision.reason,
        verdict="significant win" if judgement.worked else "no significant win",
        system_worked=judgement.worked,
    )
    bench = BenchReport(
        bench_version=1,
        track=track,
        model=model,
        metric_direction="lower is better",
        n_seeds=e.n,
        study=dict(study),
        study_key=study_key,
        versions=dict(versions),
        baseline=Baseline(**_tuning(baseline), full=Scores(**_scores(baseline))),
        idea=Idea(**_scores(idea), **_tuning(idea)),
        comparison=comparison,
        mechanism_signature=Signature(**signature),
    )
    return Report(
        **judgement._asdict(),
        verdict=headline(decision, judged, mechanism_reason),
        metrics={
            "baseline": f"{track}/{model}; {_describe(baseline)}",
            "idea": f"{_describe(idea)}; {decision.reason}",
        },
        how_to_run=how_to_run,
        files=tuple(files),
        limitations=limitations,
        bench_report=bench,
        questions={name: _answer(asked) for name, asked in (questions or {}).items()},
    )


def _answer(asked: Asked) -> Question:
    decision = decide(asked.evidence.judged)
    return Question(
        title=asked.title,
        track=asked.track,
        n_pairs=asked.evidence.n,
        outcome=decision.outcome.value,
        reason=decision.reason,
        decided_on=_decisive(asked.evidence.judged),
    )


def _decisive(judged: Judged) -> Decisive:
    return Decisive(
        scale=judged.scale.value,
        effect=judged.effect,
        interval=(judged.interval.low, judged.interval.high),
        margin=judged.margin,
        p_value=judged.p_value,
        p_equivalence=judged.p_equivalence,
        p_improvement=judged.p_improvement,
        mde_power80=judged.mde_power80,
        power_at_margin=judged.power_at_margin,
    )


def _scores(arm: Arm) -> dict[str, Any]:
    values = np.asarray(arm.per_seed, dtype=np.float64)
    return {
        "mean": float(values.mean()),
        "std": float(values.std()),
        "std_ddof1": float(values.std(ddof=1)),
        "per_seed": tuple(values.tolist()),
        "n": values.size,
    }


def _tuning(arm: Arm) -> dict[str, Any]:
    sweep = tuple(
        SweepEntry(cfg=Config(**cfg), mean=test, validation_mean=validation, n_diverged=diverged)
        for cfg, test, validation, diverged in arm.sweep
    )
    return {"best_cfg": Config(**arm.best), "sweep": sweep}


def _describe(arm: Arm) -> str:
    config = " ".join(f"{name}={value:g}" for name, value in arm.best.items())
    scores = "{n}-seed test error mean={mean:.7g}, std={std:.7g}".format_map(_scores(arm))
    return f"best cfg {config}; {scores}"


def _where(location: tuple[int | str, ...]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return f"{path.removeprefix('.')}: " if path else ""


def original_report() -> Report:
    """Return the report under reanalysis, its figures without its sentences."""
    return read_report(Path(__file__).parent / "data" / "stage2_report.json")
