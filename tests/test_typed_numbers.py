"""Every number that a reader meets is computed: prose types none, but for a list with reasons."""

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import nbformat
import pytest
import yaml

from msstab.report import original_report

REPOSITORY = Path(__file__).parents[1]
ALLOWED: dict[str, dict[str, str]] = yaml.safe_load(
    (REPOSITORY / "tests" / "data" / "allowed_numbers.yml").read_text(encoding="utf-8")
)
"""By file, the phrases that may hold a number, each with the reason."""

WORDS = (
    "three|four|five|six|seven|eight|nine|ten|eleven|twelve|sixteen|twenty|thirty|forty|fifty"
    "|dozen|hundred|thousand|million"
)
# Letters before digits make a name: R1, Q2. Bare 0 and 1 are what something is compared with.
NUMBER = re.compile(
    r"(?<![\w.#])(?![01](?![\d.,]*\d|\s?%))(?:\d[\d.,]*|\.\d+)(?:e[-+]?\d+)?\s?%?(?!\w)"
    rf"|\b(?:{WORDS})\b",
    re.IGNORECASE,
)
EXACT = re.compile(r"(?<![\w.])\d*\.\d+(?!\w)|\d\s?\\?%")
"""What not even a formula or a piece of code needs, unless it is a result or an example."""

# Code and formulas; other fences hold prose, such as a glossary.
FENCE = re.compile(
    r"^(`{3,})(?!\{)[^\n]*\n.*?^\1`*$|^(`{3,})\{(?:math|raw)\}.*?^\2`*$|^`{3,}.*?$",
    re.DOTALL | re.MULTILINE,
)
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$]+\$|(`+)[^`]+\1", re.DOTALL)
TERM = re.compile(r"\{term\}`([^`<]*)[^`]*`")
MARKUP = re.compile(
    r"\A---\n[\s\S]*?\n---\n|^ *:::.*$|^ *:[\w-]+:.*$|^ *\d+\. |\{\{.*?\}\}|\[|\]\([^)]*\)"
    r"|</?[a-z][^>]*>",
    re.MULTILINE,
)
"""Front matter, directives and their options, list numbers, substitutions, addresses, tags."""

EQUATIONS = "theory.md"
"""The page whose formulas hold constants, and examples that test_theory.py recomputes."""

STYLE_SHEET = re.compile(r"\{[^{}]*: [^{}]*;[^{}]*\}")
FORMAT = re.compile(r"\{?[\w:+,]*\.\d+[%efg]\}?")


def typed(text: str, phrases: tuple[str, ...] = (), *, formulas: bool = True) -> list[str]:
    """Return the numbers that a text in Markdown types, each with the words around it.

    But for those in `phrases`; in formulas and code none but decimals and shares, or none at all.
    """
    text = FENCE.sub(" ", text)
    exact = [match[0] for match in FORMULA.finditer(text) if formulas and EXACT.search(match[0])]
    text = said(text)
    for phrase in phrases:
        text = text.replace(phrase, " ")
    return exact + [text[max(0, m.start() - 30) : m.end() + 30] for m in NUMBER.finditer(text)]


def said(text: str) -> str:
    """Return the words of a text on one line, an X for each formula."""
    text = FORMULA.sub("X", TERM.sub(r"\1", FENCE.sub(" ", text)))
    return " ".join(MARKUP.sub("", text).split())


