"""The CloudFormation templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

TEMPLATES = Path(__file__).parents[2] / "deploy" / "cloudformation"


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms, whose meaning doesn't matter here."""


_Loader.add_multi_constructor("!", lambda _loader, _suffix, node: str(node.value))


def template(name: str) -> dict[str, Any]:
    """One of them, as it is written."""
    tree: dict[str, Any] = yaml.load((TEMPLATES / f"{name}.yml").read_text(), _Loader)  # noqa: S506 - a safe loader
    return tree
