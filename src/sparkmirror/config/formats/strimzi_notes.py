"""Notes on `KafkaMirrorMaker2` fields without effect, or unknown to Strimzi.

Each note has the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sparkmirror.config.formats.reading import Note
from sparkmirror.config.formats.strimzi_fields import FIELDS, IDLE, NOT_NEEDED, field_of
from sparkmirror.config.formats.strimzi_security import OAUTH_IDLE, OF_TYPES
from sparkmirror.config.formats.strimzi_shapes import SPEC, Shape, ShapeKind
from sparkmirror.config.formats.yaml_files import Document, Path_, shown

_NO_FIELD = "is no field of KafkaMirrorMaker2; it has no effect"
_ONLY_OLD = "is a field of v1beta2 only: Strimzi drops it from v1, and so does sparkmirror"
_OLD_LAYOUT = frozenset(("connectCluster", "clusters", "mirrors[].sourceCluster", "mirrors[].targetCluster"))
_NEW_LAYOUT = frozenset(("mirrors[].source",))
_WORKERS_OWN = frozenset(("target.groupId", "target.configStorageTopic", "target.statusStorageTopic"))


class FieldNotes:
    """Notes on a resource's fields; the resource's shape is already checked."""

    def __init__(self, document: Document, version: str, *, old: bool) -> None:
        """Take a resource; `old` means the layout with clusters in a list."""
        self._document = document
        self._version = version
        self._old = old

    def all(self) -> Iterator[Note]:
        yield from self._below(self._document.tree["spec"], SPEC, ("spec",), "")

    def _below(self, value: Any, shape: Shape | None, steps: Path_, path: str) -> Iterator[Note]:
        if isinstance(value, list):
            item = shape[0] if isinstance(shape, list) else None
            for index, element in enumerate(value):
                yield from self._below(element, item, (*steps, index), f"{path}[]")
        elif isinstance(value, dict) and not isinstance(shape, ShapeKind):
            idle = dict(_not_of_its_type(value)) if path.endswith("authentication") else {}
            fields: Mapping[str, Shape] = shape if isinstance(shape, Mapping) else {}
            for name, below in value.items():
                if name in idle:
                    yield self._note((*steps, name), idle[name])
                else:
                    yield from self._field(below, fields.get(name), (*steps, name), f"{path}.{name}".lstrip("."))

    def _field(self, value: Any, shape: Shape | None, steps: Path_, path: str) -> Iterator[Note]:
        nearest = field_of(path)
        field = nearest if nearest is not None and nearest.path == path else None
        if field is None and shape is None and not _parent_of_fields(path):
            yield self._note(steps, _NO_FIELD)
        elif self._version == "v1" and (path in _OLD_LAYOUT or (field is not None and field.versions == "v1beta2")):
            yield self._note(steps, _ONLY_OLD)
        elif path in (_NEW_LAYOUT if self._old else _OLD_LAYOUT):
            counts = (
                "spec.clusters counts, as there is no spec.target" if self._old else "spec.target is there, and counts"
            )
            yield self._note(steps, f"has no effect: {counts}")
        elif field is not None and field.effect == IDLE:
            yield self._note(steps, f"has no effect: {field.words}")
        elif path in _WORKERS_OWN:
            return  # `formats.merge` notes them as the workers' keys, for either layout
        elif field is not None and field.effect == NOT_NEEDED:
            yield self._note(steps, f"is not needed: {field.words}", "not needed")
        else:
            yield from self._below(value, shape, steps, path)

    def _note(self, steps: Path_, reason: str, kind: str = "") -> Note:
        return Note(
            path=self._document.path, line=self._document.line(*steps), key=shown(steps), reason=reason, kind=kind
        )


def _parent_of_fields(path: str) -> bool:
    return any(field.path.startswith((f"{path}.", f"{path}[]")) for field in FIELDS)


def _not_of_its_type(authentication: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the fields that this authentication type doesn't read, with reasons."""
    kind = authentication.get("type") or ""
    known = {name for names in OF_TYPES.values() for name in names} | OAUTH_IDLE.keys()
    for name in authentication:
        if kind == "oauth" and name in OAUTH_IDLE:
            yield name, f"has no effect: {OAUTH_IDLE[name]}"
        elif kind in OF_TYPES and name in known and name != "type" and name not in OF_TYPES[kind]:
            yield name, f"has no effect: it is not for authentication of type {kind}"
