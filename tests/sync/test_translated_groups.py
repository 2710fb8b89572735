"""Groups of the source at the target: checkpoints and committed offsets against what was really copied."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from group_flow import Cluster, GroupFlow, console, from_offset, group_flows, wait_for
from kafka import KafkaProducer
from lab import KafkaCluster
from tests.support.members import joined

from sparkmirror.demo.jars import MIRROR_MAKER, class_path
from sparkmirror.demo.java import java
from sparkmirror.exact.mm2.record_formats import Checkpoint
from sparkmirror.mirror.sync.group_maps import route_of
from sparkmirror.mirror.sync.group_offsets import GroupOffsetSync
from sparkmirror.snapshot.group_standing import GroupStanding, GroupState

pytestmark = pytest.mark.broker

MakeFlow = Callable[..., GroupFlow]
Fill = Callable[[Cluster, str, int], None]


@pytest.fixture
def near(source_cluster: KafkaCluster) -> Cluster:
    return Cluster("near", source_cluster)


@pytest.fixture
def far(target_cluster: KafkaCluster) -> Cluster:
    return Cluster("far", target_cluster)


@pytest.fixture
def make_flow(tmp_path: Path) -> Iterator[MakeFlow]:
    with group_flows(tmp_path) as make:
        yield make


def compact(cluster: Cluster, topic: str, count: int) -> None:
    """Many records of few keys, until the cleaner has been there."""
    producer = KafkaProducer(bootstrap_servers=cluster.servers, linger_ms=2, batch_size=2000)
    for number in range(count):
        key = b"key-%d" % (number * 7919 % 90) if number % 10 else b"only-%d" % number
        producer.send(topic, key=key, value=b"%d" % number, partition=0)
    producer.flush()
    time.sleep(1.0)  # past segment.ms: what was written so far may be cleaned
    for number in range(10):
        producer.send(topic, key=b"last-%d" % number, value=b"last", partition=0)
    producer.close()
    wait_for(lambda: len(cluster.read(topic)) < count // 2, f"{topic} compacted", 60)


COMPACT = {"cleanup.policy": "compact", "segment.ms": "500", "min.cleanable.dirty.ratio": "0.001"}


@pytest.mark.parametrize(
    "fillings",
    [
        [(500, Cluster.produce), (20, Cluster.transactions)],
        pytest.param([(500, Cluster.produce), (100, Cluster.transactions), (1000, compact)], marks=pytest.mark.full),
    ],
    ids=["plain and transactional", "compacted too"],
)
def test_groups_continue_at_the_target_with_no_record_twice_and_none_skipped(
    near: Cluster, far: Cluster, topic_name: str, make_flow: MakeFlow, fillings: list[tuple[int, Fill]]
) -> None:
    """Also far behind, at the log's end behind an aborted transaction, and between offsets that have no record."""
    topics = [f"{topic_name}.{fill.__name__}" for _, fill in fillings]
    for topic, (count, fill) in zip(topics, fillings, strict=True):
        near.create(topic, configs=COMPACT if fill is compact else {})
        fill(near, topic, count)
    flow = make_flow(near, far, f"{topic_name}.*", **{"near.consumer.isolation.level": "read_committed"})
    flow.copy()
    chosen = random.Random(7)
    places: dict[str, dict[str, int]] = {}
    for topic in topics:
        end = near.end(topic)
        for number, offset in enumerate([0, 1, end - 1, end, *chosen.sample(range(end), 16)]):
            places.setdefault(f"{topic_name}-{number}", {})[topic] = offset
    for group, offsets in places.items():
        near.commit(group, {(topic, 0): offset for topic, offset in offsets.items()})
    checkpoints = flow.checkpoints(topic_name)
    checkpoints.run()
    sync = flow.group_offsets(checkpoints)
    sync.run()
    assert {one.state for one in sync.standings.values()} == {GroupState.SYNCED}
    there = {topic: near.read(topic, committed=True) for topic in topics}
    here = {topic: far.read(f"near.{topic}") for topic in there}
    for group, offsets in places.items():
        found = far.committed(group)
        for topic, offset in offsets.items():
            at = found[f"near.{topic}", 0].offset
            assert from_offset(here[topic], at) == from_offset(there[topic], offset), (group, topic, offset, at)
            assert at <= far.end(f"near.{topic}")
    wrote = len(flow.written(topic_name))
    assert wrote == len(topics) * len(places)
    checkpoints.run()
    sync.run()
    assert len(flow.written(topic_name)) == wrote, "only what has changed is written"
    assert sync.written == 0