def strings(source: str) -> Iterator[str]:
    """Yield the texts in a program that a reader may meet: no docstrings, formats or names."""
    tree = ast.parse(source)
    unread = {
        id(part)
        for node in ast.walk(tree)
        for part in (
            ast.walk(node)
            if isinstance(node, ast.Raise)
            else ast.walk(node.format_spec)
            if isinstance(node, ast.FormattedValue) and node.format_spec
            else [node.value]
            if isinstance(node, ast.Expr)
            else []
        )
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        is_code = STYLE_SHEET.search(node.value) or FORMAT.fullmatch(node.value)
        if re.search(r" |%", node.value) and not is_code and id(node) not in unread:
            yield node.value


def texts() -> Iterator[tuple[str, str]]:
    """Yield each piece of text of the book's sources, with the name of its file."""
    for path in sorted((REPOSITORY / "notebooks").glob("*.ipynb")):
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type == "markdown":
                yield path.name, cell.source
            elif "parameters" not in cell.metadata.get("tags", []):
                yield (
                    path.name,
                    cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", ""),
                )
                yield from ((path.name, text) for text in strings(cell.source))
    for path in sorted((REPOSITORY / "book").glob("*.md")):
        yield path.name, path.read_text(encoding="utf-8")
    for path in sorted((REPOSITORY / "msstab").rglob("*.py")):
        name = path.relative_to(REPOSITORY / "msstab").as_posix()
        yield from ((name, text) for text in strings(path.read_text(encoding="utf-8")))


def allowed(name: str) -> dict[str, str]:
    """Return the phrases that a file may hold, and why."""
    found = dict(ALLOWED["everywhere"])
    for pattern, phrases in ALLOWED.items():
        if fnmatch(name, pattern):
            found |= phrases
    return found


TEXTS = list(texts())


def test_no_number_is_typed_where_a_reader_meets_it() -> None:
    found = [
        f"{name}: {number}"
        for name, text in TEXTS
        if "*" not in allowed(name)
        for number in typed(text, tuple(allowed(name)), formulas=name != EQUATIONS)
    ]
    assert not found, "compute these, or say in allowed_numbers.yml why not:\n" + "\n".join(found)


def test_what_is_allowed_is_still_there_and_has_a_reason() -> None:
    stale = []
    for pattern, phrases in ALLOWED.items():
        own = [text for name, text in TEXTS if pattern == "everywhere" or fnmatch(name, pattern)]
        joined = " ".join(said(text) for text in own)
        assert own, f"{pattern} is no file of the book"
        stale += [f"{pattern}: {p}" for p in phrases if p != "*" and p not in joined]
        assert all(len(reason) > 3 for reason in phrases.values())
    assert not stale, "no longer said:\n" + "\n".join(stale)


def test_the_original_has_as_many_pairs_as_is_said() -> None:
    bench = original_report().bench_report
    assert len(bench.baseline.full.per_seed) == len(bench.idea.per_seed) == 8


@pytest.mark.parametrize(
    "text",
    [
        *("The error fell by 4.1%.", "It fell by 4 %.", "p = .03", "of 16 networks", "a factor 3"),
        *("$p = 0.03$", "the ratio `1.04`", "to 1.5e-3", "about seven times", "| 12 | 3.4 |"),
        *("In 100% of runs", "1% of it", "0.5", "a gain of −2.3 points", "1,024 seeds"),
    ],
)
def test_a_typed_result_is_found(text: str) -> None:
    assert typed(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Rule R1 on track Q2",
            "a ratio of 1, a strength of 0.",
            "{{ pairs }} pairs",
            "$h_{t+1}$",
        ),
        *("[the verdict](05_verdict.ipynb)", "1. First\n2. Second", "```python\nx = 0.3\n```"),
        *(":::{grid} 1 1 3 3\n:gutter: 3\n:::", '<img width="12">', "`noise.unit`, $J^2$"),
    ],
)
def test_what_is_no_result_is_passed_over(text: str) -> None:
    assert not typed(text)


def test_numbers_are_found_in_what_a_program_says_and_not_in_how_it_writes() -> None:
    program = '''
"""A docstring says 4.1%."""
def f(x):
    "It falls by 4.2%."
    if x > 0.3:
        raise ValueError("give 4.3% or less")
    write("{:.1%}", x)
    return f"It falls by {x:8.4f} and not by 4.4% as {x:.0%}"
'''
    assert [number for text in strings(program) for number in typed(text)] == ["and not by 4.4% as"]
