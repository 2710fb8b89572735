"""Client quotas from cluster to cluster, at real brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest
from flow_rules import cluster_config
from lab import KafkaCluster
from waiting import assert_soon

from sparkmirror.config import FlowConfig
from sparkmirror.config.model import TopicSyncConfig
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.client_quotas import Entity, change_quotas, read_quotas
from sparkmirror.mirror.sync import client_quotas
from sparkmirror.mirror.sync.client_quotas import ClientQuotaSync

pytestmark = pytest.mark.broker

WRITES, READS = "producer_byte_rate", "consumer_byte_rate"


class Quotas:
    """Of one test's own client ids."""

    def __init__(self, cluster: KafkaCluster, start: str) -> None:
        self._client = ClusterClient(cluster_config("any", cluster), "test")
        self._start = start

    def set(self, entity: Entity, **values: float | None) -> None:
        assert change_quotas(self._client, {entity: values}) == {entity: None}
        assert_soon(lambda: {key: self.of(entity).get(key) for key in values}, values)

    def of(self, entity: Entity) -> dict[str, float]:
        return read_quotas(self._client).get(entity, {})

    def clear(self) -> None:
        for entity, values in read_quotas(self._client).items():
            if any(self._start in (name or "") for _, name in entity):
                change_quotas(self._client, {entity: dict.fromkeys(values)})
        self._client.close()


@pytest.fixture
def both(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> Iterator[tuple[Quotas, Quotas]]:
    """What is set is taken away again."""
    here, there = Quotas(source_cluster, topic_name), Quotas(target_cluster, topic_name)
    yield here, there
    here.clear()
    there.clear()


def test_quotas_go_along(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    both: tuple[Quotas, Quotas],
    topic_name: str,
    lines: Callable[[], list[str]],
) -> None:
    here, there = both
    alias = f"q-{topic_name}"[:40]
    source, target = cluster_config(alias, source_cluster), cluster_config("eu", target_cluster)
    with ClusterAdmin.connect(target, "test") as admin:
        admin.create_compacted_topic(losses_topic(alias), 1, 1, factor_key="")

    def turn(removals: bool) -> None:
        """By a process that knows nothing but what was written down."""
        sync = TopicSyncConfig(sync_client_quotas_enabled=True, acl_removals_enabled=removals)
        duty = ClientQuotaSync(FlowConfig(source=source, target=target, topic_sync=sync))
        duty.run()
        duty.close()

    by_id: Entity = (("client-id", topic_name),)
    by_both: Entity = (("client-id", topic_name), ("user", "reader"))
    here.set(by_id, **{WRITES: 1e6, READS: 2e6})
    here.set(by_both, **{READS: 3e6})
    there.set(by_id, **{WRITES: 5e5})
    turn(removals=True)
    assert_soon(lambda: (there.of(by_id), there.of(by_both)), ({WRITES: 1e6, READS: 2e6}, {READS: 3e6}))
    assert f"quota on cluster eu: {READS} of client-id {topic_name}, user reader set to 3e+06" in lines()
    turn(removals=True)
    assert lines() == []
    here.set(by_id, **{WRITES: None, READS: None})
    here.set(by_both, **{READS: None})
    turn(removals=False)
    assert there.of(by_both) == {READS: 3e6}
    turn(removals=True)
    # A quota that somebody had set at the target is left, with the value that the source gave it.
    assert_soon(lambda: (there.of(by_id), there.of(by_both)), ({WRITES: 1e6}, {}))
    assert sum("removed, as at the source" in line for line in lines()) == 2
    turn(removals=True)
    assert lines() == []


def test_what_the_target_refused_is_not_ours(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    both: tuple[Quotas, Quotas],
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the operator sets instead stays; what was ours before a refused change goes."""
    here, there = both
    alias = f"q-{topic_name}"[:40]
    source, target = cluster_config(alias, source_cluster), cluster_config("eu", target_cluster)
    with ClusterAdmin.connect(target, "test") as admin:
        admin.create_compacted_topic(losses_topic(alias), 1, 1, factor_key="")
    sync = TopicSyncConfig(sync_client_quotas_enabled=True, acl_removals_enabled=True)
    entity: Entity = (("client-id", topic_name),)

    def turn() -> None:
        duty = ClientQuotaSync(FlowConfig(source=source, target=target, topic_sync=sync))
        duty.run()
        duty.close()

    def refused(_: ClusterClient, changes: Mapping[Entity, object]) -> dict[Entity, str | None]:
        """Answer as a target that takes no quota."""
        return dict.fromkeys(changes, "refused")

    here.set(entity, **{READS: 2e6})
    turn()
    assert_soon(lambda: there.of(entity), {READS: 2e6})
    here.set(entity, **{WRITES: 1e6, READS: 3e6})
    with monkeypatch.context() as patch:
        patch.setattr(client_quotas, "change_quotas", refused)
        turn()
    there.set(entity, **{WRITES: 5e5})
    here.set(entity, **{WRITES: None, READS: None})
    turn()
    assert_soon(lambda: there.of(entity), {WRITES: 5e5})
