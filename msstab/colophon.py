"""How a chapter was made, folded away at its end: study, seeds, time, versions and sources."""

import html
import re
from collections.abc import Mapping


def block(chapter: str, values: Mapping[str, str], repository: str = "") -> str:
    """Return what stands at the end of a chapter's page, as HTML; nothing without a study.

    `chapter` as in `03_penalty`; values: those of `provenance.page_values` and `landing.texts`,
    of which any may be missing; repository: its address, without which no source is linked.
    """
    if "study_key" not in values:
        return ""
    rows = {
        "Study": _code(values["study_key"]),
        "Parameters": f"{_marked(values.get('profile_line', ''))} "
        '(<a href="../index.html#all-parameters">all of them</a>)',
        "Seeds": _marked(values.get("seeds_line", "")),
        "Training": _training(values),
        "Versions": html.escape(values.get("versions", "")),
        "Again": _code(f"msstab run {chapter}{values['options']}") if "options" in values else "",
        "Sources": _sources(chapter, repository),
    }
    listed = "\n".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows.items() if text)
    return (
        '<details class="msstab-colophon"><summary>How this chapter was made</summary>\n'
        f"<dl>\n{listed}\n</dl></details>\n"
    )


def _training(values: Mapping[str, str]) -> str:
    if not {"networks_text", "training_text"} <= values.keys():
        return ""
    return html.escape(
        f"the main study's {values['networks_text']} networks took {values['training_text']} of "
        "one process; what part II trains besides is not counted"
    )


def _sources(chapter: str, repository: str) -> str:
    if not repository:
        return ""
    address = html.escape(repository.rstrip("/"))
    notebook = f"{address}/blob/main/notebooks/{chapter}.ipynb"
    issue = f"{address}/issues/new?title=Chapter+{chapter}"
    return (
        f'<a href="{notebook}">the notebook</a>, '
        f'<a href="{address}/tree/main/msstab">the code</a>, '
        f'<a href="{issue}">report a mistake</a>'
    )


def _code(text: str) -> str:
    return f"<code>{html.escape(text)}</code>"


def _marked(text: str) -> str:
    """Turn the one mark that these texts use, code between backticks, into HTML."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))
