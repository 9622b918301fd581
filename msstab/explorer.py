"""Figures that differ in a few choices, of which a reader sees one: for a page without a server.

The page holds them all, folded away, each under the choices that it shows. A script
(`book/_static/explorer.js`) puts select boxes above and shows the one that is chosen; without
scripts, and outside of the book, they are unfolded one by one.
"""

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from msstab.svg import Picture, csv

Choice = tuple[str, ...]


@dataclass(frozen=True, repr=False, eq=False)
class Explorer:
    """One figure for each choice; `knobs` name what is chosen, in the order of a choice's parts.

    Raises ValueError for no figure at all, and for a choice that doesn't fit the knobs.
    """

    knobs: tuple[str, ...]
    pictures: Mapping[Choice, Picture]

    def __post_init__(self) -> None:
        """Refuse choices that a reader could not make."""
        if not self.pictures:
            raise ValueError("there is no figure to choose")
        for choice in self.pictures:
            if len(choice) != len(self.knobs):
                raise ValueError(f"{choice} does not choose {', '.join(self.knobs)}")

    @property
    def data(self) -> pd.DataFrame:
        """The numbers of all figures, and the choices they belong to."""
        return pd.concat(
            [
                picture.data.assign(**dict(zip(self.knobs, choice, strict=True)))
                for choice, picture in self.pictures.items()
            ]
        )

    def __repr__(self) -> str:
        """Say what there is to see."""
        return "\n".join(
            f"{self._label(choice)}: {picture.alt}" for choice, picture in self.pictures.items()
        )

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        panels = [
            f'<details class="msstab-panel" data-choice="{html.escape(json.dumps(choice))}">'
            f"<summary>{html.escape(self._label(choice))}</summary>"
            f'<div class="msstab-figure">{picture.svg}</div></details>'
            for choice, picture in self.pictures.items()
        ]
        knobs = html.escape(json.dumps(self.knobs))
        page = f'<div class="msstab-explorer" data-knobs="{knobs}">{"".join(panels)}</div>'
        return {
            "text/html": page,
            "text/csv": csv(self.data),
            "text/plain": repr(self),
        }

    def _label(self, choice: Choice) -> str:
        return ", ".join(f"{knob}: {part}" for knob, part in zip(self.knobs, choice, strict=True))
