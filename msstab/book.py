"""Compute, run the chapters, render them, check the result, and put it in place whole."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from msstab import attachments, checks, provenance, publishing, targets
from msstab.chapters import Outcome, has_parameters, plain, run_chapter
from msstab.publishing import BuildError
from msstab.study import Study

if TYPE_CHECKING:
    from msstab.results import Results

__all__ = [
    "BuildError",
    "BuildResult",
    "build",
    "compute",
    "environment",
    "find_chapters",
    "find_root",
    "narrate",
    "read_toc",
    "run_parts",
    "run_trials",
]

# Sphinx runs in a process of its own: it changes too much of the one it runs in.
RENDER = "import sys; from jupyter_book.cli.main import main; sys.exit(main())"


@dataclass(frozen=True)
class BuildResult:
    """A finished book: its first page, the answer it gives, and seconds by stage."""

    path: Path
    verdict: str
    timings: dict[str, float]


def build(
    study: Study,
    *,
    out: Path | None = None,
    root: Path | None = None,
    jobs: int = 1,
    profile_name: str = "full",
) -> BuildResult:
    """Build the whole book of a study and put it at `out`, by default `_build/html` of `root`.

    Trials already in the cache are not trained again. Until everything has succeeded, a book
    already at `out` stays as it is, to the byte; so it does when the build is interrupted.
    Raises BuildError if the project is incomplete, `out` holds something other than a book, a
    chapter fails, Sphinx warns, or a page doesn't pass the checks.
    """
    root = find_root() if root is None else root.resolve()
    out = (out or root / "_build" / "html").resolve()
    pages = read_toc(root)
    chapters = find_chapters(root, pages)
    if not (root / "_config.yml").is_file():
        raise BuildError(f"there is no _config.yml in {root}", exit_code=2)
    timings: dict[str, float] = {}
    with environment(root) as variables, publishing.staging_area(root, out) as staging:
        book = staging / "book"
        ignored = shutil.ignore_patterns("notebooks", "_results", ".ipynb_checkpoints")
        shutil.copytree(root / "book", book, ignore=ignored)
        results = book / "_results"
        results.mkdir()
        verdict = compute(study, chapters, results, jobs, timings)
        facts = {**provenance.manifest(study, profile_name, root), "pages": pages}
        _write_json(results / "build.json", provenance.page_values(facts, study))
        with _timed(timings, "chapters"):
            narrate(study, chapters, book, jobs, variables, results / attachments.FOLDER)
        with _timed(timings, "pages"):
            html = _render(root, staging)
        _write_json(html / checks.MANIFEST, facts)
        with _timed(timings, "checks"):
            problems = checks.check(html, pages)
        if problems:
            raise BuildError("the book did not pass its checks:\n" + _listed(problems))
        publishing.publish(html, out, root)
    return BuildResult(out / "index.html", verdict, timings)


def find_root(start: Path | None = None) -> Path:
    """Return the project's folder: the nearest one above `start`, or the one msstab came from.

    Raises BuildError if neither holds `_toc.yml` and `notebooks/`.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[1]):
        if (folder / "_toc.yml").is_file() and (folder / "notebooks").is_dir():
            return folder
    raise BuildError(f"no _toc.yml with notebooks/ beside it in {here} or above", exit_code=2)


