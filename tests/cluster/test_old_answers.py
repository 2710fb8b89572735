"""What brokers of Kafka 2.8 and 3.6 answer where newer requests and formats are used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.structs import OffsetAndMetadata, TopicPartition
from lab import KafkaCluster
from lab.zookeeper import ZooKeeperCluster
from tests.support import mirror_process as mp
from tests.support.fences import denied, deny
from tests.support.members import joined
from tests.support.settled_logs import settled_ends
from tests.support.started import started

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.acl_changes import add, remove, shown_by_brokers
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.group_members import DescribedGroup, describe_groups
from sparkmirror.kafka.cluster.groups import Committed, Groups
from sparkmirror.kafka.cluster.own_principals import own_among
from sparkmirror.kafka.cluster.write_fence import writers
from sparkmirror.migrate.atomic_sets import atomic_sets
from sparkmirror.migrate.ties import AtomicSet

pytestmark = [pytest.mark.broker, pytest.mark.full]

SHOP = "User:shop"


@pytest.fixture(params=["2.8.2", "3.6.2"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KafkaCluster]:
    """2.8 with ZooKeeper, 3.6 with KRaft; each with an authorizer, where who comes in clear may do all."""
    quick = {"transaction.state.log.min.isr": "1", "transaction.state.log.replication.factor": "1"}
    if request.param == "2.8.2":
        authorizer = {
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        old: KafkaCluster = ZooKeeperCluster(tmp_path, version=request.param, properties=quick | authorizer)
    else:
        old = KafkaCluster(tmp_path, version=request.param, acls=True, properties=quick)
    with started(old):
        yield old


def test_old_brokers(cluster: KafkaCluster) -> None:
    topic, servers = "orders", cluster.bootstrap_servers
    mp.create_topic(servers, topic, 2)
    mp.create_topic(servers, "bills", 1)
    producer = KafkaProducer(bootstrap_servers=servers, transactional_id="pay", retry_backoff_ms=10)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("bills", b"x", partition=0)
    producer.send_offsets_to_transaction({TopicPartition(topic, 0): OffsetAndMetadata(0, "", -1)}, "paying")
    producer.flush()
    producer.commit_transaction()
    producer.close()
    config = ClusterConfig(alias="A", bootstrap_servers=(servers,))
    with closing(ClusterClient(config, "test")) as client:
        mp.wait_for(lambda: settled_ends(client, [("bills", 0)]).ends == {("bills", 0): 2}, 30, "marker and record")
        tied = AtomicSet(
            topics=frozenset({"orders", "bills"}),
            groups=frozenset({"paying"}),
            transactional_ids=frozenset({"pay"}),
            streams=frozenset(),
        )
        told = atomic_sets(client)
        assert (told.sets, told.unknown) == ((tied,), ())

        Groups(client).commit({"idle": {(topic, 0): Committed(0)}})
        with closing(joined(servers, "live", topic, client_id="shop")):
            groups = describe_groups(client, ["live", "idle", "none"]).groups
        (member,) = groups["live"].members
        assert (member.client_id, member.assigned) == ("shop", frozenset({(topic, 0), (topic, 1)}))
        assert groups["idle"].members == ()
        assert groups["none"] == DescribedGroup()

        wanted = {topic: (SHOP,)}
        added = deny(client, wanted, "User:mirror")
        assert len(added) == 1
        mp.wait_for(lambda: denied(client, wanted, "User:mirror").everywhere, 30, "it is denied")
        assert writers(added, [topic], "User:mirror").open == (topic,)
        remove(client, added)
        mp.wait_for(lambda: not denied(client, wanted, "User:mirror").everywhere, 30, "it is lifted")
        assert own_among(client, [SHOP]) == frozenset()
        add(client, added)
        remove(client, added)
        mp.wait_for(lambda: shown_by_brokers(client, added).lacking == {1: added}, 30, "it is gone")