# --- one topic of two partitions, one of them empty, copied once ---------------------------------


RECORDS = 100


@pytest.fixture(scope="module")
def copied(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GroupFlow]:
    near, far = Cluster("near", source_cluster), Cluster("far", target_cluster)
    near.create("copied", 2)
    near.produce("copied", RECORDS)
    flow = GroupFlow(near, far, "copied", tmp_path_factory.mktemp("copied"))
    flow.copy()
    yield flow
    flow.close()


def test_committed_offsets_become_checkpoints_with_their_metadata(copied: GroupFlow, topic_name: str) -> None:
    """MirrorCheckpointTaskTest.testCheckpoint."""
    copied.source.commit(f"{topic_name}-1", {("copied", 0): 40}, metadata="from here")
    copied.source.commit(f"{topic_name}-2", {("copied", 0): RECORDS})
    copied.checkpoints(topic_name).run()
    assert sorted(copied.written(topic_name), key=lambda one: one.group) == [
        Checkpoint(
            group=f"{topic_name}-1", topic="near.copied", partition=0, upstream=40, downstream=40, metadata="from here"
        ),
        Checkpoint(group=f"{topic_name}-2", topic="near.copied", partition=0, upstream=RECORDS, downstream=RECORDS),
    ]


def test_a_group_of_an_empty_partition_continues_at_the_targets_end(copied: GroupFlow, topic_name: str) -> None:
    """At once: a consumer that begins at the latest offset would skip what comes before it has joined."""
    copied.source.commit(topic_name, {("copied", 0): 5, ("copied", 1): 0})
    duty = copied.checkpoints(topic_name)
    duty.run()
    copied.group_offsets(duty).run()
    assert [(one.partition, one.downstream) for one in copied.written(topic_name)] == [(0, 5), (1, 0)]
    standing = duty.standings[topic_name]
    assert (standing.state, standing.partitions) == (GroupState.SYNCED, 2)
    assert {where: one.offset for where, one in copied.target.committed(topic_name).items()} == {
        ("near.copied", 0): 5,
        ("near.copied", 1): 0,
    }


@pytest.mark.parametrize("copied_before", [False, True], ids=["never copied", "copied in part"])
def test_a_group_of_an_emptied_partition_continues_at_the_targets_end(
    near: Cluster, far: Cluster, make_flow: MakeFlow, topic_name: str, copied_before: bool
) -> None:
    """The next record is the one that it reads next, at the target too."""
    near.create(topic_name)
    flow = make_flow(near, far, topic_name)
    near.produce(topic_name, 10 if copied_before else 0)
    flow.copy()
    near.produce(topic_name, 30 if copied_before else 40)
    near.delete_records(topic_name, 40)
    near.commit(topic_name, {(topic_name, 0): 40})
    near.commit(f"{topic_name}-early", {(topic_name, 0): 25})
    near.commit(f"{topic_name}-beyond", {(topic_name, 0): 41})
    duty = flow.checkpoints(topic_name)
    sync = flow.group_offsets(duty)
    duty.run()
    sync.run()
    remote, end = (f"near.{topic_name}", 0), 10 if copied_before else 0
    for group in (topic_name, f"{topic_name}-early"):
        assert sync.standings[group].state is GroupState.SYNCED
        assert far.committed(group)[remote].offset == end
    beyond = sync.standings[f"{topic_name}-beyond"]
    assert beyond.state is GroupState.BEYOND_END
    assert beyond.reason == f"{topic_name}-0: at 41, and the source ends at 40"
    assert far.committed(f"{topic_name}-beyond") == {}
    near.produce(topic_name, 1)
    flow.copy()
    (written,) = near.read(topic_name)
    assert [one.value for one in far.read(remote[0]) if one.offset >= end] == [written.value]


