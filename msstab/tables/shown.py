"""A frame of texts as a page shows it, and how numbers are written in it."""

import html
import math
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from msstab.svg import csv
from msstab.verdict import p_text

Kind = Literal["words", "numbers", "prose"]


@dataclass(frozen=True, repr=False)
class Shown:
    """A frame of texts as a page shows it: with a caption, without an index."""

    frame: pd.DataFrame
    caption: str
    kind: Kind

    def __repr__(self) -> str:
        """Return the table as plain text."""
        return f"{self.caption}\n{self.frame.to_string(index=False)}"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Offer the table as a file too, beside the forms below."""
        return {"text/csv": csv(self.frame)}

    def _repr_html_(self) -> str:
        caption = html.escape(self.caption)
        table = self.frame.to_html(index=False, border=0, justify="unset")
        table = table.replace("<th>", '<th scope="col">')
        # The box scrolls, on a phone, and the keyboard can reach what scrolls.
        return (
            f'<figure class="msstab-table msstab-{self.kind}"><figcaption>{caption}</figcaption>'
            f'<div class="msstab-scroll" tabindex="0" role="region" aria-label="{caption}">'
            f"{table}</div></figure>"
        )


def show(frame: pd.DataFrame, caption: str, kind: Kind = "words") -> Shown:
    """Return a table for a page.

    `numbers` aligns all columns but the first to the right; `prose` gives the last one room.
    """
    return Shown(frame, caption, kind)


def number(value: float, digits: int = 3) -> str:
    """Write a number with so many significant digits, and without an exponent where readable."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinite"
    return f"{value:.{digits}g}" if 1e-4 <= abs(value) < 1e6 or value == 0 else f"{value:.2e}"


def spoken(arm: str) -> str:
    """Write an arm's name for a reader."""
    return arm.rpartition(":")[2].replace("_", " ")


def bare_p(p: float) -> str:
    """Write a p value under a heading that says p."""
    return p_text(p).removeprefix("p ").removeprefix("= ")
