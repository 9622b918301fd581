"""The picture by which other sites announce a link to the book: its question, answer and figure."""

import io
import textwrap
from collections.abc import Sequence

from matplotlib import pyplot as plt

from msstab.figures.comparison import draw_effects
from msstab.results import Comparison
from msstab.svg import style

WIDTH, HEIGHT = 1200, 630
"""Pixels, the size that sites ask for."""

QUESTION = "Does a mean-square stability penalty make recurrent networks better?"


def card(answer: str, comparisons: Sequence[Comparison], sesoi: float) -> bytes:
    """Return a PNG of WIDTH x HEIGHT pixels, the same bytes for the same content.

    `answer` is a sentence or two; the comparisons are drawn as in `effects`.
    """
    buffer = io.BytesIO()
    # Shown at a third of its size in a list of messages: few words, and large ones.
    with (
        style(),
        plt.rc_context({"font.size": 16.0, "axes.labelsize": 16.0, "xtick.labelsize": 15.0}),
    ):
        figure = plt.figure(figsize=(WIDTH / 100, HEIGHT / 100), layout="none")
        figure.text(0.05, 0.93, QUESTION, fontsize=18.5, weight="bold", va="top")
        figure.text(0.05, 0.82, textwrap.fill(answer, 88), fontsize=17, va="top", linespacing=1.4)
        axes = figure.add_axes((0.05, 0.13, 0.9, 0.47))
        draw_effects(axes, comparisons, sesoi)
        axes.set_xlabel(f"{axes.get_xlabel()}; grey: too small to matter")
        figure.savefig(
            buffer, format="png", dpi=100, facecolor="white", metadata={"Software": None}
        )
        plt.close(figure)
    return buffer.getvalue()
