"""One question to Java and to the code, and whether the answers are the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from tests.transforms.java_transforms import PACKAGE, PREDICATES, Answer, JavaTransforms, Stage

from sparkmirror.errors import ConfigError, TransformFailed
from sparkmirror.transforms import Record, parse_chain

Real: TypeAlias = Callable[[str], Any]

TOPIC = "us.orders"
TIME = 1_700_000_000_123


def record(value: bytes | None = None, **changes: Any) -> Record:
    """A record with some of everything."""
    made = Record(topic=TOPIC, partition=3, timestamp=TIME, key=b"k", value=value, headers=(("h", b"1"),))
    return replace(made, **changes)


def stage(type: str, side: str = "json", **options: str) -> Stage:
    """A stage, with the converter that the rule gives its side; underscores in options are dots."""
    named = {name.replace("_", "."): text for name, text in options.items()}
    if type.endswith("$Key"):
        return Stage(type=type, options=named, key=side)
    if type.endswith("$Value"):
        return Stage(type=type, options=named, value=side)
    return Stage(type=type, options=named)


def properties(stages: Sequence[Stage]) -> dict[str, str]:
    """The same stages as a file has them."""
    made = {"transforms": ",".join(f"t{number}" for number in range(len(stages)))}
    conditions = [number for number, stage in enumerate(stages) if stage.condition is not None]
    if conditions:
        made["predicates"] = ",".join(f"p{number}" for number in conditions)
    for number, stage in enumerate(stages):
        made[f"transforms.t{number}.type"] = PACKAGE + stage.type
        made |= {f"transforms.t{number}.{name}": text for name, text in stage.options.items()}
        if stage.condition is not None:
            made[f"transforms.t{number}.predicate"] = f"p{number}"
            made[f"transforms.t{number}.negate"] = str(stage.condition.negate).lower()
            made[f"predicates.p{number}.type"] = PREDICATES + stage.condition.type
            made |= {f"predicates.p{number}.{name}": text for name, text in stage.condition.options.items()}
    return made


def ours(given: Record, stages: Sequence[Stage]) -> Answer:
    """The code's answer, in Java's form."""
    try:
        chain = parse_chain(properties(stages))
    except ConfigError as error:
        return Answer(None, error="config", words=str(error))
    try:
        return Answer(chain.apply(given))
    except TransformFailed as error:
        return Answer(None, error="record", words=str(error))


def assert_same(java: JavaTransforms, given: Record, *stages: Stage) -> Answer:
    """Both answer the same; returns the code's answer."""
    theirs, own = java.ask(given, stages), ours(given, stages)
    about = f"{stages}\n{given}\njava: {theirs}\nours: {own}"
    assert own.error == theirs.error, about
    if theirs.record is None or own.record is None:
        assert own.record == theirs.record, about
        return own
    real = _real(java, stages)
    for side in ("key", "value"):
        assert_same_content(real, getattr(own.record, side), getattr(theirs.record, side), about)
    same = replace(own.record, key=theirs.record.key, value=theirs.record.value)
    if any(header[1] and header[1][:1] in b"[{" for header in theirs.record.headers):  # fields in another order
        assert [name for name, _ in same.headers] == [name for name, _ in theirs.record.headers], about
        for (_, own_content), (_, content) in zip(same.headers, theirs.record.headers, strict=True):
            assert_same_content(real, own_content, content, about)
        same = replace(same, headers=theirs.record.headers)
    assert same == theirs.record, about
    return own


def _real(java: JavaTransforms, stages: Sequence[Stage]) -> Real:
    """What floating-point numbers are compared by: their texts, or before Java 19 their values."""
    if java.writes_shortest:
        return str
    return np.float32 if any("float32" in stage.options.get("spec", "") for stage in stages) else float


def assert_same_content(real: Real, own: bytes | None, theirs: bytes | None, about: str = "") -> None:
    """Equal bytes; where there are several fields, in whatever order."""
    if own == theirs:
        return
    assert own is not None, about
    assert theirs is not None, about
    assert len(own) == len(theirs) or real is not str, about
    data = parsed(theirs, real)
    assert parsed(own, real) == data, about
    assert real is not str or not _has_one_order(data), about


def parsed(content: bytes, real: Real) -> Any:
    """JSON with its numbers as texts; floating-point numbers as `real` makes them."""
    return json.loads(content, parse_int=lambda text: ("int", text), parse_float=lambda text: ("float", real(text)))


def _has_one_order(data: Any) -> bool:
    if isinstance(data, list):
        return all(map(_has_one_order, data))
    return not isinstance(data, dict) or (len(data) <= 1 and all(map(_has_one_order, data.values())))
