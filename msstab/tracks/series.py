"""Windows of one measured series: blocks for training, validation and test, with gaps between."""

from collections.abc import Sequence

import numpy as np

from msstab.tracks.registry import Array, Data, Generate, Split

FIRST = 0.6
"""Share of a series that comes before the test part, and of that what comes before validation."""

FEWEST = 8
"""Different windows that each part must hold."""

RESAMPLED = (
    "All seeds draw their windows from this one series, and windows overlap: the spread over seeds "
    "is that of sampling and training, not of what another series would give."
)


class TooShortError(ValueError):
    """A series that does not hold enough windows; `needed` rows would do, none being missing."""

    def __init__(self, needed: int) -> None:
        super().__init__(f"{needed} rows are needed")
        self.needed = needed


def parts(rows: int, span: int) -> list[range]:
    """Return the rows of training, validation and test, blocks in the order of time.

    The first 60% of all, and of these again the first 60%; after each comes a gap of a window's
    span, and then the rest.
    """
    before_test = int(FIRST * rows)
    training = int(FIRST * before_test)
    return [
        range(training),
        range(min(training + span, before_test), before_test),
        range(min(before_test + span, rows), rows),
    ]


def of_series(inputs: Array, targets: Array, length: int, horizon: int) -> Generate:
    """Return what draws windows of a series: rows (L, D) of inputs, and (L, O) of targets.

    A window is `length` rows of inputs and the targets `horizon` rows after the last. Values that
    are missing are not numbers, and no window holds one. What a future lacks is not a number.
    Raises TooShortError where a part has too few windows.
    """
    span = length + horizon
    blocks = parts(len(inputs), span)
    starts = [_starts(inputs, targets, block, length, horizon) for block in blocks]
    if min(map(len, starts)) < FEWEST:
        raise TooShortError(_rows_needed(span))
    training = slice(0, len(blocks[0]))
    scaled_inputs = _standardise(inputs, training)
    scaled_targets = _standardise(targets, training)

    def generate(
        streams: Sequence[np.random.Generator], sizes: Sequence[int], future: int = 0
    ) -> Data:
        splits = []
        for rng, n, own in zip(streams, sizes, starts, strict=True):
            first = rng.choice(own, size=n, replace=n > len(own))
            rows = first[:, None] + np.arange(length)
            last = first[:, None] + span - 1
            splits.append(Split(scaled_inputs[rows], scaled_targets[last]))
        later = first[:, None] + length + np.arange(future)
        after = np.where(
            (later < len(inputs))[..., None],
            scaled_inputs[np.minimum(later, len(inputs) - 1)],
            np.nan,
        )
        train, validation, test = splits
        return Data(train, validation, test._replace(future=after))

    return generate


def _starts(inputs: Array, targets: Array, block: range, length: int, horizon: int) -> Array:
    """Return where the windows of a block begin: (W,)."""
    span = length + horizon
    count = max(0, len(block) - span + 1)
    first = block.start + np.arange(count)
    missing = np.cumsum(np.r_[0, np.isnan(inputs).any(axis=1)])
    whole = missing[first + length] == missing[first]
    found: Array = first[whole & ~np.isnan(targets[first + span - 1]).any(axis=1)]
    return found


def _rows_needed(span: int) -> int:
    """Return the fewest rows whose parts hold enough windows, none being missing."""
    rows = 1
    while min(map(len, parts(rows, span))) < span + FEWEST - 1:
        rows += 1
    return rows


def _standardise(values: Array, training: slice) -> Array:
    own = values[training]
    return np.asarray((values - np.nanmean(own, axis=0)) / np.nanstd(own, axis=0))
