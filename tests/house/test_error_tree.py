"""Each exception of ours derives from one of the two roots in `errors.py`, whose page names what a user meets."""

from __future__ import annotations

import ast
import builtins
from functools import cache
from pathlib import Path

from tests.support.syntax import tree_of

import sparkmirror
from sparkmirror import errors

SOURCE = Path(sparkmirror.__file__).parent
ROOTS = {"SparkMirrorError", "HandledError"}


@cache
def bases(root: Path) -> dict[str, list[str]]:
    """The names of each class's bases, without their modules; no two classes share a name."""
    return {
        node.name: [ast.unparse(base).rpartition(".")[2] for base in node.bases]
        for file in sorted(root.rglob("*.py"))
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.ClassDef)
    }


def lineage(name: str, tree: dict[str, list[str]]) -> set[str]:
    """The name, and those of all classes that it derives from."""
    return {name}.union(*(lineage(base, tree) for base in tree.get(name, ())))


def is_exception(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


def strays(root: Path) -> list[str]:
    """Exceptions outside the tree."""
    tree = bases(root)
    lines = {name: lineage(name, tree) for name in tree}
    return sorted(name for name, line in lines.items() if any(map(is_exception, line)) and not line & ROOTS)


def test_each_exception_is_in_the_tree() -> None:
    assert strays(SOURCE) == []


def test_the_page_draws_what_a_user_meets() -> None:
    met = [name for name, parents in bases(SOURCE).items() if "SparkMirrorError" in parents]
    assert len(met) > 5
    assert [name for name in met if f"─ {name} " not in str(errors.__doc__)] == []


def test_a_stray_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "class SparkMirrorError(Exception): ...\n"
        "class Away(SparkMirrorError, ConnectionError): ...\n"
        "class Lost(KeyError): ...\n"
        "class Farther(Lost): ...\n"
        "class Value(int): ...\n"
    )
    assert strays(tmp_path) == ["Farther", "Lost"]
