"""Where groups are on both sides, and what a move would cost: against the records that both real logs have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from group_flow import Cluster, GroupFlow, Record, group_flows
from kafka import KafkaConsumer
from lab import KafkaCluster

from sparkmirror.mirror.engine.flow_duties import FlowGroups
from sparkmirror.mirror.sync.group_watch import GroupWatch, Whereabouts
from sparkmirror.snapshot.group_standing import GroupState

pytestmark = pytest.mark.broker

MakeFlow = Callable[..., GroupFlow]
READ_COMMITTED = {"early.consumer.isolation.level": "read_committed"}


@pytest.fixture
def near(source_cluster: KafkaCluster) -> Cluster:
    return Cluster("early", source_cluster)


@pytest.fixture
def far(target_cluster: KafkaCluster) -> Cluster:
    return Cluster("late", target_cluster)


@pytest.fixture
def make_flow(tmp_path: Path) -> Iterator[MakeFlow]:
    with group_flows(tmp_path) as make:
        yield make


class Watched:
    """The duties that look after groups, a turn of each at a time."""

    def __init__(self, flow: GroupFlow, prefix: str) -> None:
        checkpoints = flow.checkpoints(prefix)
        self.groups = FlowGroups(checkpoints=checkpoints, sync=flow.group_offsets(checkpoints))
        self.watch = GroupWatch(flow.flow, flow.policy, lambda _: True, self.groups)

    def turn(self) -> None:
        assert self.groups.checkpoints is not None
        assert self.groups.sync is not None
        self.groups.checkpoints.run()
        self.groups.sync.run()

    def at(self, group: str, topic: str, partition: int = 0) -> Whereabouts:
        """Where the group is now."""
        self.watch.run()
        return self.watch.whereabouts[group][topic, partition]

    def cost(self, group: str, topic: str) -> tuple[int | None, int | None]:
        """What it would skip, and read again."""
        place = self.at(group, topic)
        return place.skipped, place.reread

    def state(self, group: str) -> GroupState:
        return self.groups.newest[group].state


@pytest.fixture
def watching() -> Iterator[Callable[[GroupFlow, str], Watched]]:
    made: list[Watched] = []

    def make(flow: GroupFlow, prefix: str) -> Watched:
        made.append(Watched(flow, prefix))
        return made[-1]

    yield make
    for each in made:
        each.watch.close()


Watching = Callable[[GroupFlow, str], Watched]


def cost_by_lists(originals: list[Record], copies: list[Record], source: int, target: int) -> tuple[int, int]:
    """Count record by record: the copies are of the first originals, in their order."""
    skipped = reread = 0
    for nth, original in enumerate(originals):
        is_read = original.offset < source
        comes = nth >= len(copies) or copies[nth].offset >= target
        skipped += not is_read and not comes
        reread += is_read and comes
    return skipped, reread


def test_each_record_is_counted_among_markers_and_aborted_records(
    near: Cluster, far: Cluster, topic_name: str, make_flow: MakeFlow, watching: Watching
) -> None:
    """Set back, at the exact record, and ahead of what its offset at the target stands for."""
    near.create(topic_name)
    near.transactions(topic_name, 12)
    flow = make_flow(near, far, topic_name, **READ_COMMITTED)
    flow.copy()
    originals, copies = near.read(topic_name, committed=True), far.read(f"early.{topic_name}")
    end = near.end(topic_name)
    duties = watching(flow, topic_name)
    near.commit(topic_name, {(topic_name, 0): end})
    duties.turn()
    assert duties.cost(topic_name, topic_name) == (0, 0)
    for target in (0, 11, len(copies)):
        far.commit(topic_name, {(f"early.{topic_name}", 0): target})
        for source in range(0, end + 1, 3):
            near.commit(topic_name, {(topic_name, 0): source})
            expected = cost_by_lists(originals, copies, source, target)
            assert duties.cost(topic_name, topic_name) == expected, (source, target)


def test_ahead_of_a_copy_that_lags(
    near: Cluster, far: Cluster, topic_name: str, make_flow: MakeFlow, watching: Watching
) -> None:
    """What is not copied yet counts, and what was copied since the group's offset was set."""
    near.create(topic_name)
    near.produce(topic_name, 40)
    flow = make_flow(near, far, topic_name)
    flow.copy()
    duties = watching(flow, topic_name)
    near.produce(topic_name, 60)
    near.commit(topic_name, {(topic_name, 0): 90})
    far.commit(topic_name, {(f"early.{topic_name}", 0): 25})
    assert duties.groups.checkpoints is not None
    duties.groups.checkpoints.run()
    assert duties.cost(topic_name, topic_name) == (0, 65)
    duties.turn()
    assert duties.state(topic_name) is GroupState.CATCHING_UP
    assert duties.at(topic_name, topic_name)[1:3] == (90, 40)
    assert duties.cost(topic_name, topic_name) == (0, 50)
    near.produce(topic_name, 10)
    near.commit(topic_name, {(topic_name, 0): 105})
    assert duties.cost(topic_name, topic_name) == (0, 65), "it has read on since the last checkpoints"
    flow.copy()
    duties.turn()
    assert duties.cost(topic_name, topic_name) == (0, 0)