@pytest.mark.full
def test_a_group_catches_up_only_with_what_is_to_be_copied(
    near: Cluster, far: Cluster, make_flow: MakeFlow, topic_name: str
) -> None:
    """At the end of three records, beyond an empty log, and behind data that was aborted."""
    topic, aborted = f"{topic_name}-records", f"{topic_name}-aborted"
    near.create(topic, 2)
    near.create(aborted)
    read_committed = {"near->far.source.consumer.isolation.level": "read_committed"}
    flow = make_flow(near, far, f"{topic_name}.*", **read_committed)
    flow.copy()
    near.produce(topic, 3)
    near.aborted(aborted)
    places = [(topic, 0, 3), (topic, 1, 1), (aborted, 0, near.end(aborted))]
    for nth, (name, partition, offset) in enumerate(places):
        near.commit(f"{topic_name}-{nth}", {(name, partition): offset})

    def states() -> list[GroupState]:
        duty = flow.checkpoints(topic_name)
        duty.run()
        return [duty.standings[f"{topic_name}-{nth}"].state for nth in range(len(places))]

    assert states() == [GroupState.CATCHING_UP, GroupState.BEYOND_END, GroupState.CATCHING_UP]
    flow.copy()
    assert states() == [GroupState.SYNCED, GroupState.BEYOND_END, GroupState.SYNCED]


def test_a_group_that_goes_back_takes_its_checkpoint_back(copied: GroupFlow, topic_name: str) -> None:
    """testOffsetTranslationBehindReplicationFlow: monotonic, unless the group goes back; nothing is written twice."""
    duty = copied.checkpoints(topic_name)
    for offset in (10, 90, 90, 10, 10, 50):
        copied.source.commit(topic_name, {("copied", 0): offset})
        duty.run()
    assert [one.downstream for one in copied.written(topic_name)] == [10, 90, 10, 50]


def test_a_new_process_knows_what_was_written(copied: GroupFlow, topic_name: str) -> None:
    """testCheckpointsTaskRestartUsesExistingCheckpoints, testRestartReplication."""
    copied.source.commit(topic_name, {("copied", 0): 30})
    copied.checkpoints(topic_name).run()
    copied.checkpoints(topic_name).run()
    assert [one.downstream for one in copied.written(topic_name)] == [30]
    copied.source.commit(topic_name, {("copied", 0): 31})
    copied.checkpoints(topic_name).run()
    assert [one.downstream for one in copied.written(topic_name)] == [30, 31]


def test_only_wanted_groups_on_wanted_topics(copied: GroupFlow, topic_name: str) -> None:
    """MirrorCheckpointConnectorTest.testFindConsumerGroups, testFindConsumerGroupsInCommonScenarios."""
    copied.source.create(f"{topic_name}-other")
    copied.source.commit(f"{topic_name}-elsewhere", {(f"{topic_name}-other", 0): 0})
    copied.source.commit(f"{topic_name}-both", {(f"{topic_name}-other", 0): 0, ("copied", 0): 3})
    copied.source.commit(f"not-{topic_name}", {("copied", 0): 3})
    duty = copied.checkpoints(topic_name)
    duty.run()
    assert [(one.group, one.topic) for one in copied.written(topic_name)] == [(f"{topic_name}-both", "near.copied")]
    assert duty.standings.keys() == {f"{topic_name}-both"}
    assert copied.written(f"not-{topic_name}") == []


