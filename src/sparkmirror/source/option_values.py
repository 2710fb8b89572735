"""Options of a reader, each read once and refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sparkmirror.errors import ConfigError
from sparkmirror.kafka.wire.topic_partition import TopicPartition

ORIGIN = "option"


def refused(key: str, reason: str) -> ConfigError:
    return ConfigError(reason, origin=ORIGIN, key=key)


class OptionValues:
    """Options by name, in any case; names are given as Spark's documentation has them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._given = {key.lower(): str(value) for key, value in options.items()}

    def has(self, key: str) -> bool:
        return key.lower() in self._given

    def text(self, key: str, default: str = "") -> str:
        return self._given.get(key.lower(), default).strip()

    def choice(self, key: str, *values: str) -> str:
        """Return one of these values; the first is the default."""
        value = self.text(key, values[0])
        for each in values:
            if value.lower() == each.lower():
                return each
        raise refused(key, f"is {value!r}: write {', '.join(values[:-1])} or {values[-1]}")

    def flag(self, key: str, *, default: bool) -> bool:
        return self.choice(key, *(("true", "false") if default else ("false", "true"))) == "true"

    def count(self, key: str) -> int | None:
        """Return a positive number; None if there is none."""
        if not self.has(key):
            return None
        value = self.text(key)
        if not value.isascii() or not value.isdigit() or int(value) == 0:
            raise refused(key, f"is {value!r}: write a number above 0")
        return int(value)

    def milliseconds(self, key: str) -> int | None:
        if not self.has(key):
            return None
        value = self.text(key)
        if not value.isascii() or not value.isdigit():
            raise refused(key, f"is {value!r}: write milliseconds since 1970")
        return int(value)

    def by_partition(self, key: str) -> dict[TopicPartition, int]:
        """Return the numbers in `{"topic":{"0":23}}`."""
        read: dict[TopicPartition, int] = {}
        try:
            for topic, partitions in _object(self.text(key)).items():
                for partition, number in _object(partitions).items():
                    if isinstance(number, bool) or not isinstance(number, int):
                        raise ValueError(f"{number!r} is no whole number")
                    read[topic, int(partition)] = number
        except ValueError as error:
            raise refused(key, f'can\'t be read ({error}): write it like {{"topic":{{"0":23,"1":-2}}}}') from error
        return read

    def partitions(self, key: str) -> tuple[TopicPartition, ...]:
        """Return the partitions in `{"topic":[0,1]}`."""
        try:
            return tuple(
                (topic, int(str(partition)))
                for topic, partitions in _object(self.text(key)).items()
                for partition in _list(partitions)
            )
        except ValueError as error:
            raise refused(key, f'can\'t be read ({error}): write it like {{"topic":[0,1]}}') from error

    def others(self, known: frozenset[str]) -> list[str]:
        """Return the given names that are not known, without those of Kafka's clients."""
        lower = {name.lower() for name in known}
        return sorted(key for key in self._given if key not in lower and not key.startswith("kafka."))

    def of_clients(self) -> dict[str, str]:
        """Return the settings of Kafka's clients, with their prefix `kafka.`."""
        return {key: value for key, value in self._given.items() if key.startswith("kafka.")}


def _object(given: object) -> dict[str, object]:
    value = json.loads(given) if isinstance(given, str) else given
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is no object")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is no list")
    return value
