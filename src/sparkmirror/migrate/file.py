"""A migration's file: the mirror, the sets that move as a whole, policies, fence and hooks.

`docs/migrate.md` describes each key. The JSON Schema is made from these models (`sparkmirror migration schema`).
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from sparkmirror.errors import ConfigError, ConfigErrors

_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?) *(ms|s|min|h)")
_COUNTED = re.compile(r"(\d[\d_,]*) *(records|groups|topics)?")
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


class Step(StrEnum):
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
    if isinstance(value, str):
        found = _DURATION.fullmatch(value.strip())
        if not found:
            raise ValueError("write a number and ms, s, min or h, such as 30 s")
        return float(found[1]) * _SECONDS[found[2]]
    return value


def _count(value: Any) -> Any:
    if isinstance(value, str):
        found = _COUNTED.fullmatch(value.strip())
        if not found:
            raise ValueError("write a number, such as 1000 records or 5 groups")
        return int(found[1].replace(",", "").replace("_", ""))
    return value


_DURATION_SCHEMA = {"type": ["string", "number"], "description": "Seconds, or a number with ms, s, min or h."}
_COUNT_SCHEMA = {"type": ["string", "integer"], "description": "A number, with records or groups if you like."}
Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0, json_schema_extra=_DURATION_SCHEMA)]
Count = Annotated[int, BeforeValidator(_count), Field(ge=0, json_schema_extra=_COUNT_SCHEMA)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Set(_Part):
    """Topics and groups that move as a whole."""

    name: str = Field(pattern=_NAME)
    topics: tuple[str, ...] = Field(min_length=1)
    """Source topics, by their names at the source."""
    groups: tuple[str, ...] = ()
    owner: str = ""
    """Whom to ask; shown, and given to hooks."""


class Policies(_Part):
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
    batch: Count = Field(default=5, ge=1)
    """Most groups, or topics, that are switched together."""


class Hook(_Part):
    """A command or a URL; anything but success stops the switch, and undoes it."""

    run: str = Field(min_length=1)
    """A command line for `sh -c`, or an http(s) URL that gets the step as JSON by POST."""
    timeout: Seconds = 60.0

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"run": value} if isinstance(value, str) else value

    @property
    def is_url(self) -> bool:
        return self.run.startswith(("http://", "https://"))


class FenceHooks(_Part):
    """Commands that stop and start producers, for `fence: hook`."""

    stop: Hook
    start: Hook


class Hooks(_Part):
    """Hooks before and after each step."""

    before: dict[Step, tuple[Hook, ...]] = {}
    after: dict[Step, tuple[Hook, ...]] = {}
    fence: FenceHooks | None = None


class MigrationFile(_Part):
    """One migration."""

    name: str = Field(default="", pattern=r"^[a-zA-Z0-9_-]*$")
    """Part of the evidence topic's name; the file's name without its ending where it is left out."""
    mirror: str = Field(min_length=1)
    """The mirror's file, as `sparkmirror run` takes it; relative to this file."""
    flow: str = ""
    """The flow that the migration begins with, as SOURCE->TARGET; needed if the mirror's file has several."""
    type: MigrationType = MigrationType.CONSUMERS_FIRST
    sets: tuple[Set, ...] = Field(min_length=1)
    policies: Policies = Policies()
    fence: Fence = Fence.ACL
    hooks: Hooks = Hooks()

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.fence is Fence.HOOK and self.hooks.fence is None:
            raise ValueError("fence: hook needs hooks.fence with stop and start")
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
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"can't be read: {error.strerror}", origin=str(path)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"no YAML: {' '.join(str(error).split())}", origin=str(path)) from None
    if not isinstance(content, dict):
        raise ConfigError("a migration is a mapping with mirror and sets", origin=str(path))
    try:
        read = MigrationFile.model_validate(content)
    except ValidationError as error:
        mistakes = [
            ConfigError(_reason(each), origin=str(path), key=".".join(map(str, each["loc"])) or None)
            for each in error.errors()
        ]
        raise mistakes[0] if len(mistakes) == 1 else ConfigErrors(mistakes) from None
    mirror = str((path.parent / read.mirror).absolute())
    return read.model_copy(update={"mirror": mirror, "name": read.name or path.stem})


def _reason(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "there is no such key"
    if error["type"] == "missing":
        return "is missing"
    return str(error["msg"]).removeprefix("Value error, ")
