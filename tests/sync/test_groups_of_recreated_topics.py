"""Groups whose topics were created again, at the target or at the source: no record is skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from group_flow import Cluster, GroupFlow, group_flows, wait_for
from lab import KafkaCluster

from sparkmirror.snapshot.group_standing import GroupState

pytestmark = pytest.mark.broker

MakeFlow = Callable[..., GroupFlow]


@pytest.fixture
def near(source_cluster: KafkaCluster) -> Cluster:
    return Cluster("left", source_cluster)


@pytest.fixture
def far(target_cluster: KafkaCluster) -> Cluster:
    return Cluster("right", target_cluster)


@pytest.fixture
def make_flow(tmp_path: Path) -> Iterator[MakeFlow]:
    with group_flows(tmp_path) as make:
        yield make


def test_a_report_of_an_earlier_target_topic_says_nothing_about_the_new_one(
    near: Cluster, far: Cluster, make_flow: MakeFlow, topic_name: str
) -> None:
    """The pump has not noticed yet; the group is at 10 of 40, and nothing is in the new topic."""
    remote = (f"left.{topic_name}", 0)
    near.create(topic_name)
    near.produce(topic_name, 40)
    flow = make_flow(near, far, topic_name)
    flow.copy()
    far.recreate(remote[0])
    near.commit(topic_name, {(topic_name, 0): 10})
    duty = flow.checkpoints(topic_name)
    sync = flow.group_offsets(duty)
    duty.run()
    sync.run()
    assert sync.standings[topic_name].state is GroupState.CATCHING_UP
    assert (flow.written(topic_name), far.committed(topic_name)) == ([], {})
    flow.copy()
    duty.run()
    sync.run()
    assert far.committed(topic_name)[remote].offset == 10
    assert near.read(topic_name)[10].value == far.read(remote[0])[10].value


def test_a_checkpoint_of_an_earlier_target_topic_does_not_hold(
    near: Cluster, far: Cluster, make_flow: MakeFlow, topic_name: str
) -> None:
    """The source has deleted 50 records since: the group at 90 continues at 40 of the new topic, which has 110."""
    remote = (f"left.{topic_name}", 0)
    near.create(topic_name)
    near.produce(topic_name, 100)
    near.commit(topic_name, {(topic_name, 0): 90})
    flow = make_flow(near, far, topic_name)
    flow.copy()
    duty = flow.checkpoints(topic_name)
    sync = flow.group_offsets(duty)
    duty.run()
    sync.run()
    assert far.committed(topic_name)[remote].offset == 90
    near.delete_records(topic_name, 50)
    near.produce(topic_name, 60)
    far.recreate(remote[0])
    wait_for(lambda: far.committed(topic_name) == {}, "the target forgets the group's offset")
    flow.copy()
    assert far.end(remote[0]) == 110
    for checkpoints in (duty, flow.checkpoints(topic_name)):
        checkpoints.run()
        flow.group_offsets(checkpoints).run()
        assert [(one.upstream, one.downstream) for one in flow.written(topic_name)] == [(90, 90), (90, 40)]
        assert far.committed(topic_name)[remote].offset == 40
    expected = next(record.value for record in near.read(topic_name) if record.offset == 90)
    assert far.read(remote[0])[40].value == expected


def test_a_group_of_a_copy_continues_with_all_of_an_original_that_was_created_again(
    near: Cluster, far: Cluster, make_flow: MakeFlow, topic_name: str
) -> None:
    """It reads the copy at `near`, and has yet to read everything that was copied of the new topic."""
    copy, original = (f"right.{topic_name}", 0), (topic_name, 0)
    far.create(topic_name)
    far.produce(topic_name, 100)
    back = make_flow(far, near, topic_name)
    back.copy()
    near.commit(topic_name, {copy: 50})
    flow = make_flow(near, far, f"right.{topic_name}")
    duty = flow.checkpoints(topic_name)
    sync = flow.group_offsets(duty)
    far.recreate(topic_name)
    far.produce(topic_name, 80)
    duty.run()
    sync.run()
    assert "created again" in sync.standings[topic_name].reason
    assert far.committed(topic_name) == {}
    back.copy()
    duty.run()
    sync.run()
    assert sync.standings[topic_name].state is GroupState.SYNCED
    assert far.committed(topic_name)[original].offset == 0
    assert [record.value for record in near.read(copy[0]) if record.offset >= 100] == [
        record.value for record in far.read(topic_name)
    ]
