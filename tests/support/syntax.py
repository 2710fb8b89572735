"""Syntax trees of modules."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def tree_of(file: Path) -> ast.Module:
    """Parse a module, without looking for garbage meanwhile: in a large process that takes longer than parsing."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(file.read_text("utf-8"))
    finally:
        if collects:
            gc.enable()
