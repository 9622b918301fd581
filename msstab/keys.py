"""Names of results: a digest of everything they depend on, parameters, code and versions."""

import ast
import hashlib
from functools import cache
from pathlib import Path

import numpy as np
import torch

from msstab.study import digest


def key(content: object, rooms: tuple[str, ...]) -> str:
    """Return the name of a result: what JSON can hold, and the modules or packages that made it."""
    return digest([content, _code(rooms), *_versions()])


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
def _versions() -> tuple[str, str]:
    return torch.__version__, np.__version__
