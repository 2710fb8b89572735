"""The schema of Terraform's AWS provider, read out of the bindings that HashiCorp generated from it.

The provider itself is no package of any language; its bindings for CDKTF are, and hold every attribute with its
type, every block with its nesting, and which of them are required or computed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PRIMITIVES = {"string": "string", "number": "number", "boolean": "bool", "any": "dynamic"}
_COLLECTION = re.compile(r"(string|number|boolean|any)(List|Map|Set)(Map|List)?")
_CONSTRUCTED = re.compile(r"List$|OutputReference$|Map$")

Type = str | list[Any]


@dataclass(frozen=True)
class _Property:
    """One of an object's, as the bindings write it out: a block or an attribute."""

    is_block: bool
    kind: str
    stored: str


class Bindings:
    """The package's files; `lib` is its directory of them."""

    def __init__(self, lib: Path) -> None:
        self._lib = lib

    def schema(self, resources: set[str], data_sources: set[str]) -> dict[str, Any]:
        """Of the provider and these types, as `terraform providers schema` has it, but for blocks' nesting."""
        return {
            "provider": self._top("provider"),
            "resource_schemas": {name: self._top(_directory(name)) for name in sorted(resources)},
            "data_source_schemas": {name: self._top(f"data-{_dashed(name)}") for name in sorted(data_sources)},
        }

    def _top(self, directory: str) -> dict[str, Any]:
        below = self._lib / directory
        structs = sorted({*below.glob("*-structs.js"), *below.glob("structs*.js")})
        files = [below / "index.js", *structs]
        return _Source(
            "".join(one.read_text() for one in files),
            "".join(one.with_suffix(".d.ts").read_text() for one in files),
        ).top()


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _directory(resource: str) -> str:
    return _dashed(resource.removeprefix("aws_"))


class _Source:
    """One resource's JavaScript and the declarations of its types."""

    def __init__(self, script: str, declarations: str) -> None:
        self._script = script
        self._declarations = declarations

    def top(self) -> dict[str, Any]:
        name = _matched(r"^class (\w+) extends cdktf\.Terraform(?:Resource|DataSource|Provider)", self._script)
        body = re.search(
            r"synthesizeHclAttributes\(\) \{\s*const attrs = \{\n(.*?)^        \};", self._script, re.S | re.M
        )
        properties = _properties(body[1], 12) if body else {}
        return self._block(properties, self._required(f"{name}Config"), name)

    def _block(self, properties: Mapping[str, _Property], required: set[str], owner: str) -> dict[str, Any]:
        attributes: dict[str, Any] = {}
        blocks: dict[str, Any] = {}
        for name, told in properties.items():
            needed = name in required
            kind = _collection(told.kind, told.stored)
            if not told.is_block and kind is not None:
                attributes[name] = {"type": kind, "required": needed, "optional": not needed, "computed": not needed}
                continue
            base = told.stored.removesuffix("List")
            nesting = "single" if told.kind == "struct" else "set" if told.kind == "set" else "list"
            alone = re.search(rf'new {re.escape(base)}OutputReference\(this, "{name}"\)', self._script) is not None
            blocks[name] = {
                "nesting_mode": nesting,
                "block": self._block(self._below(base), self._required(base), f"{base}OutputReference"),
                "min_items": int(needed and nesting != "single"),
                "max_items": int(alone and nesting != "single"),
            }
        for name, computed in self._computed(owner).items():
            if name not in attributes and name not in blocks:
                attributes[name] = {"type": computed, "required": False, "optional": False, "computed": True}
        return {"attributes": attributes, "block_types": blocks}

    def _below(self, base: str) -> dict[str, _Property]:
        function = f"{base[0].lower()}{base[1:]}ToHclTerraform"
        pattern = rf"^function {re.escape(function)}\(struct\).*?const attrs = \{{\n(.*?)^    \}};"
        body = re.search(pattern, self._script, re.S | re.M)
        return _properties(body[1], 8) if body else {}

    def _required(self, interface: str) -> set[str]:
        pattern = rf"export interface {re.escape(interface)}\b[^{{]*\{{(.*?)^\}}"
        body = re.search(pattern, self._declarations, re.S | re.M)
        fields = re.findall(r"/\*\*(.*?)\*/\s*readonly \w+(\??):", body[1], re.S) if body else []
        names = ((re.search(r"#(\w+) ", comment), optional) for comment, optional in fields)
        return {name[1] for name, optional in names if name is not None and not optional}

    def _computed(self, owner: str) -> dict[str, Type]:
        body = re.search(rf"^class {re.escape(owner)} extends .*?(?=^class |^function |\Z)", self._script, re.S | re.M)
        if body is None:
            return {}
        only_computed = r"// (\w+) - computed: true, optional: false, required: false\n(.*?)(?=\n    // |\n    get |\Z)"
        return {name: self._got(name, code, body[0]) for name, code in re.findall(only_computed, body[0], re.S)}

    def _got(self, name: str, code: str, body: str) -> Type:
        """What an attribute's getter gives."""
        for call, kind in _GETTERS:
            if call in code:
                return kind
        made = re.search(rf'new (?:cdktf\.)?(\w+)\(this, "{name}"(?:, (true|false))?\)', code + body)
        if made is None:
            return "string"
        if made[1] in _MAPS:
            return ["map", _MAPS[made[1]]]
        fields = self._computed(f"{_CONSTRUCTED.sub('', made[1])}OutputReference")
        below: Type = ["object", fields]
        return below if made[1].endswith("OutputReference") else ["set" if made[2] == "true" else "list", below]


_GETTERS: tuple[tuple[str, Type], ...] = (
    ("getStringAttribute", "string"),
    ("getNumberAttribute", "number"),
    ("getBooleanAttribute", "bool"),
    ("Fn.tolist(this.getListAttribute", ["set", "string"]),
    ("getNumberListAttribute", ["list", "number"]),
    ("getListAttribute", ["list", "string"]),
)
_MAPS = {"StringMap": "string", "NumberMap": "number", "BooleanMap": "bool"}


def _properties(body: str, indent: int) -> dict[str, _Property]:
    pattern = rf'^\s{{{indent}}}(\w+|"[^"]+"): \{{\n(.*?)^\s{{{indent}}}\}},'
    return {
        match[1].strip('"'): _Property(
            _matched(r"isBlock: (\w+)", match[2]) == "true",
            _matched(r'type: "(\w+)"', match[2]),
            _matched(r'storageClassType: "(\w+)"', match[2]),
        )
        for match in re.finditer(pattern, body, re.S | re.M)
    }


def _collection(kind: str, stored: str) -> Type | None:
    if stored in _PRIMITIVES:
        return _PRIMITIVES[stored]
    match = _COLLECTION.fullmatch(stored)
    if match is None:
        return None
    outer = {"List": "set" if kind == "set" else "list", "Map": "map", "Set": "set"}[match[2]]
    inner = _PRIMITIVES[match[1]]
    return [outer, inner] if match[3] is None else ["list" if match[3] == "List" else "map", [outer, inner]]


def _matched(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.M)
    assert match is not None, f"the bindings are written otherwise: {pattern}"
    return match[1]
