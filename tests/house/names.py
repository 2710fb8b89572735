"""Names of classes, and which of them occur twice."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path


def classes_of_one_name(root: Path) -> dict[str, list[str]]:
    """Return the classes, private ones too, whose name several modules define, with those modules."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted(root.rglob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(file.relative_to(root)))
    return {name: files for name, files in places.items() if len(files) > 1}
