"""Names of results: a digest of what was asked, and one of the code and versions that answered."""

import ast
import hashlib
from functools import cache
from pathlib import Path

import numpy as np
import scipy
import torch

from msstab.study import digest

_DIGITS = 32


def key(content: object, rooms: tuple[str, ...], *, of: tuple[str, ...] = ()) -> str:
    """Return the name of a result: what was asked for, a hyphen, and what made it.

    `content` is what was asked, as JSON can hold it; `of` are the names of results that this one
    is made from. `rooms` are the modules or packages that made it, beside those of `of`.
    """
    asked, made = zip(*(name.split("-") for name in of), strict=True) if of else ((), ())
    made_by = digest([_code(rooms), *_versions(), *made])
    return f"{digest([content, *asked])[:_DIGITS]}-{made_by[:_DIGITS]}"


def question(name: str) -> str:
    """Return the part of a result's name that says what was asked, whatever answered it."""
    return name.partition("-")[0]


@cache
def _code(rooms: tuple[str, ...]) -> str:
    """Digest of what the named modules do: their syntax trees, without comments and docstrings."""
    folder = Path(__file__).parent
    files = [
        file
        for room in rooms
        for file in (sorted((folder / room).glob("*.py")) or [folder / f"{room}.py"])
    ]
    trees = (ast.dump(_WithoutText().visit(ast.parse(file.read_text("utf-8")))) for file in files)
    return hashlib.sha256("\n".join(trees).encode()).hexdigest()


class _WithoutText(ast.NodeTransformer):
    """Drops statements that are nothing but text, as docstrings are."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        """Keep a statement unless it is text."""
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if text else node


@cache
def _versions() -> tuple[str, ...]:
    return torch.__version__, np.__version__, scipy.__version__
