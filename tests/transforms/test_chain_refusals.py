"""Mistakes in a chain: each is a line with its key, and what Java refuses is refused."""

from __future__ import annotations

import pytest
from tests.transforms.both_ways import ours, record, stage
from tests.transforms.java_transforms import PACKAGE, PREDICATES, Condition, JavaTransforms, Stage
from tests.transforms.made_json import words

from sparkmirror.errors import ConfigError
from sparkmirror.transforms import parse_chain

MASK = {"transforms": "m", "transforms.m.type": f"{PACKAGE}MaskField$Value", "transforms.m.fields": "a"}
WITH_PREDICATE = MASK | {"transforms.m.predicate": "p", "predicates": "p", "predicates.p.type": "RecordIsTombstone"}
SIDED = words("Cast ExtractField Flatten HeaderFrom HoistField InsertField MaskField ReplaceField TimestampConverter")

LINES: list[tuple[dict[str, str], str]] = [
    (
        {"transforms": "x", "transforms.x.type": "com.example.Own"},
        "transforms.x.type: com.example.Own can't be loaded: Java doesn't run here, only Kafka's own classes by name",
    ),
    (
        {"transforms": "x", "transforms.x.type": "io.debezium.transforms.ExtractNewRecordState"},
        "transforms.x.type: io.debezium.transforms.ExtractNewRecordState can't be loaded: Java doesn't run here, only "
        "Kafka's own classes by name",
    ),
    (
        {"transforms": "x", "transforms.x.type": f"{PACKAGE}RegExRouter"},
        f"transforms.x.type: {PACKAGE}RegExRouter can't be loaded: Java doesn't run here, only Kafka's own classes by "
        f"name; did you mean {PACKAGE}RegexRouter?",
    ),
    (
        {"transforms": "x", "transforms.x.type": f"{PACKAGE}MaskField"},
        f"transforms.x.type: {PACKAGE}MaskField is for keys or for values: write {PACKAGE}MaskField$Key or "
        f"{PACKAGE}MaskField$Value",
    ),
    (
        {"transforms": "x", "transforms.x.type": f"{PACKAGE}SetSchemaMetadata$Value"},
        f"transforms.x.type: {PACKAGE}SetSchemaMetadata$Value needs records with schemas, which Kafka's brokers don't "
        "keep: take it out",
    ),
    ({"transforms": "x"}, f"transforms.x.type: it is missing: write a class, such as {PACKAGE}Cast$Key"),
    (
        {"transforms": "x", "transforms.x.type": "  "},
        f"transforms.x.type: it is missing: write a class, such as {PACKAGE}Cast$Key",
    ),
    ({"transforms": "a,,b"}, "transforms: an item between two commas is empty: take the comma out"),
    (MASK | {"transforms": "m,m"}, "transforms: it has m twice: give each its own name"),
    (MASK | {"transforms.m.fields": ""}, "transforms.m.fields: it is empty: name at least one"),
    (
        MASK | {"transforms.m.field": "a"},
        "transforms.m.field: there is no such option; did you mean transforms.m.fields?",
    ),
    (
        MASK | {"transforms.m.zzz": "a"},
        "transforms.m.zzz: there is no such option; there are type, predicate, negate, fields, replacement, "
        "replace.null.with.default",
    ),
    (
        MASK | {"transforms.m.plugin.version": "4.3.1"},
        "transforms.m.plugin.version: each class is here in one version: take this key out",
    ),
    (
        MASK | {"transforms.m.replacement": " "},
        "transforms.m.replacement: it is empty: write a text, or take this key out",
    ),
    (
        MASK | {"transforms.m.replace.null.with.default": "yes"},
        "transforms.m.replace.null.with.default: 'yes' is not allowed, it must be true or false",
    ),
    (
        MASK | {"transforms.m.negate": "true"},
        "transforms.m.negate: there is nothing to be negated: write transforms.m.predicate, or take this key out",
    ),
    (
        WITH_PREDICATE | {"transforms.m.negate": "no"},
        "transforms.m.negate: 'no' is not allowed, it must be true or false",
    ),
    (
        MASK | {"transforms.m.predicate": "p"},
        "transforms.m.predicate: there is no predicate 'p': name it in predicates",
    ),
    (
        WITH_PREDICATE
        | {
            "transforms.m.predicate": "isOrder",
            "predicates": "isOrders",
            "predicates.isOrders.type": "RecordIsTombstone",
        },
        "transforms.m.predicate: there is no predicate 'isOrder': did you mean isOrders?",
    ),
    (
        {"predicates": "p", "predicates.p.type": f"{PREDICATES}TopicNameMatch", "predicates.p.pattern": "a"},
        f"predicates.p.type: {PREDICATES}TopicNameMatch can't be loaded: Java doesn't run here, only Kafka's own "
        f"classes by name; did you mean {PREDICATES}TopicNameMatches?",
    ),
    (
        {"predicates": "p", "predicates.p.type": "TopicNameMatches"},
        "predicates.p.pattern: it is missing, and has no default: write it",
    ),
    (
        {"predicates": "p", "predicates.p.type": "TopicNameMatches", "predicates.p.pattern": "("},
        "predicates.p.pattern: '(' is no regular expression: a parenthesis is not closed",
    ),
    (
        {"predicates": "p", "predicates.p.type": "RecordIsTombstone", "predicates.p.name": "x"},
        "predicates.p.name: there is no such option; there are type",
    ),
    (
        {"transforms": "x", "transforms.x.type": "InsertField$Value"},
        "transforms.x.static.field: nothing is to be inserted: write a field's name here, or in topic.field",
    ),
    (
        {"transforms": "x", "transforms.x.type": "InsertField$Value", "transforms.x.static.field": "a"},
        "transforms.x.static.value: it is missing, and static.field names its field: write the value",
    ),
    (
        {"transforms": "x", "transforms.x.type": "InsertField$Key", "transforms.x.offset.field": "a"},
        "transforms.x.offset.field: only sink connectors know an offset: take this key out",
    ),
    (
        {"transforms": "x", "transforms.x.type": "ReplaceField$Value", "transforms.x.renames": "a:b,c"},
        "transforms.x.renames: 'c' is no pair of names: write old:new,old:new",
    ),
    (
        {"transforms": "x", "transforms.x.type": "Cast$Value", "transforms.x.spec": "a:integer"},
        "transforms.x.spec: 'integer' is no type to cast to; there are int8, int16, int32, int64, float32, float64, "
        "boolean, string",
    ),
    (
        {
            "transforms": "x",
            "transforms.x.type": "RegexRouter",
            "transforms.x.regex": "a",
            "transforms.x.replacement": "$1",
        },
        "transforms.x.replacement: the regex has no group 1",
    ),
    (
        {"transforms": "x", "transforms.x.type": "TimestampRouter", "transforms.x.timestamp.format": "yyyy-bb"},
        "transforms.x.timestamp.format: there is no field 'b': put other text between quotes",
    ),
    (
        {"transforms": "x", "transforms.x.type": "TimestampConverter$Value", "transforms.x.target.type": "string"},
        "transforms.x.format: it is missing, and target.type=string needs it: write, say, yyyy-MM-dd",
    ),
    (
        {
            "transforms": "x",
            "transforms.x.type": "HeaderFrom$Value",
            "transforms.x.fields": "a,b",
            "transforms.x.headers": "c",
            "transforms.x.operation": "move",
        },
        "transforms.x.headers: it has 1 names for 2 fields: write as many",
    ),
    (
        {
            "transforms": "x",
            "transforms.x.type": "ExtractField$Value",
            "transforms.x.field": "a.`b",
            "transforms.x.field.syntax.version": "V2",
        },
        "transforms.x.field: the backtick at character 2 is not closed: close it, or write a backslash before it",
    ),
]


