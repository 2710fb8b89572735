"""Validate a connector's configuration as in Connect.

Parsing, checks and messages are Connect's, word for word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from sparkmirror.config.duty_settings import CONFIG_EXCLUDE
from sparkmirror.config.model import (
    DEFAULT_CONFIG_FILTER,
    DEFAULT_GROUP_FILTER,
    DEFAULT_TOPIC_FILTER,
    POLICIES,
)
from sparkmirror.connect.definitions import COMMON, SECRETS, SOURCE_CONNECTOR, Definition
from sparkmirror.connect.loadable import Loadable
from sparkmirror.connect.plugin_versions import ANY_VERSION, InvalidRange, VersionRange
from sparkmirror.connect.plugins import VERSION, definitions, find_class, version_not_found
from sparkmirror.errors import ConfigError, HandledError
from sparkmirror.transforms import parse_chain
from sparkmirror.values import is_python_class

Value = bool | int | float | str | list[str] | None

HIDDEN = "[hidden]"
"""Text that Connect shows in place of a password."""

_RANGES = {
    "INT": (-(2**31), 2**31 - 1),
    "SHORT": (-(2**15), 2**15 - 1),
    "LONG": (-(2**63), 2**63 - 1),
}
_KNOWN_CLASSES = {
    "replication.policy.class": POLICIES,
    "topic.filter.class": (DEFAULT_TOPIC_FILTER,),
    "group.filter.class": (DEFAULT_GROUP_FILTER,),
    "config.property.filter.class": (DEFAULT_CONFIG_FILTER,),
}
"""Accepted Java classes by setting; a class in any other setting has no effect."""


_VALUE = "{value}"


class _Wrong(HandledError):
    """A setting's forbidden value.

    `reason` has Connect's words, with `_VALUE` in place of the value.
    """

    def __init__(self, reason: str, value: object = None) -> None:
        self._reason = reason
        self._value = value
        super().__init__(reason)

    def text(self, reference: str | None) -> str:
        """Return the message, with `reference` for a config provider's value."""
        if self._value is None:
            return self._reason.replace(_VALUE, "null")
        return self._reason.replace(_VALUE, str(self._value) if reference is None else reference)


def _invalid(name: str, value: object, reason: str) -> _Wrong:
    return _Wrong(f"Invalid value {_VALUE} for configuration {name}: {reason}", value)


def _at_least(low: float, high: float = math.inf) -> Callable[[str, Value], None]:
    def check(name: str, value: Value) -> None:
        if not isinstance(value, int | float):
            raise _invalid(name, None, "Value must be non-null")
        if value < low:
            raise _invalid(name, value, f"Value must be at least {low}")
        if value > high:
            raise _invalid(name, value, f"Value must be no more than {high}")

    return check


def _one_of(*words: str) -> Callable[[str, Value], None]:
    def check(name: str, value: Value) -> None:
        if value not in words:
            raise _invalid(name, value, f"String must be one of: {', '.join(words)}")

    return check


def _one_of_any_case(*words: str) -> Callable[[str, Value], None]:
    def check(name: str, value: Value) -> None:
        if value is None or str(value).upper() not in words:
            raise _invalid(name, value, f"String must be one of (case insensitive): {', '.join(words)}")

    return check


def _aliases(name: str, value: Value) -> None:
    if not isinstance(value, list):
        raise _invalid(name, None, "entry must be non null")
    if len(set(value)) < len(value):
        raise _invalid(name, f"[{', '.join(value)}]", "Duplicate alias provided.")


def _list(name: str, value: Value) -> None:
    if not isinstance(value, list):
        raise _Wrong(f"Configuration '{name}' values must not be null.")
    if "" in value:
        raise _Wrong(f"Configuration '{name}' values must not be empty.")
    if len(set(value)) < len(value):
        raise _Wrong(f"Configuration '{name}' values must not be duplicated.")


def _additions(name: str, value: Value) -> None:
    """Check additions' syntax, which Connect does not have.

    A `+` before each item adds the items to the defaults.
    """
    _list(name, value)
    items = value if isinstance(value, list) else []
    try:
        CONFIG_EXCLUDE.kind.parse(",".join(items))
    except ValueError as error:
        raise _invalid(name, f"[{', '.join(items)}]", str(error)) from None


