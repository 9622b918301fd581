"""Margins: is the difference shown to be too small to matter, or an improvement shown too small."""

import math

from numpy.typing import ArrayLike

from msstab.evidence.pairs import paired, require_margin
from msstab.evidence.t_test import t_tails


def improvement_p(differences: ArrayLike, margin: float) -> float:
    """Return the one-sided p of 'the idea lowers the error by at least margin'.

    A small p excludes so large an improvement, whatever the two-sided test says.
    """
    return t_tails(paired(differences), -require_margin(margin))[0]


def equivalence_p(differences: ArrayLike, margin: float) -> float:
    """Return the p of two one-sided t tests: small where |mean difference| < margin is shown.

    differences: (n,), n >= 2; margin > 0, else ValueError. Schuirmann (1987).
    """
    d = paired(differences)
    return max(improvement_p(d, margin), improvement_p(-d, margin))


def log_margin(share: float) -> float:
    """Return the margin for log ratios that stands for `share` of the error, log(1 + share).

    The same either way, so that exchanging the arms exchanges the answers. Ratios within it lie
    between 1 / (1 + share) and 1 + share, hence within `share` of 1 on either side: it is the
    stricter of the two symmetric versions (the other being -log(1 - share), as in 0.80 to 1.25).
    Raises ValueError unless the share is positive and finite.
    """
    return math.log1p(require_margin(share))
