"""Transforms of fields next to Java's own, for made-up records and options."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.transforms.both_ways import TIME, TOPIC, assert_same, ours, record, stage
from tests.transforms.java_transforms import JavaTransforms, Stage
from tests.transforms.made_json import CONTENTS, NAME, PLAIN_NAME, SCALAR_OBJECTS, words

from sparkmirror.transforms import Record

SIDES = st.sampled_from(["Key", "Value"])
FEW = settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAME_LISTS = st.lists(PLAIN_NAME, min_size=1, max_size=3).map(",".join)


def with_side(side: str, content: bytes | None) -> Record:
    return record(content, key=b"k") if side == "Value" else record(b"v", key=content)


@FEW
@given(side=SIDES, content=CONTENTS, names=st.lists(NAME, max_size=4), mark=st.sampled_from(["", "?", "!"]))
def test_insert_field(
    java_transforms: JavaTransforms, side: str, content: bytes | None, names: list[str], mark: str
) -> None:
    options = dict(zip(("topic.field", "partition.field", "timestamp.field", "static.field"), names, strict=False))
    made = {option: name + mark for option, name in options.items()}
    if len(names) == 4:
        made["static.value"] = "fixed"
    given_record = with_side(side, content)
    assert_same(java_transforms, given_record, stage(f"InsertField${side}", **_underscored(made)))


@pytest.mark.parametrize(("partition", "timestamp"), [(None, None), (0, 0), (None, TIME), (7, None), (1, -1)])
def test_insert_field_leaves_out_what_a_record_lacks(
    java_transforms: JavaTransforms, partition: int | None, timestamp: int | None
) -> None:
    placed = record(b"{}", partition=partition, timestamp=timestamp)
    for name in ("partition", "timestamp", "topic"):
        assert_same(
            java_transforms, placed, Stage(type="InsertField$Value", options={f"{name}.field": "x"}, value="json")
        )


@FEW
@given(side=SIDES, content=CONTENTS | SCALAR_OBJECTS.map(str.encode), names=NAME_LISTS)
def test_mask_field(java_transforms: JavaTransforms, side: str, content: bytes | None, names: str) -> None:
    assert_same(java_transforms, with_side(side, content), stage(f"MaskField${side}", fields=names))


@FEW
@given(
    content=SCALAR_OBJECTS.map(str.encode) | CONTENTS,
    names=NAME_LISTS,
    replacement=st.sampled_from(
        words(
            "x 1 -1 +1 1.9 -1.9 1e3 1e19 1e63 1e64 1e65 1e400 1e-400 1. .5 -0.0 12345678901234567890 NaN 0x1 1f é ٣ 1e"
        )
    )
    | st.integers(-(2**70), 2**70).map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr),
)
def test_mask_field_with_a_replacement(
    java_transforms: JavaTransforms, content: bytes | None, names: str, replacement: str
) -> None:
    assert_same(java_transforms, record(content), stage("MaskField$Value", fields=names, replacement=replacement))


KINDS = b'{"t":true,"f":false,"i":7,"r":0.5,"s":"x","e":"","l":[1],"o":{"x":1},"n":null}'


@pytest.mark.parametrize("name", [*"tfirselon", "missing"])
@pytest.mark.parametrize("replacement", [None, "9", "-0.0", "x", "1e3"])
def test_each_kind_is_masked(java_transforms: JavaTransforms, name: str, replacement: str | None) -> None:
    options = {"fields": name} | ({} if replacement is None else {"replacement": replacement})
    assert_same(java_transforms, record(KINDS), stage("MaskField$Value", **options))


@FEW
@given(
    side=SIDES,
    content=CONTENTS,
    exclude=st.lists(PLAIN_NAME, max_size=2),
    include=st.lists(PLAIN_NAME, max_size=6),
    renames=st.lists(st.tuples(NAME, PLAIN_NAME).map(":".join), max_size=4),
)
def test_replace_field(
    java_transforms: JavaTransforms,
    side: str,
    content: bytes | None,
    exclude: list[str],
    include: list[str],
    renames: list[str],
) -> None:
    options = {"exclude": ",".join(exclude), "include": ",".join(include), "renames": ",".join(renames)}
    assert_same(java_transforms, with_side(side, content), stage(f"ReplaceField${side}", **options))


@FEW
@given(count=st.integers(1, 40), target=st.integers(0, 40))
def test_renamed_fields_collide_as_in_a_hash_map(java_transforms: JavaTransforms, count: int, target: int) -> None:
    """Of all fields that get one name the last one stays, in the order of hashes."""
    value = "{" + ",".join(f'"field{number * 37}":{number}' for number in range(count)) + "}"
    renames = ",".join(f"field{number * 37}:x" for number in range(count) if number != target)
    assert_same(java_transforms, record(value.encode()), stage("ReplaceField$Value", renames=renames))


@FEW
@given(side=SIDES, content=CONTENTS, delimiter=st.sampled_from([".", "", "_", "..", "é"]))
def test_flatten(java_transforms: JavaTransforms, side: str, content: bytes | None, delimiter: str) -> None:
    assert_same(java_transforms, with_side(side, content), stage(f"Flatten${side}", delimiter=delimiter))


@FEW
@given(names=st.permutations(["a", "b", "a.b", "ab", "Aa", "c", "x17"]), delimiter=st.sampled_from([".", ""]))
def test_paths_collide_as_in_a_hash_map(java_transforms: JavaTransforms, names: list[str], delimiter: str) -> None:
    fields = (f'"{name}":{{"b":"{name}","":"{name}"}}' if len(name) == 1 else f'"{name}":"{name}"' for name in names)
    value = "{" + ",".join(fields) + "}"
    assert_same(java_transforms, record(value.encode()), stage("Flatten$Value", delimiter=delimiter))


@FEW
@given(side=SIDES, content=CONTENTS, name=NAME)
def test_hoist_field(java_transforms: JavaTransforms, side: str, content: bytes | None, name: str) -> None:
    assert_same(java_transforms, with_side(side, content), stage(f"HoistField${side}", field=name))


@FEW
@given(side=SIDES, content=CONTENTS, name=NAME, version=st.sampled_from(["V1", "v1", None]))
def test_extract_field(
    java_transforms: JavaTransforms, side: str, content: bytes | None, name: str, version: str | None
) -> None:
    options = {"field": name} | ({} if version is None else {"field_syntax_version": version})
    assert_same(java_transforms, with_side(side, content), stage(f"ExtractField${side}", **options))


NESTED = rb"""{"a":{"b":1,"b.c":2,"":{"":3}},"a.b":{"c":4},"`a`":5,"a`b":{"c":6},"a`":7,"":{"a":8},"b":null,"c":[9]}"""


@FEW
@given(path=st.text(st.sampled_from("abc.`\\"), min_size=1, max_size=9))
def test_extract_field_by_a_path(java_transforms: JavaTransforms, path: str) -> None:
    assert_same(java_transforms, record(NESTED), stage("ExtractField$Value", field=path, field_syntax_version="V2"))


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.b", b"1"),
        ("`a.b`.c", b"4"),
        ("a.`b.c`", b"2"),
        ("```a```", None),
        ("`a`b`.c", b"6"),
        ("a`", b"7"),
        ("``a``", b"5"),
        (".a", b"8"),
        ("a..", b"3"),
        ("b.c.d", None),
        (r"`a\`.b`", None),
    ],
)
def test_paths(java_transforms: JavaTransforms, path: str, content: bytes | None) -> None:
    answer = assert_same(
        java_transforms, record(NESTED), stage("ExtractField$Value", field=path, field_syntax_version="V2")
    )
    assert answer.record is not None
    assert answer.record.value == content


@FEW
@given(content=CONTENTS, names=NAME_LISTS)
def test_value_to_key(java_transforms: JavaTransforms, content: bytes | None, names: str) -> None:
    """The key is as Java's, and the value keeps its bytes, where Java writes it again."""
    asked = Stage(type="ValueToKey", options={"fields": names}, value="json", after="json")
    theirs = java_transforms.ask(record(content), [asked])
    own = ours(record(content), [asked])
    assert own.error == theirs.error
    if own.record is not None and theirs.record is not None:
        assert own.record.value == content
        hoisted = Stage(type="HoistField$Key", options={"field": "x"}, key="json")
        assert_same(java_transforms, record(key=own.record.key), hoisted)
        again = java_transforms.ask(record(key=theirs.record.key), [hoisted])
        assert again == java_transforms.ask(record(key=own.record.key), [hoisted])


def test_fields_keep_their_order() -> None:
    value = b'{"z":1, "a":2, "m":{"y":3,"b":4}}'
    for asked, content in (
        (stage("MaskField$Value", fields="new,a"), b'{"z":1,"a":0,"m":{"y":3,"b":4},"new":null}'),
        (stage("ReplaceField$Value", renames="z:b"), b'{"b":1,"a":2,"m":{"y":3,"b":4}}'),
        (stage("Flatten$Value"), b'{"z":1,"a":2,"m.y":3,"m.b":4}'),
        (stage("Cast$Value", spec="a:string"), b'{"z":1,"a":"2","m":{"y":3,"b":4}}'),
        (
            stage("InsertField$Value", topic_field="z", static_field="s", static_value="t"),
            f'{{"z":"{TOPIC}","a":2,"m":{{"y":3,"b":4}},"s":"t"}}'.encode(),
        ),
    ):
        made = ours(record(value), [asked]).record
        assert made is not None
        assert made.value == content


def _underscored(options: dict[str, str]) -> dict[str, str]:
    return {name.replace(".", "_"): text for name, text in options.items()}
