"""Translated positions as Kafka Connect's sinks and Flink take them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum

from sparkmirror.mirror.sync.application_translator import Translation


class System(StrEnum):
    """System that continues at translated offsets."""

    CONNECT = "connect"
    FLINK = "flink"


def positions(system: System, translations: Sequence[Translation]) -> str:
    """Return the known positions as text.

    For Connect it is the body of `PATCH /connectors/NAME/offsets` (KIP-875), for a stopped sink connector. For Flink it
    is the Java expression of `KafkaSource`'s starting offsets.
    """
    known = [each for each in translations if each.offset is not None]
    if system is System.CONNECT:
        offsets = [
            {
                "partition": {"kafka_topic": each.topic, "kafka_partition": each.partition},
                "offset": {"kafka_offset": each.offset},
            }
            for each in known
        ]
        return json.dumps({"offsets": offsets})
    entries = [
        f"    Map.entry(new TopicPartition({json.dumps(each.topic)}, {each.partition}), {each.offset}L)"
        for each in known
    ]
    return "OffsetsInitializer.offsets(Map.ofEntries(\n" + ",\n".join(entries) + "))"
