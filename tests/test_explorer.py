import json
from html.parser import HTMLParser

import pandas as pd
import pytest
from drawn import assert_drawn
from matplotlib import pyplot as plt

from msstab import figures, svg
from msstab.explorer import Explorer
from msstab.results import Results
from msstab.svg import Picture


def picture(level: float) -> Picture:
    with svg.style():
        figure, axes = plt.subplots()
        axes.plot([0, 1], [0, level])
    return Picture(figure, f"A line up to {level}", pd.DataFrame({"x": [0, 1], "y": [0, level]}))


EXPLORER = Explorer(
    ("track", "noise level"),
    {(track, f"{s:g}"): picture(s) for track in ("a", "b & c") for s in (0.1, 0.2)},
)


class Tags(HTMLParser):
    """Every opening tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_a_page_holds_every_figure_folded_under_its_choice() -> None:
    page = EXPLORER._repr_mimebundle_()["text/html"]
    tags = Tags(page).tags
    (outer,) = (given for _, given in tags if given.get("class") == "msstab-explorer")
    assert json.loads(outer["data-knobs"] or "") == ["track", "noise level"]
    panels = [given for tag, given in tags if tag == "details"]
    choices = [tuple(json.loads(given["data-choice"] or "")) for given in panels]
    assert choices == list(EXPLORER.pictures)
    assert not any("open" in given for given in panels)
    assert "<summary>track: b &amp; c, noise level: 0.2</summary>" in page
    assert [given["aria-label"] for tag, given in tags if tag == "svg"] == [
        own.alt for own in EXPLORER.pictures.values()
    ]


def test_the_numbers_of_all_figures_come_with_their_choices() -> None:
    data = EXPLORER.data
    own = data[(data.track == "b & c") & (data["noise level"] == "0.2")]
    assert own[["x", "y"]].to_numpy().tolist() == [[0, 0], [1, 0.2]]
    assert len(data) == 8
    assert repr(EXPLORER).splitlines()[0] == "track: a, noise level: 0.1: A line up to 0.1"


def test_a_choice_that_a_reader_could_not_make_is_refused() -> None:
    with pytest.raises(ValueError, match="does not choose track, noise level"):
        Explorer(("track", "noise level"), {("a",): picture(1)})
    with pytest.raises(ValueError, match="no figure to choose"):
        Explorer(("track",), {})


def test_variances_can_be_looked_at_by_level(tiny_results: Results) -> None:
    made = figures.variances_by_level(tiny_results.experiment)
    levels = tiny_results.study.sigma_grid
    assert list(made.pictures) == [(f"{s:g}",) for s in levels]
    for level, drawn in zip(levels, made.pictures.values(), strict=True):
        assert_drawn(drawn, "predicted", "observed")
        rows = tiny_results.table[tiny_results.table.role == "untrained"]
        own = drawn.data[drawn.data.networks == "untrained"]
        assert own.observed.tolist() == rows[f"observed_variance@{level:g}"].tolist()
        assert f"under noise of {level:g}" in drawn.alt
