"""The opening of the README, written from the published results."""

import json
from pathlib import Path

from msstab import store
from msstab.published.folder import EFFECT, NUMBERS, Published, PublishedError

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def opening(published: Published) -> str:
    """Return what was found and how sure it is, in Markdown, with the study's figure."""
    numbers = json.loads((published.folder / NUMBERS).read_text(encoding="utf-8"))
    manifest, folder = published.manifest, published.folder.name
    study = published.study
    return (
        f"> **{numbers['verdict_sentence']}**\n\n"
        f"{numbers['effect_text']} ({numbers['interval_text']}; {numbers['p_text']}), by "
        f"{numbers['pairs']} pairs of {study.cell.upper()} networks of {study.hidden} units on the "
        f"track {study.track}. {numbers['mechanism_text']}.\n\n"
        f"![Change of the error with the penalty, with its interval]({folder}/{EFFECT})\n\n"
        f"Written by `msstab publish` from the study `{manifest['study_key'][:12]}` of "
        f"{manifest['built'][:10]}, whose plan, trials and report are in [{folder}]({folder})."
    )


def update(readme: Path, published: Published) -> None:
    """Write the opening between the marks of a README; raise PublishedError if it has none."""
    text = readme.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise PublishedError(f"{readme} has no lines {BEGIN} and {END} to write between")
    written = f"{before}{BEGIN}\n\n{opening(published)}\n\n{END}{after}"
    store.replace(readme, written.encode())