def _formats(name: str, value: Value) -> None:
    if value == []:
        raise _Wrong(f"Configuration '{name}' must not be empty. Valid values include: [legacy, new]")
    for word in value if isinstance(value, list) else ():
        if word:
            _one_of("legacy", "new")(name, word)
    _list(name, value)


def _name(name: str, value: Value) -> None:
    if value is None:
        return
    text = str(value)
    if not text:
        raise _invalid(name, text, "String may not be empty")
    controls = ", ".join(str(ord(letter)) for letter in text if _is_control(letter))
    if controls:
        reason = f"String may not contain control sequences but had the following ASCII chars: {controls}"
        raise _invalid(name, text, reason)


def _is_control(letter: str) -> bool:
    """Return Java's `Character.isISOControl` for a letter."""
    return ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0


def _not_empty(name: str, value: Value) -> None:
    if value == "":
        raise _invalid(name, value, "String must be non-empty")


def _from_zero_if_any(name: str, value: Value) -> None:
    if value is not None:
        _at_least(0)(name, value)


CHECKS: dict[str, Callable[[str, Value], None]] = {
    "name": _name,
    "tasks.max": _at_least(1),
    "transforms": _aliases,
    "predicates": _aliases,
    "config.action.reload": _one_of("none", "restart"),
    "errors.tolerance": _one_of("none", "all"),
    "topic.creation.groups": _aliases,
    "exactly.once.support": _one_of_any_case("REQUIRED", "REQUESTED"),
    "transaction.boundary": _one_of_any_case("INTERVAL", "POLL", "CONNECTOR"),
    "transaction.boundary.interval.ms": _from_zero_if_any,
    "offsets.storage.topic": _not_empty,
    "security.protocol": _one_of_any_case("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT"),
    "sasl.login.refresh.window.factor": _at_least(0.5, 1.0),
    "sasl.login.refresh.window.jitter": _at_least(0.0, 0.25),
    "sasl.login.refresh.min.period.seconds": _at_least(0),
    "sasl.login.refresh.buffer.seconds": _at_least(0),
    "sasl.oauthbearer.assertion.algorithm": _one_of_any_case("ES256", "RS256"),
    "sasl.oauthbearer.assertion.claim.exp.seconds": _at_least(0),
    "sasl.oauthbearer.assertion.claim.nbf.seconds": _at_least(0),
    "offset-syncs.topic.location": _one_of("source", "target"),
    "metric.names.formats": _formats,
    CONFIG_EXCLUDE.name: _additions,
}
"""Checks of values beyond their types.

Every list without an entry here must have no empty and no repeated item.
"""


def _parse(definition: Definition, given: str | None) -> Value:
    """Return the trimmed and parsed value, as `ConfigDef.parseType` reads the text."""
    if given is None:
        return None
    name, text = definition.name, given.strip("".join(map(chr, range(0x21))))
    match definition.type:
        case "BOOLEAN":
            if text.lower() not in ("true", "false"):
                raise _invalid(name, text, "Expected value to be either true or false")
            return text.lower() == "true"
        case "INT" | "LONG" | "SHORT":
            low, high = _RANGES[definition.type]
            if not re.fullmatch(r"[+-]?[0-9]{1,20}", text) or not low <= int(text) <= high:
                raise _invalid(name, text, f"Not a number of type {definition.type}")
            return int(text)
        case "DOUBLE":
            try:
                return float(text)
            except ValueError:
                raise _invalid(name, text, "Not a number of type DOUBLE") from None
        case "LIST":
            # Java splits at `\\s*,\\s*`; that regular expression takes hours for a megabyte of spaces.
            return [item.strip(" \t\n\v\f\r") for item in text.split(",")] if text else []
        case "CLASS":
            known = _KNOWN_CLASSES.get(name)
            if not text or (known is not None and text not in known and not is_python_class(text)):
                raise _invalid(name, text, f"Class {_VALUE} could not be found.")
            return text
        case "PASSWORD":
            return given
    # Control characters, which Connect trims off a name, would get into the topic's key.
    return given if name == "name" and any(map(_is_control, given)) else text


