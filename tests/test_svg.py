import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from msstab import svg

DARK_PAGES = ("#121212", "#14181e")  # of sphinx-book-theme and of the theme it is based on


DOTS = pd.DataFrame({"x": [0.0, 1.0], "y": [0.1, 1 / 3]})


def draw(height: float = 1.0) -> Figure:
    with svg.style():
        figure, axes = plt.subplots()
        axes.plot([0, 1], [0, height], "o-", markeredgecolor=svg.PAPER)
        axes.fill_between([0, 1], 0, 0.3, color="black", alpha=0.2)
        axes.text(0.5, 0.5, "a note", bbox={"facecolor": "white", "edgecolor": "black"})
        axes.set(xlabel="seeds", ylabel=r"$\rho(\sigma)$", title="Error & noise")
        axes.imshow([[0.1, 0.7]], extent=(0.2, 0.4, 0.2, 0.4))
    return figure


@pytest.fixture(autouse=True)
def _close_figures() -> None:
    plt.close("all")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_the_same_figure_gives_the_same_bytes_in_another_process() -> None:
    program = (
        "import sys; sys.path.insert(0, 'tests'); from test_svg import DOTS, draw; "
        "from msstab import svg; sys.stdout.write(repr(svg.Picture(draw(), 'alt', DOTS)"
        "._repr_mimebundle_()))"
    )
    root = Path(__file__).parents[1]
    other = os.environ | {"PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "86400"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=True, cwd=root, env=other,
    )  # fmt: skip
    assert done.stdout == repr(svg.Picture(draw(), "alt", DOTS)._repr_mimebundle_())


def test_the_users_own_settings_do_not_change_a_figure() -> None:
    plain = svg.theme_svg(draw(), "alt")
    with plt.rc_context({"savefig.pad_inches": 3, "svg.fonttype": "none", "font.size": 30}):
        assert svg.theme_svg(draw(), "alt") == plain


def test_black_ink_and_white_paper_become_the_pages_own_colours() -> None:
    drawn = svg.theme_svg(draw(), "alt")
    assert not re.search(r"#000|black|#fff|white", drawn, re.IGNORECASE)
    root = ElementTree.fromstring(drawn)
    # What matplotlib draws in black it often leaves without a colour, to be inherited.
    assert root.attrib["fill"] == "currentColor"
    assert "stroke: currentColor" in drawn
    assert "fill: var(--pst-color-background" in drawn


def test_the_background_is_transparent_and_nothing_styles_the_page_around() -> None:
    drawn = svg.theme_svg(draw(), "alt")
    first_path = drawn[drawn.index("<path") :]
    assert "fill: none" in first_path[: first_path.index("/>")]
    assert "<style" not in drawn
    assert "<metadata" not in drawn
    assert "<!--" not in drawn


def test_alt_text_is_escaped_and_names_the_figure() -> None:
    alt = 'Error "<fell>" & rose\nat once'
    root = ElementTree.fromstring(svg.theme_svg(draw(), alt))
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == 'Error "<fell>" & rose at once'
    assert root[0].text == root.attrib["aria-label"]


@pytest.mark.parametrize("alt", ["", " \n"])
def test_a_figure_without_alt_text_is_refused(alt: str) -> None:
    with pytest.raises(ValueError, match="alt text"):
        svg.theme_svg(draw(), alt)


def test_two_figures_on_one_page_do_not_share_an_id() -> None:
    first, second = (svg.theme_svg(draw(height), "alt") for height in (1.0, 2.0))
    ids = [set(re.findall(r' id="([^"]+)"', drawn)) for drawn in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_every_reference_inside_a_figure_still_leads_somewhere() -> None:
    drawn = svg.theme_svg(draw(), "alt")
    ids = set(re.findall(r' id="([^"]+)"', drawn))
    references = set(re.findall(r'(?:href="#|url\(#)([^")]+)', drawn))
    assert references == ids


def test_a_figure_shrinks_with_a_narrow_page() -> None:
    root = ElementTree.fromstring(svg.theme_svg(draw(), "alt"))
    assert "max-width: 100%" in root.attrib["style"]
    assert "height" not in root.attrib
    assert float(root.attrib["viewBox"].split()[2]) * 4 / 3 == pytest.approx(
        float(root.attrib["width"]), abs=1
    )


@pytest.mark.parametrize("colour", svg.PALETTE)
def test_each_colour_is_readable_on_light_and_dark_pages(colour: str) -> None:
    assert all(contrast(colour, page) >= 3 for page in ("#ffffff", *DARK_PAGES))


@pytest.mark.parametrize("colour", svg.PALETTE)
def test_letters_in_each_colour_are_readable_on_light_and_dark_pages(colour: str) -> None:
    with svg.style():
        figure, axes = plt.subplots()
        axes.text(0.5, 0.5, "a note", color=colour)
        axes.plot([0, 1], [0, 1], color=colour)
    drawn = svg.theme_svg(figure, "alt")
    (share,) = re.findall(
        rf"fill: color-mix\(in srgb, {colour} (\d+)%, currentColor\)", drawn, re.I
    )
    assert len(re.findall(rf"stroke: {colour};", drawn, re.I)) == 1
    for ink, pages in (("#222832", ("#ffffff",)), ("#ced6dd", DARK_PAGES)):
        letters = mixture(colour, ink, int(share) / 100)
        assert all(contrast(letters, page) >= 4.5 for page in pages)


def mixture(colour: str, ink: str, share: float) -> str:
    parts = [[int(text[i : i + 2], 16) for i in (1, 3, 5)] for text in (colour, ink)]
    return "#" + "".join(
        f"{round(share * a + (1 - share) * b):02x}" for a, b in zip(*parts, strict=True)
    )


def test_a_picture_offers_svg_png_and_text_and_closes_its_figure() -> None:
    figure = draw()
    picture = svg.Picture(figure, "Two dots", DOTS)
    bundle = picture._repr_mimebundle_()
    files = {"image/svg+xml", "application/pdf", "text/csv"}
    assert set(bundle) == {"text/html", "image/png", "text/plain"} | files
    assert picture.svg in bundle["text/html"]
    assert bundle["text/plain"] == "Picture: Two dots"
    assert bundle["text/csv"] == "x,y\n0.0,0.1\n1.0,0.3333333333333333\n"
    assert picture.png.startswith(b"\x89PNG")
    assert picture.pdf.startswith(b"%PDF")
    assert not plt.fignum_exists(figure.number)


def test_a_picture_can_not_be_changed() -> None:
    picture = svg.Picture(draw(), "Two dots", DOTS)
    with pytest.raises(AttributeError):
        picture.alt = "other"  # type: ignore[misc]
