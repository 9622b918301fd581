"""One accessible, theme-aware SVG from a matplotlib figure: black ink takes the page's colour."""

import base64
import hashlib
import html
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import matplotlib
import pandas as pd
from cycler import cycler
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.typing import RcKeyType

# Okabe and Ito's colours, purple darkened: each has a contrast of at least 3:1 on white and on
# the theme's dark page, and each pair stays apart in the three common colour deficiencies.
BLUE = "#0072B2"
VERMILLION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#B65C93"
GREY = "#808080"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, GREY)
"""Colours readable on light and dark pages, in the order in which to use them."""

TEXT_SHARE = 0.7
"""How much of a palette's colour is left in letters; the rest is ink, for a contrast of 4.5:1."""

INK = "#000000"
"""What to draw with so that it takes the page's text colour."""

PAPER = "#ffffff"
"""What to fill with so that it takes the page's background colour."""

STYLE: dict[RcKeyType, Any] = {
    # At this width a figure needs little or no shrinking on a phone, and 11 stays legible.
    "figure.figsize": (5.4, 3.4),
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 11.0,
    "axes.titlesize": 11.0,
    "axes.labelsize": 11.0,
    "xtick.labelsize": 10.0,
    "ytick.labelsize": 10.0,
    "legend.fontsize": 10.0,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.unicode_minus": True,
    "grid.color": GREY,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "path.simplify": True,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw in the report's style inside a `with` block, whatever the user's own settings are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def theme_svg(figure: Figure, alt: str) -> str:
    """Return a figure as one `<svg>` element to place in a page, the same bytes every time.

    The background is transparent, INK becomes the page's text colour and PAPER its background,
    ids get a prefix made of the content so that figures on one page can't mix up their parts,
    and `alt` is what a screen reader says. Raises ValueError if `alt` is empty.
    """
    if not alt.strip():
        raise ValueError("a figure needs alt text: say in a sentence or two what it shows")
    svg = _saved(figure)
    svg = _prefix_ids(svg, "f" + hashlib.sha256((alt + svg).encode()).hexdigest()[:10])
    svg = _theme_colours(_readable_letters(svg))
    return _open_tag(svg, html.escape(" ".join(alt.split())))


@dataclass(frozen=True, repr=False, eq=False)
class Picture:
    """A finished figure as a notebook shows it; making one closes the matplotlib figure.

    The book takes the theme-aware SVG, programs that can't show it the PNG or the PDF, and a
    terminal the alt text. `data` are the numbers that are drawn, a row for each mark, in the
    figure's units and under names of their own. Raises ValueError if `alt` is empty.
    """

    figure: Figure
    alt: str
    data: pd.DataFrame
    svg: str = field(init=False)

    def __post_init__(self) -> None:
        """Draw what the book shows, and let matplotlib forget the figure."""
        object.__setattr__(self, "svg", theme_svg(self.figure, self.alt))
        plt.close(self.figure)

    @cached_property
    def png(self) -> bytes:
        """The figure for programs that show nothing else, on white."""
        # White, because a program that shows the PNG has no way to recolour the black ink.
        return _drawn(self.figure, "png", dpi=110, facecolor="white", metadata={"Software": None})

    @cached_property
    def pdf(self) -> bytes:
        """The figure for a paper, on nothing, the same bytes every time."""
        nothing = dict.fromkeys(("Creator", "Producer", "CreationDate"))
        return _drawn(self.figure, "pdf", transparent=True, metadata=nothing)

    def __repr__(self) -> str:
        """Say what the figure shows."""
        return f"Picture: {self.alt}"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {
            "text/html": f'<div class="msstab-figure">{self.svg}</div>',
            "image/svg+xml": standalone(self),
            "application/pdf": base64.b64encode(self.pdf).decode(),
            "image/png": base64.b64encode(self.png).decode(),
            "text/csv": csv(self.data),
            "text/plain": repr(self),
        }


def csv(frame: pd.DataFrame) -> str:
    """Return a table as a file that every program reads."""
    return str(frame.to_csv(index=False, lineterminator="\n"))


def standalone(picture: Picture) -> str:
    """Return a picture as the content of a file of its own, which follows the reader's theme."""
    colours = (
        "<style>:root{color-scheme:light dark;color:#222}"
        "@media (prefers-color-scheme:dark){:root{color:#ddd}}</style>"
    )
    return picture.svg.replace("<title>", f"{colours}<title>", 1) + "\n"


def _saved(figure: Figure) -> str:
    """Save a figure as SVG and keep the element and what is drawn: no comments, no metadata."""
    buffer = io.StringIO()
    # Text becomes outlines, at a cost of some 6 KB compressed: as text it would be set in whatever
    # font the reader has, and mathematics, placed letter by letter, would fall apart.
    with style(), matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "msstab"}):
        figure.savefig(
            buffer, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None}
        )
    text = buffer.getvalue()
    text = text[text.index("<svg") :].strip()
    # The style element would apply to the whole page; the root carries the same declarations.
    noise = r"<metadata>.*?</metadata>|<!--.*?-->|<defs>\s*<style.*?</style>\s*</defs>"
    return re.sub(rf"(?:{noise})\s*", "", text, flags=re.DOTALL)


def _drawn(figure: Figure, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    # A font in a PDF stays text that can be searched and edited.
    with style(), matplotlib.rc_context({"pdf.fonttype": 42}):
        figure.savefig(buffer, format=kind, bbox_inches="tight", **options)
    return buffer.getvalue()


def _prefix_ids(svg: str, prefix: str) -> str:
    """Give every id that something refers to a prefix, and drop the others."""
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="{prefix}-{m[1]}"' if m[1] in used else "", svg)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", svg)


def _readable_letters(svg: str) -> str:
    """Move coloured letters towards the ink: what stands out as a line may be too pale to read."""

    def mixed(match: re.Match[str]) -> str:
        if match[2].lower() in {INK, PAPER}:
            return match[0]
        return f"{match[1]}color-mix(in srgb, {match[2]} {100 * TEXT_SHARE:g}%, currentColor)"

    # Only texts are groups that have a colour and a place.
    return re.sub(r'(<g style="fill: )(#[0-9a-fA-F]{6})(?=[^">]*" transform=)', mixed, svg)


def _theme_colours(svg: str) -> str:
    """Turn black and white into the page's own colours, inside declarations only."""

    def recolour(match: re.Match[str]) -> str:
        value = match[2].lower()
        if value in {"#000", "#000000", "black"}:
            return f"{match[1]}currentColor"
        return f"{match[1]}var(--pst-color-background, Canvas)"

    colours = "#000000|#000|black|#ffffff|#fff|white"
    return re.sub(
        rf"\b((?:fill|stroke|stop-color):\s*)({colours})(?![\w-])",
        recolour,
        svg,
        flags=re.IGNORECASE,
    )


def _open_tag(svg: str, alt: str) -> str:
    """Rewrite the opening tag: a role, a name, and a size that yields to a narrow page."""
    match = re.match(r"<svg[^>]*>", svg)
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    if match is None or box is None:
        raise ValueError("matplotlib wrote an SVG without a viewBox")
    # One unit of the viewBox is a point, and 72 points are 96 CSS pixels.
    width = round(float(box[1]) * 4 / 3)
    # Black is the default fill and is never written down; the root's fill replaces it.
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="{box[0][9:-1]}" width="{width}" role="img" aria-label="{alt}" '
        f'fill="currentColor" stroke-linejoin="round" stroke-linecap="butt" '
        f'style="max-width: 100%; height: auto"><title>{alt}</title>'
    )
    return opening + svg[match.end() :]