@dataclass(kw_only=True)
class CheckedValue:
    """Connect's `ConfigValueInfo`, with the setting's definition if known."""

    name: str
    definition: Definition | None
    value: str | None = None
    errors: list[str] = field(default_factory=list)
    recommended: list[str] = field(default_factory=list)
    visible: bool = True

    def as_json(self) -> dict[str, object]:
        """Return the value as an item in `configs`."""
        return {
            "definition": self.definition.as_json() if self.definition else None,
            "value": {
                "name": self.name,
                "value": self.value,
                "recommended_values": self.recommended,
                "errors": self.errors,
                "visible": self.visible,
            },
        }


@dataclass(frozen=True)
class Validation:
    """Connect's `ConfigInfos`."""

    class_name: str
    """Class name as the configuration states it."""
    values: tuple[CheckedValue, ...]
    groups: tuple[str, ...]

    @property
    def errors(self) -> list[str]:
        return [error for value in self.values for error in value.errors]

    def as_json(self) -> dict[str, object]:
        """Return the answer of `/config/validate`."""
        return {
            "name": self.class_name,
            "error_count": len(self.errors),
            "groups": list(self.groups),
            "configs": [value.as_json() for value in self.values],
        }


def validate(
    config: Mapping[str, str | None],
    given: Mapping[str, str | None] | None = None,
    loadable: Loadable | None = None,
) -> Validation:
    """Check a configuration; raise KeyError for an unknown `connector.class`.

    `given` is the configuration with references to config providers, whose values are not shown. A class or provider
    that `loadable` does not allow is an error.
    """
    stated = config["connector.class"] or ""
    class_name = find_class(stated)
    if class_name is None:
        raise KeyError(stated)
    version = config.get(_PLUGIN_VERSION)
    wanted = VersionRange(ANY_VERSION if version is None else version)
    here = VERSION in wanted
    known = definitions(class_name) if here else _OF_ANY_VERSION
    names = {definition.name for definition in known}
    unknown = [
        CheckedValue(name=key, definition=None, value=None, errors=[_NULL])
        for key, value in config.items()
        if value is None and key not in names
    ]
    references = {key: text for key, text in (given or {}).items() if text != config[key]}
    checked = {definition.name: _check(definition, config, references.get(definition.name)) for definition in known}
    _check_converters(config, checked)
    unknown += _refuse(config, references, loadable or Loadable(), checked)
    if not here:
        _note_versions(version_not_found(class_name, wanted), checked)
        return Validation(stated, (*unknown, *checked.values()), _groups(COMMON))
    for definition in SOURCE_CONNECTOR:
        if definition.name in config and config[definition.name] is None:
            checked[definition.name].errors.append(_NULL)
    if class_name.endswith("MirrorSourceConnector"):
        _check_source(config, checked)
        unknown += _check_transforms(config, checked)
    return Validation(stated, (*unknown, *checked.values()), _groups((*COMMON, *SOURCE_CONNECTOR)))


def _groups(grouped: Iterable[Definition]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(definition.group for definition in grouped if definition.group))


_PLUGIN_VERSION = "connector.plugin.version"
_OF_ANY_VERSION = tuple(
    replace(setting, default=VERSION) if setting.name == _PLUGIN_VERSION else setting for setting in COMMON
)
"""Settings of a connector for which the requested version is not available."""
_NULL = "Null value can not be supplied as the configuration value."


def _note_versions(reason: str, checked: Mapping[str, CheckedValue]) -> None:
    checked[_PLUGIN_VERSION].recommended = [VERSION]
    for name in ("connector.class", _PLUGIN_VERSION):
        checked[name].errors.append(reason)


def _refuse(
    config: Mapping[str, str | None],
    references: Mapping[str, str | None],
    loadable: Loadable,
    checked: Mapping[str, CheckedValue],
) -> list[CheckedValue]:
    """Add an error to each setting that must not be loaded.

    Returns the settings with errors that Connect doesn't know.
    """
    more = []
    for key, value in config.items():
        if value is None or not (reason := loadable.refusal(key, value)):
            continue
        shown = HIDDEN if key.endswith(SECRETS) else references.get(key)
        if key not in checked:
            more.append(CheckedValue(name=key, definition=None, value=shown or value))
        (checked.get(key) or more[-1]).errors.append(_invalid(key, value, reason).text(shown))
    return more


