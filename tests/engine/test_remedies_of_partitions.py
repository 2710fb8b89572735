"""Doctor's remedies for parked partitions, followed on real clusters: the finding goes, and what waited is copied."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from lab import KafkaCluster
from lab.listeners import plain
from remedy_case import Case, found, wait_for_finding, wait_until_gone
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp
from tests.support.copied_flow import Side, built
from tests.support.started import started

from sparkmirror.config import load_mm2_properties
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.look.doctor.findings import Finding, diagnose
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.snapshot.snapshot import FlowState

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SEGMENTS = segments_topic("A")


@contextmanager
def running_once(case: Case) -> Iterator[Mirror]:
    """As `sparkmirror run --once`, for the length of a `with`: until all is copied or parked."""
    mirror = Mirror(load_mm2_properties(str(case.file)), once=True, use_lease=False, spark=case.spark)
    thread = threading.Thread(target=mirror.run, daemon=True)
    thread.start()
    try:
        mp.wait_for(lambda: bool(mirror.observer.snapshot().flows), 90, "begun")
        yield mirror
    finally:
        mirror.stop()
        thread.join(60)
    assert not thread.is_alive()


def same(case: Case, partitions: int = 1) -> bool:
    """Whether the copy has each record of the source."""
    return all(
        list(lt.records(case.source, case.topic, number).values())
        == list(lt.records(case.target, f"A.{case.topic}", number).values())
        for number in range(partitions)
    )


def test_the_targets_own_records_are_deleted(remedy_case: Case) -> None:
    """Somebody has written to the copy before this flow has."""
    for cluster, topic in (remedy_case.source, remedy_case.topic), (remedy_case.target, f"A.{remedy_case.topic}"):
        mp.create_topic(cluster.bootstrap_servers, topic, 1)
        mp.produce(cluster.bootstrap_servers, topic, 1, 20)
    mp.produce(remedy_case.source.bootstrap_servers, remedy_case.topic, 1, 20)
    remedy_case.write()
    with remedy_case.running() as mirror:
        finding = wait_for_finding(mirror, "parked-other")
        assert "already holds offsets 0 to 19, which this flow has no record of writing" in finding.cause
        remedy_case.run(finding.action)
        remedy_case.say("retry")
        mp.wait_for(lambda: remedy_case.copied() == 40, 90, "all is copied")
        assert same(remedy_case)
        wait_until_gone(mirror, "parked-other")


PASSWORD = "hunter2-of-mirror"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="mirror" password="{PASSWORD}";'


@pytest.fixture(scope="module")
def guarded_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A target where everybody may do all to what has no ACL."""
    cluster = KafkaCluster(
        tmp_path_factory.mktemp("position-target", numbered=False),
        acls=True,
        listeners={"PLAIN": plain({"mirror": PASSWORD})},
        properties={"allow.everyone.if.no.acl.found": "true"},
    )
    with started(cluster):
        yield cluster


def test_the_segments_topic_takes_claims_again(remedy_case: Case, guarded_target: KafkaCluster) -> None:
    """Parked with `--once` alone: a mirror that runs on waits. A topic that is paused keeps the run from its end."""
    remedy_case.target = guarded_target
    paused = f"{remedy_case.topic}-paused"
    mp.create_topic(remedy_case.source.bootstrap_servers, paused, 1)
    mp.produce(remedy_case.source.bootstrap_servers, paused, 1, 20)
    signed_in = {
        "B.bootstrap.servers": guarded_target.servers("PLAIN"),
        "B.security.protocol": "SASL_PLAINTEXT",
        "B.sasl.mechanism": "PLAIN",
        "B.sasl.jaas.config": JAAS,
    }
    remedy_case.write(f"{remedy_case.topic}.*", **signed_in)
    with remedy_case.running():
        mp.wait_for(lambda: remedy_case.copied(paused) == 20, 90, "all is copied")
        remedy_case.say("pause", "--topics", paused)
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, 1)
    for topic in (remedy_case.topic, paused):
        mp.produce(remedy_case.source.bootstrap_servers, topic, 1, 20)
    acls = f"kafka-acls.sh --bootstrap-server {guarded_target.bootstrap_servers} --topic {SEGMENTS} --force"
    remedy_case.run(f"{acls} --add --allow-principal User:* --operation All")
    remedy_case.run(f"{acls} --add --deny-principal User:mirror --operation Write")
    with running_once(remedy_case) as mirror:
        finding = wait_for_finding(mirror, "parked-position")
        assert "its claim could not be written" in finding.cause
        assert SEGMENTS in finding.cause
    remedy_case.run(f"{acls} --remove --deny-principal User:mirror --operation Write")
    with running_once(remedy_case) as mirror:
        mp.wait_for(lambda: remedy_case.copied() == 20, 90, "all is copied")
        assert found(mirror, "parked-position") is None
        remedy_case.say("resume")
        mp.wait_for(lambda: remedy_case.copied(paused) == 40, 90, "the run comes to its end")


def test_the_other_process_is_stopped_and_the_copy_made_again(remedy_case: Case) -> None:
    """It writes as this flow with a newer epoch, as release 0.1 did; the target continues to refuse the older one."""
    servers, copy = remedy_case.source.bootstrap_servers, f"A.{remedy_case.topic}"
    mp.create_topic(servers, remedy_case.topic, 1)
    mp.produce(servers, remedy_case.topic, 1, 20)
    remedy_case.write()
    with remedy_case.running() as mirror:
        mp.wait_for(lambda: remedy_case.copied() == 20, 90, "it copies")
        with closing(Side("B", remedy_case.target)) as side:
            side.client.metadata([])
            flow = ClaimLog(TopicLog(side.client, SEGMENTS)).agree(side.client.cluster_id, None)
            assert flow is not None
            side.send(copy, built([b"a rival's"] * 5, (flow.producer_id, flow.producer_epoch + 1, 0)))
        mp.produce(servers, remedy_case.topic, 1, 20)
        seen: list[Finding] = []

        def is_found() -> bool:
            """It is tried again and again, so that the partition is parked for a few seconds each time."""
            seen.extend(one for one in diagnose(mirror.observer.snapshot()) if one.rule == "parked-rival")
            return bool(seen)

        mp.wait_for(is_found, 90, "the doctor finds the rival")
        assert "another incarnation with a higher epoch has fenced this one" in seen[0].cause
        remedy_case.run(seen[0].action)
        mp.wait_for(lambda: remedy_case.copied() == 40, 90, "all is copied")
        mp.wait_for(lambda: mirror.observer.snapshot().flows[0].state is FlowState.CAUGHT_UP, 90, "caught up")
        assert found(mirror, "parked-rival") is None
    assert same(remedy_case)