def read_toc(root: Path) -> list[str]:
    """Return the names of all pages in `_toc.yml`, in reading order; raise BuildError if broken."""

    def files(node: object) -> Iterator[str]:
        if isinstance(node, dict):
            yield from (str(node[key]) for key in ("root", "file") if key in node)
            for value in node.values():
                yield from files(value)
        elif isinstance(node, list):
            for item in node:
                yield from files(item)

    try:
        pages = list(files(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise BuildError(f"_toc.yml can't be read: {reason}", exit_code=2) from None
    if not pages:
        raise BuildError("_toc.yml names no page", exit_code=2)
    return pages


def find_chapters(root: Path, pages: list[str]) -> list[Path]:
    """Return the notebooks among the pages; raise BuildError for a page that can't be made."""
    chapters = []
    for page in pages:
        notebook = root / f"{page}.ipynb"
        if not page.startswith("notebooks/"):
            if not (root / "book" / f"{page}.md").is_file():
                raise BuildError(f"_toc.yml names {page}, but there is no book/{page}.md", 2)
            continue
        if not notebook.is_file():
            raise BuildError(f"_toc.yml names {page}, but there is no {page}.ipynb", 2)
        try:
            content = nbformat.read(notebook, 4)
        except Exception as error:  # nbformat and json raise many kinds for a damaged file
            raise BuildError(f"{page}.ipynb is not a notebook: {str(error)[:200]}", 2) from None
        if not has_parameters(content):
            raise BuildError(f"{page}.ipynb has no cell tagged `parameters`", 2)
        chapters.append(notebook)
    return chapters


def compute(
    study: Study, chapters: list[Path], directory: Path, jobs: int, timings: dict[str, float]
) -> str:
    """Run what the chapters miss and write all results; return the verdict."""
    from msstab import downloads, parts

    found = run_trials(study, jobs, timings)
    run_parts(study, chapters, jobs, timings)
    asked = any(chapter.stem == parts.FREE_RUNS for chapter in chapters)
    free_run = parts.free_run(study, jobs=jobs) if asked else None
    return downloads.write(found, directory, free_run)


def run_trials(study: Study, jobs: int, timings: dict[str, float]) -> "Results":
    """Run what is missing of a study's own trials, as a stage, and return its results."""
    # Importing this loads torch, which nothing else here needs.
    from msstab import results

    with _timed(timings, "trials"), _progress("trials") as advance:
        return results.collect(study, jobs=jobs, progress=advance)


def run_parts(study: Study, chapters: list[Path], jobs: int, timings: dict[str, float]) -> None:
    """Run what chapters of part II miss, each as a stage of its own."""
    from msstab import parts

    for chapter in chapters:
        if part := parts.PARTS.get(chapter.stem):
            name = f"trials of {chapter.stem}"
            with _timed(timings, name), _progress(name) as advance:
                part(study, jobs=jobs, progress=advance)


def narrate(
    study: Study,
    chapters: list[Path],
    book: Path,
    jobs: int,
    environment: dict[str, str],
    files: Path | None = None,
) -> None:
    """Run all chapters, several at a time; report every one that failed, not only the first.

    `files` as for `run_chapter`.
    """
    from joblib import cpu_count
    from joblib.externals.loky import get_reusable_executor

    root = chapters[0].parents[1] if chapters else book
    private = tuple(
        dict.fromkeys([str(root), *([home] if len(home := str(Path.home())) > 1 else [])])
    )
    parameters = study.model_dump(mode="json")
    outcomes: list[Outcome] = []
    # Processes even for one chapter at a time: papermill changes the working directory of its
    # process, and takes Ctrl-C for itself. Jobs may be those of a cluster, chapters run here.
    processes = max(1, min(jobs, len(chapters), cpu_count()))
    executor = get_reusable_executor(max_workers=processes, env=environment)
    try:
        futures = [
            executor.submit(
                run_chapter, path, book / "notebooks" / path.name, parameters, private, files
            )
            for path in chapters
        ]
        for future in as_completed(futures):
            outcome: Outcome = future.result()
            outcomes.append(outcome)
            _say(
                f"{outcome.name} {'failed' if outcome.error else 'ran'} in {outcome.seconds:.1f} s"
            )
            for warning in outcome.warnings:
                _say(f"  warning from {warning}")
    finally:
        executor.shutdown(wait=True, kill_workers=True)
    failures = sorted(outcome.error for outcome in outcomes if outcome.error)
    if failures:
        raise BuildError("\n".join(failures))


def _render(root: Path, staging: Path) -> Path:
    """Turn the staged sources into pages; return their folder."""
    command = [sys.executable, "-c", RENDER, "build", str(staging / "book")]
    command += ["--config", str(root / "_config.yml"), "--toc", str(root / "_toc.yml")]
    command += ["--path-output", str(staging), "-W", "--keep-going", "-n", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    html = staging / "_build" / "html"
    index = html / "index.html"
    if done.returncode or not index.is_file() or not index.stat().st_size:
        raise BuildError("the pages could not be rendered:\n" + _listed(_complaints(done, staging)))
    return html


def _complaints(done: subprocess.CompletedProcess[str], staging: Path) -> list[str]:
    """Pick from Sphinx's log what a person can act on: warnings, else what precedes a traceback."""
    log = plain(done.stderr).replace(f"{staging}{os.sep}", "").splitlines()
    warnings = [line for line in log if "WARNING" in line or "ERROR" in line]
    traceback = next((n for n, line in enumerate(log) if line.startswith("Traceback")), len(log))
    return warnings or [line for line in log[:traceback] if line.strip()][-15:] or log[-15:]


@contextmanager
def environment(root: Path) -> Iterator[dict[str, str]]:
    """Let this process and the kernels share one cache, and give kernels a fixed setting.

    Raises BuildError for a cache that cannot be written, and ModuleNotFoundError where a package
    is missing that a book takes.
    """
    cache = os.environ.get("MSSTAB_CACHE")
    absolute = str(Path(cache).resolve()) if cache else str(root / ".cache")
    try:
        targets.require_folder(Path(absolute))
    except ValueError as error:
        raise BuildError(f"the cache, {absolute}: {error}", exit_code=2) from None
    for name in ("papermill", "ipykernel", "jupyter_book"):
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    os.environ["MSSTAB_CACHE"] = absolute
    try:
        yield {
            "MSSTAB_CACHE": absolute,
            "OMP_NUM_THREADS": "1",  # sums in the same order on every machine
            "PYTHONHASHSEED": "0",
        }
    finally:
        if cache is None:
            del os.environ["MSSTAB_CACHE"]
        else:
            os.environ["MSSTAB_CACHE"] = cache


@contextmanager
def _progress(stage: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar with the time left, on a terminal only."""
    console = Console()
    columns = (TextColumn(stage), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(stage, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def _timed(timings: dict[str, float], stage: str) -> Iterator[None]:
    start = time.monotonic()
    yield
    timings[stage] = time.monotonic() - start
    _say(f"{stage} ready in {timings[stage]:.1f} s")


def _say(line: str) -> None:
    print(line, flush=True)


def _listed(lines: list[str], most: int = 20) -> str:
    more = [f"... and {len(lines) - most} more"] if len(lines) > most else []
    return "\n".join(f"  {line.strip()}" for line in [*lines[:most], *more])


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
