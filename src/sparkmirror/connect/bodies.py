"""Request bodies, read as Connect reads them.

An unreadable body is refused with status 400; Connect answers 500.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sparkmirror.connect.connector_model import Offset, TargetState
from sparkmirror.connect.errors import RestError, bad_request

_INITIAL_STATES = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}
_MOST_SETTINGS = 1_000
"""Most settings in one connector.

The three connectors and their clients know about a third as many keys.
"""
_MOST_REFERENCES, _MOST_BLANKS = 100, 100
"""Limits for one value: references to config providers, and blanks in a row."""
_DEEPEST = 20
"""Limit on nested lists and objects; Connect's own bodies have four levels."""
_TOO_DEEP = "its lists and objects are nested too deeply"
_CREATION_FIELDS = ("name", "config", "initial_state")


@dataclass(frozen=True, slots=True)
class Creation:
    """Body of `POST /connectors`."""

    name: str
    config: dict[str, str | None]
    initial: TargetState | None


def read_settings(body: bytes) -> dict[str, str | None]:
    """Read a flat object with settings; numbers and booleans count as their text."""
    return _settings(_read_object(body))


def read_creation(body: bytes) -> Creation:
    """Read a new connector, and trim its name.

    A name in the configuration must be the same.
    """
    content = _read_object(body)
    _no_other_fields(content, _CREATION_FIELDS)
    config, initial = content.get("config"), content.get("initial_state")
    if not isinstance(config, dict):
        raise _unreadable("it has no object config, the connector's configuration")
    state = None if initial is None else _INITIAL_STATES.get(str(initial).upper())
    if initial is not None and state is None:
        raise _unreadable(f"initial_state {initial!r} is none of {', '.join(_INITIAL_STATES)}")
    name = (_as_text("name", content.get("name")) or "").strip("".join(map(chr, range(0x21))))
    return Creation(name, with_name(name, _settings(config)), state)


def _settings(content: Mapping[str, object]) -> dict[str, str | None]:
    """Return the settings as text; refuse too many settings, references or blanks.

    The limits bound the cost: regular expressions go over each value many times.
    """
    if len(content) > _MOST_SETTINGS:
        raise bad_request(f"There are {len(content):,} settings, and may be {_MOST_SETTINGS:,}")
    settings = {key: _as_text(key, value) for key, value in content.items()}
    for key, text in settings.items():
        if text and text.count("${") > _MOST_REFERENCES:
            raise bad_request(f"{key} has more than {_MOST_REFERENCES} references to config providers")
        if text and any(len(blanks) > _MOST_BLANKS for blanks in re.findall(r"\s+", text)):
            raise bad_request(f"{key} has more than {_MOST_BLANKS} blanks in a row: take them out")
    return settings


def with_name(name: str, config: dict[str, str | None]) -> dict[str, str | None]:
    check_name(name, config)
    return {**config, "name": name}


def check_name(name: str, config: Mapping[str, str | None]) -> None:
    """Refuse a configuration with a different `name` in it."""
    included = config.get("name")
    if included is not None and included != name:
        raise bad_request(f"Connector name configuration ({included}) doesn't match connector name in the URL ({name})")


def read_offsets(body: bytes) -> list[Offset]:
    """Read the body of `PATCH /connectors/{name}/offsets`.

    The last entry counts if a partition comes twice.
    """
    content = _read_object(body)
    _no_other_fields(content, ("offsets",))
    items = content.get("offsets")
    if not items:
        raise bad_request("Partitions / offsets need to be provided for an alter offsets request")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise _unreadable("offsets must be a list of objects with partition and offset")
    by_partition: dict[str, Offset] = {}
    for item in items:
        _no_other_fields(item, ("partition", "offset"))
        partition, offset = item.get("partition"), item.get("offset")
        if not isinstance(partition, dict | None) or not isinstance(offset, dict | None):
            raise _unreadable("a partition and an offset must be objects, or null")
        by_partition[json.dumps(partition, sort_keys=True)] = (partition, offset)  # type: ignore[assignment]
    return list(by_partition.values())


def _read_object(body: bytes) -> dict[str, object]:
    try:
        content = json.loads(body, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise _unreadable(_TOO_DEEP) from None
    except ValueError as error:
        reason = "it is empty" if not body.strip() else str(error)
        raise _unreadable(reason) from None
    if not isinstance(content, dict):
        raise _unreadable("it is no object")
    if _is_deep(content):
        raise _unreadable(_TOO_DEEP)
    if re.search("[\ud800-\udfff]", json.dumps(content, ensure_ascii=False)):
        raise bad_request("The body holds half of a surrogate pair, which is no text")
    return content


def _refuse_constant(word: str) -> object:
    """Refuse NaN and infinities, which Python's parser takes and JSON does not have."""
    raise ValueError(f"{word} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large")
    return number


def _is_deep(content: object) -> bool:
    """Tell whether a value is nested in more than `_DEEPEST` lists and objects."""
    level = [content]
    for _ in range(_DEEPEST):
        inner: list[object] = []
        for item in level:
            inner += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        level = inner
    return bool(level)


def _as_text(key: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    raise _unreadable(f"{key} must be text")


def _no_other_fields(content: Mapping[str, object], known: tuple[str, ...]) -> None:
    other = [key for key in content if key not in known]
    if other:
        raise _unreadable(f"it has a field {other[0]!r}; known are {', '.join(known)}")


def _unreadable(reason: str) -> RestError:
    return bad_request(f"The body can't be read as JSON of the expected form: {reason}")
