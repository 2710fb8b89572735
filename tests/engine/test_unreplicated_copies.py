"""Records that only the target's leader has, and an election in order that takes them away (R10)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient, NewTopic
from lab import KafkaCluster
from test_every_batch import contents, read
from test_rival_views import SteppedPump, driver_of
from tests.support import mirror_process as mp
from tests.support.loaded_flow import running

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import DEBUG_CONSUMER, LATEST, list_offsets
from sparkmirror.pump.messages.control import ControlState, DoneTopic
from sparkmirror.pump.stage import Stage

pytestmark = [pytest.mark.broker, pytest.mark.full]

LEADER, FOLLOWER = 1, 2


@pytest.fixture(scope="module")
def patient_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A follower that is stopped for half a minute stays in sync."""
    cluster = KafkaCluster(
        tmp_path_factory.mktemp("patient", numbered=False),
        brokers=3,
        properties={"replica.lag.time.max.ms": "90000", "broker.session.timeout.ms": "40000"},
    )
    with running(cluster):
        yield cluster


def test_what_only_a_leader_has_that_is_gone_is_copied_again(
    source_cluster: KafkaCluster, patient_target: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """Nobody tells it as copied, and no end counts as reached, while the follower lacks it."""
    copy_name = f"A.{topic_name}"
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 30)
    admin = KafkaAdminClient(bootstrap_servers=patient_target.bootstrap_servers)
    admin.create_topics([NewTopic(copy_name, replica_assignments={0: [LEADER, FOLLOWER]})])
    admin.close()
    config = ClusterConfig(alias="B", bootstrap_servers=tuple(patient_target.bootstrap_servers.split(",")))
    client = ClusterClient(config, "test")
    leader, follower = (patient_target.brokers[node - 1] for node in (LEADER, FOLLOWER))

    def log_of(node: int) -> tuple[int, int]:
        """Log end and high watermark, as a leader tells them."""
        client.metadata([copy_name])
        where = {copy_name: [0]}
        ends = (
            list_offsets(client, node, where, LATEST, replica_id=DEBUG_CONSUMER),
            list_offsets(client, node, where, LATEST),
        )
        end, mark = (listed[copy_name, 0].offset for listed in ends)
        return end, mark

    with driver_of(source_cluster, patient_target, topic_name, tmp_path, {"replication.factor": "3"}) as driver:
        order = driver.orders.order(driver.partitions())
        first = SteppedPump(order)
        first.turn_until(lambda: first.copy.progress.upstream == 30)
        follower.pause()
        mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 10)
        first.turn_until(lambda: bool(first.copy.in_flight) and log_of(LEADER)[0] == 40)
        print(f"not acknowledged: log end and high watermark {log_of(LEADER)}; the pump is gone")
        assert log_of(LEADER) == (40, 30)
        first.close()
        second = SteppedPump(order.model_copy(update={"unclean": True}))
        until = time.monotonic() + 5
        second.turn_until(lambda: time.monotonic() > until)
        (receipt,) = second.receipts()
        print(f"the next pump: {receipt.state}, upstream {receipt.upstream}: {second.copy.trouble.reason}")
        moved = ControlState()
        moved.done[topic_name] = DoneTopic(ends={0: 40})
        second.control(moved)
        until = time.monotonic() + 3
        second.turn_until(lambda: time.monotonic() > until)
        assert (receipt.state, receipt.upstream) == ("waiting", -1)
        assert second.copy.stage is not Stage.DONE
        leader.kill()
        follower.resume()
        print("the leader is gone for good; the follower in sync continues")
        second.turn_until(lambda: second.copy.stage is Stage.DONE)
        print(f"log end and high watermark {log_of(FOLLOWER)}; the pump: {second.receipts()[0].upstream}")
        second.close()
    assert contents(read(patient_target, copy_name)) == contents(read(source_cluster, topic_name))
    leader.start()
    client.close()
