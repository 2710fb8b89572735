"""Claims settled by real logs: read as a broker stores them, recompressed, stamped and deleted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.copied_flow import Flow, announced, built

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.position.log_probe import LogProbe
from sparkmirror.exact.position.matching import Match, MatchedLog, TargetLog, matches
from sparkmirror.kafka.wire.batches import CODEC_MASK, CODECS, TIMESTAMP_TYPE_BIT
from sparkmirror.kafka.wire.splice import Run

pytestmark = pytest.mark.broker

BEFORE_GAP, BEHIND_GAP = (Run(0, 10),), (Run(12, 3), Run(20, 7))


class Sent:
    """Two batches of ten records with a gap between them, and who claimed what."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.first = built([b"first"] * 10, flow.producer(0))
        self.second = built([b"second"] * 10, flow.producer(10))
        self.claim = flow.announce(0, 1 << 40, (self.first, BEFORE_GAP), (self.second, BEHIND_GAP))
        # A second older: a broker that compresses again leaves counts and timestamps to compare.
        other = built([b"other"] * 10, flow.producer(10), age_ms=1000)
        self.rival = flow.announce(10, 1 << 50, (other, (Run(11, 10),)))

    def copy(self) -> None:
        """All of it, and a rival that comes too late."""
        self.flow.claim(self.claim, self.rival)
        for batch in (self.first, self.second):
            self.flow.target.send(self.flow.target_topic, batch)


@pytest.fixture
def sent(flow: Flow) -> Sent:
    return Sent(flow)


def probe_of(flow: Flow) -> LogProbe:
    found = flow.target.client.metadata([flow.target_topic])[flow.target_topic]
    leader = found.partitions[0].leader
    return LogProbe(flow.target.client, leader, {flow.target_topic: found.topic_id}, flow.identity)


def seen(flow: Flow, claim: Claim, log_start: int = 0) -> MatchedLog:
    where = flow.route.target
    return probe_of(flow).evidence({where: [claim]}, {where: log_start})[where][claim.key]


def assert_settled(sent: Sent) -> None:
    """The position is right, the true claim confirmed and the false one taken back, for ever."""
    for _ in range(2):
        found = sent.flow.partition_reading().position
        assert (found.sequence, found.upstream, found.downstream, found.claim_due) == (20, 27, 20, False)
        assert sent.flow.claims() == [replace(sent.claim, confirmed=True)]


def test_the_log_settles_claims(sent: Sent) -> None:
    sent.copy()
    assert_settled(sent)


def test_what_is_not_there_yet_stays_open(sent: Sent) -> None:
    sent.flow.claim(sent.claim, sent.rival)
    sent.flow.target.send(sent.flow.target_topic, sent.first)
    found = sent.flow.partition_reading().position
    assert (found.sequence, found.upstream, found.claim_due) == (10, 10, True)
    assert sent.flow.claims() == [sent.claim, sent.rival]


@pytest.mark.parametrize("setting", ["compression.type=zstd", "message.timestamp.type=LogAppendTime"])
def test_batches_that_the_broker_altered_are_known_again(sent: Sent, setting: str) -> None:
    flow = sent.flow
    flow.target.delete(flow.target_topic)
    flow.target.create(flow.target_topic, 2, **dict([setting.split("=")]))
    sent = Sent(flow)
    sent.copy()
    stored = seen(flow, sent.claim).batches
    assert [one.records for one in stored] == [10, 10]
    assert [one.crc for one in stored] != [one.crc for one in sent.claim.batches]
    if "zstd" in setting:
        assert {CODECS[one.attributes & CODEC_MASK] for one in stored} == {"zstd"}
    else:
        assert all(one.attributes & TIMESTAMP_TYPE_BIT for one in stored)
    found = matches(sent.claim, MatchedLog(stored, 20), TargetLog(0, 20, 20))
    assert [one.match for one in found] == [Match.LIKELY if "zstd" in setting else Match.SURE] * 2
    assert matches(sent.rival, seen(flow, sent.rival), TargetLog(0, 20, 20))[0].match < Match.POSSIBLE
    assert_settled(sent)


def test_a_batch_that_was_deleted_is_judged_by_the_rest(sent: Sent) -> None:
    sent.copy()
    sent.flow.target.delete_records(sent.flow.target_topic, 10)
    assert [one.sequence for one in seen(sent.flow, sent.claim, log_start=10).batches] == [10]
    assert_settled(sent)


def test_when_all_was_deleted_the_rival_leaves_it_undecided(sent: Sent) -> None:
    sent.copy()
    sent.flow.target.delete_records(sent.flow.target_topic, 20)
    found = sent.flow.refusal()
    assert not found.transient
    assert "rival pumps may have copied different records as sequence 10" in found.reason


def test_large_batches_in_many_partitions_are_all_read(flow: Flow) -> None:
    """A fetch answer holds one batch that is larger than asked for; the others' are left out of it."""
    topic, partitions = f"{flow.target_topic}.many", 12
    flow.target.create(topic, partitions)
    topic_id = flow.target.topic_id(topic)
    claims = {}
    for partition in range(partitions):
        batches = [built([b"v" * 1000] * 100, flow.producer(sequence)) for sequence in (0, 100, 200)]
        for batch in batches:
            flow.target.send(topic, batch, partition)
        runs = (Run(0, 100), Run(150, 100), Run(300, 100))
        claim = replace(
            flow.a_claim(), partition=partition, runs=runs, batches=tuple(map(announced, batches)), confirmed=False
        )
        claims[topic, partition] = [claim]
    leader = flow.target.client.metadata([topic])[topic].partitions[0].leader
    probe = LogProbe(flow.target.client, leader, {topic: topic_id}, flow.identity)
    found = probe.evidence(claims, dict.fromkeys(claims, 0))
    for where, (claim,) in claims.items():
        there = found[where][claim.key]
        assert [one.match for one in matches(claim, there, TargetLog(0, 300, 300))] == [Match.SURE] * 3, where
