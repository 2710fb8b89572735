"""Values with many fields, and calls that name none of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.syntax import tree_of

WIDE = 5
"""Fields from which on nobody knows their order by heart."""

HOT = frozenset({"wire", "pump", "position", "durable", "maps", "frames"})
"""Packages that work batch by batch, or record by record.

Their wide `NamedTuple`s are made for each batch: a call by keyword takes longer there.
"""


@dataclass(frozen=True, slots=True)
class WideClass:
    """A class with `WIDE` fields or more."""

    name: str
    file: Path
    line: int
    is_tuple: bool
    """True for a `NamedTuple`, which can't be keyword-only."""
    keyword_only: bool


def _wide_classes(file: Path, nodes: list[ast.AST]) -> Iterator[WideClass]:
    """Yield a module's dataclasses and `NamedTuple`s with many fields."""
    for node in nodes:
        if isinstance(node, ast.ClassDef) and _fields(node) >= WIDE:
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            made = [decorator for decorator in decorators if decorator.startswith(("dataclass", "dataclasses."))]
            is_tuple = any(ast.unparse(base).endswith("NamedTuple") for base in node.bases)
            if made or is_tuple:
                yield WideClass(node.name, file, node.lineno, is_tuple, "kw_only=True" in "".join(made))


def _fields(node: ast.ClassDef) -> int:
    return sum(
        isinstance(statement, ast.AnnAssign) and "ClassVar" not in ast.unparse(statement.annotation)
        for statement in node.body
    )


def positional(root: Path) -> list[str]:
    """Return wide values that are made by position, as `file:line name`."""
    classes: list[WideClass] = []
    calls: list[tuple[str, str]] = []
    for file in sorted(root.rglob("*.py")):
        nodes = list(ast.walk(tree_of(file)))
        classes += _wide_classes(file, nodes)
        calls += _calls_by_position(file, nodes)
    loose = [f"{wide.file}:{wide.line} {wide.name}" for wide in classes if not (wide.is_tuple or wide.keyword_only)]
    named = {wide.name for wide in classes if wide.is_tuple and HOT.isdisjoint(wide.file.relative_to(root).parts)}
    return loose + [f"{place} {name}" for place, name in calls if name in named]


def _calls_by_position(file: Path, nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield place and name of each call that gives a value without its name."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            yield f"{file}:{node.lineno}", node.func.id
