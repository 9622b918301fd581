"""Count what a build loses when it is killed, damaged, starved of disk, or run twice at once.

A small project of three pages (the real chapters 01 and 02, tiny networks) is built once without
disturbance; that is the reference. Then, each in a clone of its own:

- kills: builds are killed with SIGKILL at random moments, caches being emptied now and then, so
  that training, chapters, rendering and swapping are all hit; after each kill the published book
  must be absent or whole, and a last build must give the reference;
- damage: one entry of the cache at a time is cut short, overwritten or emptied;
- no room: builds on a full disk and with folders that cannot be written; each must end with one
  clear line and leave the former book whole, and a later build must give the reference;
- pairs: two builds of the same clone at once; both must end well and give the reference.

Whole means: passes `msstab.checks` and shows the reference's numbers. Results are compared byte for
byte, apart from the recorded times. Ends with exit code 1 unless nothing was lost. A full disk is a
small memory file system, which needs root; without it, a limit on the size of files stands in.
"""

import argparse
import contextlib
import csv
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from msstab import checks
from msstab.book import read_toc

SOURCE = Path(__file__).resolve().parents[1]
PAGES = ("notebooks/01_data", "notebooks/02_baseline")
TINY = {
    **{"arms": "baseline,spectral_proxy", "hidden": 4, "epochs": 2, "n_train": 32, "batch": 16},
    **{"n_validation": 16, "n_test": 16, "draws": 4, "sigma_grid": 0.2, "mechanism_sequences": 4},
    **{"tuning_seeds": 2, "seeds": 6, "other_seeds": 2},
}
DOWNLOADS = ("bench_report.json", "plan.json", "trials.csv")
TIMES = {"seconds"}
"""Arrays of kept results that say how long something took."""


