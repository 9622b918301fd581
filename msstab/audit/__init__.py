"""What any bench report says, recomputed from its own values by seed, and its design questioned."""

import numpy as np

from msstab.audit import inference, scores, signature, sweeps, verdicts
from msstab.audit.facts import gather
from msstab.audit.reading import AuditError, Document, check, read
from msstab.audit.rows import Kind, Row
from msstab.audit.shown import print_table, summary, to_frame, to_json
from msstab.report import Report

__all__ = [
    "AuditError",
    "Document",
    "Kind",
    "Row",
    "audit",
    "check",
    "print_table",
    "read",
    "summary",
    "to_frame",
    "to_json",
]


def audit(report: Report | Document, *, alpha: float = 0.05, sesoi: float = 0.05) -> list[Row]:
    """Recompute every figure of a report that its values by seed determine, and question the rest.

    A check that the report records too little for is a row of its own. alpha and sesoi, the
    smallest effect of interest as a share of the baseline's mean, apply where the report does not
    state its own. Raises AuditError, a ValueError, for values that cannot be compared.
    """
    if isinstance(report, Report):
        report = check(report.model_dump(mode="json", exclude_unset=True))
    facts = gather(report, alpha, sesoi)
    parts = (scores, inference, signature, sweeps, verdicts)
    with np.errstate(all="ignore"):
        return [row for part in parts for row in part.check(facts)]
