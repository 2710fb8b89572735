"""Records that faults write to the source themselves, at a moment of their choice; the history has them, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from chaos.arena import NoVictim
from chaos.history import HistoryWriter, record_id
from chaos.load import send_named

_TIMEOUT_S = 60.0
_VALUE = b"by a fault"
_CLIENT: dict[str, Any] = {
    "request_timeout_ms": 6_000,
    "delivery_timeout_ms": 50_000,
    "max_block_ms": 20_000,
    "bootstrap_timeout_ms": 20_000,
}


class Scribe:
    """Writes to topics that nobody else writes to; to each of them one thread at a time."""

    def __init__(self, servers: str, history: Path) -> None:
        self._servers = servers
        self._path = history
        self._numbers: Counter[tuple[str, int]] = Counter()

    def write_at_once(self, names: Mapping[str, str], partitions: Sequence[int], age_ms: int = 0) -> None:
        """Write one record to each partition of these topics, together, by the producer of the name that each has.

        Raises NoVictim if the source takes none.
        """
        self._write(names, partitions, _Times(1), age_ms)

    def write(self, topic: str, name: str, partition: int, count: int) -> None:
        """Write so many records of a producer of that name. Raises NoVictim if the source does not take them."""
        self._write({topic: name}, [partition], _Times(count))

    def write_while(
        self, topic: str, name: str, partitions: Sequence[int], goes_on: Callable[[], bool], age_ms: int = 0
    ) -> None:
        """Write small records, again and again one to each of these. Raises NoVictim if the source takes none."""
        self._write({topic: name}, partitions, goes_on, age_ms)

    def _write(
        self, names: Mapping[str, str], partitions: Sequence[int], goes_on: Callable[[], bool], age_ms: int = 0
    ) -> None:
        history = HistoryWriter(self._path)
        try:
            producer: Any = KafkaProducer(bootstrap_servers=self._servers, linger_ms=0, **_CLIENT)
            try:
                while goes_on():
                    sent = [
                        send_named(producer, history, topic, partition, self._next(name, partition), _VALUE, age_ms)
                        for topic, name in names.items()
                        for partition in partitions
                    ]
                    for one in sent:
                        one.get(_TIMEOUT_S)
            finally:
                producer.close(_TIMEOUT_S)
        except KafkaError as error:
            raise NoVictim(f"the source does not take a record: {error!r}") from error
        finally:
            history.close()

    def _next(self, name: str, partition: int) -> str:
        self._numbers[name, partition] += 1
        return record_id(name, partition, self._numbers[name, partition])


class _Times:
    """True so many times."""

    def __init__(self, count: int) -> None:
        self._left = count

    def __call__(self) -> bool:
        self._left -= 1
        return self._left >= 0
