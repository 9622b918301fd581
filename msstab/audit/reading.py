"""Reading anyone's bench report: any part may be missing, and what is there must make sense."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

PARTS = ("baseline", "idea", "comparison", "mechanism_signature")


class AuditError(ValueError):
    """A file that cannot be audited, in one line with the field at fault."""


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, frozen=True)


Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=0, le=10**9)]

_ALLOWED = {
    "model_type": "an object",
    "dict_type": "an object",
    "list_type": "a list",
    "float_type": "a number",
    "finite_number": "a finite number",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "string_type": "a text",
    "too_short": "a list of two numbers",
    "too_long": "a list of two numbers",
}


class Trial(_Part):
    """A configuration that was tried: its mean errors, and those by seed."""

    cfg: dict[str, Any] | None = None
    mean: float | None = None
    validation_mean: float | None = None
    per_seed: list[float] | None = None


class Scores(_Part):
    """An arm's errors on the seeds that confirm."""

    mean: float | None = None
    std: float | None = None
    std_ddof1: float | None = None
    per_seed: list[float] | None = None
    n: Count | None = None


class Arm(Scores):
    """An arm's tuning and confirmation, the latter in `full` or beside the former."""

    full: Scores | None = None
    best_cfg: dict[str, Any] | None = None
    sweep: list[Trial] | None = None

    @property
    def scores(self) -> Scores:
        """The errors that the arm is judged by."""
        return self if self.full is None else self.full


class Decided(_Part):
    """What the outcome is said to rest on; effects are shares of the baseline's error."""

    scale: Literal["log ratios", "differences"] | None = None
    effect: float | None = None
    interval: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    margin: float | None = None
    p_value: float | None = None
    p_equivalence: float | None = None
    p_improvement: float | None = None
    mde_power80: float | None = None
    power_at_margin: float | None = None


class Comparison(_Part):
    """What is said of the pairs; without `decided_on`, their differences decide."""

    delta_mean: float | None = None
    idea_wins: Count | None = None
    n_pairs: Count | None = None
    per_seed_diffs: list[float] | None = None
    p_value: float | None = None
    mde: float | None = None
    mde_rel_pct: float | None = None
    mde_power80: float | None = None
    interval: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    alpha: Annotated[float, Field(ge=1e-6, lt=0.5)] | None = None
    margin: Positive | None = None
    p_equivalence: float | None = None
    decided_on: Decided | None = None
    outcome: str | None = None
    verdict: str | None = None
    system_worked: bool | None = None


class Signature(_Part):
    """Predicted and observed growth; `relative_to` says which of them the error is a share of."""

    predicted_lifted_rho_mean: Positive | None = None
    observed_hidden_second_moment_ratio_mean: Positive | None = None
    relative_error: float | None = None
    relative_to: str | None = None
    confirmed: bool | None = None


class Bench(_Part):
    """The figures."""

    metric_direction: str | None = None
    n_seeds: Count | None = None
    baseline: Arm = Arm()
    idea: Arm = Arm()
    comparison: Comparison = Comparison()
    mechanism_signature: Signature = Signature()


class Document(_Part):
    """A bench report of any origin."""

    bench_report: Bench
    worked: bool | None = None
    verdict: str | None = None
    metrics: dict[str, Any] | None = None
    system_verdict: str | None = None
    practical_verdict: str | None = None
    mechanism_ok: Literal[0, 1, False, True] | None = None


def read(path: str | Path) -> Document:
    """Read a report, or its `bench_report` alone; AuditError says in a line what is wrong."""
    try:
        return check(json.loads(Path(path).read_bytes().decode("utf-8-sig")))
    except AuditError as error:
        raise AuditError(f"{path}: {error}") from None
    except OSError as error:
        reason = error.strerror or error
        raise AuditError(f"{path}: {reason}; name a bench_report.json") from None
    except UnicodeDecodeError:
        raise AuditError(f"{path}: this is not a text in UTF-8, which JSON must be") from None
    except RecursionError:
        raise AuditError(f"{path}: the JSON is nested too deeply") from None
    except ValueError as error:
        raise AuditError(f"{path}: this is not JSON: {error}") from None


def check(content: object) -> Document:
    """Check what JSON holds; a part that is null counts as missing. Raises AuditError."""
    if not isinstance(content, Mapping):
        kind = type(content).__name__
        raise AuditError(f"the file holds a {kind}; allowed is an object with bench_report in it")
    fields: dict[str, Any] = _without_nulls(content)
    inner = fields.get("bench_report")
    alone = inner is None and any(part in fields for part in PARTS)
    if alone:
        fields = {**fields, "bench_report": fields}
    elif inner is None or (isinstance(inner, Mapping) and not any(p in inner for p in PARTS)):
        raise AuditError(f"bench_report: missing; it holds at least one of {', '.join(PARTS)}")
    try:
        return Document.model_validate(fields)
    except ValidationError as error:
        raise AuditError(_line(error, alone)) from None


def _without_nulls(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {str(k): _without_nulls(v) for k, v in content.items() if v is not None}
    return content if not isinstance(content, list) else [_nested(value) for value in content]


def _nested(value: Any) -> Any:
    # Within a list a null has a place of its own: a run that failed, not a field left out.
    return value if value is None else _without_nulls(value)


def _line(error: ValidationError, alone: bool) -> str:
    first, *others = error.errors(include_url=False)
    path = [*first["loc"]]
    if alone and path[0] == "bench_report":
        path = path[1:]
    where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).removeprefix(".")
    given = repr(first["input"])
    given = given if len(given) <= 40 else given[:37] + "..."
    more = f" ({len(others)} more)" if others else ""
    message = first["msg"]
    allowed = _ALLOWED.get(first["type"], message[0].lower() + message[1:])
    allowed = allowed.removeprefix("input should be ")
    return f"{where} = {given}: it must be {allowed}{more}"
