"""YAML with each value's line in it.

`as_text` makes scalars text, as the operator hands them to Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sparkmirror.errors import ConfigError

Path_ = tuple[str | int, ...]
"""Keys and indexes from a document's root."""
Fill = Callable[[str], str]
"""Function that each text in a file passes before it is read: `formats.fill`."""

DEEPEST = 50
"""Deepest nesting that is allowed; an alias within its own anchor has no end."""
MOST_VALUES = 100_000
"""Most values in a file.

Each alias counts as the values that it stands for: a few lines with aliases may stand for billions.
"""
_TEMPLATE = "is a template, not rendered yet: give what helm template RELEASE CHART prints"
_LONGEST_NUMBER = 20
"""Most characters in a number: 64 bits."""


@dataclass(frozen=True, slots=True)
class Document:
    """Document in a file."""

    path: str
    tree: dict[str, Any]
    """Mappings, lists, text, booleans, integers and None."""
    lines: dict[Path_, int] = field(default_factory=dict)

    def line(self, *steps: str | int) -> int:
        """Return the line that has a value, or the value around it."""
        while steps and steps not in self.lines:
            steps = steps[:-1]
        return self.lines.get(steps, 1)

    def error(self, steps: Path_, reason: str, field: str | None = None) -> ConfigError:
        """Return an error for the caller to raise.

        `field` is the place's name, if `steps` would not be right.
        """
        return ConfigError(reason, origin=f"{self.path}, line {self.line(*steps)}", key=field or shown(steps) or None)


def shown(steps: Iterable[str | int]) -> str:
    """Return steps as users write them: `spec.mirrors[0].source`."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.lstrip(".")


def read_text(path: str) -> str:
    """Return a file's text; raise `ConfigError`."""
    try:
        return Path(path).read_text("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError("there is no such file", origin=path) from None
    except IsADirectoryError:
        raise ConfigError("is a directory", origin=path) from None
    except OSError as error:
        raise ConfigError(f"can't be read: {error.strerror}", origin=path) from None
    except UnicodeDecodeError:
        raise ConfigError("is no text in UTF-8", origin=path) from None


def documents_of(path: str, text: str, fill: Fill | None = None) -> list[Document]:
    """Return all documents in a file that are mappings; raise `ConfigError`.

    A `List` is replaced by its items.
    """
    if text.lstrip().startswith("{"):
        text = text.replace("\t", " ")  # JSON may be indented by tabs, and has none within its strings
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
        return [item for document in _documents(path, nodes, fill) for item in _items(document)]
    except RecursionError:
        raise ConfigError("is nested too deeply to be read", origin=path) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        location = f"{path}, line {mark.line + 1}" if mark else path
        around = text.splitlines()[max(mark.line - 1, 0) : mark.line + 1] if mark else []
        reason = f"is no YAML: {error.problem or 'it can not be read'}"
        if any("{{" in line for line in around):
            reason = _TEMPLATE
        raise ConfigError(reason, origin=location) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"is no YAML: {' '.join(str(error).split())}", origin=path) from None


def _items(document: Document) -> Iterator[Document]:
    """Yield the items in a `List`, which `kubectl get -o yaml` prints.

    Any other document is yielded as it is.
    """
    kind, items = document.tree.get("kind"), document.tree.get("items")
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)):
        yield document
        return
    lines: list[dict[Path_, int]] = [{} for _ in items]
    for steps, line in document.lines.items():
        if len(steps) > 1 and steps[0] == "items" and isinstance(steps[1], int):
            lines[steps[1]][steps[2:]] = line
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise document.error(("items", index), "is not a mapping")
        yield from _items(Document(document.path, item, lines[index]))


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")


def _documents(path: str, nodes: list[Any], fill: Fill | None) -> Iterator[Document]:
    for node in nodes:
        if node is None or _is_null(node):  # as kubectl passes over empty documents
            continue
        lines: dict[Path_, int] = {}
        tree = _value(path, node, (), lines, fill)
        if not isinstance(tree, dict):
            raise ConfigError("is not a mapping", origin=f"{path}, line {node.start_mark.line + 1}")
        yield Document(path, tree, lines)


def _value(path: str, node: yaml.Node, steps: Path_, lines: dict[Path_, int], fill: Fill | None) -> Any:
    lines.setdefault(steps, node.start_mark.line + 1)
    if len(lines) > MOST_VALUES:
        raise ConfigError(
            f"stands for more than {MOST_VALUES:,} values: is there an alias for aliases of aliases?", origin=path
        )
    if len(steps) > DEEPEST:
        raise ConfigError(
            f"is nested more than {DEEPEST} deep: is there an alias within what its anchor names?",
            origin=f"{path}, line {node.start_mark.line + 1}",
            key=shown(steps[:3]),
        )
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if isinstance(key_node, yaml.MappingNode):  # what {{ … }} is without quotes
                at = f"{path}, line {key_node.start_mark.line + 1}"
                raise ConfigError(_TEMPLATE, origin=at, key=shown(steps) or None)
            key = fill(str(key_node.value)) if fill else str(key_node.value)
            line = key_node.start_mark.line + 1
            if key in mapping:
                raise ConfigError("is there twice", origin=f"{path}, line {line}", key=key)
            lines[*steps, key] = line
            mapping[key] = _value(path, value_node, (*steps, key), lines, fill)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_value(path, item, (*steps, index), lines, fill) for index, item in enumerate(node.value)]
    if fill is not None and isinstance(node, yaml.ScalarNode) and (filled := fill(node.value)) != node.value:
        # Text without quotes may become a number, as if the user had written the value there.
        plain = (node.style is None, False)
        return _scalar(yaml.SafeLoader("").resolve(yaml.ScalarNode, filled, plain), filled)  # type: ignore[no-untyped-call]
    return _scalar(node.tag, str(node.value))


def _scalar(tag: str, text: str) -> Any:
    kind = tag.rpartition(":")[2]
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("true", "yes", "on")
    if kind == "int" and text.lstrip("+-").isdigit() and len(text) <= _LONGEST_NUMBER:
        return int(text, 8 if re.fullmatch("[-+]?0[0-7]+", text) else 10)
    return text


def is_setting(value: Any) -> bool:
    """True if a value may stand in a settings map: a scalar, or a list of scalars."""
    items = value if isinstance(value, list) else [value]
    return not any(isinstance(item, (list, dict)) for item in items)


def as_text(value: Any) -> str:
    """Return a value in a settings map as Java's `String.valueOf` shows it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(map(as_text, value))
    return "" if value is None else str(value)
