"""Doctor's remedies followed on real clusters, as they stand there: the finding goes."""

from __future__ import annotations

import re
import time

import pytest
from remedy_case import Case, found, wait_for_finding, wait_until_gone
from test_observer import commit
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp

from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.look.doctor.findings import diagnose
from sparkmirror.snapshot.snapshot import FlowState

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

LOW, HIGH = 50_000, 1_000_000_000


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_quota_is_raised(side: str, remedy_case: Case) -> None:
    """The finding has the cluster's address; who we are there, and how much is enough, people know."""
    cluster, rate = {
        "source": (remedy_case.source, "consumer_byte_rate"),
        "target": (remedy_case.target, "producer_byte_rate"),
    }[side]
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, 2)
    remedy_case.write()
    quota = f"kafka-configs.sh --bootstrap-server {cluster.bootstrap_servers} --alter --entity-type users --entity-name"
    remedy_case.run(f"{quota} ANONYMOUS --add-config {rate}={LOW}")
    try:
        with remedy_case.running() as mirror:
            mp.produce(remedy_case.source.bootstrap_servers, remedy_case.topic, 2, 6_000, codec=None, size=1_000)
            finding = wait_for_finding(mirror, f"throttled-{side}")
            remedy_case.run(finding.action, PRINCIPAL="ANONYMOUS", N=str(HIGH))
            mp.wait_for(lambda: remedy_case.copied(partitions=2) == 6_000, 120, "all is copied")
            wait_until_gone(mirror, f"throttled-{side}")
    finally:
        remedy_case.run(f"{quota} ANONYMOUS --delete-config {rate}")


def test_a_cap_is_removed(remedy_case: Case) -> None:
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, 1)
    mp.produce(remedy_case.source.bootstrap_servers, remedy_case.topic, 1, 100, codec=None, size=1_000)
    remedy_case.write()
    sent = 100
    with remedy_case.running() as mirror:
        mp.wait_for(lambda: remedy_case.copied() == 100, 90, "all is copied")
        remedy_case.say("throttle", "1K")

        def is_found() -> bool:
            nonlocal sent
            before = mirror.observer.snapshot()
            for _ in range(6):
                mp.produce(remedy_case.source.bootstrap_servers, remedy_case.topic, 1, 100, codec=None, size=1_000)
                sent += 100
                time.sleep(1)
            return "cap-too-low" in {one.rule for one in diagnose(mirror.observer.snapshot(), [before])}

        mp.wait_for(is_found, 90, "the cap is too low")
        remedy_case.say("throttle", "off")
        mp.wait_for(lambda: remedy_case.copied() == sent, 60, "all is copied")
        wait_until_gone(mirror, "cap-too-low")


def test_the_copy_of_a_deleted_topic_is_deleted(remedy_case: Case) -> None:
    gone, stays = f"{remedy_case.topic}-gone", f"{remedy_case.topic}-stays"
    for topic in (gone, stays):
        mp.create_topic(remedy_case.source.bootstrap_servers, topic, 1)
        mp.produce(remedy_case.source.bootstrap_servers, topic, 1, 10)
    remedy_case.write(f"{remedy_case.topic}-.*")
    with remedy_case.running() as mirror:
        mp.wait_for(lambda: remedy_case.copied(gone) == remedy_case.copied(stays) == 10, 90, "all is copied")
        lt.delete_topic(remedy_case.source, gone)
        finding = wait_for_finding(mirror, "topic-deleted")
        assert (finding.subject, finding.evidence) == (gone, f"its copy A.{gone} stays")
        lt.delete_topic(remedy_case.target, f"A.{gone}")
        wait_until_gone(mirror, "topic-deleted")


def test_an_own_topic_gets_its_settings(remedy_case: Case) -> None:
    """Others have changed them; the next start finds them as they should be."""
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, 1)
    remedy_case.write()
    with remedy_case.running() as mirror:
        mp.wait_for(lambda: mirror.observer.snapshot().flows[0].state is FlowState.CAUGHT_UP, 90, "caught up")
    mp.alter_topic(
        remedy_case.target.bootstrap_servers, segments_topic("A"), {"unclean.leader.election.enable": "true"}
    )
    with remedy_case.running() as mirror:
        finding = wait_for_finding(mirror, "own-topics-unsafe")
    remedy_case.run(finding.cause)
    with remedy_case.running() as mirror:
        mp.wait_for(lambda: mirror.observer.snapshot().flows[0].state is FlowState.CAUGHT_UP, 90, "caught up")
        assert found(mirror, "own-topics-unsafe") is None


@pytest.mark.parametrize("slips", ["all", "one"])
def test_patterns_are_corrected(slips: str, remedy_case: Case) -> None:
    """The file has the name that the finding takes for what was meant."""
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, 1)
    mp.produce(remedy_case.source.bootstrap_servers, remedy_case.topic, 1, 10)
    commit(remedy_case.source, remedy_case.topic, remedy_case.topic, 0)
    slip = remedy_case.topic[:-1] + "x"
    others = f"{remedy_case.topic}-other, " if slips == "one" else ""
    if others:
        mp.create_topic(remedy_case.source.bootstrap_servers, f"{remedy_case.topic}-other", 1)
    remedy_case.write(others + slip, groups=slip)
    with remedy_case.running() as mirror:
        rule = "nothing-to-copy" if slips == "all" else "pattern-unmatched"
        wait_for_finding(mirror, "no-group")
        finding = wait_for_finding(mirror, rule)
        meant = re.search(r"did you mean ([\w.-]+)", f"{finding.evidence} {finding.cause}")
        assert meant is not None, finding
    remedy_case.write(others + meant[1], groups=meant[1])
    with remedy_case.running() as mirror:
        mp.wait_for(lambda: remedy_case.copied() == 10, 90, "it is copied")
        mp.wait_for(lambda: bool(mirror.observer.snapshot().flows[0].groups), 60, "the group is found")
        rules = {one.rule for one in diagnose(mirror.observer.snapshot())}
        assert not rules & {"nothing-to-copy", "pattern-unmatched", "no-group"}
