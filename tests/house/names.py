"""Names of classes and of modules, and which of them occur twice."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.support.syntax import tree_of


def classes_of_one_name(root: Path) -> dict[str, list[str]]:
    """Return the classes, private ones too, whose name several modules define, with those modules.

    A class of the public face may have the name of the one that it stands for, if its module imports that one.
    """
    places: defaultdict[str, list[Path]] = defaultdict(list)
    for file in sorted(root.rglob("*.py")):
        for node in tree_of(file).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(file)
    return {
        name: [str(file.relative_to(root)) for file in files]
        for name, files in places.items()
        if len(files) > 1 and not (FACE in {file.parent.name for file in files} and _are_linked(root, files))
    }


FACE = "api"
"""The package of what `import sparkmirror` offers."""


VIEWS = frozenset({"cli", "doctor"})
"""Packages whose modules bear the names of what they show: a verb for it, or the doctor's rules about it."""


def modules_of_one_name(root: Path) -> dict[str, list[str]]:
    """Return the names that modules about different things share, with those modules.

    Modules of one name are about the same thing if each of them imports another, or is imported by another; and if they
    are in `VIEWS`.
    """
    places: defaultdict[str, list[Path]] = defaultdict(list)
    for file in sorted(root.rglob("*.py")):
        if file.stem != "__init__" and VIEWS.isdisjoint(file.relative_to(root).parts):
            places[file.stem].append(file)
    return {
        name: [str(file.relative_to(root)) for file in files]
        for name, files in places.items()
        if len(files) > 1 and not _are_linked(root, files)
    }


def _are_linked(root: Path, files: list[Path]) -> bool:
    names = {file: ".".join((root.name, *file.relative_to(root).with_suffix("").parts)) for file in files}
    imported = {file: _imports(file) for file in files}
    return all(
        any(names[other] in imported[file] or names[file] in imported[other] for other in files if other != file)
        for file in files
    )


def _imports(file: Path) -> set[str]:
    imports: set[str] = set()
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            imports |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
    return imports