def test_new_groups_are_found_when_groups_are_listed_again(copied: GroupFlow, topic_name: str) -> None:
    """`refresh.groups.interval.seconds`, and `refresh.groups.enabled`."""
    copied.source.commit(f"{topic_name}-1", {("copied", 0): 1})
    settings = copied.flow.group
    try:
        for update in ({"refresh_groups_interval_seconds": 3600}, {"refresh_groups_enabled": False}):
            copied.flow = copied.flow.model_copy(update={"group": settings.model_copy(update=update)})
            duty = copied.checkpoints(topic_name)
            duty.run()
            late = f"{topic_name}-{next(iter(update))}"
            copied.source.commit(late, {("copied", 0): 2})
            duty.run()
            assert late not in duty.standings
    finally:
        copied.flow = copied.flow.model_copy(update={"group": settings})
    duty = copied.checkpoints(topic_name)
    duty.run()
    assert len(duty.standings) == 3


# --- the target's groups -------------------------------------------------------------------------


def test_offsets_are_set_where_the_target_has_none_or_older_ones(copied: GroupFlow, topic_name: str) -> None:
    """MirrorCheckpointTaskTest.testSyncOffset: a group is never put back."""
    for number, there in enumerate([None, 20, 40, 60]):
        copied.source.commit(f"{topic_name}-{number}", {("copied", 0): 40}, metadata="mine")
        if there is not None:
            copied.target.commit(f"{topic_name}-{number}", {("near.copied", 0): there}, metadata="theirs")
    checkpoints = copied.checkpoints(topic_name)
    checkpoints.run()
    sync = copied.group_offsets(checkpoints)
    sync.run()
    found = [copied.target.committed(f"{topic_name}-{number}")["near.copied", 0] for number in range(4)]
    assert found == [(40, "mine"), (40, "mine"), (40, "theirs"), (60, "theirs")]
    assert sync.written == 2
    assert {one.state for one in sync.standings.values()} == {GroupState.SYNCED}


def test_a_stored_minus_one_counts_as_none(copied: GroupFlow, topic_name: str) -> None:
    """testSyncOffsetForTargetGroupWithNullOffsetAndMetadata: some clients commit that; a broker takes it."""
    copied.source.commit(topic_name, {("copied", 0): 40})
    copied.target.commit(topic_name, {("near.copied", 0): -1})
    checkpoints = copied.checkpoints(topic_name)
    checkpoints.run()
    sync = copied.group_offsets(checkpoints)
    sync.run()
    assert sync.standings[topic_name].state is GroupState.SYNCED
    assert copied.target.committed(topic_name)["near.copied", 0].offset == 40


def test_a_minus_one_at_the_source_is_no_place(copied: GroupFlow, topic_name: str) -> None:
    """testNoCheckpointForTopicWithNullOffsetAndMetadata."""
    copied.source.commit(topic_name, {("copied", 0): -1})
    copied.checkpoints(topic_name).run()
    assert copied.written(topic_name) == []


def test_groups_of_topics_that_keep_their_names(
    near: Cluster, far: Cluster, topic_name: str, make_flow: MakeFlow
) -> None:
    """`IdentityReplicationPolicy` (the integration tests' own run of all cases); the offsets differ all the same."""
    near.create(topic_name)
    near.transactions(topic_name, 10)
    flow = make_flow(
        near,
        far,
        topic_name,
        **{
            "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
            "near.consumer.isolation.level": "read_committed",
        },
    )
    flow.copy()
    there = near.read(topic_name, committed=True)
    here = far.read(topic_name)
    places = {f"{topic_name}-{offset}": offset for offset in (0, 3, 4, 17, near.end(topic_name))}
    for group, offset in places.items():
        near.commit(group, {(topic_name, 0): offset})
    checkpoints = flow.checkpoints(topic_name)
    checkpoints.run()
    sync = flow.group_offsets(checkpoints)
    sync.run()
    assert {one.state for one in sync.standings.values()} == {GroupState.SYNCED}
    assert {one.topic for one in flow.written(topic_name)} == {topic_name}
    for group, offset in places.items():
        at = far.committed(group)[topic_name, 0].offset
        assert from_offset(here, at) == from_offset(there, offset), (group, offset, at)
    assert far.committed(f"{topic_name}-17")[topic_name, 0].offset < 17


