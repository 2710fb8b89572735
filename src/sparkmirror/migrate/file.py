"""A migration's file: mirror, sets, policies, fence and hooks.

`json_schema` makes the models' JSON Schema, `docs/migration-1.json`, for editors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from sparkmirror.config.formats.yaml_files import Document, documents_of, read_text
from sparkmirror.errors import ConfigError, ConfigErrors

_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION = r"^ *(\d+(?:\.\d+)?) *(ms|s|min|h)? *$"
_COUNTED = r"^ *(\d[\d_,]*) *(records|groups|topics)? *$"
_HALF = "has half of a character (a surrogate): write the whole character"
_LONGEST_NAME = 200
"""Kafka's topics have names of 249 characters at most."""
_NAME = r"^[a-zA-Z0-9][a-zA-Z0-9_-]*$"
"""A name goes into a topic's name and on the command line."""


class MigrationType(StrEnum):
    """Order in which consumers and producers move."""

    CONSUMERS_FIRST = "consumers-first"
    PRODUCERS_FIRST = "producers-first"
    ALL_AT_ONCE = "all-at-once"


class Fence(StrEnum):
    """Means to stop producers' writes at the side left behind."""

    ACL = "acl"
    """An ACL denies each principal with the right to write."""
    HOOK = "hook"
    """The file's hooks stop and start the producers."""
    NONE = "none"
    """People stop the producers, and sparkmirror watches the ends."""


class SwitchStep(StrEnum):
    """Steps with hooks before and after."""

    CONSUMERS = "consumers"
    """The consumers' whole switch."""
    PRODUCERS = "producers"
    """The producers' whole switch."""
    FENCE = "fence"
    PUBLISH = "publish"
    DRAIN = "drain"
    ARM = "arm"
    OPEN = "open"
    EMPTY = "empty"
    POSITION = "position"


def _seconds(value: Any) -> Any:
    match = re.match(_DURATION, value) if isinstance(value, str) else None
    if match:
        return float(match[1]) * _SECONDS[match[2] or "s"]
    if isinstance(value, (bool, str)):
        raise ValueError("write a number and ms, s, min or h, such as 30 s")
    return value


def _count(value: Any) -> Any:
    match = re.match(_COUNTED, value) if isinstance(value, str) else None
    if match:
        return int(match[1].replace(",", "").replace("_", ""))
    if isinstance(value, (bool, str)):
        raise ValueError("write a number, such as 1000 records or 5 groups")
    return value


def _command(value: str) -> str:
    if "\0" in value:
        raise ValueError("has a NUL byte, which no command or URL can have: take it out")
    return value


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(_HALF) from None
    return value


def _or_text(kind: str, pattern: str, **least: int) -> Callable[[dict[str, Any]], None]:
    """Return a change by which a number's schema also takes text with a unit."""

    def change(schema: dict[str, Any]) -> None:
        for bound in ("gt", "ge", "minimum"):
            schema.pop(bound, None)
        schema |= {"type": ["string", kind], "pattern": pattern, **least}

    return change


Seconds = Annotated[
    float,
    BeforeValidator(_seconds),
    Field(gt=0, allow_inf_nan=False, json_schema_extra=_or_text("number", _DURATION, exclusiveMinimum=0)),
]
Count = Annotated[int, BeforeValidator(_count), Field(ge=0, json_schema_extra=_or_text("integer", _COUNTED, minimum=0))]
Several = Annotated[
    int, BeforeValidator(_count), Field(ge=1, json_schema_extra=_or_text("integer", _COUNTED, minimum=1))
]
Topic = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]
Group = Annotated[str, Field(min_length=1)]


class _FilePart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Set(_FilePart):
    """Topics and groups that move as a whole."""

    name: str = Field(pattern=_NAME)
    """The set's name, for `--set`."""
    topics: tuple[Topic, ...] = Field(min_length=1)
    """Topics, by the names at the source."""
    groups: tuple[Group, ...] = ()
    """Consumer groups that read the topics."""
    owner: Annotated[str, AfterValidator(_text)] = ""
    """Person or team to ask; shown, and given to hooks."""


class Policies(_FilePart):
    """Limits for the begin and the end of a switch."""

    lag: Count = 1000
    """Most records missing from the copy when a switch begins."""
    empty: Seconds = 60.0
    """Longest wait for groups to have no members."""
    fence: Seconds = 20.0
    """Longest time from the first denial to steady ends."""
    still: Seconds = 5.0
    """Time for which ends must stand still with `fence: hook` or `fence: none`."""
    drain: Seconds = 30.0
    """Longest wait for the copy to be complete."""
    watch: Seconds = 600.0
    """Time after a switch to look for writes and commits at the side left behind."""
    batch: Several = 5
    """Most groups switched together."""


class Hook(_FilePart):
    """A command or a URL; a failure stops and undoes the switch."""

    model_config = ConfigDict(json_schema_extra=lambda schema: _or_command(schema))

    run: Annotated[str, AfterValidator(_command)] = Field(min_length=1)
    """Command line for `sh -c`, or http(s) URL for a POST with the step as JSON."""
    timeout: Seconds = 60.0
    """Longest time for the hook."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"run": value} if isinstance(value, str) else value

    @property
    def is_url(self) -> bool:
        return self.run.startswith(("http://", "https://"))


def _or_command(schema: dict[str, Any]) -> None:
    """Let a hook's schema take the command alone, as text."""
    whole = dict(schema)
    schema.clear()
    schema |= {
        "title": whole.pop("title"),
        "description": whole.pop("description"),
        "anyOf": [{"type": "string", "minLength": 1}, whole],
    }


