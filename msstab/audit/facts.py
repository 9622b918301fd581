"""What a report records that its figures follow from, put in order once for every check."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from msstab.audit.reading import Arm, AuditError, Bench, Document
from msstab.audit.rows import unit
from msstab.evidence import Judged, PairedEvidence, Scale, summarise

ARMS: tuple[Literal["baseline", "idea"], ...] = ("baseline", "idea")

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Facts:
    """A report, and the evidence that its values by seed give, where there are any.

    `differences` are those of the values by seed or, failing these, the stated ones; `evidence`
    then lacks what takes both arms. `margin_stated`: by the report itself, not assumed. `slack`:
    how far the rounding of the values by seed may move a figure in the units of the error.
    """

    document: Document
    alpha: float
    values: dict[str, Values | None]
    differences: Values | None
    evidence: PairedEvidence | None
    baseline_mean: float | None
    slack: float

    @property
    def bench(self) -> Bench:
        """The report's figures."""
        return self.document.bench_report

    @property
    def paired(self) -> bool:
        """Whether both arms have values by seed, and equally many."""
        a, b = (self.values[name] for name in ARMS)
        return a is not None and b is not None and a.size == b.size

    @property
    def sign(self) -> int:
        """1 where lower is better, as for an error, and -1 where higher is."""
        return -1 if "higher" in (self.bench.metric_direction or "").lower() else 1

    @property
    def judged(self) -> Judged | None:
        """What decides, on the scale the report states; None where its values do not give it."""
        stated, e = self.bench.comparison.decided_on, self.evidence
        if e is None:
            return None
        scale = Scale.DIFFERENCES.value if stated is None else stated.scale
        if scale is None or (scale == Scale.RATIOS.value and math.isnan(e.ratio)):
            return None
        return e.on(Scale(scale))

    @property
    def margin_stated(self) -> bool:
        """Whether the report states its own smallest effect of interest."""
        return self.bench.comparison.margin is not None

    def arm(self, name: str) -> Arm:
        """Return what is recorded of an arm."""
        return self.bench.baseline if name == "baseline" else self.bench.idea

    def percent(self, effect: float) -> float | None:
        """Return an effect in percent of the baseline's mean, where that has a meaning."""
        mean = self.baseline_mean
        return 100 * effect / mean if mean is not None and mean > 0 else None


def gather(document: Document, alpha: float, sesoi: float) -> Facts:
    """Put in order what a report records; alpha and sesoi apply where it states none.

    Raises AuditError for values that no evidence can be drawn from.
    """
    bench, comparison = document.bench_report, document.bench_report.comparison
    values = {"baseline": _array(bench.baseline), "idea": _array(bench.idea)}
    a, b = values["baseline"], values["idea"]
    given = comparison.per_seed_diffs
    differences = np.array(given, dtype=np.float64) if given and len(given) > 1 else None
    pair = None if differences is None else (np.zeros(differences.size), differences)
    if a is not None and b is not None and a.size == b.size:
        differences, pair = b - a, (a, b)
    mean = bench.baseline.scores.mean if a is None else float(a.mean())
    alpha = comparison.alpha or alpha
    # Without a scale for the margin nothing can be shown to lie within it.
    margin = comparison.margin or sesoi * abs(mean or 0.0) or float(np.finfo(float).tiny)
    try:
        with np.errstate(all="ignore"):
            evidence = None if pair is None else summarise(*pair, alpha=alpha, margin=margin)
    except ValueError as error:
        raise AuditError(f"bench_report: {error}") from None
    return Facts(document, alpha, values, differences, evidence, mean, _slack(values))


def _array(arm: Arm) -> Values | None:
    values = arm.scores.per_seed
    return np.array(values, dtype=np.float64) if values and len(values) > 1 else None


def _slack(values: dict[str, Values | None]) -> float:
    written = [value for array in values.values() if array is not None for value in array]
    smallest = min((unit(value) for value in written if value), default=0.0)
    # Coarser values are counts or shares, most likely, and exact.
    return 4 * smallest if smallest <= 1e-3 else 0.0
