"""The opening of the README, written from the published results."""

import json
from pathlib import Path

from msstab import store
from msstab.published.folder import EFFECT, NUMBERS, Published, PublishedError

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def opening(published: Published) -> str:
    """Return what was found and how sure it is, in Markdown, with the study's figure."""
    texts = json.loads((published.folder / NUMBERS).read_text(encoding="utf-8"))
    manifest, folder, study = published.manifest, published.folder.name, published.study
    made = f"study `{manifest['study_key']}` of {manifest['built'][:10]}"
    return "\n\n".join(
        (
            f"**{texts['answer_text']}**",
            texts["found_text"],
            texts["meaning_text"],
            f"![The change of each error with the penalty, with its interval.]({folder}/{EFFECT})",
            f"{texts['certainty_text']} The networks are of {study.hidden} {study.cell.upper()} "
            f"units, on the track `{study.track}`; part II of the book varies that.",
            f"Plan, trials and report of {made} are in [{folder}]({folder}), from which "
            "`msstab publish` wrote these lines.",
        )
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
