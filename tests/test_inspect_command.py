import html
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import BaseModel
from test_inspection import Malicious, data, gru, modules, outputs, saved
from typer.testing import CliRunner, Result

from msstab import cli
from msstab.inspection import Inspection, result
from msstab.inspection.page import MEANINGS
from msstab.noise import NOISES

PAGE = Path(__file__).parents[1] / "book" / "inspect.md"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, ["inspect", *arguments])


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of the usual width."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    """The arguments for a network and its data, with targets that it misses by 1."""
    own, inputs = modules("gru"), torch.randn(4, 6, 3)
    file = data(tmp_path, inputs, outputs(own, inputs) + 1)
    return str(saved(tmp_path, own.state_dict())), "--data", str(file)


def test_the_terminal_shows_every_noise_and_exits_0(files: tuple[str, ...]) -> None:
    found = run(*files)
    assert found.exit_code == 0, found.stderr
    assert found.stderr == ""
    lines = found.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    shown = Inspection.model_validate_json(run(*files, "--json").stdout)
    rows = {cells[0]: cells[1:] for line in lines if (cells := re.findall(r"[^│\s]+", line))}
    for own in shown.structures:
        numbers = (own.radius, own.growth_rate, own.output_variance, own.simulated_variance)
        expected = [f"{number:.3g}" for number in (*numbers, own.noisy_mse)]
        assert rows[own.noise] == expected
    assert "gru, 1 layer of 5 hidden units, 3 inputs, 2 outputs through head" in lines
    assert "The error without noise is 1;" in found.stdout


def test_json_follows_its_schema_and_the_level(files: tuple[str, ...]) -> None:
    first, second = (
        json.loads(run(*files, "--json", "--sigma", sigma).stdout) for sigma in ("0.01", "0.02")
    )
    assert set(first) == set(Inspection.model_fields)
    assert [own["noise"] for own in first["structures"]] == list(NOISES)
    assert first["clean_mse"] == pytest.approx(1, rel=1e-5)
    for low, high in zip(first["structures"], second["structures"], strict=True):
        assert high["output_variance"] == pytest.approx(4 * low["output_variance"], rel=0.01)
        assert low["variances"][2] == pytest.approx(high["output_variance"], rel=1e-9)


def test_without_targets_there_is_no_error(tmp_path: Path, files: tuple[str, ...]) -> None:
    with np.load(files[-1]) as file:
        np.savetxt(tmp_path / "x.csv", file["inputs"][0], delimiter=",")
    found = run(files[0], "--data", str(tmp_path / "x.csv"))
    assert found.exit_code == 0
    assert "Error under noise" not in found.stdout
    assert "1 sequence of 6 steps" in found.stdout


def test_hostile_code_is_refused_by_the_command_too(tmp_path: Path, files: tuple[str, ...]) -> None:
    model = saved(tmp_path, gru() | {"extra": Malicious(tmp_path / "trace")})
    done = subprocess.run(
        [sys.executable, "-m", "msstab", "inspect", str(model), *files[1:]],
        capture_output=True,
        text=True,
        check=False,
        # Even where torch is told to trust all files.
        env={**os.environ, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"},
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "code that a file names is never run" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "trace").exists()


class Elements(HTMLParser):
    """All elements of a page with their attributes, and a check that they are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_asks_no_other_place(tmp_path: Path, files: tuple[str, ...]) -> None:
    path = tmp_path / "new" / "page.html"
    found = run(*files, "--html", str(path))
    assert found.exit_code == 0, found.stderr
    text = path.read_text("utf-8")
    elements = Elements(text).found
    tags = [tag for tag, _ in elements]
    assert not {"script", "link", "img", "iframe", "image"} & set(tags)
    for tag, attributes in elements:
        assert not {"src", "srcset", "data", "action"} & set(attributes), tag
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")
    assert "default-src 'none'" in text
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert (
        "meta",
        {"name": "viewport", "content": "width=device-width, initial-scale=1"},
    ) in elements
    assert "prefers-color-scheme: dark" in text
    (figure,) = (attributes for tag, attributes in elements if tag == "svg")
    assert figure["role"] == "img"
    assert "max-width: 100%" in (figure["style"] or "")
    shown = Inspection.model_validate_json(run(*files, "--json").stdout)
    for own in shown.structures:
        assert f"{own.noise} {own.radius:.3g}" in (figure["aria-label"] or "")
        assert f"<td>{own.output_variance:.3g}</td>" in text
    before = path.read_bytes()
    run(*files, "--html", str(path))
    assert path.read_bytes() == before


def test_names_from_a_file_reach_neither_page_nor_terminal_as_code(
    tmp_path: Path, files: tuple[str, ...]
) -> None:
    hostile = "\x1b[2J<script>alert(1)</script>[red]"
    tensors: dict[str, Any] = {
        name.replace("head", hostile): tensor for name, tensor in gru().items()
    }
    model = saved(tmp_path, tensors).rename(tmp_path / "<b>")
    page = tmp_path / "page.html"
    found = run(str(model), *files[1:], "--html", str(page))
    assert found.exit_code == 0, found.stderr
    assert "\x1b" not in found.stdout
    assert "[red]" in found.stdout
    text = page.read_text("utf-8")
    assert "<script" not in text
    assert "<b>" not in text
    assert html.escape("<script>alert(1)</script>") in text


def test_a_page_explains_every_noise_that_a_study_may_name() -> None:
    assert set(MEANINGS) >= set(NOISES)


def test_the_book_describes_every_field_of_the_json() -> None:
    text = PAGE.read_text("utf-8")
    parts: list[type[BaseModel]] = [Inspection, result.Model, result.Data, result.Structure]
    parts.append(result.Rounding)
    for part in parts:
        for name in part.model_fields:
            assert f"`{name}`" in text, name
