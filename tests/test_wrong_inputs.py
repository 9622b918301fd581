"""Whatever is given wrongly ends with a line or two that say so, exit code 2, nothing written."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from conftest import fake_rooms, make_project
from shelves import write_book
from test_inspection import data, modules, saved
from test_study import Notebook
from typer.testing import CliRunner

from msstab import checks, cli
from msstab.study import StudyError

CHAPTERS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
REPORT = "book_a/bench_report.json"
OWN = ("inspect", "model.pt", "--data", "data.npz")

# A command line by words, and what its answer names: what was given, and what to do.
WRONG: list[tuple[str, tuple[str, ...]]] = [
    # ---- words that are no command or option
    ("buidl", ("'buidl'", "Did you mean 'build'?", "See", "--help")),
    ("xyzzy", ("'xyzzy'", "; see", "--help")),
    ("--vershun", ("--vershun", "--version")),
    ("build --profil quick", ("--profil", "--profile", "build --help")),
    ("build quick", ("(quick)", "build --help")),
    ("build --jobs", ("'--jobs' requires an argument",)),
    ("build --jobs 0", ("--jobs 0: input should be greater than or equal to 1",)),
    ("build --jobs two", ("--jobs two: input should be a valid integer",)),
    ("plan --jobs 1.5", ("--jobs 1.5: input should be a valid integer",)),
    ("run", ("missing argument 'CHAPTER'", "run --help")),
    ("check", ("missing argument 'DIR'", "check --help")),
    ("check book_a book_b", ("(book_b)",)),
    ("compare book_a", ("missing argument 'second'",)),
    ("site book_a", ("missing option '--out'",)),
    ("site --out new", ("missing argument 'DIR...'",)),
    ("audit", ("missing argument 'FILE'",)),
    ("inspect model.pt", ("missing option '--data'",)),
    # ---- parameters
    ("build --profile ful", ("profile ful is not known; did you mean full?", "stage2")),
    ("build -p hiden=64", ("hiden is not a parameter; did you mean hidden?", "Known: track,")),
    ("plan -p hiden=64", ("hiden is not a parameter; did you mean hidden?",)),
    ("run 00_only -p hiden=64", ("hiden is not a parameter; did you mean hidden?",)),
    ("build -p seeds", ("-p seeds is not of the form NAME=VALUE", "-p seeds=32")),
    ("build -p =3", ("-p =3 is not of the form NAME=VALUE",)),
    ("build -p hidden=many", ("hidden = 'many': input should be a valid integer",)),
    ("build -p hidden=3.5", ("hidden = 3.5: input should be a valid integer",)),
    ("build -p hidden=1", ("hidden = 1: input should be greater than or equal to 2",)),
    ("build -p hidden=1 -p seeds=1", ("hidden = 1", "seeds = 1: give at least 2, or 0")),
    ("build -p sigma=NaN", ("sigma = nan: input should be a finite number",)),
    ("build -p draws=9999999999", ("draws = 9999999999: input should be less than or equal",)),
    ("build -p study_seed=-1", ("study_seed = -1: input should be greater than or equal to 0",)),
    ("build -p device=gpu", ("device = 'gpu': give cpu, cuda, or",)),
    ("build -p device=cuda:999", ("device = cuda:999: torch finds no such device here; use cpu",)),
    ("build -p track=hennon", ("'hennon': no such track; did you mean henon? Known:",)),
    ("build -p cell=grru", ("'grru': no such cell; did you mean gru? Known: gru, lstm, rnn.",)),
    ("build -p noise=wait", ("'wait': no such noise; did you mean weight? Known: unit, gain",)),
    ("build -p arms=baseline", ("name the baseline first and then at least one other arm",)),
    ("build -p arms=baseline,delta_is", ("no such arm; did you mean delta_iss?",)),
    ("build -p arms=baseline,gone.py:f", ("there is no file gone.py",)),
    ("build -p arms=baseline,boom.py:f", ("boom.py does not run: ZeroDivisionError",)),
    ("build -p arms=baseline,lines.py:f", ("lines.py does not run: ValueError: one two three",)),
    ("build -p arms=baseline,leave.py:f", ("leave.py:f ends the program",)),
    ("build -p arms=baseline,none.py:f", ("no arm f in none.py; Known: none.",)),
    ("build -p batch=4000", ("batch = 4000 exceeds n_train = 400",)),
    ("build -p window=8", ("window is for a series of your own; track dynamics has one",)),
    ("build -p track=csv:gone.csv", ("there is no file gone.csv",)),
    ("build -p track=csv:short.csv", ("1 rows are too few", "give a longer series")),
    ("plan -p track=npz:short.csv", ("it is not an .npz file of plain arrays",)),
    # ---- files of parameters
    ("build --params gone.yml", ("gone.yml: No such file or directory; name a YAML file",)),
    ("build --params book", ("book: Is a directory; name a YAML file",)),
    ("plan --params list.yml", ("list.yml must map names to values", "`seeds: 32`")),
    ("plan --params broken.yml", ("broken.yml is not YAML",)),
    ("run 00_only --params typo.yml", ("hiden is not a parameter; did you mean hidden?",)),
    # ---- chapters, and where results go
    ("run 00_onyl", ("there is no chapter 00_onyl; did you mean 00_only?",)),
    ("run 00_only --out book", ("book is a folder; name a file that ends in .ipynb",)),
    ("run 00_only --out page.html", ("page.html does not end in .ipynb; name a file that does",)),
    ("run 00_only --out note.txt/x.ipynb", ("note.txt is a file, and not a folder",)),
    ("run 00_only --out notebooks/new.ipynb", ("lies among the chapters", "another folder")),
    ("build --out notebooks", ("other than a book of msstab", "name a folder that is new")),
    ("build --out note.txt", ("note.txt is a file; name a folder for a book",)),
    ("build --out note.txt/html", ("note.txt is a file, and not a folder",)),
    ("build --out book_a/html", ("lies inside the book", "name a folder outside")),
    ("build --out _build", ("_build is where builds do their work; name a folder in it",)),
    ("site book_a --out book_b", ("book_b holds something other than a site",)),
    ("site book_a --out book_b/all", ("lies inside the book", "name a folder outside")),
    ("site book_a --out note.txt", ("note.txt is a file; name a folder for a site",)),
    ("compare book_a book_b --figure book", ("--figure book is a folder; name a file",)),
    ("compare book_a book_b --figure a.png", ("--figure a.png does not end in .svg",)),
    (
        "compare book_a book_b --figure note.txt/a.svg",
        (
            "--figure",
            "note.txt is a file, and",
        ),
    ),
    # ---- books and reports
    ("build --reuse gone", ("gone is not a folder; name one of published results: results",)),
    ("plan --reuse notebooks", ("notebooks holds no published results",)),
    ("publish --out note.txt", ("note.txt is a file; name a folder for results",)),
    ("publish --out book_a", ("book_a holds something other than results of msstab",)),
    ("publish -p hiden=3", ("hiden", "hidden")),
    ("verify --results gone", ("gone is not a folder; name one of published results",)),
    ("verify --results notebooks", ("notebooks holds no published results",)),
    ("verify --sample 1", ("--sample",)),
    ("verify --sample some", ("--sample", "some")),
    ("check gone", ("gone is not a folder; name that of a built book, such as _build/html",)),
    ("check gone --json", ("gone is not a folder; name that of a built book",)),
    ("check note.txt", ("note.txt is not a folder",)),
    ("check notebooks", ("notebooks holds no book of msstab",)),
    ("check half", ("half", "cannot be read")),
    ("check book_a --same-as notebooks", ("notebooks holds no book of msstab",)),
    ("check pages", ("does not list the pages",)),
    ("compare book_a gone.json", ("gone.json: No such file or directory; name a bench_report",)),
    ("compare book_a notebooks", ("notebooks holds no book of msstab",)),
    ("compare book_a note.txt", ("note.txt: Invalid JSON",)),
    ("compare book_a object.json", ("object.json: worked: Field required (8 more)",)),
    ("compare book_a deep.json", ("deep.json: Invalid JSON",)),
    ("site book_a book_a --out new", ("hold the same study",)),
    ("site gone --out new", ("gone is not a folder",)),
    ("site book_a broken --out new", ("broken does not pass its checks: index.html",)),
    ("audit gone.json", ("gone.json: No such file or directory; name a bench_report.json",)),
    ("audit notebooks", ("notebooks: Is a directory; name a bench_report.json",)),
    ("audit note.txt", ("note.txt: this is not JSON",)),
    ("audit note.txt --json", ("note.txt: this is not JSON",)),
    ("audit deep.json", ("deep.json: the JSON is nested too deeply",)),
    ("audit image.png", ("image.png: this is not a text in UTF-8",)),
    ("audit object.json", ("it holds at least one of baseline, idea",)),
    ("audit text.json", ("text.json: idea.mean = 'low': it must be a number",)),
    (f"audit {REPORT} --alpha 0.7", ("--alpha 0.7: it must lie between 0 and 0.5",)),
    (f"audit {REPORT} --sesoi 5", ("--sesoi 5.0: it must lie between 0 and 1",)),
    (f"audit {REPORT} --sesoi some", ("--sesoi some: input should be a valid number",)),
    # ---- networks of one's own
    ("inspect gone.pt --data data.npz", ("gone.pt: No such file or directory",)),
    (
        "inspect note.txt --data data.npz",
        (
            "note.txt",
            "neither a safetensors file nor one",
        ),
    ),
    ("inspect model.pt --data gone.npz", ("gone.npz: No such file or directory",)),
    ("inspect model.pt --data note.txt", ("data must be in a file that ends in .npz or .csv",)),
    ("inspect model.pt --data wide.csv", ("wide.csv", "3")),
    (f"{' '.join(OWN)} --cell lstm", ("--cell lstm: 4 x 5 rows are needed",)),
    (f"{' '.join(OWN)} --cell grru", ("--cell grru: did you mean gru?",)),
    (f"{' '.join(OWN)} --readout tail", ("--readout tail: a linear layer", "Known: head.")),
    (f"{' '.join(OWN)} --nonlinearity relu", ("--nonlinearity relu: tanh is needed",)),
    (f"{' '.join(OWN)} --sigma 0", ("--sigma 0.0: it must lie between 0 and 100",)),
    (f"{' '.join(OWN)} --sigma nan", ("--sigma nan: it must lie between 0 and 100",)),
    (f"{' '.join(OWN)} --sequences 0", ("--sequences 0: input should be greater than or",)),
    (f"{' '.join(OWN)} --html book", ("--html book is a folder; name a file that ends in .html",)),
    (f"{' '.join(OWN)} --html model.pt", ("--html model.pt does not end in .html",)),
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two books, a network, and all kinds of files that nobody should name."""
    root = make_project(tmp_path_factory.mktemp("wrong") / "project")
    write_book(root / "book_a")
    write_book(root / "book_b", "bbbbbbbbbbbb")
    (write_book(root / "broken", "cccccccccccc") / "index.html").write_text("<p>nothing</p>")
    manifest = write_book(root / "pages") / checks.MANIFEST
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "pages": 3}))
    (write_book(root / "half") / checks.MANIFEST).write_text("{")
    saved(root, modules("gru").state_dict())
    data(root, torch.randn(4, 6, 3))
    np.savetxt(root / "wide.csv", np.zeros((4, 7)), delimiter=",")
    texts = {
        **{"note.txt": "hello", "object.json": "{}", "deep.json": "[" * 100_000},
        **{"text.json": '{"idea": {"mean": "low"}}', "short.csv": "a,b\n1,2\n"},
        **{"list.yml": "- hidden", "broken.yml": "hidden: [", "typo.yml": "hiden: 16"},
        **{"boom.py": "1 / 0", "none.py": "f = 1", "leave.py": "raise SystemExit(0)"},
        **{"lines.py": "raise ValueError('one\\ntwo\\nthree')"},
    }
    for name, text in texts.items():
        (root / name).write_text(text)
    (root / "image.png").write_bytes(b"\x89PNG\xff\x00")
    return root


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """What lies in a folder: names, sizes and times; not what Python keeps of files it read."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if "__pycache__" not in path.parts and not (path / "__pycache__").is_dir()
    }


@pytest.fixture(scope="module")
def before(project: Path) -> dict[str, tuple[int, int]]:
    """What lies in the project, now and after every test."""
    return tree(project)


@pytest.fixture
def untouched(
    project: Path, before: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Nothing is trained and nothing written, in the project or in the cache."""
    trained = fake_rooms(monkeypatch)
    monkeypatch.chdir(project)
    monkeypatch.setenv("MSSTAB_CACHE", str(project / ".cache"))
    yield
    assert tree(project) == before
    assert trained == []


