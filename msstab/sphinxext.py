"""What YAML can't set for the book: results in prose, source buttons, no outside requests."""

import html
import importlib.util
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError

from msstab import colophon
from msstab.attachments import FOLDER
from msstab.checks import KEY_META
from msstab.provenance import DAY

RESULTS = "_results"
"""Folder in the book's source that holds what the run wrote for its pages."""


LICENCES = (
    'Text <a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a>, '
    'code <a href="https://opensource.org/license/bsd-3-clause">BSD 3-Clause</a>'
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect everything to Sphinx; called by Sphinx itself."""
    app.connect("config-inited", use_own_repository, priority=50)
    app.connect("config-inited", fill_substitutions, priority=100)
    # After the theme has filled in its buttons (501), and after any other extension.
    app.connect("html-page-context", point_to_sources, priority=900)
    app.connect("html-page-context", finish_page, priority=950)
    app.connect("build-finished", finish_site)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def use_own_repository(app: Sphinx, config: Config) -> None:
    """Let a fork's workflow publish a book whose links lead to the fork, with no edit."""
    config["mathjax_path"] = "mathjax/tex-chtml.js"
    repository = os.environ.get("GITHUB_REPOSITORY", "")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        return
    owner, name = repository.split("/")
    host = f"{owner.lower()}.github.io"
    config["html_baseurl"] = f"https://{host}/" + ("" if name.lower() == host else f"{name}/")
    config["html_theme_options"]["repository_url"] = f"https://github.com/{repository}"


def fill_substitutions(app: Sphinx, config: Config) -> None:
    """Make every value of `_results/*.json` a substitution, so that prose types no result.

    A change in one re-reads all pages. Raises ExtensionError for a file that isn't a flat
    mapping of names to values, and for files of different studies.
    """
    values = dict(config["myst_substitutions"])
    for path in sorted(Path(app.srcdir, RESULTS).glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        # The folder also holds reports with a structure of their own, meant for download.
        if path.name in {"numbers.json", "build.json"}:
            texts = _texts(path, content)
            keys = {found["study_key"] for found in (values, texts) if "study_key" in found}
            if len(keys) > 1:
                raise ExtensionError(f"results of different studies: {', '.join(sorted(keys))}")
            values |= texts
    if repository := config["html_theme_options"].get("repository_url"):
        values["colab_setup"] = _colab_setup(repository)
    config["myst_substitutions"] = values
    config["html_theme_options"]["extra_footer"] = _provenance(values)


def point_to_sources(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Make the buttons of a chapter lead to its notebook, not to the executed copy.

    The copy is at `book/notebooks/x.ipynb` while building and isn't in the repository.
    """
    folder = app.config["html_theme_options"].get("path_to_docs", "").strip("/")
    if folder and pagename.startswith("notebooks/"):
        _replace_in(context.get("header_buttons", []), f"{folder}/{pagename}", pagename)


def finish_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Name the study in the page, and repair what browsers and screen readers stumble over."""
    key = html.escape(str(app.config["myst_substitutions"].get("study_key", "")))
    if key:
        context["metatags"] = (
            context.get("metatags", "") + f'\n<meta name="{KEY_META}" content="{key}" />'
        )
    # Jupyter Book adds Thebe twice on every page; nothing here uses it, and it throws.
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context.get(kind, []) if not _is_thebe(file)]
    if context.get("body"):
        day = app.config["myst_substitutions"].get("build_day", "")
        context["body"] = _repaired(context["body"]).replace(DAY, day)
        folder, _, chapter = pagename.rpartition("/")
        if folder == "notebooks":
            repository = app.config["html_theme_options"].get("repository_url", "")
            values = app.config["myst_substitutions"]
            context["body"] += colophon.block(chapter, values, repository)


def finish_site(app: Sphinx, error: Exception | None) -> None:
    """Put MathJax, the machine-readable report and all files into the site; slim the theme."""
    if error is not None or app.builder.format != "html":
        return
    site = Path(app.outdir)
    for page in site.rglob("*.html"):
        content = _without_icon_assets(page.read_text(encoding="utf-8"))
        page.write_text(_scripts_last(content), encoding="utf-8")
    for scripts in site.glob("_static/vendor/fontawesome/*/js"):
        shutil.rmtree(scripts)
    _copy_mathjax(site / "_static" / "mathjax")
    report = Path(app.srcdir, RESULTS, "bench_report.json")
    if report.is_file():
        shutil.copy(report, site)
    files = Path(app.srcdir, RESULTS, FOLDER)
    if files.is_dir():
        shutil.copytree(files, site / FOLDER)
    (site / ".nojekyll").touch()
    # A hash of all settings, the date among them, for builds that go on with a former one.
    (site / ".buildinfo").unlink(missing_ok=True)


def _texts(path: Path, content: object) -> dict[str, str]:
    """Turn a flat mapping into texts, numbers with four significant digits."""
    if not isinstance(content, dict):
        raise ExtensionError(f"{path.name} must map names to values")
    texts = {}
    for name, value in content.items():
        if not isinstance(value, str | int | float):
            raise ExtensionError(f"{path.name}: {name} must be a text or a number, not {value!r}")
        texts[name] = f"{value:.4g}" if isinstance(value, float) else str(value)
    return texts


def _colab_setup(repository: str) -> str:
    """Return the cell that makes a notebook run where only its own file was opened."""
    folder = repository.rstrip("/").rpartition("/")[2]
    return f"```text\n!git clone --quiet {repository}\n%cd {folder}\n```"


def _provenance(values: dict[str, str]) -> str:
    """Say at the foot of each page which run made it."""
    if "study_key" not in values:
        return ""
    parts = [f"Study <code>{html.escape(values['study_key'])}</code>"]
    parts += [html.escape(values["versions"])] if "versions" in values else []
    parts += [values["build_date"]] if "build_date" in values else []  # holds an element
    parts.append(LICENCES)
    return f'<p class="msstab-provenance">{" · ".join(parts)}</p>'


def _replace_in(node: Any, old: str, new: str) -> None:
    """Replace in all texts of nested lists and dictionaries, in place."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(value, str):
            node[key] = value.replace(old, new)
        elif isinstance(value, dict | list):
            _replace_in(value, old, new)


def _is_thebe(file: object) -> bool:
    return "thebe" in f"{file} {getattr(file, 'attributes', '')}".lower()


def _repaired(body: str) -> str:
    thebe = r'<script type="text/x-thebe-config">.*?</script>\s*<script>kernelName =.*?</script>\s*'
    body = re.sub(thebe, "", body, flags=re.DOTALL)
    # A label that differs from the visible text hides that text from a screen reader.
    body = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")
    # pandas leaves a header cell empty above the index; a header must have a name.
    return body.replace("<th></th>", "<td></td>")


def _without_icon_assets(page: str) -> str:
    """Leave the icons to their style sheet and web fonts.

    The script would replace them by drawings, for 1.5 MB; and a font can't be preloaded where
    pages are opened as files, which the browser logs as an error.
    """
    page = re.sub(r'<link rel="preload" as="font"[^>]*>\s*', "", page)
    return re.sub(
        r'<script[^>]*fontawesome[^>]*></script>\s*|<link[^>]*as="script"[^>]*fontawesome[^>]*>\s*',
        "",
        page,
    )


def _scripts_last(page: str) -> str:
    """Move the scripts of a page's head behind its text, which they would otherwise delay.

    All but the one that sets the theme, before anything is drawn in another one.
    """
    head, found, rest = page.partition("</head>")
    mark = "<!-- Scripts loaded after <body> so the DOM is not blocked -->"
    if mark not in rest:  # a page of another layout
        return page
    script = r"<script(?![^>]*data-cfasync).*?</script>\s*"
    scripts = "".join(re.findall(script, head, flags=re.DOTALL))
    head = re.sub(script, "", head, flags=re.DOTALL)
    # What is announced here would compete with the style sheets.
    head = re.sub(r'<link rel="preload" as="script"[^>]*>\s*', "", head)
    # The theme's own sheet only names another one, which the browser would learn late.
    head = head.replace("_static/styles/theme.css", "_static/basic.css")
    return head + found + rest.replace(mark, scripts, 1)


def _copy_mathjax(target: Path) -> None:
    """Copy the one script and the fonts that the pages use."""
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise ExtensionError("sphinx-mathjax-offline is not installed: pip install -e '.[book]'")
    source = Path(spec.origin).parent / "static" / "mathjax"
    fonts = Path("output", "chtml", "fonts", "woff-v2")
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(source / "tex-chtml.js", target)
    shutil.copytree(source / fonts, target / fonts, dirs_exist_ok=True)
