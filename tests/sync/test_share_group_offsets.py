"""Share groups (KIP-932) of one real cluster start at the other one where they start at the first, where it is safe."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from group_flow import Cluster, GroupFlow, console, from_offset, wait_for
from hypothesis import given
from hypothesis import strategies as st
from lab import KafkaCluster

from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Groups
from sparkmirror.kafka.wire.rpc import RpcConnection, UnsupportedBroker
from sparkmirror.mirror.sync.share_group_offsets import ShareGroupOffsets, later
from sparkmirror.snapshot.group_standing import GroupStanding, GroupState

RECORDS = 24
"""At the target: eight transactions of three records. Two more at the source are aborted, and each has a marker."""

starts = st.dictionaries(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 3)), st.integers(0, 5))


@given(starts, starts)
def test_what_is_set(wanted: dict[tuple[str, int], int], there: dict[tuple[str, int], int]) -> None:
    due = later(wanted, there)
    after = {**there, **due}
    assert all(after[where] == max(offset, there.get(where, 0)) for where, offset in wanted.items())
    assert all(where in wanted and there.get(where) != offset for where, offset in due.items())


@pytest.fixture(scope="module")
def copied(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GroupFlow]:
    near, far = Cluster("sharing", source_cluster), Cluster("other", target_cluster)
    near.create("shared", 2)
    near.transactions("shared", 10)
    near.create("elsewhere")
    settings = {"sharing.consumer.isolation.level": "read_committed", "sync.group.offsets.enabled": "true"}
    flow = GroupFlow(near, far, "shared", tmp_path_factory.mktemp("shared"), **settings)
    flow.copy()
    yield flow
    flow.close()


HERE, THERE = ("shared", 0), ("sharing.shared", 0)
pytestmark = pytest.mark.broker


def turn(duty: ShareGroupOffsets, group: str) -> GroupStanding:
    duty.run()
    return duty.standings[group]


def test_a_share_group_is_made_at_the_exact_offset(copied: GroupFlow, topic_name: str) -> None:
    """Markers and aborted records are not at the target. Only what changed is written; there are no checkpoints."""
    copied.source.start_share_group(topic_name, {HERE: 8, ("elsewhere", 0): 0})
    duty = copied.share_group_offsets(topic_name)
    standing = turn(duty, topic_name)
    assert (standing.state, standing.partitions) == (GroupState.SYNCED, 1)
    assert duty.written == 1
    there = copied.target.share_starts(topic_name)
    assert there == {THERE: 6}
    originals, copies = copied.source.read("shared", committed=True), copied.target.read("sharing.shared")
    assert len(copies) == RECORDS
    assert from_offset(copies, there[THERE]) == from_offset(originals, 8)
    duty.run()
    assert duty.written == 0
    checkpoints = copied.checkpoints(topic_name)
    checkpoints.run()
    assert copied.written(topic_name) == []
    assert checkpoints.standings == {}, "it has a duty of its own"


def test_only_wanted_groups_on_wanted_topics(copied: GroupFlow, topic_name: str) -> None:
    copied.source.start_share_group(f"{topic_name}-elsewhere", {("elsewhere", 0): 0})
    copied.source.start_share_group(f"not-{topic_name}", {HERE: 8})
    copied.source.commit(f"{topic_name}-consumers", {HERE: 8})
    duty = copied.share_group_offsets(topic_name)
    duty.run()
    assert duty.standings == {}
    assert copied.target.share_starts(f"not-{topic_name}") == {}


def test_it_is_never_put_back(copied: GroupFlow, topic_name: str) -> None:
    copied.source.start_share_group(topic_name, {HERE: 8})
    copied.target.start_share_group(topic_name, {THERE: 7})
    duty = copied.share_group_offsets(topic_name)
    assert turn(duty, topic_name).state is GroupState.SYNCED
    assert duty.written == 0
    assert copied.target.share_starts(topic_name) == {THERE: 7}
    copied.source.start_share_group(topic_name, {HERE: 20})
    duty.run()
    assert duty.written == 1
    there = copied.target.share_starts(topic_name)
    assert there[THERE] > 7
    copied.source.start_share_group(topic_name, {HERE: 0})
    duty.run()
    assert copied.target.share_starts(topic_name) == there


def test_one_beyond_the_sources_end_is_left_alone(copied: GroupFlow, topic_name: str) -> None:
    """Of a partition without records it starts at the end."""
    copied.source.start_share_group(topic_name, {HERE: 1000, ("shared", 1): 0})
    standing = turn(copied.share_group_offsets(topic_name), topic_name)
    assert standing.state is GroupState.BEYOND_END
    end = copied.source.end("shared")
    assert standing.reason == f"shared-0: at 1000, and the source ends at {end}"
    assert copied.target.share_starts(topic_name) == {("sharing.shared", 1): 0}


def test_a_group_of_another_kind_is_in_the_way(copied: GroupFlow, topic_name: str) -> None:
    copied.source.start_share_group(topic_name, {HERE: 8})
    copied.target.commit(topic_name, {THERE: 1})
    standing = turn(copied.share_group_offsets(topic_name), topic_name)
    assert (standing.state, standing.reason) == (GroupState.NOT_SYNCED, "it is a classic group at other")


def test_a_target_that_doesnt_know_share_groups(
    copied: GroupFlow, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied.source.start_share_group(topic_name, {HERE: 8})
    real = RpcConnection.version
    target = int(copied.target.servers.split(",")[0].rpartition(":")[2])

    def version(self: RpcConnection, key: int, ours: tuple[int, int], name: str) -> int:
        if key in (90, 91) and self._sock.getpeername()[1] == target:
            raise UnsupportedBroker(name)
        return real(self, key, ours, name)

    duty = copied.share_group_offsets(topic_name)
    monkeypatch.setattr(RpcConnection, "version", version)
    assert turn(duty, topic_name).reason == "other: its brokers don't know share groups"
    monkeypatch.undo()
    assert turn(duty, topic_name).state is GroupState.SYNCED
    assert copied.target.share_starts(topic_name) == {THERE: 6}


def test_a_flow_does_it_when_all_is_copied(copied: GroupFlow, topic_name: str, tmp_path: Path) -> None:
    copied.source.create(topic_name)
    copied.source.produce(topic_name, 5)
    copied.source.start_share_group(topic_name, {(topic_name, 0): 3})
    settings = {"sync.group.offsets.enabled": "true", "groups": topic_name}
    flow = GroupFlow(copied.source, copied.target, topic_name, tmp_path, **settings)
    flow.copy(groups=True)
    assert copied.target.share_starts(topic_name) == {(f"sharing.{topic_name}", 0): 3}
    assert flow.written(topic_name) == []


# --- real share consumers ------------------------------------------------------------------------


def consumed(cluster: Cluster, topic: str, group: str, count: int) -> list[bytes]:
    """By the real share consumer, which acknowledges so many."""
    much = "--max-messages", str(count), "--timeout-ms", "60000"
    command = console(cluster, "ConsoleShareConsumer", topic, group, *much)
    return subprocess.run(command, capture_output=True, check=True, timeout=240).stdout.split()


@pytest.mark.full
def test_share_consumers_continue_at_the_target(copied: GroupFlow, topic_name: str) -> None:
    """What is before the start offset comes no more, and everything behind it does."""
    originals = copied.source.read("shared", committed=True)
    copied.source.start_share_group(topic_name, {HERE: 0})
    assert consumed(copied.source, "shared", topic_name, 7) == [one.value for one in originals[:7]]
    wait_for(lambda: copied.source.share_starts(topic_name)[HERE] > 0, "the acknowledgements are kept")
    done = copied.source.share_starts(topic_name)[HERE]
    assert turn(copied.share_group_offsets(topic_name), topic_name).state is GroupState.SYNCED
    left = from_offset(originals, done)
    assert 0 < len(left) < RECORDS
    assert [(None, one) for one in consumed(copied.target, "sharing.shared", topic_name, len(left))] == left


@pytest.mark.full
def test_a_member_at_the_target_wins(copied: GroupFlow, topic_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is not on the list yet when that is read; here it reads another topic."""
    copied.target.create(topic_name)
    copied.source.start_share_group(topic_name, {HERE: 8})
    duty = copied.share_group_offsets(topic_name)
    real = Groups.listed
    client = ClusterClient(copied.flow.target, "test")
    command = console(copied.target, "ConsoleShareConsumer", topic_name, topic_name)
    with closing(client), subprocess.Popen(command, stdout=subprocess.DEVNULL) as live:
        try:
            wait_for(lambda: topic_name in Groups(client).listed(), "the member joined", 120)
            assert turn(duty, topic_name).reason == "it has members at other (Stable)"
            monkeypatch.setattr(Groups, "listed", lambda self: real(self) if self.alias == "sharing" else {})
            assert turn(duty, topic_name).reason == "a member has joined it at other"
            assert duty.written == 0
            assert THERE not in copied.target.share_starts(topic_name)
        finally:
            live.kill()
