"""Independent random streams, one for each purpose, the same whatever else runs."""

import hashlib

import numpy as np


def generator(study_seed: int, *purpose: str | int) -> np.random.Generator:
    """Return the random stream of one purpose, e.g. `generator(0, "tuning", 3, "order")`.

    Streams of different purposes are independent, and a stream never depends on which others
    exist: `numpy.random.SeedSequence` mixes the study seed with a hash of each word.
    """
    words = [part if isinstance(part, int) else _hash(part) for part in purpose]
    # The number of words counts, for SeedSequence fills short seeds up with zeros.
    return np.random.default_rng(np.random.SeedSequence([study_seed, len(words), *words]))


def _hash(word: str) -> int:
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