def test_a_group_behind_a_marker_is_synced_when_no_pump_reports(
    near: Cluster, far: Cluster, make_flow: MakeFlow, topic_name: str
) -> None:
    """As of a topic whose writers have moved: the mirror has noted how far it has come."""
    near.create(topic_name)
    flow = make_flow(near, far, topic_name, **{"near.consumer.isolation.level": "read_committed"})
    near.produce(topic_name, 5)
    near.aborted(topic_name)
    flow.copy()
    flow.receipts.clear()
    end = near.end(topic_name)
    near.commit(topic_name, {(topic_name, 0): end})
    near.commit(f"{topic_name}-beyond", {(topic_name, 0): end + 1})
    duty = flow.checkpoints(topic_name)
    sync = flow.group_offsets(duty)
    for _ in range(2):
        duty.run()
        sync.run()
        assert sync.standings[topic_name].state is GroupState.SYNCED
        assert sync.standings[f"{topic_name}-beyond"].state is GroupState.BEYOND_END
    assert far.committed(topic_name)[f"near.{topic_name}", 0].offset == 5
    producer = KafkaProducer(bootstrap_servers=far.servers)  # the topic's own writer
    producer.send(f"near.{topic_name}", b"later", partition=0)
    producer.close()
    duty.run()
    sync.run()
    assert sync.standings[topic_name].state is GroupState.SYNCED


def test_a_group_that_went_back_at_the_source_stays_at_the_target(copied: GroupFlow, topic_name: str) -> None:
    checkpoints = copied.checkpoints(topic_name)
    sync = copied.group_offsets(checkpoints)
    for offset in (40, 10):
        copied.source.commit(topic_name, {("copied", 0): offset})
        checkpoints.run()
        sync.run()
    assert copied.written(topic_name)[-1].downstream == 10
    assert copied.target.committed(topic_name)["near.copied", 0].offset == 40


def test_a_live_group_is_left_alone_until_it_is_gone(copied: GroupFlow, topic_name: str) -> None:
    copied.source.commit(topic_name, {("copied", 0): 40})
    checkpoints = copied.checkpoints(topic_name)
    checkpoints.run()
    sync = copied.group_offsets(checkpoints)
    consumer = joined(copied.target.servers, topic_name, "near.copied")
    try:
        sync.run()
        assert sync.standings[topic_name].state is GroupState.NOT_SYNCED
        assert sync.standings[topic_name].reason == "it has members at far (Stable)"
        assert copied.target.committed(topic_name) == {}
    finally:
        consumer.close()
    sync.run()
    assert sync.standings[topic_name].state is GroupState.SYNCED
    assert copied.target.committed(topic_name)["near.copied", 0].offset == 40


