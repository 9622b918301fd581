"""Which run made a book: its parameters, versions and date, for its pages and its manifest."""

import os
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

import yaml

from msstab.study import Study, profile

DAY = "<time></time>"
"""Where a page's text has the day of the build, which is filled in last (`build_day`).

The search index, made of the text, then doesn't change from day to day.
"""


def versions(root: Path) -> dict[str, str]:
    """Return what decides a run's numbers besides its parameters, the code's commit included."""
    found = {"msstab": version("msstab"), "Python": python_version()}
    found |= {name: version(name) for name in ("torch", "numpy")}
    commit = _commit(root)
    return found | ({"commit": commit} if commit else {})


def build_time() -> datetime:
    """Return the time to print: now, or SOURCE_DATE_EPOCH, which makes a build reproducible."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch.isdecimal():
        return datetime.fromtimestamp(int(epoch), UTC)
    return datetime.now(UTC).replace(microsecond=0)


def changes(study: Study, profile_name: str) -> dict[str, Any]:
    """Return the parameters in which a study differs from a profile."""
    base = profile(profile_name).model_dump(mode="json")
    given = study.model_dump(mode="json")
    return {name: value for name, value in given.items() if value != base[name]}


def options(study: Study, profile_name: str) -> str:
    """Return the options that give a command of msstab the same parameters, with a space ahead."""
    pairs = [f" -p {name}={_plain(value)}" for name, value in changes(study, profile_name).items()]
    return f" --profile {profile_name}{''.join(pairs)}"


def rerun_command(study: Study, profile_name: str) -> str:
    """Return the command that builds the same book again."""
    pairs = [f"-p {name}={_plain(value)}" for name, value in changes(study, profile_name).items()]
    arguments = f' ARGS="{" ".join(pairs)}"' if pairs else ""
    return f"make book PROFILE={profile_name}{arguments}"


def manifest(study: Study, profile_name: str, root: Path) -> dict[str, Any]:
    """Return what the file beside a book's pages says about the run."""
    return {
        "study_key": study.key,
        "profile": profile_name,
        "parameters": study.model_dump(mode="json"),
        "versions": versions(root),
        "built": build_time().isoformat(),
        "command": rerun_command(study, profile_name),
        "citation": citation(root),
    }


def citation(root: Path) -> dict[str, str]:
    """Return what `CITATION.cff` says of how to cite: authors, title, version, address.

    A project without that file says nothing.
    """
    path = root / "CITATION.cff"
    if not path.is_file():
        return {}
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    names = [author.get("name") or _person(author) for author in content["authors"]]
    said = {"authors": ", ".join(names), "title": content["title"]}
    return said | {name: str(content[name]) for name in ("version", "url") if name in content}


def page_values(facts: dict[str, Any], study: Study) -> dict[str, str]:
    """Return the manifest as texts in Markdown, which pages use as substitutions.

    When a book was built is the one thing in its pages that a second build changes.
    """
    changed = changes(study, facts["profile"])
    listed = ", ".join(f"`{name} = {_plain(value)}`" for name, value in changed.items())
    return {
        "study_key": facts["study_key"],
        "versions": ", ".join(f"{name} {text}" for name, text in facts["versions"].items()),
        "build_day": _time(facts["built"], "%Y-%m-%d"),
        "build_date": f"built {_time(facts['built'], '%Y-%m-%d %H:%M UTC')}",
        "how_to_cite": _how_to_cite(facts),
        "profile_line": f"profile `{facts['profile']}`" + (f" with {listed}" if listed else ""),
        "rerun_command": f"`{facts['command']}`",
        "options": options(study, facts["profile"]),
        "parameters_table": parameters_table(study),
    }


def parameters_table(study: Study) -> str:
    """Return all parameters as a Markdown table, those that differ from the defaults in bold."""
    defaults = Study().model_dump(mode="json")
    lines = ["| Parameter | Value | Default | Meaning |", "| --- | --- | --- | --- |"]
    for name, value in study.model_dump(mode="json").items():
        shown, default = _plain(value, ", "), _plain(defaults[name], ", ")
        shown = shown if value == defaults[name] else f"**{shown}**"
        meaning = Study.model_fields[name].description or ""
        lines.append(f"| `{name}` | {shown} | {default} | {meaning} |")
    return "\n".join(lines)


def _how_to_cite(facts: dict[str, Any]) -> str:
    cited = facts["citation"]
    version = f"version {cited['version']}, " if "version" in cited else ""
    run = f"{version}study `{facts['study_key']}`, built {DAY}"
    if not cited:
        return run
    address = f" <{cited['url']}>" if "url" in cited else ""
    return f"{cited['authors']}: *{cited['title']}* ({run}).{address}"


def _time(built: str, form: str) -> str:
    """Return a time as an element of its own."""
    return f'<time datetime="{built}">{datetime.fromisoformat(built).strftime(form)}</time>'


def _person(author: dict[str, str]) -> str:
    return " ".join(author[name] for name in ("given-names", "family-names") if name in author)


def _plain(value: object, separator: str = ",") -> str:
    """Write a value as the command line takes it."""
    return separator.join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _commit(root: Path) -> str:
    """Return the commit of the code, marked when files differ from it; empty outside of git."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty=+changes", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