def main() -> None:
    """Run all four kinds of fault and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--damaged", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory(prefix="msstab-faults-") as folder:
        home = Path(folder)
        reference = make_project(home / "reference")
        start = time.monotonic()
        require(build(reference).returncode == 0, "the undisturbed build failed")
        seconds = time.monotonic() - start
        print(f"undisturbed: {seconds:.0f} s, {len(kept(reference))} kept results", flush=True)
        lost = [
            kills(home, reference, given.kills, seconds, chance),
            damage(home, reference, given.damaged, chance),
            no_room(home, reference),
            pairs(home, reference, given.pairs),
        ]
    sys.exit(1 if any(lost) else 0)


def kills(
    home: Path, reference: Path, times: int, seconds: float, chance: random.Random
) -> list[str]:
    """Kill builds at random moments; return what went wrong."""
    project, wrong = make_project(home / "killed"), []
    killed = 0
    while killed < times:
        if killed % 5 == 0:
            shutil.rmtree(project / ".cache", ignore_errors=True)
        # Half of the kills hit builds whose trials are kept, since those get to the pages.
        if killed % 2:
            shutil.copytree(reference / ".cache", project / ".cache", dirs_exist_ok=True)
        wait = chance.uniform(0, seconds)
        process = start_build(project)
        try:
            process.wait(timeout=wait)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            killed += 1
        else:
            require(process.returncode == 0, "a build that was not killed failed")
        if problems := published_problems(project, reference):
            wrong.append(f"after {killed} kills, at {wait:.1f} s: {problems}")
        if chance.random() < 0.2:
            shutil.rmtree(project / "_build" / "html", ignore_errors=True)
    wrong += final_problems(project, reference)
    return report(f"{times} kills", wrong)


def damage(home: Path, reference: Path, times: int, chance: random.Random) -> list[str]:
    """Damage entries of the cache one after the other; return what went wrong."""
    project, wrong = make_project(home / "damaged"), []
    shutil.copytree(reference / ".cache", project / ".cache")
    ways: list[Callable[[Path], object]] = [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        lambda path: path.write_bytes(path.read_bytes()[:-1] + b"?"),
        lambda path: path.write_bytes(b"\0" * path.stat().st_size),
    ]
    for number in range(times):
        entry = chance.choice(sorted((project / ".cache").rglob("*.npz")))
        ways[number % len(ways)](entry)
        # A network is read only where its scores are missing.
        shutil.rmtree(project / ".cache" / "score")
        done = build(project)
        if done.returncode:
            wrong.append(f"damage {number + 1}: {last_line(done)}")
        wrong += final_problems(project, reference, rebuild=False)
    return report(f"{times} damaged entries", wrong)


def no_room(home: Path, reference: Path) -> list[str]:
    """Build where nothing or too little can be written; return what went wrong."""
    cases = {
        "full disk under the cache": (".cache", "full"),
        "full disk under the pages": ("_build", "full"),
        "nearly full disk under the cache": (".cache", "nearly"),
        "read-only cache": (".cache", "read-only"),
        "read-only pages": ("_build", "read-only"),
    }
    wrong = []
    for name, (folder, how) in cases.items():
        project = make_project(home / name.replace(" ", "-"))
        require(build(project).returncode == 0, "a first build failed")
        shutil.rmtree(project / ".cache")
        options = [] if folder == "_build" else ["-p", "study_seed=1"]
        with limited(project / folder, how) as limit:
            done = build(project, *options, limit=limit)
        if done.returncode == 0:
            wrong.append(f"{name}: the build took no notice")
        elif "Traceback" in done.stderr or not done.stderr.startswith("error: "):
            wrong.append(f"{name}: not a clear line: {last_line(done)}")
        if problems := published_problems(project, reference):
            wrong.append(f"{name}: {problems}")
        wrong += [f"{name}: {problem}" for problem in final_problems(project, reference)]
    return report(f"{len(cases)} cases without room", wrong)


def pairs(home: Path, reference: Path, times: int) -> list[str]:
    """Build twice at once in one clone; return what went wrong."""
    wrong = []
    for number in range(times):
        project = make_project(home / f"pair-{number}")
        both = [start_build(project) for _ in range(2)]
        for process in both:
            if process.wait():
                wrong.append(f"pair {number + 1}: exit code {process.returncode}")
        wrong += final_problems(project, reference, rebuild=False)
    return report(f"{times} pairs of builds", wrong)


def make_project(root: Path) -> Path:
    """Write a project of the real configuration and two real chapters."""
    for folder in ("book", "notebooks"):
        ignored = shutil.ignore_patterns("notebooks", "_results", ".ipynb_checkpoints")
        shutil.copytree(SOURCE / folder, root / folder, ignore=ignored)
    shutil.copy(SOURCE / "_config.yml", root)
    for page in root.glob("book/*.md"):
        page.unlink()
    links = " ".join(f"[{name}](_results/{name})" for name in DOWNLOADS)
    (root / "book" / "index.md").write_text(f"# Faults\n\n{{{{ pairs }}}}: {links}\n", "utf-8")
    chapters = "".join(f"- file: {page}\n" for page in PAGES)
    (root / "_toc.yml").write_text(f"format: jb-book\nroot: index\nchapters:\n{chapters}", "utf-8")
    return root


def command(*options: str) -> list[str]:
    """Return the command line of a build."""
    values = [f"-p{name}={value}" for name, value in TINY.items()]
    return [sys.executable, "-m", "msstab", "build", "--jobs", "2", *values, *options]


def environment(project: Path) -> dict[str, str]:
    """Return an environment in which a build keeps its results in the project."""
    own = {"MSSTAB_CACHE": str(project / ".cache"), "SOURCE_DATE_EPOCH": "86400"}
    return {**os.environ, **own, "PYTHONPATH": str(SOURCE)}


def build(
    project: Path, *options: str, limit: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Build a project; `limit` is the largest size in bytes of a file that can be written."""

    def shrink() -> None:
        if limit is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        command(*options),
        cwd=project,
        env=environment(project),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=shrink,
    )