def test_a_member_that_joins_in_between_wins(
    copied: GroupFlow, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not on the list yet when that is read: KAFKA-19794 is about the same."""
    copied.source.commit(topic_name, {("copied", 0): 40})
    checkpoints = copied.checkpoints(topic_name)
    checkpoints.run()
    sync = copied.group_offsets(checkpoints)
    before = sync._groups.listed()  # noqa: SLF001 - what it read a moment ago
    monkeypatch.setattr(sync._groups, "listed", lambda: before)  # noqa: SLF001
    consumer = joined(copied.target.servers, topic_name, "near.copied")
    try:
        sync.run()
        assert sync.standings[topic_name].reason == "a member has joined it at far"
        assert copied.target.committed(topic_name) == {}
    finally:
        consumer.close()


def test_a_group_that_is_gone_at_the_source_is_not_made_again(copied: GroupFlow, topic_name: str) -> None:
    """Its checkpoint stays, as MirrorMaker 2 has it."""
    copied.source.commit(topic_name, {("copied", 0): 40})
    copied.checkpoints(topic_name).run()
    copied.source.delete_group(topic_name)
    checkpoints = copied.checkpoints(topic_name)
    checkpoints.run()
    copied.group_offsets(checkpoints).run()
    assert copied.target.committed(topic_name) == {}
    assert len(copied.written(topic_name)) == 1


@pytest.mark.parametrize(
    ("topic", "remote"),
    [
        ("topic3", "near.topic3"),
        ("far.topic3", "topic3"),
        ("other.topic7", "near.other.topic7"),
        ("far.other.topic7", "other.topic7"),
    ],
)
def test_names_at_the_target(copied: GroupFlow, topic: str, remote: str) -> None:
    """MirrorCheckpointTaskTest.testDownstreamTopicRenaming; a copy of a copy goes one step back."""
    assert route_of((topic, 5), copied.policy, copied.flow).remote == (remote, 5)


# --- flows that change ---------------------------------------------------------------------------


def test_a_group_ahead_of_the_copy_catches_up(
    near: Cluster, far: Cluster, topic_name: str, make_flow: MakeFlow
) -> None:
    """Never an offset beyond the log; testNoCheckpointsIfNoRecordsAreMirrored; exact in the end."""
    near.create(topic_name)
    near.produce(topic_name, 10)
    near.commit(topic_name, {(topic_name, 0): 15})
    flow = make_flow(near, far, topic_name)
    checkpoints = flow.checkpoints(topic_name)
    sync = flow.group_offsets(checkpoints)
    checkpoints.run()
    sync.run()
    assert flow.written(topic_name) == []
    flow.copy()
    near.produce(topic_name, 10)
    checkpoints.run()
    sync.run()
    assert [(one.upstream, one.downstream) for one in flow.written(topic_name)] == [(15, 10)], checkpoints.standings
    assert sync.standings[topic_name].state is GroupState.CATCHING_UP
    assert sync.standings[topic_name].reason == f"{topic_name}-0: at 15, the copy is not so far yet"
    assert far.committed(topic_name)[f"near.{topic_name}", 0].offset == 10 == far.end(f"near.{topic_name}")
    flow.copy()
    checkpoints.run()
    sync.run()
    assert sync.standings[topic_name].state is GroupState.SYNCED
    assert far.committed(topic_name)[f"near.{topic_name}", 0].offset == 15


def test_groups_that_read_copies_continue_with_the_originals(
    near: Cluster, far: Cluster, topic_name: str, make_flow: MakeFlow
) -> None:
    """Active/active (testDownstreamTopicRenaming): a group reads its own cluster's topic, and the other's copy."""
    here, there = f"{topic_name}.here", f"{topic_name}.there"
    near.create(here)
    near.produce(here, 50)
    far.create(there)
    far.transactions(there, 10)
    make_flow(far, near, there, **{"far.consumer.isolation.level": "read_committed"}).copy()
    flow = make_flow(near, far, f"{topic_name}.*, far.{topic_name}.*")
    flow.copy()
    copies = near.read(f"far.{there}")
    near.commit(topic_name, {(here, 0): 20, (f"far.{there}", 0): 8})
    checkpoints = flow.checkpoints(topic_name)
    checkpoints.run()
    flow.group_offsets(checkpoints).run()
    found = far.committed(topic_name)
    assert found.keys() == {(f"near.{here}", 0), (there, 0)}
    assert found[f"near.{here}", 0].offset == 20
    originals = far.read(there, committed=True)
    assert from_offset(originals, found[there, 0].offset) == from_offset(copies, 8)
    assert originals[8].offset == found[there, 0].offset == 10, "two markers are before it"


def test_a_copy_made_by_nobody_we_know_cant_be_translated(
    near: Cluster, far: Cluster, topic_name: str, make_flow: MakeFlow
) -> None:
    """As MirrorMaker 2, without offset syncs of the other direction."""
    near.create(f"far.{topic_name}")
    near.produce(f"far.{topic_name}", 5)
    near.commit(topic_name, {(f"far.{topic_name}", 0): 3})
    flow = make_flow(near, far, f"far.{topic_name}")
    checkpoints = flow.checkpoints(topic_name)
    checkpoints.run()
    assert flow.written(topic_name) == []
    assert checkpoints.standings[topic_name].state is not GroupState.SYNCED


# --- the new protocols ---------------------------------------------------------------------------


def consumed(cluster: Cluster, group: str, count: int) -> list[bytes]:
    """By the real consumer, in the group protocol of KIP-848."""
    protocol = "--command-property", "group.protocol=consumer"
    much = "--max-messages", str(count), "--timeout-ms", "60000"
    command = console(cluster, "ConsoleConsumer", "near.copied", group, *protocol, *much)
    return subprocess.run(command, capture_output=True, check=True, timeout=120).stdout.split()


@pytest.mark.full
def test_a_group_of_the_new_protocol(copied: GroupFlow, topic_name: str) -> None:
    """KIP-848: a group that a commit has made is taken over by its consumers; set when empty, left alone when not."""
    values = [one.value for one in copied.target.read("near.copied")]
    checkpoints = copied.checkpoints(topic_name)
    sync = copied.group_offsets(checkpoints)

    def turn(offset: int) -> None:
        copied.source.commit(topic_name, {("copied", 0): offset})
        checkpoints.run()
        sync.run()

    turn(40)
    assert consumed(copied.target, topic_name, 5) == values[40:45]
    turn(42)
    assert copied.target.committed(topic_name)["near.copied", 0].offset == 45, "it is never put back"
    turn(60)
    assert consumed(copied.target, topic_name, 5) == values[60:65]
    live = subprocess.Popen(
        console(
            copied.target, "ConsoleConsumer", "near.copied", topic_name, "--command-property", "group.protocol=consumer"
        ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: _synced(sync, topic_name).reason == "it has members at far (Stable)", "the member joined", 60)
        turn(90)
        assert _synced(sync, topic_name).state is GroupState.NOT_SYNCED
    finally:
        live.kill()
        live.wait()


def _synced(sync: GroupOffsetSync, group: str) -> GroupStanding:
    sync.run()
    return sync.standings[group]


@pytest.mark.full
def test_a_share_group_is_named(copied: GroupFlow, topic_name: str) -> None:
    """KIP-932: it has no committed offsets. At the target it is in the way of a consumer group of its name."""
    for cluster, topic in ((copied.source, "copied"), (copied.target, "near.copied")):
        command = console(
            cluster, "ConsoleShareConsumer", topic, f"{topic_name}-{cluster.alias}", "--timeout-ms", "3000"
        )
        subprocess.run(command, capture_output=True, check=False, timeout=120)
    copied.source.commit(f"{topic_name}-far", {("copied", 0): 4})
    checkpoints = copied.checkpoints(topic_name)
    checkpoints.run()
    sync = copied.group_offsets(checkpoints)
    sync.run()
    assert {group: one.reason for group, one in sync.standings.items()} == {
        f"{topic_name}-near": "it is a share group at near",
        f"{topic_name}-far": "it is a share group at far",
    }


REMOTE_CLUSTER_UTILS = """
import java.time.Duration;
import java.util.Map;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

public class Translate {
    public static void main(String[] args) throws Exception {
        Map<String, Object> target = Map.of("bootstrap.servers", args[0]);
        RemoteClusterUtils.translateOffsets(target, args[1], args[2], Duration.ofSeconds(60)).forEach(
            (where, found) -> System.out.println(where + " " + found.offset() + " " + found.metadata()));
    }
}
"""


@pytest.mark.full
def test_the_real_client_reads_our_checkpoints(copied: GroupFlow, topic_name: str, tmp_path: Path) -> None:
    """Java's `RemoteClusterUtils.translateOffsets`, 4.3.1: the newest checkpoint of the group."""
    duty = copied.checkpoints(topic_name)
    for offset in (20, 40):
        copied.source.commit(topic_name, {("copied", 0): offset}, metadata=f"at-{offset}")
        duty.run()
    source = tmp_path / "Translate.java"
    source.write_text(REMOTE_CLUSTER_UTILS)
    command = (java(), "-cp", class_path(MIRROR_MAKER), str(source), copied.target.servers, "near", topic_name)
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=180).stdout
    assert said.splitlines()[-1] == "near.copied-0 40 at-40"
