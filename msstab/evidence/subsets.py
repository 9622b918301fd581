"""Sums over subsets of values, all of them or random ones: what flipping signs comes down to.

Flipping the signs of a subset F takes twice the sum over F from the total.
"""

import numpy as np
from numpy.typing import NDArray

BLOCK = 16
"""Random subsets are drawn in blocks of so many values, whose 2^16 sums are looked up."""


def subset_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums over all subsets of values (n,) -> (2^n,).

    Entry i sums the values at the places of the bits of i; entry 0 is the empty subset's.
    """
    sums = np.zeros(2**values.size)
    for place, value in enumerate(values):
        np.add(sums[: 2**place], value, out=sums[2**place : 2 ** (place + 1)])
    return sums


def subset_sizes(n: int) -> NDArray[np.int64]:
    """Return the sizes of all subsets of n values (2^n,), in the order of `subset_sums`."""
    return np.asarray(np.rint(subset_sums(np.ones(n))), dtype=np.int64)


def count_up_to(values: NDArray[np.float64], bound: float) -> int:
    """Return how many of the 2^n subsets of values (n,) have a sum of at most `bound`.

    Sums of one half of the values are looked up among the sorted sums of the other half: n 2^(n/2)
    steps and 2^(n/2) numbers instead of 2^n (Horowitz & Sahni 1974).
    """
    first, second = (np.sort(subset_sums(half)) for half in np.array_split(values, 2))
    return int(np.searchsorted(second, bound - first, side="right").sum())


def random_subsets(
    values: NDArray[np.float64], draws: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return sums and sizes of uniformly random subsets of values (n,) -> (draws,), (draws,).

    Draws depend on n, `draws` and `seed` alone. A draw costs n / 16 look-ups, and no array of
    (draws, n) is made.
    """
    generator = np.random.default_rng(seed)
    sums, sizes = np.zeros(draws), np.zeros(draws, dtype=np.int64)
    for start in range(0, values.size, BLOCK):
        block = values[start : start + BLOCK]
        chosen = generator.integers(0, 2**block.size, draws, dtype=np.uint32)
        sums += subset_sums(block)[chosen]
        sizes += np.bitwise_count(chosen)
    return sums, sizes
