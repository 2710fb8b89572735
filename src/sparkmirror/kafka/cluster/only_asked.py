"""Answers about exactly what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from sparkmirror.kafka.wire.rpc import BrokerUnreachable

Key = TypeVar("Key")
Part = TypeVar("Part")


def only_asked(answered: Mapping[Key, Part], asked: Iterable[Key], request: str) -> dict[Key, Part]:
    """Return those parts in an answer to `request` that were asked for.

    Other parts are passed over. Raises `BrokerUnreachable` if one is missing, which no Apache Kafka broker leaves out.
    """
    try:
        return {key: answered[key] for key in asked}
    except KeyError as error:
        raise BrokerUnreachable(f"its answer to {request} leaves out {error.args[0]}") from None