def test_every_command_is_given_something_wrong() -> None:
    assert {line.split()[0] for line, _ in WRONG} > {name.__name__ for name in cli.COMMANDS}
    assert len({line for line, _ in WRONG}) == len(WRONG)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(("line", "words"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_command_line_is_answered_in_a_line_or_two(
    line: str, words: tuple[str, ...]
) -> None:
    result = CliRunner().invoke(cli.app, line.split())
    assert result.exit_code == 2, result.exception
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    require_clear(result.stderr, words)


def require_clear(said: str, words: tuple[str, ...]) -> None:
    assert said.startswith("error: ")
    assert len(said.splitlines()) <= 2
    assert "Traceback" not in said
    for word in words:
        assert word in said, said


@pytest.mark.parametrize(
    ("break_it", "line", "words"),
    [
        ("rm _config.yml", "build", ("there is no _config.yml in",)),
        ("rm book/index.md", "build", ("_toc.yml names index, but there is no book/index.md",)),
        ("rm notebooks/00_only.ipynb", "plan", ("there is no notebooks/00_only.ipynb",)),
        ("echo '{' > notebooks/00_only.ipynb", "run 00_only", ("is not a notebook",)),
        ("printf 'root: [\\n  x: y' > _toc.yml", "build", ("_toc.yml can't be read",)),
        ("printf 'root: \\377' > _toc.yml", "plan", ("_toc.yml can't be read",)),
        ("touch .cache", "build", ("the cache,", "is a file, and not a folder")),
        ("touch .cache", "run 00_only", ("the cache,", "is a file, and not a folder")),
        ("touch _build", "build", ("_build is a file, and not a folder",)),
    ],
)
def test_a_damaged_project_is_named_before_anything_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    break_it: str,
    line: str,
    words: tuple[str, ...],
) -> None:
    trained = fake_rooms(monkeypatch)
    root = make_project(tmp_path / "project")
    monkeypatch.chdir(root)
    monkeypatch.setenv("MSSTAB_CACHE", str(root / ".cache"))
    subprocess.run(break_it, shell=True, check=True)
    before = tree(root)
    result = CliRunner().invoke(cli.app, line.split())
    assert (result.exit_code, result.stdout) == (2, "")
    require_clear(result.stderr, words)
    assert tree(root) == before
    assert trained == []


@pytest.mark.usefixtures("untouched")
def test_a_folder_without_permission_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not by chmod: nothing is forbidden to root, as whom containers run tests.
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != tmp_path)
    for line in (f"build --out {tmp_path}/html", f"run 00_only --out {tmp_path}/x.ipynb"):
        result = CliRunner().invoke(cli.app, line.split())
        assert result.exit_code == 2
        require_clear(result.stderr, (f"no permission to write in {tmp_path}",))


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("missing", ["papermill", "ipykernel", "jupyter_book"])
def test_a_package_that_only_a_book_takes_is_missed_before_training(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "msstab.book.find_spec", lambda name: None if name == missing else find(name)
    )
    for line in ("build", "run 00_only"):
        result = CliRunner().invoke(cli.app, line.split())
        assert (result.exit_code, result.stdout) == (2, "")
        require_clear(result.stderr, (f"{missing} is not installed; pip install", '".[book]"'))


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("line", "hidden", "words"),
    [
        ("buidl", "", ("Did you mean 'build'?",)),
        ("build -p hiden=64", "", ("hiden is not a parameter; did you mean hidden?",)),
        ("check gone", "", ("gone is not a folder",)),
        ("run 00_only", "nbformat", ("nbformat is not installed; pip install", '".[book]"')),
    ],
)
def test_a_real_process_ends_in_the_same_way(
    line: str, hidden: str, words: tuple[str, ...]
) -> None:
    hide = f"import sys; sys.modules[{hidden!r}] = None\n" if hidden else ""
    program = f"{hide}from msstab.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *line.split()], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    require_clear(done.stderr, words)


@pytest.mark.parametrize(
    ("injected", "words"),
    [
        ("hiden = 64", "hiden is not a parameter; did you mean hidden?"),
        ('hidden = "many"', "hidden = 'many': input should be a valid integer"),
        ('track = "hennon"', "'hennon': no such track; did you mean henon?"),
    ],
)
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: str(path.stem))
def test_a_chapter_stops_at_a_wrong_parameter_before_it_computes(
    chapter: Path, injected: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [c for c in nbformat.read(chapter, 4).cells if c.cell_type == "code"]
    opened = Notebook()
    opened.run(cells[0].source)
    opened.run(f"# Parameters\n{injected}\n")
    with pytest.raises(StudyError) as error:
        opened.run(cells[1].source)
    assert words in str(error.value)
    # All that Jupyter shows.
    (line,) = error.value._render_traceback_()
    assert line == f"StudyError: {error.value}"
    assert "found" not in opened.namespace