class FenceHooks(_FilePart):
    """Hooks to stop and start producers, for `fence: hook`."""

    stop: Hook
    """Hook to stop producers at the side left behind; may be called more than once."""
    start: Hook
    """Hook to start producers at the new side; after an undo, at the old side."""


class Hooks(_FilePart):
    """Hooks before and after each step."""

    before: dict[SwitchStep, tuple[Hook, ...]] = {}
    """Hooks before a step, by the step."""
    after: dict[SwitchStep, tuple[Hook, ...]] = {}
    """Hooks after a step, by the step."""
    fence: FenceHooks | None = None
    """Hooks to stop and start producers; needed for `fence: hook`."""


class MigrationFile(_FilePart):
    """A migration."""

    name: str = Field(default="", pattern=r"^[a-zA-Z0-9_-]*$", max_length=_LONGEST_NAME)
    """Part of the evidence topic's name; by default, the file's name without ending."""
    mirror: str = Field(min_length=1)
    """The mirror's file, as for `sparkmirror run`; relative to the migration's file."""
    flow: str = ""
    """First flow, as SOURCE->TARGET; needed if the mirror's file has several flows."""
    type: MigrationType = MigrationType.CONSUMERS_FIRST
    """Order of the moves: consumers first, producers first, or all at once."""
    sets: tuple[Set, ...] = Field(min_length=1)
    """Topics and groups; each set moves as a whole."""
    policies: Policies = Policies()
    """Limits of each switch."""
    fence: Fence = Fence.ACL
    """Means to stop producers' writes at the side left behind.

    `acl` denies by ACLs, `hook` calls the file's hooks, `none` relies on people.
    """
    hooks: Hooks = Hooks()
    """Hooks before and after steps, and for the fence."""

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.fence is Fence.HOOK and self.hooks.fence is None:
            raise ValueError("`fence: hook` needs `hooks.fence` with `stop` and `start`")
        for what, names in (
            ("set", [each.name for each in self.sets]),
            ("topic", [topic for each in self.sets for topic in each.topics]),
            ("group", [group for each in self.sets for group in each.groups]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{what} {twice[0]} stands there twice: each moves with one set")
        return self

    def chosen(self, name: str | None) -> tuple[Set, ...]:
        """Return the set with a name, or all sets.

        Raises `ConfigError` if no set has the name.
        """
        sets = tuple(each for each in self.sets if name in (None, each.name))
        if not sets:
            names = ", ".join(each.name for each in self.sets)
            raise ConfigError(f"there is no such set; there are {names}", origin="--set", key=name)
        return sets


def read_file(path: str | Path) -> MigrationFile:
    """Read a migration's file; the mirror's path becomes absolute.

    Raises `ConfigError`, or `ConfigErrors` for several mistakes, each with the key.
    """
    path = Path(path)
    documents = documents_of(str(path), read_text(str(path)))
    if len(documents) != 1:
        raise ConfigError(f"has {len(documents)} documents, and a migration is one", origin=str(path))
    (document,) = documents
    try:
        read = MigrationFile.model_validate(document.tree)
    except ValidationError as error:
        mistakes = [_mistake(document, each) for each in _innermost(error.errors())]
        raise mistakes[0] if len(mistakes) == 1 else ConfigErrors(mistakes) from None
    mirror = str((path.parent / read.mirror).absolute())
    name = read.name or path.stem
    if not re.fullmatch(r"[a-zA-Z0-9._-]+", name) or len(name) > _LONGEST_NAME:
        words = "the file's name can't be part of a topic's name: write one of letters, digits, - and _"
        raise ConfigError(words, origin=str(path), key="name")
    return read.model_copy(update={"mirror": mirror, "name": name})


def _innermost(errors: Sequence[Any]) -> list[Any]:
    """Return the mistakes, except for lists that only seem too short.

    If items are wrong, pydantic may call the list too short as well.
    """
    places = [error["loc"] for error in errors]
    return [
        error
        for error in errors
        if error["type"] != "too_short"
        or not any(len(place) > len(error["loc"]) and place[: len(error["loc"])] == error["loc"] for place in places)
    ]


def _mistake(document: Document, error: Any) -> ConfigError:
    """Return a mistake with line and key."""
    steps = tuple(step for step in error["loc"] if step != "[key]")
    return document.error(steps, _reason(error))


_REASONS = {
    "extra_forbidden": "there is no such key",
    "missing": "is missing",
    "string_type": "is no text",
    "string_unicode": _HALF,
    "tuple_type": "is no list",
    "dict_type": "is no mapping",
    "model_type": "is no mapping",
    "model_attributes_type": "is no mapping",
    "too_short": "is empty",
    "string_too_short": "is empty",
    "string_pattern_mismatch": "is no name: use letters, digits, - and _, in topics also dots",
}
"""Words for pydantic's kinds of mistakes."""


def _reason(error: Any) -> str:
    told = str(error["msg"]).removeprefix("Value error, ").replace("Input should be", "must be", 1)
    return _REASONS.get(error["type"], told)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a migration's file."""
    schema = MigrationFile.model_json_schema()
    hook = {"properties": {"fence": {"const": Fence.HOOK}}, "required": ["fence"]}
    needed = {"properties": {"hooks": {"required": ["fence"]}}, "required": ["hooks"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "sparkmirror's migration.yaml",
        "if": hook,
        "then": needed,
    }
