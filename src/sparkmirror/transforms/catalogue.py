"""Classes by Java names, with options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sparkmirror.transforms.casting import cast_of
from sparkmirror.transforms.conditions import Filter, HasHeaderKey, RecordIsTombstone, TopicNameMatches
from sparkmirror.transforms.field_mask import MaskField
from sparkmirror.transforms.field_path import ExtractField
from sparkmirror.transforms.fields import Flatten, HoistField, InsertField, ReplaceField, ValueToKey
from sparkmirror.transforms.headers import DropHeaders, HeaderFrom, InsertHeader
from sparkmirror.transforms.options import (
    FIELD_SYNTAX,
    NULL_REPLACED,
    Items,
    Option,
    Options,
    Pattern,
    Trimmed,
)
from sparkmirror.transforms.record import Side
from sparkmirror.transforms.routing import RegexRouter, TimestampRouter
from sparkmirror.transforms.shape import Predicate, Transform
from sparkmirror.transforms.timestamps import PRECISIONS, TARGETS, TimestampConverter
from sparkmirror.values import Choice

PACKAGE = "org.apache.kafka.connect.transforms."
PREDICATES_PACKAGE = PACKAGE + "predicates."

WITHOUT_SCHEMA = "SetSchemaMetadata"
"""Class that refuses each record without a schema in Java."""


@dataclass(frozen=True, slots=True)
class TransformClass:
    """Transform's factory and options."""

    make: Callable[[Options], Transform]
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class PredicateClass:
    """Predicate's factory and options."""

    make: Callable[[Options], Predicate]
    options: tuple[Option, ...] = ()


def _text(name: str, default: str | None = None) -> Option:
    return Option(name, Trimmed(), default)


def _wanted(name: str) -> Option:
    return Option(name, Trimmed(), required=True)


def _names(name: str) -> Option:
    return Option(name, Items(), required=True)


def _list(name: str) -> Option:
    return Option(name, Items(filled=False), default=())


_SIDED: dict[str, tuple[Callable[[Options, Side], Transform], tuple[Option, ...]]] = {
    "Cast": (cast_of, (Option("spec", Items(named=False), required=True), NULL_REPLACED)),
    "ExtractField": (ExtractField.of, (_wanted("field"), FIELD_SYNTAX, NULL_REPLACED)),
    "Flatten": (Flatten.of, (_text("delimiter", "."),)),
    "HeaderFrom": (
        HeaderFrom.of,
        (
            Option("fields", Items(named=False), required=True),
            Option("headers", Items(named=False), required=True),
            Option("operation", Choice(("move", "copy")), required=True),
            NULL_REPLACED,
        ),
    ),
    "HoistField": (HoistField.of, (_wanted("field"),)),
    "InsertField": (
        InsertField.of,
        (
            *(_text(f"{name}.field") for name in ("topic", "partition", "offset", "timestamp", "static")),
            _text("static.value"),
            NULL_REPLACED,
        ),
    ),
    "MaskField": (MaskField.of, (_names("fields"), Option("replacement", Trimmed(filled=True)), NULL_REPLACED)),
    "ReplaceField": (
        ReplaceField.of,
        (
            _list("exclude"),
            _list("include"),
            Option("renames", Items(filled=False, named=False), default=()),
            NULL_REPLACED,
        ),
    ),
    "TimestampConverter": (
        TimestampConverter.of,
        (
            _text("field", ""),
            Option("target.type", Choice((*TARGETS, "Date", "Time", "Timestamp")), required=True),
            _text("format", ""),
            Option("unix.precision", Choice(tuple(PRECISIONS)), default="milliseconds"),
            NULL_REPLACED,
        ),
    ),
}
"""Classes for keys and for values: `$Key` and `$Value`."""


def _of_side(make: Callable[[Options, Side], Transform], side: Side) -> Callable[[Options], Transform]:
    return lambda options: make(options, side)


TRANSFORMS: dict[str, TransformClass] = {
    "DropHeaders": TransformClass(DropHeaders.of, (_names("headers"),)),
    "Filter": TransformClass(lambda _: Filter()),
    "InsertHeader": TransformClass(InsertHeader.of, (_wanted("header"), _wanted("value.literal"))),
    "RegexRouter": TransformClass(RegexRouter.of, (Option("regex", Pattern(), required=True), _wanted("replacement"))),
    "TimestampRouter": TransformClass(
        TimestampRouter.of, (_text("topic.format", "${topic}-${timestamp}"), _text("timestamp.format", "yyyyMMdd"))
    ),
    "ValueToKey": TransformClass(ValueToKey.of, (_names("fields"), NULL_REPLACED)),
    **{f"{name}$Key": TransformClass(_of_side(make, "key"), options) for name, (make, options) in _SIDED.items()},
    **{f"{name}$Value": TransformClass(_of_side(make, "value"), options) for name, (make, options) in _SIDED.items()},
}
"""Transforms by names in Kafka's package."""

PREDICATES: dict[str, PredicateClass] = {
    "HasHeaderKey": PredicateClass(HasHeaderKey.of, (Option("name", Trimmed(filled=True), required=True),)),
    "RecordIsTombstone": PredicateClass(lambda _: RecordIsTombstone()),
    "TopicNameMatches": PredicateClass(TopicNameMatches.of, (Option("pattern", Pattern(filled=True), required=True),)),
}
"""Predicates by names in Kafka's package."""

SIDED = frozenset(_SIDED)
