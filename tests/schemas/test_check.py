"""What is made of ids that were seen: verdicts, doubts, and whether all of it is well. Registries are played."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from played_registry import PlayedRegistry, schema

from sparkmirror.config.model import RegistryConfig
from sparkmirror.schemas import Registry, SchemaCheck, SchemaVerdict
from sparkmirror.schemas.compare import SchemaComparer
from sparkmirror.schemas.header import Field, IdKind, SchemaId
from sparkmirror.schemas.id_check import judged
from sparkmirror.schemas.scan import FieldName, Scan, SeenField, Sight, TopicField

INT, LONG = '"int"', '"long"'
HERE = {
    "/schemas/ids/1": schema(INT),
    "/schemas/ids/2": schema(INT),
    "/schemas/ids/3": schema(INT),
    "/schemas/ids/4": schema(INT),
    "/schemas/ids/5": schema(INT, references=[{"name": "a", "subject": "s", "version": 1}]),
    "/schemas/ids/3/versions": (200, [{"subject": "moved", "version": 4}]),
}
THERE = {
    "/schemas/ids/1": schema('{"type": "int"}'),
    "/schemas/ids/2": schema(LONG),
    "/schemas/ids/4": schema("message", "PROTOBUF"),
    "/schemas/ids/5": schema(INT),
    "/schemas/ids/9": schema(INT),
    "/subjects/moved": (200, {"id": 77}),
}


@pytest.fixture(scope="module")
def comparer() -> Iterator[SchemaComparer]:
    with PlayedRegistry(HERE) as here, PlayedRegistry(THERE) as there:
        source, target = RegistryConfig(url=here.url), RegistryConfig(url=there.url)
        yield SchemaComparer(Registry(source, "source"), Registry(target, "target"))


def number(value: int) -> SchemaId:
    return SchemaId(IdKind.CONFLUENT, str(value))


def check(
    comparer: SchemaComparer, ids: dict[SchemaId, int], records: int = 0, unread: dict[str, str] | None = None
) -> SchemaCheck:
    """Of one topic, whose values have these ids in so many records."""
    scan = Scan()
    seen = {one: Sight(0, place, count) for place, (one, count) in enumerate(ids.items())}
    scan.parts[TopicField("A.t", "value")] = SeenField(records or sum(ids.values()), seen)
    scan.unread = unread or {}
    return judged("A->B", {"t": "A.t"}, {"t": "A.t"}, scan, comparer)


@pytest.mark.parametrize(
    ("value", "verdict", "detail"),
    [
        (1, SchemaVerdict.EQUAL, ""),
        (2, SchemaVerdict.ANOTHER_SCHEMA, 'the schema is "int", at the target "long"'),
        (3, SchemaVerdict.MISSING, "this schema has id 77 there"),
        (4, SchemaVerdict.ANOTHER_TYPE, "AVRO, at the target PROTOBUF"),
        (5, SchemaVerdict.ANOTHER_SCHEMA, "it refers to missing schemas: a, which is version 1 of s"),
        (6, SchemaVerdict.UNKNOWN, "the source's registry does not know it"),
        (9, SchemaVerdict.UNKNOWN, "the source's registry does not know it, the target's does"),
    ],
)
def test_verdicts(comparer: SchemaComparer, value: int, verdict: SchemaVerdict, detail: str) -> None:
    found = check(comparer, {number(1): 5, number(value): 5})
    (part,) = found.parts
    assert (part.topic, part.target_topic, part.doubt) == ("t", "A.t", "")
    one = next(each for each in part.ids if each.id.text == str(value))
    assert (one.comparison.verdict, one.comparison.detail) == (verdict, detail)
    assert found.differs is (verdict is not SchemaVerdict.EQUAL)


def test_ids_that_nobody_is_asked_for(comparer: SchemaComparer) -> None:
    for kind in (IdKind.GLUE, IdKind.GUID):
        found = check(comparer, {SchemaId(kind, "u"): 4, number(1): 1})
        assert {each.comparison.verdict for each in found.parts[0].ids} == {
            SchemaVerdict.EQUAL,
            SchemaVerdict.NOT_CHECKED,
        }
        assert not found.differs
    assert not check(comparer, {SchemaId(IdKind.GLUE, "u"): 4}).differs


def test_what_only_looks_like_ids(comparer: SchemaComparer) -> None:
    """Few of many, or each record with one of its own, and none that the source's registry knows."""
    few = check(comparer, {number(100): 1, number(101): 1}, records=500)
    assert few.parts[0].doubt.startswith("2 of 500 begin as if with a schema id (different ids: 2)")
    many = check(comparer, {number(100 + each): 1 for each in range(50)})
    assert many.parts[0].doubt.startswith("50 of 50 begin")
    assert len(many.parts[0].ids) == 3
    some = check(comparer, {number(100 + each): 50 for each in range(11)})
    assert some.parts[0].doubt.startswith("550 of 550 begin"), "no topic has so many schemas that nobody knows"
    glue = check(comparer, {SchemaId(IdKind.GLUE, "u"): 1}, records=500)
    assert glue.parts[0].doubt == "1 of 500 begin as if with a schema id (different ids: 1)"


def test_times_in_milliseconds_are_long_integers(comparer: SchemaComparer) -> None:
    """A day of them has few ids, and each of these comes often; those of sixteen bytes may be what they look like."""
    scan = Scan()
    sizes: dict[FieldName, int] = {"key": 8, "value": 16}
    for part, size in sizes.items():
        for place in range(100):
            scan.parts.setdefault(TopicField("t", part), SeenField()).add(
                Field(True, number(100 + place // 50), size), 0, place
            )
    keys, values = judged("A->B", {"t": "t"}, {"t": "t"}, scan, comparer).parts
    assert keys.doubt.endswith("; all of these have eight bytes, as long integers have")
    assert not values.doubt


def test_ids_that_are_known_are_no_chance(comparer: SchemaComparer) -> None:
    """However few records begin with one: a topic may have got its schema late."""
    found = check(comparer, {number(1): 1, number(100): 1}, records=500)
    assert not found.parts[0].doubt
    assert [each.comparison.verdict for each in found.parts[0].ids] == [SchemaVerdict.EQUAL, SchemaVerdict.UNKNOWN]
    assert found.differs


def test_a_registry_that_knows_none_is_the_wrong_one(comparer: SchemaComparer) -> None:
    """Doubt is no all-clear when nothing at all was known."""
    assert check(comparer, {number(100): 1}, records=500).strange
    assert check(comparer, {number(100): 1}, records=500).differs
    assert not check(comparer, {number(1): 1}, records=500).strange
    assert not check(comparer, {}, records=500).differs
    every = check(comparer, {number(100): 50})
    assert not every.parts[0].doubt
    assert every.differs


def test_what_could_not_be_read_is_no_success(comparer: SchemaComparer) -> None:
    found = check(comparer, {number(1): 1}, unread={"A.t": "damaged", "other": "x"})
    assert found.unread == {"t": "damaged"}
    assert found.differs
