"""Paired errors with each outcome, for tests of the verdict and of the report."""

import numpy as np

from msstab.evidence import PairedEvidence, summarise
from msstab.verdict import Outcome

BASELINE = np.random.default_rng(0).uniform(0.9, 1.1, 10)
NOISE = np.random.default_rng(1).normal(0, 0.01, 10)
SHIFTS = {
    Outcome.BETTER: -0.2 + NOISE,
    Outcome.WORSE: 0.2 + NOISE,
    Outcome.EQUIVALENT: NOISE,
    Outcome.INCONCLUSIVE: 20 * NOISE,
}


def evidence_for(outcome: Outcome) -> PairedEvidence:
    return summarise(BASELINE, BASELINE + SHIFTS[outcome], margin=0.05)
