import base64
import re
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
from matplotlib import pyplot as plt

from msstab import attachments, svg, tables
from msstab.svg import Picture

FRAME = pd.DataFrame({"arm": ["a", "b"], "change": ["+1%", "−2%"]})


def picture() -> Picture:
    with svg.style():
        figure, axes = plt.subplots()
        axes.plot([1, 2], [3, 4])
    return Picture(figure, "A line", pd.DataFrame({"x": [1, 2], "y": [3, 4]}))


def cell(name: str, *outputs: dict[str, Any], **metadata: object) -> Any:
    made = nbformat.v4.new_code_cell("", id=name, metadata=metadata)
    made.outputs = [nbformat.v4.new_output("display_data", data=data) for data in outputs]
    return made


def table() -> dict[str, Any]:
    shown = tables.show(FRAME, "Changes.")
    return {**shown._repr_mimebundle_(), "text/html": shown._repr_html_()}


def attached(folder: Path, *cells: Any) -> Any:
    notebook = nbformat.v4.new_notebook(cells=list(cells))
    attachments.attach(notebook, "03_x", folder)
    nbformat.validate(notebook)
    return notebook


def test_a_figure_is_there_as_svg_pdf_and_numbers_under_its_name(tmp_path: Path) -> None:
    drawn = picture()
    figure = {"figure": {"name": "fig-pairs", "caption": "Pairs."}}
    notebook = attached(tmp_path, cell("c", dict(drawn._repr_mimebundle_()), mystnb=figure))
    folder = tmp_path / "03_x"
    assert {path.name for path in folder.iterdir()} == {"pairs.svg", "pairs.pdf", "pairs.csv"}
    assert (folder / "pairs.csv").read_text() == "x,y\n1,3\n2,4\n"
    assert (folder / "pairs.svg").read_text() == svg.standalone(drawn)
    assert (folder / "pairs.pdf").read_bytes() == drawn.pdf
    data = notebook.cells[0].outputs[0].data
    assert set(data) == {"text/html", "image/png", "text/plain"}
    assert base64.b64decode(data["image/png"]) == drawn.png


def test_links_lead_from_the_chapters_page_to_the_files(tmp_path: Path) -> None:
    notebook = attached(tmp_path / attachments.FOLDER, cell("changes", table()))
    html = notebook.cells[0].outputs[0].data["text/html"]
    links = re.findall(r'<a href="([^"]+)" download aria-label="([^"]+)">(\w+)</a>', html)
    assert links == [("../downloads/03_x/changes.csv", "CSV, changes", "CSV")]
    page = tmp_path / "notebooks"
    page.mkdir()
    pd.testing.assert_frame_equal(pd.read_csv(page / links[0][0]), FRAME)


def test_what_offers_nothing_stays_as_it_is(tmp_path: Path) -> None:
    plain = {"text/html": "<b>x</b>", "text/plain": "x"}
    notebook = attached(tmp_path, cell("c", dict(plain)), nbformat.v4.new_markdown_cell("text"))
    assert notebook.cells[0].outputs[0].data == plain
    assert not list(tmp_path.iterdir())


def test_two_tables_of_a_cell_are_told_apart(tmp_path: Path) -> None:
    attached(tmp_path, cell("pair", table(), table()))
    assert {path.name for path in (tmp_path / "03_x").iterdir()} == {"pair-1.csv", "pair-2.csv"}
