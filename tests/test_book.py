import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import (
    CARD,
    PARAMETERS,
    VERDICT,
    code,
    fake_rooms,
    make_project,
    make_whole_project,
    markdown,
    write_notebook,
)

from msstab import book, checks, rebuilt
from msstab.book import BuildError
from msstab.experiment import Progress
from msstab.parts import Part
from msstab.study import Study


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the real front page around small chapters; return the folder of the pages."""
    root = make_whole_project(tmp_path_factory.mktemp("whole"))
    with pytest.MonkeyPatch.context() as patch:
        fake_rooms(patch)
        patch.setenv("SOURCE_DATE_EPOCH", "86400")
        patch.delenv("GITHUB_REPOSITORY", raising=False)
        result = book.build(Study(), root=root, jobs=2)
    assert result.verdict == VERDICT
    assert set(result.timings) == {"trials", "chapters", "pages", "checks"}
    return result.path.parent


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fake_rooms(monkeypatch)
    return make_project(tmp_path / "project")


def fill(project: Path, *cells: tuple[str, str, dict[str, object]]) -> None:
    write_notebook(project / "notebooks" / "00_only.ipynb", [markdown("# Only"), *cells])


def put_former_book(project: Path) -> dict[str, str]:
    html = project / "_build" / "html"
    (html / "notebooks").mkdir(parents=True)
    (html / checks.MANIFEST).write_text('{"study_key": "former"}')
    (html / "index.html").write_text("former")
    (html / "notebooks" / "00_only.html").write_text("former chapter")
    return digests(html)


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def page(html: Path, name: str) -> str:
    return (html / f"{name}.html").read_text(encoding="utf-8")


def test_the_front_page_shows_the_results_and_types_none(whole: Path) -> None:
    text = page(whole, "index")
    for shown in (VERDICT, "The error changed by 0.4%.", "p = 0.51", "8 pairs of networks"):
        assert shown in text
    # In the order in which somebody with two minutes asks.
    asked = re.findall(r"<dt>(.*?)</dt>", text)
    assert [re.sub("<.*?>", "", term) for term in asked] == [
        *("Asked", "Found", "Why", "How sure", "What it means"),
    ]
    assert 'aria-label="An interval around zero"' in text
    assert "{{" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    source = (Path(__file__).parents[1] / "book" / "index.md").read_text()
    assert not re.search(r"\d+(\.\d+)?\s?%|p\s?[=<]\s?0?\.\d", source)


def test_every_page_says_which_run_made_it(whole: Path) -> None:
    pages = [path for path in whole.rglob("*.html") if "_static" not in path.parts]
    assert len(pages) >= 8
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert f'content="{Study().key}"' in text
        footer = re.sub("</?time[^>]*>", "", text[text.index("msstab-provenance") :])
        for shown in (f"<code>{Study().key}</code>", "torch 2.", "built 1970-01-02 00:00 UTC"):
            assert shown in footer


def test_the_manifest_tells_how_to_build_the_same_again(whole: Path) -> None:
    manifest = json.loads((whole / checks.MANIFEST).read_text())
    assert manifest["study_key"] == Study().key
    assert manifest["parameters"] == Study().model_dump(mode="json")
    assert manifest["command"] == "make book PROFILE=full"
    assert (whole / "bench_report.json").read_text() == "{}"
    assert {f"{name}.html" for name in manifest["pages"]} < {
        path.relative_to(whole).as_posix() for path in whole.rglob("*.html")
    }


def test_a_second_build_gives_the_same_bytes_but_for_the_time(whole: Path, tmp_path: Path) -> None:
    root = make_whole_project(tmp_path / "a folder of another name")
    with pytest.MonkeyPatch.context() as patch:
        fake_rooms(patch)
        patch.setenv("SOURCE_DATE_EPOCH", "950000000")
        patch.delenv("GITHUB_REPOSITORY", raising=False)
        again = book.build(Study(), root=root, jobs=1).path.parent
    assert rebuilt.differences(whole, again) == []
    assert page(whole, "index") != page(again, "index")
    files = {path.relative_to(again).as_posix() for path in again.rglob("*")}
    assert {"searchindex.js", "downloads/03_penalty/arms.pdf", "objects.inv"} < files


def test_the_front_page_says_how_to_cite_and_to_run_it(whole: Path) -> None:
    text = page(whole, "index")
    assert "study <code" in text
    assert 'built <time datetime="1970-01-02T00:00:00+00:00">1970-01-02</time>).' in text
    assert "<em>msstab: does a mean-square stability penalty" in text
    assert "git clone --quiet https://github.com/msstab/msstab" in re.sub("<[^>]+>", "", text)
    for name in ("index", "notebooks/03_penalty"):
        footer = page(whole, name).partition("msstab-provenance")[2]
        assert "CC BY 4.0" in footer


def test_scripts_come_after_the_text_and_in_their_order(whole: Path) -> None:
    head, _, rest = page(whole, "theory").partition("</head>")
    (only,) = re.findall(r"<script.*?</script>", head, re.DOTALL)
    assert "dataset.theme" in only
    order = (
        *("</main>", "documentation_options.js", "doctools.js", "let toggleHintShow"),
        *("togglebutton.js", "window.MathJax", "tex-chtml.js", "accessible.js"),
        *("bootstrap.js", "pydata-sphinx-theme.js"),
    )
    places = [rest.index(name) for name in order]
    assert places == sorted(places)


def test_a_chapter_shows_a_numbered_figure_that_follows_the_theme(whole: Path) -> None:
    text = page(whole, "notebooks/03_penalty")
    figure = re.search(r'<figure[^>]*id="fig-arms">(.*?)</figure>', text, re.DOTALL)
    assert figure is not None
    assert 'aria-label="Five arms, each with one peak"' in figure[1]
    assert "currentColor" in figure[1]
    assert '<span class="caption-number">Fig. 1 </span>' in figure[1]
    assert "What the arms do, with" in figure[1]
    assert 'href="#fig-arms"' in text
    assert "<img" not in figure[1]


def test_a_figures_files_lie_in_the_book(whole: Path) -> None:
    text = page(whole, "notebooks/03_penalty")
    links = re.findall(r'<a href="\.\./(downloads/03_penalty/arms\.\w+)" download', text)
    assert [Path(link).suffix for link in links] == [".svg", ".pdf", ".csv"]
    assert (whole / links[2]).read_text().startswith("arm,peak\n0,1\n")
    (whole / links[2]).rename(whole / "away.csv")
    try:
        missing = checks.check(whole, [])
    finally:
        (whole / "away.csv").rename(whole / links[2])
    assert missing == [f"notebooks/03_penalty.html: <a> ../{links[2]} leads nowhere"]


def test_a_chapter_hides_its_parameters_and_runs_with_the_given_ones(whole: Path) -> None:
    text = page(whole, "notebooks/03_penalty")
    assert "32 0" in text
    assert "paired seeds that confirm" not in text


def test_a_chapters_table_has_no_empty_header(whole: Path) -> None:
    text = page(whole, "notebooks/03_penalty")
    assert "a rather long column 8" in text
    assert "<th></th>" not in text


def test_buttons_lead_to_the_source_notebook(whole: Path) -> None:
    links = re.findall(r'href="(https://[^"]+)"', page(whole, "notebooks/03_penalty"))
    notebook = [link for link in links if "03_penalty.ipynb" in link]
    assert {link.split("/")[2] for link in notebook} == {
        "mybinder.org",
        "colab.research.google.com",
        "github.com",
    }
    for link in notebook:
        assert link.endswith("/notebooks/03_penalty.ipynb")
        assert "book/notebooks" not in link
    front = re.findall(r'href="(https://[^"]+)"', page(whole, "index"))
    assert "https://github.com/msstab/msstab/edit/main/book/index.md" in front


def test_a_forks_book_leads_to_the_fork_and_works_below_its_address(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_REPOSITORY", "Ada/report")
    shutil.copy(Path(__file__).parents[1] / "book" / "index.md", project / "book")
    index = project / "book" / "index.md"
    index.write_text(re.sub(r"\]\(notebooks/\w+\)", "](notebooks/00_only)", index.read_text()))
    with (project / "_toc.yml").open("a") as toc:
        toc.writelines(f"- file: {page.stem}\n" for page in (project / "book").glob("[!i]*.md"))
        toc.write("- file: inspect\n")
    html = book.build(Study(), root=project).path.parent
    links = set(re.findall(r'href="(https://[^"]+)"', page(html, "notebooks/00_only")))
    notebook = "notebooks/00_only.ipynb"
    assert {
        f"https://colab.research.google.com/github/Ada/report/blob/main/{notebook}",
        f"https://mybinder.org/v2/gh/Ada/report/main?urlpath=lab/tree/{notebook}",
        f"https://github.com/Ada/report/edit/main/{notebook}",
        "https://ada.github.io/report/notebooks/00_only.html",
    } <= links
    assert not any("msstab/msstab" in link for link in links)
    text = re.sub("<[^>]+>", "", page(html, "index"))
    assert "!git clone --quiet https://github.com/Ada/report\n%cd report" in text
    assert (
        "<loc>https://ada.github.io/report/index.html</loc>" in (html / "sitemap.xml").read_text()
    )
    assert '"og:image" content="https://ada.github.io/report/card.png"' in page(html, "index")
    # The page for addresses that are none is shown at any of them.
    lost = page(html, "404")
    assert lost.index('<base href="/report/" />') < lost.index("<link")
    assert lost.index('<base href="/report/" />') < lost.index("<script")
    assert not re.search(r'(?:href|src)="(?:\.\./|#|/report/(?!"))', lost)
    # An address from the site's root would leave out the folder that a project's pages lie in.
    assert not re.search(r'(?:href|src)="/(?!/)', page(html, "index"))


def test_a_chapter_ends_with_how_it_was_made(whole: Path) -> None:
    text = page(whole, "notebooks/03_penalty").partition('<details class="msstab-colophon">')[2]
    for shown in (
        f"<code>{Study().key}</code>",
        "2 tune, 8 confirm",
        "1,234 networks took 5 min",
        "<code>msstab run 03_penalty --profile full</code>",
        "/blob/main/notebooks/03_penalty.ipynb",
    ):
        assert shown in text
    assert 'id="all-parameters"' in page(whole, "index")
    assert "msstab-colophon" not in page(whole, "theory")


def test_every_page_describes_itself_to_those_who_link_to_it(whole: Path) -> None:
    listed = (whole / "sitemap.xml").read_text()
    for name in ("index", "glossary", "theory", "notebooks/03_penalty"):
        text = page(whole, name)
        assert text.count('name="description"') == text.count('property="og:description"') == 1
    for name in json.loads((whole / checks.MANIFEST).read_text())["pages"]:
        text = page(whole, name)
        assert f'"og:url" content="https://msstab.github.io/msstab/{name}.html"' in text
        assert f"<loc>https://msstab.github.io/msstab/{name}.html</loc>" in listed
    assert listed.count("<loc>") == len(json.loads((whole / checks.MANIFEST).read_text())["pages"])
    assert (whole / "card.png").read_bytes() == CARD


def test_mathematics_and_icons_come_with_the_book(whole: Path) -> None:
    text = page(whole, "notebooks/03_penalty")
    assert 'src="../_static/mathjax/tex-chtml.js"' in text
    assert (whole / "_static" / "mathjax" / "tex-chtml.js").stat().st_size > 500_000
    assert list((whole / "_static" / "mathjax").rglob("*.woff"))
    assert not list(whole.glob("_static/vendor/fontawesome/*/js"))
    assert "thebe" not in text
    assert not re.search(r"<script[^>]*fontawesome", text)
    assert (whole / ".nojekyll").exists()


def test_equations_are_numbered_from_one_on_every_page(whole: Path) -> None:
    """Code cites the theory's equations by number, so a chapter's must not shift them."""
    assert 'id="equation-eq-chapter"' in page(whole, "notebooks/03_penalty")
    source = (Path(__file__).parents[1] / "book" / "theory.md").read_text(encoding="utf-8")
    labels = re.findall(r"^:label: *(\S+)", source, re.MULTILINE)
    shown = re.findall(
        r'id="equation-([\w-]+)">\s*<span class="eqno">\((\d+)\)', page(whole, "theory")
    )
    assert shown == [(label, str(number)) for number, label in enumerate(labels, 1)]


def test_no_machine_path_is_published(whole: Path) -> None:
    root = str(whole.parents[1])
    for path in whole.rglob("*"):
        if path.suffix in {".html", ".ipynb", ".json", ".js"} and path.is_file():
            assert root not in path.read_text(encoding="utf-8"), path


def test_only_the_book_is_left_behind(whole: Path) -> None:
    root = whole.parents[1]
    assert {path.name for path in root.iterdir()} == {
        *("CITATION.cff", "_config.yml", "_toc.yml", "_build", "book", "notebooks"),
    }
    assert {path.name for path in (root / "_build").iterdir()} == {"html", ".lock"}
    assert not (root / "book" / "notebooks").exists()


def test_a_failing_chapter_leaves_the_former_book_to_the_byte(project: Path) -> None:
    former = put_former_book(project)
    fill(project, PARAMETERS, code("total = 1"), code("total / 0"))
    with pytest.raises(BuildError) as error:
        book.build(Study(), root=project)
    assert error.value.exit_code == 1
    assert str(error.value) == (
        "notebooks/00_only.ipynb failed in cell 4, which begins with: total / 0\n"
        "  ZeroDivisionError: division by zero"
    )
    assert digests(project / "_build" / "html") == former
    assert {path.name for path in (project / "_build").iterdir()} == {"html", ".lock"}


def test_a_warning_in_a_page_fails_the_build(project: Path) -> None:
    former = put_former_book(project)
    fill(project, markdown("See {ref}`nowhere`, and {{ unknown }}."), PARAMETERS)
    with pytest.raises(BuildError, match="could not be rendered") as error:
        book.build(Study(), root=project)
    assert "book/notebooks/00_only.ipynb" in str(error.value)
    assert "nowhere" in str(error.value)
    assert "unknown" in str(error.value)
    assert "\x1b" not in str(error.value)
    assert str(project) not in str(error.value)
    assert digests(project / "_build" / "html") == former


def test_a_page_that_fails_its_checks_is_not_published(project: Path) -> None:
    former = put_former_book(project)
    fill(project, markdown('<a href="gone.html">raw HTML, which Sphinx believes</a>'), PARAMETERS)
    with pytest.raises(BuildError, match="did not pass its checks") as error:
        book.build(Study(), root=project)
    assert "notebooks/00_only.html: <a> gone.html leads nowhere" in str(error.value)
    assert digests(project / "_build" / "html") == former


def test_results_of_another_study_are_not_published(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_rooms(monkeypatch, {"study_key": "another"})
    with pytest.raises(BuildError, match="different studies"):
        book.build(Study(), root=project)


def test_an_unrelated_folder_is_refused_before_any_training(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = fake_rooms(monkeypatch)
    (project / "mine").mkdir()
    (project / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(BuildError, match="left alone"):
        book.build(Study(), root=project, out=project / "mine")
    assert trained == []


@pytest.mark.parametrize(
    ("toc", "message"),
    [
        (
            "root: index\nchapters:\n- file: notebooks/09_gone",
            "there is no notebooks/09_gone.ipynb",
        ),
        ("root: home", "there is no book/home.md"),
        ("root: [", "_toc.yml can't be read"),
        ("format: jb-book", "_toc.yml names no page"),
    ],
)
def test_an_incomplete_project_is_refused_before_any_training(
    project: Path, monkeypatch: pytest.MonkeyPatch, toc: str, message: str
) -> None:
    trained = fake_rooms(monkeypatch)
    (project / "_toc.yml").write_text(toc)
    with pytest.raises(BuildError, match=re.escape(message)) as error:
        book.build(Study(), root=project)
    assert error.value.exit_code == 2
    assert trained == []


def test_a_chapter_that_could_not_take_parameters_is_refused(project: Path) -> None:
    fill(project, code("seeds = 3"))
    with pytest.raises(BuildError, match=r"00_only\.ipynb has no cell tagged `parameters`"):
        book.build(Study(), root=project)


def test_a_damaged_notebook_is_refused(project: Path) -> None:
    (project / "notebooks" / "00_only.ipynb").write_text("{")
    with pytest.raises(BuildError, match=r"00_only\.ipynb is not a notebook"):
        book.build(Study(), root=project)


def test_what_a_chapter_needs_is_run_for_the_books_that_have_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def part(name: str) -> Part:
        def run(study: Study, *, jobs: int | None = None, progress: Progress | None = None) -> None:
            assert jobs == 2
            assert progress is not None
            progress(1, 1)
            ran.append(name)

        return run

    names = {name: part(name) for name in ("00_only", "06_other")}
    monkeypatch.setattr(sys.modules["msstab.parts"], "PARTS", names)
    result = book.build(Study(), root=project, jobs=2)
    assert ran == ["00_only"]
    assert "trials of 00_only" in result.timings
    assert "trials of 00_only ready in" in capsys.readouterr().out


def test_the_project_is_found_from_inside_and_from_elsewhere(project: Path, tmp_path: Path) -> None:
    inside = project / "book" / "_static"
    assert book.find_root(inside) == project
    assert book.find_root(tmp_path) == Path(book.__file__).parents[1]


def test_ctrl_c_stops_the_kernels_and_leaves_the_former_book(project: Path) -> None:
    former = put_former_book(project)
    mark = project / "started"
    slow = f"import os, pathlib, time\npathlib.Path({str(mark)!r}).write_text(str(os.getpid()))"
    fill(project, PARAMETERS, code(f"{slow}\ntime.sleep(120)"))
    program = (
        # Where the tests themselves run in a shell's background, Ctrl-C is ignored from the start.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import sys; sys.path.insert(0, sys.argv[1]); import pytest, conftest\n"
        "conftest.fake_rooms(pytest.MonkeyPatch())\n"
        "from msstab.study import Study; from msstab import book; from pathlib import Path\n"
        "book.build(Study(), root=Path(sys.argv[2]))"
    )
    here = str(Path(__file__).parent)
    # No pipe: a kernel that outlives the build for a moment would hold it open.
    build = subprocess.Popen(
        [sys.executable, "-c", program, here, project], stderr=subprocess.DEVNULL
    )
    try:
        wait_until(mark.exists)
        build.send_signal(signal.SIGINT)
        build.wait(timeout=120)
    finally:
        build.kill()
        build.wait()
    assert build.returncode != 0
    wait_until(lambda: not Path(f"/proc/{mark.read_text()}").exists())
    assert digests(project / "_build" / "html") == former
    assert {path.name for path in (project / "_build").iterdir()} == {"html", ".lock"}


def wait_until(condition: object, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    assert callable(condition)
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.mark.slow
def test_the_real_chapters_make_a_book_around_an_arm_of_ones_own(tiny_book: Path) -> None:
    page = (tiny_book / "notebooks" / "03_penalty.html").read_text("utf-8")
    for arm in ("slow states", "noise injection"):
        assert arm in page
