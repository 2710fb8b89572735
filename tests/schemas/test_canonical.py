"""Schemas that are the same in other words, and such that are not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.schemas.canonical import Unresolved, canonical
from sparkmirror.schemas.registry import Schema, SchemaReference


def difference(here: Schema, there: Schema, *others: Schema) -> str:
    def resolve(reference: SchemaReference) -> Schema | None:
        return others[reference.version] if reference.version < len(others) else None

    return canonical(here, resolve).difference(canonical(there, resolve))


def avro(tree: Any) -> Schema:
    return Schema("AVRO", tree if isinstance(tree, str) else json.dumps(tree))


def record(**more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}], **more}


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (record(), json.dumps(record(), indent=4)),
        (record(namespace="shop"), record(name="shop.Order")),
        ("string", '"string"'),
        ({"type": "string"}, '"string"'),
        (
            record(fields=[{"name": "a", "type": {"type": "string"}}]),
            record(fields=[{"type": "string", "name": "a"}]),
        ),
        (
            record(namespace="a", fields=[{"name": "next", "type": ["null", "Order"]}]),
            record(namespace="a", fields=[{"name": "next", "type": ["null", "a.Order"]}]),
        ),
        ({"type": "array", "items": {"type": "int"}}, {"type": "array", "items": "int"}),
        ({"type": "map", "values": [{"type": "null"}, "int"]}, {"type": "map", "values": ["null", "int"]}),
    ],
)
def test_avro_that_is_the_same(here: Any, there: Any) -> None:
    assert difference(avro(here), avro(there)) == ""


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (record(name="Bill"), 'name is "Order", at the target "Bill"'),
        (record(doc="what"), 'doc is missing, at the target "what"'),
        (record(fields=[{"name": "id", "type": "int"}]), 'fields[id].type is "long", at the target "int"'),
        (record(fields=[]), "fields has 1 items, at the target 0"),
        ("string", "the schema is {"),
    ],
)
def test_avro_that_is_not(there: Any, words: str) -> None:
    assert difference(avro(record()), avro(there if isinstance(there, dict) else json.dumps(there))).startswith(words)


def test_order_of_fields_and_kinds_of_defaults_count() -> None:
    def of(*fields: dict[str, object]) -> Schema:
        return avro(record(fields=list(fields)))

    a: dict[str, object] = {"name": "a", "type": "int"}
    b: dict[str, object] = {"name": "b", "type": "int"}
    assert difference(of(a, b), of(b, a))
    assert difference(of({**a, "default": 1}), of({**a, "default": True}))


PROTO = 'syntax = "proto3"; // of the shop\nmessage A { /* the name */ string a = 1; }'


def test_protobuf_without_comments_and_blanks() -> None:
    same = Schema("PROTOBUF", 'syntax = "proto3";\n\nmessage A {\n  string a=1;\n}\n')
    assert difference(Schema("PROTOBUF", PROTO), same) == ""
    other = Schema("PROTOBUF", PROTO.replace("a = 1", "a = 2"))
    assert difference(Schema("PROTOBUF", PROTO), other).endswith('is "1", at the target "2"')
    in_text = Schema("PROTOBUF", 'option a = "// no comment";')
    assert difference(in_text, Schema("PROTOBUF", 'option a = "// another";'))


def test_json_schemas() -> None:
    here = Schema("JSON", '{"type": "object", "properties": {"a": {"type": "string"}}}')
    assert difference(here, Schema("JSON", '{"properties":{"a":{"type":"string"}},"type":"object"}')) == ""
    assert difference(here, Schema("JSON", '{"type": "object"}')).startswith("properties is {")
    assert difference(here, Schema("AVRO", here.text)) == "JSON, at the target AVRO"


def test_references_by_what_they_lead_to() -> None:
    """Subjects and versions may be others at the target; names and contents may not."""
    ids, other = avro({"type": "fixed", "name": "Id", "size": 4}), avro({"type": "fixed", "name": "Id", "size": 8})
    here = Schema("AVRO", '{"type": "array", "items": "Id"}', (SchemaReference("Id", "id-value", 0),))
    same = here._replace(references=(SchemaReference("Id", "moved", 0),))
    assert difference(here, same, ids) == ""
    assert difference(here, here._replace(references=(SchemaReference("Id", "id-value", 1),)), ids, other) == (
        "reference Id: size is 4, at the target 8"
    )
    assert difference(here, here._replace(references=()), ids).startswith("reference Id is there")
    with pytest.raises(Unresolved, match="Id, which is version 0 of id-value"):
        difference(here, here)


def test_references_in_a_circle_end() -> None:
    loop = Schema("AVRO", '"int"', (SchemaReference("A", "a", 0),))
    with pytest.raises(Unresolved):
        difference(loop, loop, loop)


trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(trees, trees)
def test_different_trees_differ_and_equal_ones_do_not(here: Any, there: Any) -> None:
    def of(tree: Any, indent: int | None = None) -> Schema:
        return Schema("JSON", json.dumps(tree, indent=indent))

    assert difference(of(here), of(here, 3)) == ""
    same = json.dumps(here, sort_keys=True) == json.dumps(there, sort_keys=True)
    assert (difference(of(here), of(there)) == "") == same


@given(trees)
def test_any_json_is_taken_as_avro(tree: Any) -> None:
    assert difference(avro(json.dumps(tree)), avro(json.dumps(tree, indent=2))) == ""


def test_what_is_nested_too_deep_is_compared_as_text() -> None:
    deep = Schema("AVRO", "[" * 100_000 + "]" * 100_000)
    assert difference(deep, deep) == ""
