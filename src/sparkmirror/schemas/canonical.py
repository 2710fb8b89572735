"""Canonical form of schemas: equal schemas get equal forms.

The form drops blanks, comments and different spellings of the same schema. Documentation, defaults, aliases and logical
types count, because readers see them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from sparkmirror.errors import HandledError
from sparkmirror.schemas.registry import Schema, SchemaReference

AVRO, JSON = "AVRO", "JSON"

_PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
_NAMED = frozenset(("record", "error", "enum", "fixed"))
_TOKENS = re.compile(
    r"""(//[^\n]*|/\*.*?\*/|\s+)"""  # blanks and comments
    r"""|("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[\w.]+|.)""",
    re.DOTALL,
)
_DEEPEST = 50
"""Longest reference chain that is followed."""

Resolve: TypeAlias = Callable[[SchemaReference], Schema | None]


class Unresolved(HandledError):
    """A schema refers to another schema that its registry does not have."""


@dataclass(frozen=True, slots=True)
class Canonical:
    """A schema to compare; `form` is JSON, or a Protobuf file's tokens."""

    type: str
    form: Any
    references: Mapping[str, Canonical]
    """Referenced schemas by their names in the schema.

    Subjects and versions may differ.
    """

    def difference(self, other: Canonical) -> str:
        """Return the first difference in words; an empty text for equal schemas."""
        if self.type != other.type:
            return f"{self.type}, at the target {other.type}"
        if words := _difference(self.form, other.form, ""):
            return words
        for name in sorted(self.references.keys() | other.references.keys()):
            here, there = self.references.get(name), other.references.get(name)
            if here is None or there is None:
                return f"reference {name} is {'not ' if here is None else ''}there, at the target it is otherwise"
            if words := here.difference(there):
                return f"reference {name}: {words}"
        return ""


def canonical(schema: Schema, resolve: Resolve, depth: int = 0) -> Canonical:
    """Return a schema with all that it refers to. Raises `Unresolved`."""
    references = {}
    for reference in schema.references:
        needed = resolve(reference) if depth < _DEEPEST else None
        if needed is None:
            raise Unresolved(f"{reference.name}, which is version {reference.version} of {reference.subject}")
        references[reference.name] = canonical(needed, resolve, depth + 1)
    return Canonical(schema.type, _form(schema), references)


def _form(schema: Schema) -> Any:
    if schema.type in (AVRO, JSON):
        try:
            tree = json.loads(schema.text)
            return _avro(tree, "") if schema.type == AVRO else tree
        except RecursionError:
            return schema.text
        except ValueError:
            if schema.type == AVRO and schema.text.strip() in _PRIMITIVES:  # some registries drop its quotes
                return schema.text.strip()
    return [token for blank, token in _TOKENS.findall(schema.text) if not blank]


def _avro(node: Any, space: str) -> Any:
    """Return a type with full names, and the short spelling for simple types.

    For example, `{"type": "string"}` becomes `"string"`.
    """
    if isinstance(node, str):
        return _full(node, space)
    if isinstance(node, list):
        return [_avro(branch, space) for branch in node]
    if not isinstance(node, dict) or "type" not in node:
        return node
    kind = node["type"]
    if len(node) == 1 and (not isinstance(kind, str) or kind not in _NAMED):
        return _avro(kind, space)
    out = dict(node)
    if isinstance(kind, str) and kind in _NAMED:
        stated = out.pop("namespace", None)
        out["name"] = _full(str(node.get("name")), space if stated is None else str(stated))
        space = out["name"].rpartition(".")[0]
        if isinstance(node.get("fields"), list):
            out["fields"] = [_avro_field(field, space) for field in node["fields"]]
        return out
    if not isinstance(kind, str):
        out["type"] = _avro(kind, space)
    for part in ("items", "values"):
        if part in out:
            out[part] = _avro(out[part], space)
    return out


def _avro_field(field: Any, space: str) -> Any:
    return {**field, "type": _avro(field["type"], space)} if isinstance(field, dict) and "type" in field else field


def _full(name: str, space: str) -> str:
    return name if name in _PRIMITIVES or "." in name or not space else f"{space}.{name}"


def _difference(here: Any, there: Any, path: str) -> str:
    """Return the first difference between two JSON values; an empty text if none.

    Numbers and truth values of different kinds differ.
    """
    if isinstance(here, dict) and isinstance(there, dict):
        for key in (*here, *(key for key in there if key not in here)):
            at = f"{path}.{key}" if path else str(key)
            if key not in here or key not in there:
                return f"{at} is {'missing' if key not in here else _shown(here[key])}, at the target " + (
                    "missing" if key not in there else _shown(there[key])
                )
            if words := _difference(here[key], there[key], at):
                return words
        return ""
    if isinstance(here, list) and isinstance(there, list):
        for index, (item, target_item) in enumerate(zip(here, there, strict=False)):
            if words := _difference(item, target_item, f"{path}[{_label(item, index)}]"):
                return words
        if len(here) != len(there):
            return f"{path or 'the schema'} has {len(here)} items, at the target {len(there)}"
        return ""
    if type(here) is type(there) and here == there:
        return ""
    return f"{path or 'the schema'} is {_shown(here)}, at the target {_shown(there)}"


def _label(item: Any, index: int) -> object:
    """Return a field's name; for any other item its index."""
    return item["name"] if isinstance(item, dict) and isinstance(item.get("name"), str) else index


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "…"
