"""Write the results of a study that has been run into a folder that can be published."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msstab import (
    archive,
    book,
    provenance,
    publishing,
    store,
)
from msstab.published.folder import (
    ABOUT,
    FILES,
    KEPT,
    MANIFEST,
    digest_of,
    platform_here,
    reusing,
)
from msstab.study import Study

ABOUT_TEXT = """\
# Published results

Written by `msstab publish`; nothing here is edited by hand.

| File | What it holds |
| --- | --- |
| `plan.json` | what was fixed before any seed confirmed |
| `trials.csv` | every network of the primary comparison, one row each |
| `bench_report.json` | the verdict and its figures |
| `numbers.json`, `effect.svg` | what the README's opening is made of |
| `kept.npz` | everything that the chapters read, for `msstab build --reuse results` |
| `msstab-results.json` | parameters, versions and platform of the run; the digest of each file |

`msstab verify --sample 20` runs random networks again and compares every score.
"""


def write(
    study: Study, out: Path, root: Path, *, jobs: int = 1, profile_name: str = "full"
) -> Path:
    """Write plan, trial table, report and everything the chapters read; return the folder.

    What is missing is run first. The chapters are run once, to note what they read. A former
    folder of results is replaced whole, or stays as it is if anything fails. Raises BuildError if
    `out` holds something other than results, or a chapter fails.
    """
    out = out.resolve()
    chapters = book.find_chapters(root, book.read_toc(root))
    timings: dict[str, float] = {}
    with (
        reusing(None),
        publishing.staging_area(root, out, mark=MANIFEST) as staging,
        book.environment(root) as variables,
    ):
        noted, made = staging / "reads", staging / "results"
        noted.mkdir()
        made.mkdir()
        book.compute(study, chapters, made, jobs, timings)
        book.narrate(study, chapters, staging, jobs, {**variables, store.READS: str(noted)})
        (made / ABOUT).write_text(ABOUT_TEXT, encoding="utf-8")
        for extra in set(made.iterdir()) - {made / name for name in FILES}:
            extra.unlink()
        made.joinpath(KEPT).write_bytes(archive.pack(_read(noted)))
        facts = {
            **provenance.manifest(study, profile_name, root),
            "platform": platform_here(),
            "files": {name: digest_of(made / name) for name in FILES},
        }
        text = json.dumps(facts, indent=1, sort_keys=True) + "\n"
        made.joinpath(MANIFEST).write_text(text, encoding="utf-8")
        publishing.publish(made, out, root, mark=MANIFEST)
    return out


def _read(noted: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield, once each, the results that processes noted as read."""
    lines = {line for file in noted.iterdir() for line in file.read_text().splitlines()}
    for kind, name in sorted(tuple(line.split(" ", 1)) for line in lines):
        arrays = store.load(kind, name)
        if arrays is not None:
            yield kind, name, arrays
