"""Paired statistics on plain arrays: is the idea better than the baseline, and how surely.

Lower is better, and every difference is idea minus baseline, one per seed, either of the errors or
of their logarithms (`log_ratios`). Effects, margins and standard deviations are in the units of
the differences. Nothing here knows of networks.
"""

from msstab.evidence.bayes import (
    SCALE,
    Practical,
    bayes_factor,
    bayes_factor_of_t,
    practical_probabilities,
)
from msstab.evidence.bootstrap import bootstrap_interval
from msstab.evidence.budgets import expected_best
from msstab.evidence.equivalence import equivalence_p, improvement_p, log_margin
from msstab.evidence.judged import Judged, Scale
from msstab.evidence.leave_one_out import sign_flip_leave_one_out
from msstab.evidence.multiplicity import holm
from msstab.evidence.pairs import Interval, log_ratios
from msstab.evidence.power import detectable_effect, pairs_needed, power
from msstab.evidence.profiles import performance_profile
from msstab.evidence.ranks import hodges_lehmann, signed_rank_interval
from msstab.evidence.ratios import RatioEvidence, summarise_ratios
from msstab.evidence.sequential import Sequential, sequential_interval, sequential_test
from msstab.evidence.sign_flip import (
    EXACT_PAIRS,
    SignFlip,
    pairs_for_level,
    sign_flip_interval,
    sign_flip_test,
)
from msstab.evidence.summary import PairedEvidence, summarise
from msstab.evidence.t_test import half_width, mean_interval, t_test_p
from msstab.evidence.trend import Trend, trend
from msstab.evidence.wins import improvement_interval, probability_of_improvement

__all__ = [
    "EXACT_PAIRS",
    "SCALE",
    "Interval",
    "Judged",
    "PairedEvidence",
    "Practical",
    "RatioEvidence",
    "Scale",
    "Sequential",
    "SignFlip",
    "Trend",
    "bayes_factor",
    "bayes_factor_of_t",
    "bootstrap_interval",
    "detectable_effect",
    "equivalence_p",
    "expected_best",
    "half_width",
    "hodges_lehmann",
    "holm",
    "improvement_interval",
    "improvement_p",
    "log_margin",
    "log_ratios",
    "mean_interval",
    "pairs_for_level",
    "pairs_needed",
    "performance_profile",
    "power",
    "practical_probabilities",
    "probability_of_improvement",
    "sequential_interval",
    "sequential_test",
    "sign_flip_interval",
    "sign_flip_leave_one_out",
    "sign_flip_test",
    "signed_rank_interval",
    "summarise",
    "summarise_ratios",
    "t_test_p",
    "trend",
]
