"""What publishes the report: workflows, Binder's files, the citation and the licences."""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import msstab

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(params=WORKFLOWS, ids=lambda path: str(path.stem))
def path(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def jobs(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = load(path)["jobs"]
    return found


def steps(path: Path) -> Iterator[Any]:
    for job in jobs(path).values():
        yield from job["steps"]


def step_named(name: str) -> Any:
    (found,) = (step for step in steps(ROOT / ".github/workflows/book.yml") if name in str(step))
    return found


def follows_schema(schema: str, *paths: Path) -> bool:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    done = subprocess.run([*command, *map(str, paths)], capture_output=True, check=False)
    return done.returncode == 0


# ---- workflows


def test_workflows_follow_the_published_schema(tmp_path: Path) -> None:
    assert [path.stem for path in WORKFLOWS] == ["book", "test"]
    assert follows_schema("vendor.github-workflows", *WORKFLOWS)
    wrong = WORKFLOWS[0].read_text().replace("runs-on:", "run-on:")
    (tmp_path / "wrong.yml").write_text(wrong)
    assert not follows_schema("vendor.github-workflows", tmp_path / "wrong.yml")


def test_nothing_in_the_workflows_is_known_to_be_unsafe() -> None:
    zizmor = Path(sysconfig.get_path("scripts"), "zizmor")
    options = ["--offline", "--no-progress", "--persona", "pedantic"]
    done = subprocess.run(
        [zizmor, *options, ROOT / ".github"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_actions_are_the_official_ones_of_a_fixed_commit(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert re.search(r"uses: actions/[a-z-]+(/[a-z]+)?@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)


def test_only_publishing_may_write_and_every_job_ends(path: Path) -> None:
    assert load(path)["permissions"] == {"contents": "read"}
    for name, job in jobs(path).items():
        assert job["timeout-minutes"] <= 180
        writes = {scope for scope, mode in job.get("permissions", {}).items() if mode == "write"}
        assert writes == ({"pages", "id-token"} if name == "publish" else set())
    for step in steps(path):
        if "checkout" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False


def test_what_a_workflow_runs_are_goals_of_make_that_exist(path: Path) -> None:
    goals = set(re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    made: set[str] = set()
    for step in steps(path):
        lines = step.get("run", "").splitlines()
        made |= {line.removeprefix("make ") for line in lines if line.startswith("make ")}
        syntax = ["bash", "-n", "-c", step.get("run", "")]
        assert subprocess.run(syntax, check=False).returncode == 0
    assert made == {"book": {"book", "check"}, "test": {"test"}}[path.stem]
    assert made <= goals
    for goal in made:  # a dry run fails for a goal, or a file it needs, that is not there
        dry = ["make", "--dry-run", goal, "VENV=/nonexistent/venv"]
        subprocess.run(dry, cwd=ROOT, check=True, capture_output=True)


def test_tests_run_as_the_readme_says_on_every_python_that_is_supported() -> None:
    assert "make test " in (ROOT / "README.md").read_text()
    test = jobs(ROOT / ".github/workflows/test.yml")["test"]
    versions = test["strategy"]["matrix"]["python"]
    assert f">={versions[0]}" == PROJECT["requires-python"]
    assert versions == sorted(versions)
    assert load(ROOT / ".github/workflows/test.yml")[True] == ["push", "pull_request"]


def test_outputs_that_are_used_are_those_of_a_step_before(path: Path) -> None:
    for job in jobs(path).values():
        seen: set[str] = set()
        for step in job["steps"]:
            assert set(re.findall(r"steps\.(\w+)\.", str(step))) <= seen
            seen |= {step["id"]} if "id" in step else set()
        used = re.findall(r"steps\.(\w+)\.", str({k: v for k, v in job.items() if k != "steps"}))
        assert set(used) <= seen
        assert {job["needs"]} <= jobs(path).keys() if "needs" in job else True


def test_trials_are_kept_even_where_the_build_fails_and_named_after_what_they_are(
    tmp_path: Path,
) -> None:
    naming, saving = step_named("name the collection"), step_named("actions/cache/save")
    restoring = step_named("actions/cache/restore")
    assert naming["if"].startswith("${{ !cancelled()")
    assert saving["if"].startswith("${{ !cancelled()")
    prefix = restoring["with"]["restore-keys"]
    assert saving["with"]["key"].startswith(prefix)
    assert saving["with"]["key"].endswith("${{ steps.trials.outputs.names }}")
    assert restoring["with"]["path"] == saving["with"]["path"] == ".cache"

    def name() -> str:
        output = tmp_path / "output"
        output.write_text("")
        variables = {**os.environ, "GITHUB_OUTPUT": str(output)}
        command = ["bash", "-euo", "pipefail", "-c", naming["run"]]
        subprocess.run(command, cwd=tmp_path, env=variables, check=True)
        found = re.fullmatch(r"names=([0-9a-f]{16})\n", output.read_text())
        assert found is not None
        return found[1]

    empty = name()
    folder = tmp_path / ".cache" / "train" / "ab"
    folder.mkdir(parents=True)
    (folder / "abc.npz").write_bytes(b"1")
    one = name()
    (folder / "abc.partial").write_bytes(b"")
    assert name() == one != empty
    (folder / "abd.npz").write_bytes(b"2")
    assert name() not in {one, empty}


def test_a_pull_request_hands_out_the_book_and_main_publishes_it() -> None:
    artifact = step_named("actions/upload-artifact@")
    assert artifact["if"] == "${{ github.event_name == 'pull_request' }}"
    pages = step_named("actions/upload-pages-artifact@")
    assert artifact["with"]["path"] == pages["with"]["path"] == "_build/html"
    publish = jobs(ROOT / ".github/workflows/book.yml")["publish"]
    assert pages["if"] == publish["if"] == "${{ github.ref == 'refs/heads/main' }}"
    order = [str(step) for step in steps(ROOT / ".github/workflows/book.yml")]
    checked = next(k for k, step in enumerate(order) if "make check" in step)
    published = next(k for k, step in enumerate(order) if "upload-pages-artifact" in step)
    assert checked < published


# ---- Binder


def test_binder_installs_what_the_chapters_need() -> None:
    script = ROOT / "binder" / "postBuild"
    assert os.access(script, os.X_OK)
    text = script.read_text()
    assert "--constraint constraints.txt" in text
    assert '--editable ".[book]"' in text
    assert "book" in PROJECT["optional-dependencies"]
    subprocess.run(["bash", "-n", script], check=True)
    version = (ROOT / "binder" / "runtime.txt").read_text().strip().removeprefix("python-")
    test = jobs(ROOT / ".github/workflows/test.yml")["test"]
    assert version in test["strategy"]["matrix"]["python"]


# ---- citation and licences


def test_the_citation_follows_its_schema_and_the_project(tmp_path: Path) -> None:
    path = ROOT / "CITATION.cff"
    assert follows_schema("vendor.citation-file-format", path)
    (tmp_path / "wrong.cff").write_text(path.read_text().replace("authors:", "writers:"))
    assert not follows_schema("vendor.citation-file-format", tmp_path / "wrong.cff")
    content, config = load(path), load(ROOT / "_config.yml")
    assert content["version"] == msstab.__version__
    assert content["repository-code"] == config["repository"]["url"]
    assert content["url"] == config["html"]["baseurl"]
    assert content["license"] == [PROJECT["license"], "CC-BY-4.0"]


def test_both_licences_are_there_and_named_where_readers_look() -> None:
    assert (ROOT / "LICENSE").read_text().startswith("BSD 3-Clause License")
    text = (ROOT / "LICENSE-TEXT").read_text()
    assert "https://creativecommons.org/licenses/by/4.0/legalcode" in text
    for page in ("README.md", "book/index.md"):
        words = " ".join((ROOT / page).read_text().split())
        assert "CC BY 4.0" in words
        assert "BSD 3-Clause" in words
