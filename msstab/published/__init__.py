"""The published results: written once from a full study, reused, compared with, spot-checked."""

from msstab.published.agreement import Agreement, agreement, agreement_sentence, sentences
from msstab.published.folder import (
    DEFAULT,
    MANIFEST,
    Published,
    PublishedError,
    open_results,
    reusing,
)
from msstab.published.readme import update as update_readme
from msstab.published.verifying import Verification, to_json, verify
from msstab.published.writing import write

__all__ = [
    "DEFAULT",
    "MANIFEST",
    "Agreement",
    "Published",
    "PublishedError",
    "Verification",
    "agreement",
    "agreement_sentence",
    "open_results",
    "reusing",
    "sentences",
    "to_json",
    "update_readme",
    "verify",
    "write",
]