def test_set_back_in_one_partition_of_several(
    near: Cluster, far: Cluster, topic_name: str, make_flow: MakeFlow, watching: Watching
) -> None:
    """Its offset at the target is deleted, and set again where it belongs."""
    near.create(topic_name, 3)
    for partition in range(3):
        near.produce(topic_name, 20, partition)
    flow = make_flow(near, far, topic_name)
    flow.copy()
    duties = watching(flow, topic_name)
    near.commit(topic_name, {(topic_name, partition): 20 for partition in range(3)})
    duties.turn()
    near.commit(topic_name, {(topic_name, 1): 4})
    duties.turn()
    assert [duties.at(topic_name, topic_name, partition)[1:5] for partition in range(3)] == [
        (20, 20, 0, 0),
        (4, 20, 16, 0),
        (20, 20, 0, 0),
    ]
    far.delete_group(topic_name)
    assert duties.cost(topic_name, topic_name) == (None, None), "it has no offset at the target"
    duties.turn()
    assert duties.at(topic_name, topic_name, 1)[1:5] == (4, 4, 0, 0)


def test_beyond_the_end_of_the_source(
    near: Cluster, far: Cluster, topic_name: str, make_flow: MakeFlow, watching: Watching
) -> None:
    """Nothing comes there: the offset at the target is left alone, and set when the group is set right."""
    never = f"{topic_name}-never"
    near.create(topic_name)
    near.produce(topic_name, 20)
    flow = make_flow(near, far, topic_name)
    flow.copy()
    duties = watching(flow, topic_name)
    near.commit(topic_name, {(topic_name, 0): 7})
    duties.turn()
    for group in (topic_name, never):
        near.commit(group, {(topic_name, 0): 999_999})
    assert duties.at(topic_name, topic_name)[1:] == (999_999, 7, None, None, True), "at once"
    duties.turn()
    assert duties.at(topic_name, topic_name)[1:] == (999_999, 7, None, None, True)
    assert duties.at(never, topic_name)[1:] == (999_999, None, None, None, True)
    assert duties.groups.newest[never].reason == f"{topic_name}-0: at 999999, and the source ends at 20"
    assert far.committed(never) == {}
    for group in (topic_name, never):
        near.commit(group, {(topic_name, 0): 15})
    duties.turn()
    for group in (topic_name, never):
        assert duties.at(group, topic_name)[1:] == (15, 15, 0, 0, False)


