"""A migration's file: the mirror, the sets that move as a whole, policies, fence and hooks.

`docs/migration-1.json` is the JSON Schema of these models, for editors: `json_schema` makes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from sparkmirror.config.formats.yaml_files import Document, documents_of, read_text
from sparkmirror.errors import ConfigError, ConfigErrors

_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION = r"^ *(\d+(?:\.\d+)?) *(ms|s|min|h)? *$"
_COUNTED = r"^ *(\d[\d_,]*) *(records|groups|topics)? *$"
_NAME = r"^[a-zA-Z0-9][a-zA-Z0-9_-]*$"
"""A name goes into a topic's name and on the command line."""


class MigrationType(StrEnum):
    """Who moves first."""

    CONSUMERS_FIRST = "consumers-first"
    PRODUCERS_FIRST = "producers-first"
    ALL_AT_ONCE = "all-at-once"


class Fence(StrEnum):
    """What keeps producers from writing at the side that they leave."""

    ACL = "acl"
    """An ACL denies each principal that may write."""
    HOOK = "hook"
    """The file's own commands stop and start the producers."""
    NONE = "none"
    """Nothing: people stop the producers, and the ends are watched."""


class SwitchStep(StrEnum):
    """Steps that hooks stand before and after."""

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
    found = re.match(_DURATION, value) if isinstance(value, str) else None
    if found:
        return float(found[1]) * _SECONDS[found[2] or "s"]
    if isinstance(value, (bool, str)):
        raise ValueError("write a number and ms, s, min or h, such as 30 s")
    return value


def _count(value: Any) -> Any:
    found = re.match(_COUNTED, value) if isinstance(value, str) else None
    if found:
        return int(found[1].replace(",", "").replace("_", ""))
    if isinstance(value, (bool, str)):
        raise ValueError("write a number, such as 1000 records or 5 groups")
    return value


def _or_text(kind: str, pattern: str, **least: int) -> Callable[[dict[str, Any]], None]:
    """Return what lets a number's schema take text with its unit, too."""

    def change(schema: dict[str, Any]) -> None:
        for ours in ("gt", "ge", "minimum"):
            schema.pop(ours, None)
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
    """Source topics, by their names at the source."""
    groups: tuple[Group, ...] = ()
    """Consumer groups that read them."""
    owner: str = ""
    """Whom to ask; shown, and given to hooks."""


class Policies(_FilePart):
    """Limits within which a switch is begun and ended."""

    lag: Count = 1000
    """Most records that the copy may lack when a switch begins."""
    empty: Seconds = 60.0
    """Longest wait for groups to have no members."""
    fence: Seconds = 20.0
    """Longest time from the first denial to steady ends."""
    still: Seconds = 5.0
    """Time for which ends must stand still where no ACL holds producers (`fence: hook` and `fence: none`)."""
    drain: Seconds = 30.0
    """Longest wait for the copy to have everything."""
    watch: Seconds = 600.0
    """Time after a switch in which writes and commits at the side left behind are looked for."""
    batch: Several = 5
    """Most groups, or topics, that are switched together."""


class Hook(_FilePart):
    """A command or a URL; anything but success stops the switch, and undoes it."""

    model_config = ConfigDict(json_schema_extra=lambda schema: _or_command(schema))

    run: str = Field(min_length=1)
    """A command line for `sh -c`, or an http(s) URL that gets the step as JSON by POST."""
    timeout: Seconds = 60.0
    """Longest time that it may take."""

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
    """Commands that stop and start producers, for `fence: hook`."""

    stop: Hook
    """Stops producers at the side that they leave; it may be called more than once."""
    start: Hook
    """Starts producers at the side that they have come to, or that they did not leave."""


class Hooks(_FilePart):
    """Hooks before and after each step."""

    before: dict[SwitchStep, tuple[Hook, ...]] = {}
    """Hooks before a step, by the step."""
    after: dict[SwitchStep, tuple[Hook, ...]] = {}
    """Hooks after a step, by the step."""
    fence: FenceHooks | None = None
    """What stops and starts producers; needed for `fence: hook`."""


class MigrationFile(_FilePart):
    """One migration."""

    name: str = Field(default="", pattern=r"^[a-zA-Z0-9_-]*$")
    """Part of the evidence topic's name; the file's name without its ending where it is left out."""
    mirror: str = Field(min_length=1)
    """The mirror's file, as `sparkmirror run` takes it; relative to this file."""
    flow: str = ""
    """The flow that the migration begins with, as SOURCE->TARGET; needed if the mirror's file has several."""
    type: MigrationType = MigrationType.CONSUMERS_FIRST
    """Who moves first: consumers, producers, or all at once."""
    sets: tuple[Set, ...] = Field(min_length=1)
    """Topics and groups; each set moves as a whole."""
    policies: Policies = Policies()
    """Limits of each switch."""
    fence: Fence = Fence.ACL
    """What keeps producers from writing: `acl` denies by ACLs, `hook` calls your commands, `none` relies on people."""
    hooks: Hooks = Hooks()
    """Your commands before and after steps."""

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
        """Return the set of this name, or all. Raises `ConfigError`."""
        found = tuple(each for each in self.sets if name in (None, each.name))
        if not found:
            names = ", ".join(each.name for each in self.sets)
            raise ConfigError(f"there is no such set; there are {names}", origin="--set", key=name)
        return found


def read_file(path: str | Path) -> MigrationFile:
    """Read a migration's file; the mirror's path becomes absolute.

    Raises `ConfigError`, or `ConfigErrors` with each mistake by its key.
    """
    path = Path(path)
    found = documents_of(str(path), read_text(str(path)))
    if len(found) != 1:
        raise ConfigError(f"has {len(found)} documents, and a migration is one", origin=str(path))
    (document,) = found
    try:
        read = MigrationFile.model_validate(document.tree)
    except ValidationError as error:
        mistakes = [_mistake(document, each) for each in _innermost(error.errors())]
        raise mistakes[0] if len(mistakes) == 1 else ConfigErrors(mistakes) from None
    mirror = str((path.parent / read.mirror).absolute())
    return read.model_copy(update={"mirror": mirror, "name": read.name or path.stem})


def _innermost(errors: Sequence[Any]) -> list[Any]:
    """Return the mistakes without those of lists that are too short only for want of their wrong items."""
    places = [error["loc"] for error in errors]
    return [
        error
        for error in errors
        if error["type"] != "too_short"
        or not any(len(place) > len(error["loc"]) and place[: len(error["loc"])] == error["loc"] for place in places)
    ]


def _mistake(document: Document, error: Any) -> ConfigError:
    """Return a mistake with the line and the key that it is about."""
    steps = tuple(step for step in error["loc"] if step != "[key]")
    return document.error(steps, _reason(error))


_REASONS = {
    "extra_forbidden": "there is no such key",
    "missing": "is missing",
    "string_type": "is no text",
    "tuple_type": "is no list",
    "dict_type": "is no mapping",
    "model_type": "is no mapping",
    "model_attributes_type": "is no mapping",
    "too_short": "is empty",
    "string_too_short": "is empty",
    "string_pattern_mismatch": "is no name: use letters, digits, - and _, in topics also dots",
}
"""Our words for pydantic's kinds of mistakes."""


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