@pytest.mark.parametrize(("properties", "line"), LINES, ids=[line for _, line in LINES])
def test_a_mistake_is_a_line(properties: dict[str, str], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_chain(properties, origin="mm2.properties")
    assert str(caught.value) == f"mm2.properties: {line}"
    assert caught.value.key == line.partition(": ")[0]


def test_all_mistakes_come_at_once_in_the_order_of_the_file() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_chain(
            {
                "predicates.p.type": "Nothing",
                "transforms.b.type": "com.example.Own",
                "transforms": "a,b,c",
                "transforms.a.type": "MaskField$Value",
                "transforms.a.fild": "x",
                "transforms.a.predicate": "p",
                "predicates": "p",
            }
        )
    assert [mistake.key for mistake in caught.value.mistakes] == [
        "transforms.a.fields",
        "transforms.c.type",
        "predicates.p.type",
        "transforms.b.type",
        "transforms.a.fild",
    ]


@pytest.mark.parametrize("name", SIDED)
def test_what_has_two_sides_has_both(name: str) -> None:
    for side in ("$Key", "$Value"):
        with pytest.raises(ConfigError) as caught:
            parse_chain({"transforms": "x", "transforms.x.type": f"{name}{side}", "transforms.x.nope": ""})
        assert "transforms.x.type" not in str(caught.value)


ASKED = [
    *(stage("MaskField$Value", **options) for options in ({}, {"fields": ""}, {"fields": "a,,b"}, {"fields": "a,a"})),
    *(stage("MaskField$Value", fields="a", replacement=text) for text in ("", " ", "x")),
    *(stage("MaskField$Value", fields="a", replace_null_with_default=text) for text in ("x", " TRUE ", "")),
    *(stage("ReplaceField$Value", exclude=text) for text in ("", "a,a", "a,,b", ",")),
    *(stage("ReplaceField$Value", renames=text) for text in ("", "a", "a:b,", "a:b:", ":b", "a:b:c", ":", "a: b")),
    *(stage("DropHeaders", headers=text) for text in ("", "a,a", "a,", " ")),
    *(
        stage("HeaderFrom$Value", fields=fields, headers=headers, operation="copy")
        for fields, headers in (("a", "b,c"), ("a,", "b,"), ("", ""), ("a,b", "c,c"))
    ),
    *(stage("HeaderFrom$Value", fields="a", headers="b", operation=text) for text in ("COPY", " copy ", "", "both")),
    *(stage("ValueToKey", fields=text) for text in ("", "a,,b")),
    *(
        stage("InsertField$Value", **options)
        for options in ({}, {"static_value": "a"}, {"static_field": "a"}, {"topic_field": ""}, {"topic_field": "?"})
    ),
    *(stage("InsertHeader", **options) for options in ({}, {"header": "a"}, {"value_literal": "a"})),
    *(
        stage("RegexRouter", **options)
        for options in ({}, {"regex": "("}, {"regex": "(", "replacement": ""}, {"regex": "a"})
    ),
    *(stage("ExtractField$Value", field="a", field_syntax_version=text) for text in ("V1", "v2", "V3", "", " V2 ")),
    *(stage("ExtractField$Value", field=text, field_syntax_version="V2") for text in ("`a", "`", "a.`", r"`a\`", "``")),
    *(
        stage("TimestampConverter$Value", target_type=text, format="yyyy")
        for text in ("unix", "Unix", "string", "", " unix ")
    ),
    *(
        stage("TimestampConverter$Value", target_type="string", format=text)
        for text in ("", " ", "b", "'", "XXXX", "yyyy")
    ),
    *(stage("TimestampConverter$Value", target_type="unix", unix_precision=text) for text in ("s", "seconds", "")),
    *(
        stage(name)
        for name in ("HoistField$Value", "ExtractField$Value", "TimestampConverter$Value", "Cast$Value", "Flatten$Key")
    ),
    *(
        Stage(type="Filter", options={}, condition=Condition(kind, options))
        for kind, options in (
            ("TopicNameMatches", {}),
            ("TopicNameMatches", {"pattern": ""}),
            ("TopicNameMatches", {"pattern": " "}),
            ("TopicNameMatches", {"pattern": "("}),
            ("HasHeaderKey", {}),
            ("HasHeaderKey", {"name": ""}),
            ("HasHeaderKey", {"name": " "}),
        )
    ),
]


@pytest.mark.parametrize("asked", ASKED, ids=repr)
def test_what_java_refuses_is_refused(java_transforms: JavaTransforms, asked: Stage) -> None:
    """And nothing else is, for these options."""
    theirs, own = java_transforms.ask(record(b"{}"), [asked]), ours(record(b"{}"), [asked])
    assert (own.error == "config") == (theirs.error == "config"), (theirs, own)


def test_an_empty_path_is_refused_where_java_stops_at_the_first_record(java_transforms: JavaTransforms) -> None:
    asked = stage("ExtractField$Value", field="", field_syntax_version="V2")
    assert java_transforms.ask(record(b"{}"), [asked]).error == "record"
    assert ours(record(b"{}"), [asked]).error == "config"


def test_java_stops_at_an_offset_and_at_schema_metadata(java_transforms: JavaTransforms) -> None:
    for asked in (
        stage("InsertField$Value", offset_field="a"),
        stage("SetSchemaMetadata$Value", schema_name="a"),
        stage("SetSchemaMetadata$Key", schema_version="1"),
    ):
        assert java_transforms.ask(record(b"{}", key=b"{}"), [asked]).error == "record"
        assert ours(record(b"{}", key=b"{}"), [asked]).error == "config"
