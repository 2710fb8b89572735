"""Values that all attempts of a query's batches agree on, and fences.

The values are the producer id, and each topic's partition count. Records are in the control topic's only partition.
Each proposal has a key of its own, so compaction keeps it; the proposal with the lowest offset counts. A batch's
fences share a key: the newest counts.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import NamedTuple

from sparkmirror.errors import ClusterUnreachable
from sparkmirror.exact.durable.query_places import SINK_TOPIC
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.producers import new_producer_id
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.sync.own_settings import safe_settings

CONTROL_TOPIC = SINK_TOPIC
EPOCHS = 32_767
"""Number of batches in a generation: Kafka's producer epoch is an int16."""

Name = tuple[str | int, ...]


class MicroBatch(NamedTuple):
    """A query's micro-batch, as brokers know it."""

    query: str
    """Query id; for a batch write the application's name."""
    number: int

    @property
    def generation(self) -> int:
        """Number of the query's producer id; each serves 32,767 batches."""
        return self.number // EPOCHS

    @property
    def producer_epoch(self) -> int:
        return self.number % EPOCHS


class AgreedProducer(NamedTuple):
    """A generation's producer id, and when somebody proposed it."""

    producer_id: int
    created_ms: int


class SinkAgreement:
    """Agreed values of one query and generation, read as needed; for one thread."""

    def __init__(self, client: ClusterClient, query: str, generation: int, read_to: int = 0) -> None:
        """Prepare to read the control topic, from offset `read_to` on."""
        self._client = client
        self._scope = [query, generation]
        self._log = TopicLog(client, CONTROL_TOPIC)
        self._values: dict[Name, list[int]] = {}
        self._fences: dict[int, int] = {}
        """Offset of the newest fence, by batch number."""
        self.read_to = read_to

    def producer(self) -> AgreedProducer:
        """Return the agreed producer id; without one, propose a new one.

        Raises `ClusterUnreachable` and `ConnectionError`.
        """
        name = ("producer",)
        values = self._agreed(name)
        if values is None:
            values = self._propose(name, [new_producer_id(self._client)[0], int(time.time() * 1000)])
        return AgreedProducer(*values)

    def partitions(self, topic: str, present: int) -> int:
        """Return the partition count that spreads a topic's keys in this generation.

        If the count grew between two attempts, a key's rows would go elsewhere. Without an agreed count, `present` is
        proposed.
        """
        name = ("partitions", topic)
        (count,) = self._agreed(name) or self._propose(name, [present])
        return count

    def topics(self) -> list[str]:
        """Return the topics with an agreed partition count."""
        self._read()
        return [str(topic) for kind, *names in self._values if kind == "partitions" for topic in names]

    def fence(self, number: int) -> int:
        """Fence all attempts of a batch up to now; return the fence's offset.

        An attempt looks for a fence before it appends, and stops at one that is newer than its order.
        """
        return self._append(("fence", number, ""), [])

    def newest_fence(self, number: int) -> int:
        """Return the offset of a batch's newest fence; -1 without one."""
        self._read()
        return self._fences.get(number, -1)

    def _agreed(self, name: Name) -> list[int] | None:
        if name not in self._values:
            self._read()
        return self._values.get(name)

    def _propose(self, name: Name, values: list[int]) -> list[int]:
        self._append((*name, uuid.uuid4().hex), values)
        self._read()
        return self._values[name]

    def _append(self, key_of: Name, values: list[int]) -> int:
        key = json.dumps([*self._scope, *key_of])
        return self._log.append(0, [(key.encode(), json.dumps(values).encode())])

    def _read(self) -> None:
        entries, self.read_to = self._log.read(0, self.read_to)
        for entry in entries:
            try:
                query, generation, *name, _ = json.loads(entry.key or b"[]")
                values = [int(value) for value in json.loads(entry.value or b"")]
            except (ValueError, TypeError) as error:
                raise ClusterUnreachable(
                    f"cluster {self._client.config.alias}: {CONTROL_TOPIC} has a record of another program at offset "
                    f"{entry.offset}: {error}"
                ) from error
            if [query, generation] != self._scope:
                continue
            if name[0] == "fence":
                self._fences[name[1]] = entry.offset
            else:
                self._values.setdefault(tuple(name), values)


def create_control_topic(admin: ClusterAdmin) -> None:
    """Create the control topic if it isn't there; raises `ClusterUnreachable`."""
    replicas = int(admin.broker_config("default.replication.factor") or 1)
    admin.create_compacted_topic(CONTROL_TOPIC, 1, -1, wished=safe_settings(replicas))
