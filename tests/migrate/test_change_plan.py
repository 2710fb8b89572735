"""`sparkmirror migration plan`: what is missing at the target, with real brokers; and the words."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from lab import KafkaCluster
from tests.migrate.clusters import config, create, mirror

from sparkmirror.kafka.cluster.acls import ALLOW, READ, WRITE, Acl, AclResource, create_acls
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.client_quotas import change_quotas
from sparkmirror.kafka.cluster.log_sizes import DiskSpace, disk_space
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.migrate.change_plan import change_plan
from sparkmirror.migrate.file import MigrationFile
from sparkmirror.migrate.planned_changes import ChangedValue, MissingCopy, PlannedChanges, Volume
from sparkmirror.mirror.sync.missing_acls import ScramUser

SIZE = 20_000


def file_of(*topics: str, groups: tuple[str, ...] = ()) -> MigrationFile:
    one = {"name": "shop", "topics": topics, "groups": groups}
    return MigrationFile.model_validate({"mirror": "mm2.properties", "sets": [one]})


def fill(cluster: KafkaCluster, topic: str, *partitions: int) -> None:
    """Append one record of some size to each partition."""
    with closing(ClusterClient(config(cluster), "test")) as client:
        log = TopicLog(client, topic)
        for partition in partitions:
            log.append(partition, [(b"k", bytes(range(250)) * (SIZE // 250))])


@pytest.mark.broker
def test_topics(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    missing, small, equal, gone = (f"{topic_name}-{each}" for each in ("missing", "small", "equal", "gone"))
    create(
        source_cluster,
        NewTopicSpec(missing, 3, 1, {"retention.ms": "604800000"}),
        NewTopicSpec(small, 4, 1, {"max.message.bytes": "2097164", "cleanup.policy": "compact"}),
        NewTopicSpec(equal, 1, 1),
    )
    create(target_cluster, NewTopicSpec(small, 2, 1, {"retention.ms": "1000"}), NewTopicSpec(equal, 1, 1))
    fill(source_cluster, missing, 0, 2)
    fill(source_cluster, equal, 0)
    fill(target_cluster, equal, 0)
    _, flow = mirror(tmp_path, source_cluster, target_cluster, f"{topic_name}.*")
    plan = change_plan(file_of(missing, small, equal, gone), flow)
    assert plan.created == (
        MissingCopy(name=missing, partitions=3, replication_factor=1, configs={"retention.ms": "604800000"}),
    )
    assert plan.changed == (
        ChangedValue(of=small, name="partitions", before="2", after="4"),
        ChangedValue(of=small, name="cleanup.policy", before="delete", after="compact"),
        ChangedValue(of=small, name="max.message.bytes", before="1048588", after="2097164"),
        ChangedValue(of=small, name="retention.ms", before="1000", after="its default"),
    )
    assert (plan.acls, plan.writers, plan.users, plan.quotas) == ((), (), (), ())
    assert f"topic {gone}: A has none" in plan.untold
    assert any(line.startswith("ACLs and users: cluster A has no authorizer") for line in plan.untold)
    volume = plan.volume
    assert 2 * SIZE < volume.needed < 2.1 * SIZE
    assert SIZE < volume.there < 1.1 * SIZE
    assert 3 * SIZE < volume.left < 3.1 * SIZE  # no mirror has said what it has copied
    assert (volume.bytes_per_s, volume.seconds) == (0.0, None)
    assert volume.disk is not None
    assert 0 < volume.disk.free <= volume.disk.total
    assert plan.for_people == 2
    json.dumps(plan.to_json())


@pytest.mark.broker
def test_a_topic_that_the_target_would_refuse(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    create(source_cluster, NewTopicSpec(topic_name, 1, 1))
    _, flow = mirror(tmp_path, source_cluster, target_cluster, topic_name, "A->B.replication.factor = 3")
    (topic,) = change_plan(file_of(topic_name), flow).created
    assert topic.replication_factor == 3
    assert "replication factor" in topic.refused.lower()


@pytest.mark.broker
def test_access(guarded_pair: tuple[KafkaCluster, KafkaCluster], topic_name: str, tmp_path: Path) -> None:
    source, target = guarded_pair
    other = f"{topic_name}-other"
    group = f"{topic_name}-billing"
    create(source, NewTopicSpec(topic_name, 1, 1), NewTopicSpec(other, 1, 1))
    create(target, NewTopicSpec(topic_name, 1, 1), NewTopicSpec(other, 1, 1))

    def acl(name: str, who: str, operation: int, resource: AclResource = AclResource.TOPIC) -> Acl:
        return Acl(
            name=name, principal=who, host="*", operation=operation, permission=ALLOW, pattern=3, resource=resource
        )

    reading, covered = acl(topic_name, "User:reader", READ), acl(topic_name, "User:covered", READ)
    joining = acl(group, "User:reader", READ, AclResource.GROUP)
    theirs = [
        reading,
        covered,
        acl(topic_name, "User:shop", WRITE),
        acl(topic_name, "User:batch", WRITE),
        acl(other, "User:reader", READ),
        joining,
    ]
    for cluster, acls in ((source, theirs), (target, [covered])):
        with closing(ClusterClient(config(cluster), "test")) as client:
            assert set(create_acls(client, acls).values()) == {None}
    user = (("user", f"{topic_name}-client"),)
    with closing(ClusterClient(config(source), "test")) as client:
        assert change_quotas(client, {user: {"producer_byte_rate": 1e6}}) == {user: None}
    quotas = "sparkmirror.sync.client.quotas.enabled = true"
    _, flow = mirror(tmp_path, source, target, f"{topic_name}.*", quotas)
    plan = change_plan(file_of(topic_name, groups=(group,)), flow)
    assert {each for each in plan.acls if topic_name in each.name} == {reading, joining}
    assert plan.writers == ("User:batch", "User:shop")
    assert (
        ChangedValue(of=f"user {topic_name}-client", name="producer_byte_rate", before="not set", after="1e+06")
        in plan.quotas
    )


@pytest.mark.broker
def test_disk_space(source_cluster: KafkaCluster) -> None:
    with closing(ClusterClient(config(source_cluster), "test")) as client:
        client.metadata([])
        space = disk_space(client, sorted(client.brokers))
    assert space is not None
    assert 0 < space.free <= space.total


_PLAN = PlannedChanges(
    target="B",
    created=(
        MissingCopy(name="stock", partitions=12, replication_factor=3, configs={"retention.ms": "604800000"}),
        MissingCopy(name="audit", partitions=1, replication_factor=-1, unknown=("x.y",)),
        MissingCopy(name="odd", partitions=1, replication_factor=5, refused="there are 3 brokers"),
    ),
    changed=(ChangedValue(of="orders", name="max.message.bytes", before="1048588", after="2097164"),),
    acls=(
        Acl(name="orders", principal="User:app", host="*", operation=READ, permission=ALLOW),
        Acl(name="stock", principal="User:app", host="*", operation=READ, permission=ALLOW),
    ),
    writers=("User:batch", "User:shop"),
    quotas=(ChangedValue(of="user app", name="producer_byte_rate", before="not set", after="1e+06"),),
    users=(ScramUser("legacy-batch", "SCRAM-SHA-512"),),
    volume=Volume(
        there=412_000_000_000,
        left=3_100_000_000,
        bytes_per_s=76e6,
        needed=1_300_000_000_000,
        disk=DiskSpace(2_500_000_000_000, 2_000_000_000_000),
    ),
)
_TEXT = """\
At B will be created or changed:
  + topic stock                    12 partitions, replication factor 3, retention.ms=604800000
  + topic audit                    1 partitions, replication factor the default
    without x.y, which its brokers don't know
  ! topic odd                      1 partitions, replication factor 5: there are 3 brokers
  ~ topic orders                   max.message.bytes 1048588 -> 2097164
  + 2 ACLs (write rights of 2 principals wait for the switch); `sparkmirror acls --missing` prints them
  ~ quota of user app: producer_byte_rate not set -> 1e+06
  ! user legacy-batch: SCRAM-SHA-512: no API tells its password; create it
