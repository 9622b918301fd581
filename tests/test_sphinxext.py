import json
import types
from pathlib import Path
from typing import Any

import pytest
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError

from msstab import sphinxext


@pytest.fixture
def config() -> Any:
    return {"myst_substitutions": {"kept": "yes"}, "html_theme_options": {}, "html_baseurl": ""}


def fill(folder: Path, config: Any, **files: object) -> dict[str, str]:
    (folder / "_results").mkdir()
    for name, content in files.items():
        (folder / "_results" / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    app: Any = types.SimpleNamespace(srcdir=folder)
    sphinxext.fill_substitutions(app, config)
    values: dict[str, str] = config["myst_substitutions"]
    return values


def test_results_become_substitutions(tmp_path: Path, config: Any) -> None:
    numbers = {"pairs": 256, "share": 0.123456, "text": "−3% *or* so"}
    values = fill(tmp_path, config, numbers=numbers, bench_report={"nested": {"a": [1]}})
    assert values == {"kept": "yes", "pairs": "256", "share": "0.1235", "text": "−3% *or* so"}


def test_notebooks_that_are_opened_alone_find_the_project(tmp_path: Path, config: Any) -> None:
    config["html_theme_options"]["repository_url"] = "https://github.com/Ada/report"
    assert fill(tmp_path, config)["colab_setup"] == (
        "```text\n!git clone --quiet https://github.com/Ada/report\n%cd report\n```"
    )


@pytest.mark.parametrize("wrong", [["a"], {"a": None}, {"a": {"b": 1}}])
def test_results_of_another_shape_are_refused(tmp_path: Path, config: Any, wrong: object) -> None:
    with pytest.raises(ExtensionError, match=r"numbers\.json"):
        fill(tmp_path, config, numbers=wrong)


def test_two_files_that_contradict_each_other_are_refused(tmp_path: Path, config: Any) -> None:
    with pytest.raises(ExtensionError, match="different studies: a, b"):
        fill(tmp_path, config, build={"study_key": "a"}, numbers={"study_key": "b"})


def test_the_footer_escapes_what_it_shows(tmp_path: Path, config: Any) -> None:
    fill(tmp_path, config, build={"study_key": "<k>", "versions": "a & b", "build_date": "today"})
    assert config["html_theme_options"]["extra_footer"] == (
        '<p class="msstab-provenance">Study <code>&lt;k&gt;</code> · a &amp; b · today · '
        'Text <a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a>, '
        'code <a href="https://opensource.org/license/bsd-3-clause">BSD 3-Clause</a></p>'
    )


@pytest.mark.parametrize(
    ("repository", "address", "base"),
    [
        ("Ada/report", "https://github.com/Ada/report", "https://ada.github.io/report/"),
        ("Ada/ada.github.io", "https://github.com/Ada/ada.github.io", "https://ada.github.io/"),
        ("", None, ""),
        ('a/b"><script>', None, ""),
    ],
)
def test_a_fork_publishes_its_own_addresses(
    config: Any,
    monkeypatch: pytest.MonkeyPatch,
    repository: str,
    address: str | None,
    base: str,
) -> None:
    monkeypatch.setenv("GITHUB_REPOSITORY", repository)
    app: Any = None
    sphinxext.use_own_repository(app, config)
    assert config["html_theme_options"].get("repository_url") == address
    assert config["html_baseurl"] == base


def test_only_chapters_have_their_buttons_changed() -> None:
    app: Any = types.SimpleNamespace(config={"html_theme_options": {"path_to_docs": "book"}})

    def address_for(page: str) -> str:
        link = {"url": f"https://example.org/blob/main/book/{page}.ipynb"}
        context = {"header_buttons": [{"type": "group", "buttons": [link]}]}
        sphinxext.point_to_sources(app, page, "page.html", context, None)
        return link["url"]

    assert (
        address_for("notebooks/01_data") == "https://example.org/blob/main/notebooks/01_data.ipynb"
    )
    assert address_for("other") == "https://example.org/blob/main/book/other.ipynb"


def test_the_extension_uses_events_that_sphinx_has() -> None:
    connected: list[str] = []
    app: Any = types.SimpleNamespace(connect=lambda event, *_, **__: connected.append(event))
    assert sphinxext.setup(app)["parallel_read_safe"]
    assert set(connected) == {"config-inited", "html-page-context", "build-finished"}
    assert {Sphinx.__name__, Config.__name__} == {"Sphinx", "Config"}