def _check_converters(config: Mapping[str, str | None], checked: Mapping[str, CheckedValue]) -> None:
    """Check converters' versions, and hide a missing converter's version."""
    for name in ("key.converter", "value.converter", "header.converter"):
        version = checked[f"{name}.plugin.version"]
        version.visible = config.get(name) is not None
        try:
            VersionRange(config.get(version.name) or ANY_VERSION).check()
        except InvalidRange as error:
            version.errors.append(str(error))


def _check(definition: Definition, config: Mapping[str, str | None], reference: str | None) -> CheckedValue:
    """Parse, check and describe one setting.

    `reference` is the text to show for a value from a config provider.
    """
    name = definition.name
    result = CheckedValue(name=name, definition=definition)
    value: Value = None
    try:
        if name not in config and definition.required:
            raise _Wrong(f'Missing required configuration "{name}" which has no default value.')
        value = _parse(definition, config.get(name, definition.default))
    except _Wrong as wrong:
        result.errors.append(wrong.text(reference))
    check = CHECKS.get(name, _list if definition.type == "LIST" else None)
    if check is not None and not (definition.required and name not in config):
        try:
            check(name, value)
        except _Wrong as wrong:
            result.errors.append(wrong.text(reference))
    result.value = _shown(definition, value if value is None or reference is None else reference)
    return result


def _shown(definition: Definition, value: Value) -> str | None:
    if value is None:
        return None
    if definition.secret:
        return HIDDEN
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, list) else str(value)


_REROUTES = (
    "a transform sends records to other topics, which takes a Spark query: run such a flow by `sparkmirror run`, or "
    "take it out"
)


def _check_transforms(config: Mapping[str, str | None], checked: Mapping[str, CheckedValue]) -> list[CheckedValue]:
    """Note mistakes in transforms and predicates.

    Returns the settings with errors that belong to a single transform.
    """
    given = {key: value for key, value in config.items() if value is not None}
    if any(checked[name].errors for name in ("transforms", "predicates")):
        return []
    more: dict[str, CheckedValue] = {}
    try:
        if not parse_chain(given).is_order_keeping:
            checked["transforms"].errors.append(
                _invalid("transforms", f"[{checked['transforms'].value}]", _REROUTES).text(None)
            )
    except ConfigError as error:
        for mistake in error.mistakes:
            key = mistake.key or "transforms"
            value = given.get(key)
            told = checked.get(key) or more.setdefault(key, CheckedValue(name=key, definition=None, value=value))
            told.errors.append(_invalid(key, value, mistake.reason).text(None))
    return list(more.values())


_SYNCS_SET_UP = ("offset-syncs.topic.", "offset-syncs.client.")
_NEEDS_COMMITTED = (
    "MirrorSourceConnector can only provide exactly-once guarantees when its source consumer is configured with "
    "isolation.level set to 'read_committed'; otherwise, records from aborted and uncommitted transactions will be "
    "replicated from the source cluster to the target cluster."
)
_ISOLATION = ("source.consumer.isolation.level", "consumer.isolation.level", "source.cluster.isolation.level")


def _check_source(config: Mapping[str, str | None], checked: Mapping[str, CheckedValue]) -> None:
    """Check settings that contradict each other, as the source connector itself does."""
    if config.get("exactly.once.support") == "required" and "read_committed" not in map(config.get, _ISOLATION):
        value = checked["exactly.once.support"]
        value.value, value.errors = None, [_NEEDS_COMMITTED]
    if config.get("emit.offset-syncs.enabled") == "false" and any(key.startswith(_SYNCS_SET_UP) for key in config):
        checked["emit.offset-syncs.enabled"].errors.append(
            "MirrorSourceConnector can't setup offset-syncs feature while emit.offset-syncs.enabled set to false"
        )