Copying: 412 GB are at B, 3.1 GB to go (41 s at 76.0 MB/s).
Disk needed at B: 1.3 TB; 2.0 TB free.
Nothing was written; 2 things need a person (!).
"""


def test_words() -> None:
    assert "".join(f"{line}\n" for line in _PLAN.lines()) == _TEXT


def test_nothing_to_do() -> None:
    plan = PlannedChanges(target="B", volume=Volume(there=0, left=0, needed=10, disk=DiskSpace(9, 5)))
    assert plan.lines() == [
        "Nothing is missing at B.",
        "Copying: 0 B are at B, 0 B to go (no rate is known).",
        "! Disk needed at B: 10 B; 5 B free.",
        "Nothing was written; 1 thing needs a person (!).",
    ]


def test_json() -> None:
    told = json.loads(json.dumps(_PLAN.to_json()))
    assert told["created"][0] == {
        "name": "stock",
        "partitions": 12,
        "replication_factor": 3,
        "configs": {"retention.ms": "604800000"},
        "refused": "",
        "unknown": [],
    }
    assert told["volume"]["disk"] == {"total": 2_500_000_000_000, "free": 2_000_000_000_000}
    assert round(told["volume"]["seconds"]) == 41
    assert told["users"] == [{"name": "legacy-batch", "mechanism": "SCRAM-SHA-512"}]
    assert told["for_people"] == 2
