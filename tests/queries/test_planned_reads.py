"""A real broker's log, read by the leader epochs that a micro-batch was planned with."""

from __future__ import annotations

import contextlib

import pytest
from kafka.admin import NewTopic
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.copied_flow import Side

from sparkmirror.kafka.cluster.epoch_history import EpochHistories
from sparkmirror.kafka.cluster.leader_epochs import EpochStart
from sparkmirror.kafka.cluster.range_reader import LogChanged, OffsetBounds, RangeReader

pytestmark = pytest.mark.broker
COUNT = 20


def test_a_batch_of_another_epoch_is_of_another_log(source_cluster: KafkaCluster, topic_name: str) -> None:
    with contextlib.closing(Side("us", source_cluster)) as side:
        side.create_all(NewTopic(topic_name, 1, 1))
        mp.produce(source_cluster.bootstrap_servers, topic_name, 1, COUNT)
        topics = side.client.metadata([topic_name])
        (history,) = EpochHistories(side.client).read(topics, {(topic_name, 0): 0}).values()
        assert history == (EpochStart(0, 0),)

        def count(*epochs: EpochStart) -> int:
            reader = RangeReader(
                side.config,
                topic_name,
                topics[topic_name].topic_id,
                0,
                OffsetBounds(0, COUNT),
                read_committed=False,
                compacted=False,
                epochs=epochs,
            )
            with reader:
                return sum(header.records for header, _ in reader)

        assert count() == count(*history) == COUNT
        assert count(EpochStart(3, COUNT)) == COUNT, "of records whose epoch isn't known none is refused"
        with pytest.raises(LogChanged, match=r"its batch at offset \d+ is of leader epoch 0, not 2"):
            count(EpochStart(2, 0))
