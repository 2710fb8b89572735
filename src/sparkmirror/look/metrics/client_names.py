"""Metrics of MirrorMaker 2's Kafka clients, in the profiles' names."""

from __future__ import annotations

from sparkmirror.look.metrics.profile import Beans, Labels, Spelling
from sparkmirror.snapshot.snapshot import Flow, Pump

NAN = float("nan")

BUFFER_BYTES = 33_554_432
"""Kafka's default for `buffer.memory`.

Dashboards compare a producer's free buffer with this value.
"""

MOST_TOPICS = 100
"""Most topics in a process with a row each in the clients' metrics.

Above, each flow has one row.
"""

FETCHES = Beans("consumer", "consumer_fetch_manager")
_CONSUMER = Beans("consumer", "consumer")
_PRODUCER = Beans("producer", "producer")
_PRODUCED = Beans("producer", "producer_topic")
_ADMIN = Beans("admin_client", "admin_client")

_CONNECTIONS = "Open connections over which records go."


def add_clients(spelling: Spelling, flows: list[Flow]) -> None:
    """Add the clients for the flows that this process works on."""
    topics = sum(bool(topic.partitions) for flow in flows for topic in flow.topics)
    for flow in flows:
        consumer, producer = spelling.client(flow, "consumer"), spelling.client(flow, "producer")
        _fetches(spelling, flow, consumer)
        spelling.add(_CONSUMER, "incoming_byte", "Bytes fetched.", consumer, flow.source.bytes, counts=True)
        spelling.add(_CONSUMER, "connection_count", _CONNECTIONS, consumer, _connections(flow.pumps, 0))
        _sends(spelling, flow, producer)
        for row in _rows(flow, each=topics <= MOST_TOPICS):
            _topic(spelling, row, consumer, producer)
        asked = flow.source.admin_connections + flow.target.admin_connections
        admin = spelling.client(flow, "admin_client")
        spelling.add(_ADMIN, "connection_count", "Open connections of the duties.", admin, asked)


def _fetches(spelling: Spelling, flow: Flow, of: Labels) -> None:
    latencies = [pump.fetch_ms for pump in flow.pumps if pump.fetch_ms is not None]
    fetch = sum(latencies) / len(latencies) if latencies else NAN
    spelling.add(FETCHES, "fetch_latency_avg", "Mean time from a fetch to its answer, in ms.", of, fetch)
    lags = [partition.lag for topic in flow.topics for partition in topic.partitions if partition.lag is not None]
    most = max(lags, default=None)
    spelling.add(FETCHES, "records_lag_max", "Largest lag of a partition, in records.", of, most)


def _sends(spelling: Spelling, flow: Flow, of: Labels) -> None:
    spelling.add(_PRODUCER, "outgoing_byte", "Bytes written.", of, flow.target.bytes, counts=True)
    spelling.add(_PRODUCER, "connection_count", _CONNECTIONS, of, _connections(flow.pumps, 1))
    text = "32 MiB, Kafka's default, less the records that were fetched and are not acknowledged, by their mean size."
    spelling.add(_PRODUCER, "buffer_available_bytes", text, of, _free(flow))
    spelling.add(_PRODUCER, "record_send", "Records copied.", of, flow.records, counts=True)
    spelling.add(_PRODUCER, "record_send_rate", "Records copied in a second.", of, flow.records_per_s)


def _connections(pumps: tuple[Pump, ...], side: int) -> int:
    return sum(pump.connections[side] for pump in pumps)


def _free(flow: Flow) -> float:
    waiting = sum(pump.in_flight for pump in flow.pumps)
    mean = flow.bytes / flow.records if flow.records else 0.0
    return max(BUFFER_BYTES - waiting * mean, 0.0)


class _TopicFigures:
    """Figures of a topic, or of all a flow's topics."""

    def __init__(self, topic: str, target_topic: str) -> None:
        self.topic, self.target_topic = topic, target_topic
        self.records = self.bytes = 0
        self.records_per_s = self.bytes_per_s = 0.0


def _rows(flow: Flow, *, each: bool) -> list[_TopicFigures]:
    rows: dict[str, _TopicFigures] = {}
    for topic in flow.topics:
        if topic.partitions:
            name, target_name = (topic.topic, topic.target_topic) if each else ("all", "all")
            row = rows.setdefault(name, _TopicFigures(name, target_name))
            row.records += topic.records
            row.bytes += topic.bytes
            row.records_per_s += sum(partition.records_per_s for partition in topic.partitions)
            row.bytes_per_s += sum(partition.bytes_per_s for partition in topic.partitions)
    for row in () if each else rows.values():  # counters never fall, also if a topic is gone
        row.records, row.bytes = flow.records, flow.bytes
    return list(rows.values())


def _topic(spelling: Spelling, row: _TopicFigures, consumer: Labels, producer: Labels) -> None:
    of = consumer.and_(topic=row.topic)
    spelling.add(FETCHES, "records_consumed", "Records copied.", of, row.records, counts=True)
    spelling.add(FETCHES, "records_consumed_rate", "Records copied in a second.", of, row.records_per_s)
    spelling.add(FETCHES, "bytes_consumed", "Bytes copied.", of, row.bytes, counts=True)
    spelling.add(FETCHES, "bytes_consumed_rate", "Bytes copied in a second.", of, row.bytes_per_s)
    of = producer.and_(topic=row.target_topic)
    spelling.add(_PRODUCED, "record_send", "Records copied.", of, row.records, counts=True)
