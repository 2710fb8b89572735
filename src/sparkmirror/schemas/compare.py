"""Compare an id's meaning at the target's and at the source's registry."""

from __future__ import annotations

import functools
from enum import StrEnum
from typing import NamedTuple

from sparkmirror.schemas.canonical import Canonical, Unresolved, canonical
from sparkmirror.schemas.header import IdKind, SchemaId
from sparkmirror.schemas.registry import Registry, Schema


class SchemaVerdict(StrEnum):
    """Result of comparing an id."""

    EQUAL = "equal"
    MISSING = "missing"
    """The target's registry has no such id."""
    ANOTHER_SCHEMA = "another schema"
    ANOTHER_TYPE = "another type"
    UNKNOWN = "unknown"
    """The source's registry has no such id."""
    NOT_CHECKED = "not checked"
    """No registry can be asked."""


class SchemaComparison(NamedTuple):
    """Result of comparing an id, with details."""

    verdict: SchemaVerdict
    type: str = ""
    """Schema type at the source."""
    subjects: tuple[str, ...] = ()
    """Subjects at the source."""
    detail: str = ""


_NOBODY = {
    IdKind.GLUE: "AWS Glue's: it is not asked here",
    IdKind.GUID: "a GUID in a record header, which is made of the schema itself",
}


class SchemaComparer:
    """Compares ids by two registries; asks for each id once."""

    def __init__(self, source: Registry, target: Registry) -> None:
        self._source, self._target = source, target
        self.compare = functools.cache(self._compare)

    def _compare(self, schema_id: SchemaId) -> SchemaComparison:
        """Ask both registries. Raises `RegistryUnreachable`."""
        if schema_id.kind is not IdKind.CONFLUENT:
            return SchemaComparison(SchemaVerdict.NOT_CHECKED, detail=_NOBODY[schema_id.kind])
        number = schema_id.text
        here, there = self._source.schema(number), self._target.schema(number)
        if here is None:
            words = "the source's registry does not know it"
            return SchemaComparison(
                SchemaVerdict.UNKNOWN, detail=words + ("" if there is None else ", the target's does")
            )
        subjects = self._source.subjects(number)
        if there is None:
            return SchemaComparison(SchemaVerdict.MISSING, here.type, subjects, self._elsewhere(here, subjects, number))
        try:
            verdict, detail = _compared(_whole(here, self._source), _whole(there, self._target))
        except Unresolved as missing:
            verdict, detail = SchemaVerdict.ANOTHER_SCHEMA, f"it refers to missing schemas: {missing}"
        if verdict is not SchemaVerdict.EQUAL:
            target_subjects = self._target.subjects(number)
            target_words = (
                f"at the target it is {', '.join(target_subjects)}"
                if target_subjects and target_subjects != subjects
                else ""
            )
            other_id = self._elsewhere(here, subjects, number)
            detail = "; ".join(filter(None, (detail, target_words, other_id)))
        return SchemaComparison(verdict, here.type, subjects, detail)

    def _elsewhere(self, schema: Schema, subjects: tuple[str, ...], number: str) -> str:
        """Return words about another id under which the target has this schema.

        Returns an empty text if there is no such id.
        """
        for subject in subjects:
            target_id = self._target.id_of(subject.rpartition(" version ")[0], schema)
            if target_id is not None and target_id != number:
                return f"this schema has id {target_id} there"
        return ""


def _compared(here: Canonical, there: Canonical) -> tuple[SchemaVerdict, str]:
    words = here.difference(there)
    if not words:
        return SchemaVerdict.EQUAL, ""
    return SchemaVerdict.ANOTHER_TYPE if here.type != there.type else SchemaVerdict.ANOTHER_SCHEMA, words


def _whole(schema: Schema, registry: Registry) -> Canonical:
    return canonical(schema, lambda reference: registry.version(reference.subject, reference.version))