def test_partitions_with_nothing_to_copy(
    near: Cluster, far: Cluster, topic_name: str, make_flow: MakeFlow, watching: Watching
) -> None:
    """Emptied before anything was copied, and after a part was."""
    topics = never, partly = f"{topic_name}.never", f"{topic_name}.partly"
    for topic in topics:
        near.create(topic)
    flow = make_flow(near, far, f"{topic_name}.*")
    near.produce(partly, 10)
    flow.copy()
    near.produce(partly, 30)
    near.produce(never, 40)
    for topic in topics:
        near.delete_records(topic, 40)
    near.commit(topic_name, {(topic, 0): 40 for topic in topics})
    duties = watching(flow, topic_name)
    duties.turn()
    assert [duties.cost(topic_name, topic) for topic in topics] == [(0, 0)] * 2
    for topic in topics:
        near.produce(topic, 3)
    near.commit(topic_name, {(topic, 0): 42 for topic in topics})
    assert [duties.cost(topic_name, topic) for topic in topics] == [(0, 2)] * 2


def test_a_group_of_a_copy_would_continue_with_the_original(
    near: Cluster, far: Cluster, topic_name: str, make_flow: MakeFlow, watching: Watching
) -> None:
    """The copy's offsets and the original's differ by markers; of the original, offsets count."""
    far.create(topic_name)
    far.transactions(topic_name, 12)
    make_flow(far, near, topic_name, **{"late.consumer.isolation.level": "read_committed"}).copy()
    copy = f"late.{topic_name}"
    flow = make_flow(near, far, f"late.{topic_name}")
    originals = far.read(topic_name, committed=True)
    duties = watching(flow, topic_name)
    near.commit(topic_name, {(copy, 0): 20})
    duties.turn()
    assert duties.at(topic_name, copy)[0] == (topic_name, 0)
    assert duties.cost(topic_name, copy) == (0, 0)
    near.commit(topic_name, {(copy, 0): 6})
    assert duties.cost(topic_name, copy) == (originals[20].offset - originals[6].offset, 0)
    end = len(originals)
    near.commit(topic_name, {(copy, 0): end + 1})
    assert duties.at(topic_name, copy).beyond_end
    near.commit(topic_name, {(copy, 0): end})
    assert duties.cost(topic_name, copy)[0] == 0
    duties.turn()
    assert duties.cost(topic_name, copy) == (0, 0)


def test_a_group_with_members_at_the_target_has_moved(
    near: Cluster, far: Cluster, topic_name: str, make_flow: MakeFlow, watching: Watching
) -> None:
    remote = f"early.{topic_name}"
    near.create(topic_name)
    near.produce(topic_name, 20)
    flow = make_flow(near, far, topic_name)
    flow.copy()
    duties = watching(flow, topic_name)
    near.commit(topic_name, {(topic_name, 0): 5})
    duties.turn()
    with closing(
        KafkaConsumer(remote, bootstrap_servers=far.servers, group_id=topic_name, enable_auto_commit=False)
    ) as member:
        assert sum(map(len, member.poll(timeout_ms=30_000).values())) == 15
        member.commit()
        assert duties.at(topic_name, topic_name)[1:5] == (5, 20, 0, 0)
    assert duties.cost(topic_name, topic_name) == (15, 0)


def test_a_few_groups_a_turn(
    near: Cluster,
    far: Cluster,
    topic_name: str,
    make_flow: MakeFlow,
    watching: Watching,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each keeps what was last seen of it; those that are gone are forgotten."""
    monkeypatch.setattr("sparkmirror.mirror.sync.group_watch.MOST_GROUPS", 2)
    near.create(topic_name)
    near.produce(topic_name, 9)
    flow = make_flow(near, far, topic_name)
    flow.copy()
    names = [f"{topic_name}-{number}" for number in range(3)]
    for number, name in enumerate(names):
        near.commit(name, {(topic_name, 0): number})
    duties = watching(flow, topic_name)
    duties.turn()
    for seen in (names[:2], names, names):
        duties.watch.run()
        assert sorted(duties.watch.whereabouts) == seen
    near.delete_group(names[0])
    duties.turn()
    duties.watch.run()
    assert sorted(duties.watch.whereabouts) == names[1:]