def start_build(project: Path) -> subprocess.Popen[bytes]:
    """Start a build in a process group of its own, silently."""
    return subprocess.Popen(
        command(),
        cwd=project,
        env=environment(project),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


@contextlib.contextmanager
def limited(folder: Path, how: str) -> Iterator[int | None]:
    """Make a folder full, nearly full or read-only; yield a limit on files where that is all."""
    content = folder.parent / f"{folder.name}.content"
    if folder.is_dir():
        shutil.copytree(folder, content)
    folder.mkdir(exist_ok=True)
    size = {"full": 0, "nearly": 300_000, "read-only": 0}[how]
    used = sum(path.stat().st_size + 4096 for path in content.rglob("*")) if content.is_dir() else 0
    options = f"size={used + size + 65536}"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        yield 0 if how != "nearly" else size // 100
        return
    try:
        if content.is_dir():
            shutil.copytree(content, folder, dirs_exist_ok=True)
        if how == "read-only":
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        elif how == "full":
            with contextlib.suppress(OSError):
                (folder / "filler").write_bytes(b"\0" * 2**26)
        yield None
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
        after = folder.parent / f"{folder.name}.after"
        shutil.copytree(folder, after, ignore=shutil.ignore_patterns("filler"))
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    shutil.rmtree(folder)
    os.rename(after, folder)


def kept(project: Path) -> dict[str, dict[str, bytes]]:
    """Return the content of every kept result, apart from times, by its place in the cache."""
    found = {}
    for path in sorted((project / ".cache").rglob("*.npz")):
        with np.load(path, allow_pickle=False) as file:
            found[str(path.relative_to(project / ".cache"))] = {
                name: file[name].tobytes() for name in file.files if name not in TIMES
            }
    return found


def published_problems(project: Path, reference: Path) -> str:
    """Say what is wrong with the published book, if there is one."""
    html = project / "_build" / "html"
    if not html.exists():
        return ""
    if problems := checks.check(html, read_toc(project)):
        return f"half a book: {problems[0]}"
    return same_numbers(html, reference / "_build" / "html")


def same_numbers(html: Path, expected: Path) -> str:
    """Say which downloaded numbers differ from the reference's, times apart."""
    for name in DOWNLOADS:
        own, other = (numbers(folder, name) for folder in (html, expected))
        if own != other:
            differing = [pair for pair in zip(own, other, strict=False) if pair[0] != pair[1]]
            return f"{name} differs: {differing[:1]}, {len(own)} and {len(other)} lines"
    return ""


def numbers(html: Path, name: str) -> list[list[str]]:
    """Return the lines of a download, as cells, without the column of times."""
    file = next(html.rglob(name))
    lines = list(csv.reader(file.read_text("utf-8").splitlines()))
    if not name.endswith(".csv"):
        return lines
    dropped = {place for place, title in enumerate(lines[0]) if title in TIMES}
    return [[v for place, v in enumerate(line) if place not in dropped] for line in lines]


def final_problems(project: Path, reference: Path, *, rebuild: bool = True) -> list[str]:
    """Build once more, undisturbed, and say what differs from the reference."""
    if rebuild and (done := build(project)).returncode:
        return [f"the last build failed: {last_line(done)}"]
    wrong = [problem] if (problem := published_problems(project, reference)) else []
    if not (project / "_build" / "html").exists():
        wrong.append("there is no book")
    mine, expected = kept(project), kept(reference)
    lost = [name for name in expected if name not in mine]
    changed = [name for name in expected if name in mine and mine[name] != expected[name]]
    if lost or changed:
        wrong.append(f"{len(lost)} results lost, {len(changed)} changed")
    return wrong


def report(what: str, wrong: list[str]) -> list[str]:
    """Print a line on a kind of fault, and what went wrong."""
    print(f"{what}: {len(wrong)} lost, wrong or half-published", flush=True)
    for line in wrong:
        print(f"  {line}", flush=True)
    return wrong


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the end of what a build said."""
    lines = (done.stderr or done.stdout).strip().splitlines()
    return f"exit code {done.returncode}, {lines[-1] if lines else 'nothing said'}"


def require(holds: bool, otherwise: str) -> None:
    """Stop with a message unless something holds."""
    if not holds:
        sys.exit(f"error: {otherwise}")


if __name__ == "__main__":
    main()
