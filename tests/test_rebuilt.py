import shutil
from pathlib import Path

import pandas as pd
import pytest
from shelves import write_book

from msstab import figures, rebuilt, solvers, tables
from msstab.rebuilt import differences, masked
from msstab.results import Results
from msstab.svg import csv

PENALTY = "notebooks/03_penalty.html"


@pytest.fixture
def books(tmp_path: Path) -> tuple[Path, Path]:
    first = write_book(tmp_path / "first")
    shutil.copytree(first, tmp_path / "second")
    return first, tmp_path / "second"


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_same_bytes_do_not_differ(books: tuple[Path, Path]) -> None:
    assert differences(*books) == []


def test_a_book_may_have_been_built_at_another_time(books: tuple[Path, Path]) -> None:
    for book, day in zip(books, ("2026-01-02", "2027-03-04"), strict=True):
        replace(book / "index.html", "<body>", f'<body><time datetime="{day}T">{day}</time>')
    replace(books[1] / "msstab-build.json", "2026-01-02T03:04:05", "2027-03-04T05:06:07")
    assert differences(*books) == []


def test_whatever_else_differs_is_said_with_its_place(books: tuple[Path, Path]) -> None:
    replace(books[1] / "index.html", "data</a>", "date</a>")
    (books[0] / "old.csv").touch()
    (books[1] / "new.csv").touch()
    first, second, third = differences(*books)
    assert first == f"old.csv is in {books[0]} only"
    assert second == f"new.csv is in {books[1]} only"
    assert third.startswith("index.html differs: ")
    assert "data</a>" in third.partition(" against ")[0]
    assert "date</a>" in third.partition(" against ")[2]


def test_a_file_that_ends_early_differs(books: tuple[Path, Path]) -> None:
    path = books[1] / "notebooks" / "01_data.html"
    path.write_bytes(path.read_bytes()[:-1])
    (only,) = differences(*books)
    assert only.startswith("notebooks/01_data.html differs")


def page_and_file(frame: pd.DataFrame, caption: str) -> tuple[bytes, bytes]:
    shown = tables.show(frame, caption, "numbers")
    return shown._repr_html_().encode(), csv(frame).encode()


def test_the_solvers_may_take_longer_a_second_time() -> None:
    steps = [solvers.random_steps(4, 2)]
    first = solvers.compare(steps, repeats=1)
    later = first.assign(seconds=3 * first.seconds)
    caption, file = "Processor time of one radius.", "downloads/03_penalty/solvers-table.csv"
    page, table = page_and_file(tables.solvers(first), caption)
    other_page, other_table = page_and_file(tables.solvers(later), caption)
    assert page != other_page
    assert masked(PENALTY, page + b"after") == masked(PENALTY, other_page + b"after")
    assert masked(PENALTY, page + b"after") != masked(PENALTY, page + b"other")
    assert masked("notebooks/01_data.html", page) == page
    assert masked(file, table) == masked(file, other_table)
    figures_of_both = (figures.solvers(frame).svg for frame in (first, later))
    drawn, again = (
        f'<figure id="fig-solvers">{svg}</figure>after'.encode() for svg in figures_of_both
    )
    assert drawn != again
    assert masked(PENALTY, drawn) == masked(PENALTY, again)
    assert masked(PENALTY, drawn).endswith(b"after")


def test_training_may_take_longer_a_second_time_and_change_nothing(tiny_results: Results) -> None:
    runs = tiny_results.experiment
    slow = runs.table.seconds.where(runs.table.arm == "baseline", 7 * runs.table.seconds)

    def with_table(table: pd.DataFrame) -> tuple[bytes, bytes]:
        found = tiny_results._replace(experiment=runs._replace(table=table))
        page, file = page_and_file(tables.interventions(found), "What each arm did.")
        trials = csv(table).encode()
        return masked(PENALTY, page), masked("downloads/03_penalty/interventions.csv", file) + (
            masked("_downloads/x/trials.csv", trials)
        )

    assert with_table(runs.table.assign(seconds=slow)) == with_table(runs.table)
    changed = with_table(runs.table.assign(hinge_active=0.123, test_mse=0.2))
    assert all(one != other for one, other in zip(with_table(runs.table), changed, strict=True))


def test_every_reason_is_one_of_time() -> None:
    assert {field.what for field in rebuilt.VARYING} == {
        "when the book was built",
        "how long the solvers took",
        "how long training took",
    }
