"""What a principal may not read is never equal in silence."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import ACLOperation
from lab import Authority, KafkaCluster
from tests.support import mirror_process as mp
from tests.support.rights import allow

from sparkmirror.config import FlowConfig, load_mm2_properties
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.frames.ranges import PartitionPlan
from sparkmirror.frames.survey import FlowSurvey, Scope

pytestmark = pytest.mark.broker


def planned(flow: FlowConfig, topic: str) -> list[PartitionPlan] | str:
    """The plan, or why there is none."""
    try:
        with FlowSurvey(flow, Scope(topics=lambda name: name == topic)) as survey:
            return survey.plan(0)
    except ClusterUnreachable as refused:
        return str(refused)


def test_a_copy_that_may_not_be_seen_is_not_one_that_is_not_there(
    source_cluster: KafkaCluster, guarded: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    copy = f"A.{topic_name}"
    for cluster, topic in ((source_cluster, topic_name), (guarded, copy)):
        mp.create_topic(cluster.bootstrap_servers, topic, 1)
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
        producer.send(topic, b"one").get(30)
        producer.close()
    mine = authority.client_settings() | {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue(tmp_path / "keys.pem", "verify.example")),
    }
    settings = {f"B.{key}": value for key, value in mine.items()}
    file = mp.write_properties(
        tmp_path / "rights.properties",
        source_cluster.bootstrap_servers,
        guarded.tls_bootstrap_servers,
        topic_name,
        settings,
    )
    flow = load_mm2_properties(str(file)).flows[0]
    refused = planned(flow, topic_name)
    assert isinstance(refused, str)
    assert f"cluster B does not let sparkmirror read {copy}" in refused
    allow(guarded, "mm2-sparkmirror-segments.A.internal", ACLOperation.READ)
    allow(guarded, copy, ACLOperation.READ)
    mp.wait_for(lambda: not isinstance(planned(flow, topic_name), str), 30, "brokers know of the rights")

    def notes() -> str:
        found = planned(flow, topic_name)
        assert not isinstance(found, str)
        return " ".join(found[0].notes)

    unread = f"the settings of {copy} on cluster B can't be read"
    assert unread in notes()
    allow(guarded, copy, ACLOperation.DESCRIBE_CONFIGS)
    mp.wait_for(lambda: unread not in notes(), 30, "brokers know of the right")
