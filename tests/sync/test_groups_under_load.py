"""Checkpoints while a pump copies transactions and a group reads on: exact at every turn, never beyond the log."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench.one_pump import begun
from group_flow import Cluster, GroupFlow, from_offset, wait_for
from lab import KafkaCluster

from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.pump.pump import pump
from sparkmirror.snapshot.group_standing import GroupState

pytestmark = pytest.mark.broker

TRANSACTIONS = 150
SECONDS = 120.0


@contextmanager
def pumping(flow: GroupFlow, with_receipts: bool) -> Iterator[None]:
    """A pump in a thread of its own; the flow's receipts follow it, if they shall."""
    driver = FlowDriver(flow.flow, "loaded", use_lease=False, once=False)
    driver.open()
    done = threading.Event()

    def follow() -> None:
        while not done.wait(0.05):
            for view in list(driver.view.partitions.values()):
                if with_receipts and view.receipt is not None:
                    flow.receipts[view.receipt.target_topic, view.receipt.partition] = view.receipt

    try:
        order = begun(driver, "loaded", SECONDS)
        threads = [threading.Thread(target=pump, args=(order,)), threading.Thread(target=follow)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            driver.control.say(1, "ending")
            threads[0].join(30)
            done.set()
            threads[1].join(5)
    finally:
        driver.close()


@pytest.mark.full
@pytest.mark.parametrize("with_receipts", [True, False])
def test_a_group_that_reads_on_while_records_are_copied(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, with_receipts: bool
) -> None:
    """testOneWayReplicationWithAutoOffsetSync: no negative lag, monotonic; here also exact."""
    alias = f"loaded{with_receipts:d}"
    near, far = Cluster(alias, source_cluster), Cluster("far", target_cluster)
    near.create(topic_name)
    remote = f"{alias}.{topic_name}"
    flow = GroupFlow(near, far, topic_name, tmp_path, **{f"{alias}.consumer.isolation.level": "read_committed"})
    chosen = random.Random(3)
    turns: list[tuple[int, int, bool]] = []
    with pumping(flow, with_receipts):
        checkpoints = flow.checkpoints(topic_name)
        sync = flow.group_offsets(checkpoints)
        writer = threading.Thread(target=near.transactions, args=(topic_name, TRANSACTIONS))
        writer.start()
        position = 0
        while writer.is_alive():
            position = chosen.randint(position, near.end(topic_name))
            near.commit(topic_name, {(topic_name, 0): position})
            checkpoints.run()
            sync.run()
            standing = sync.standings[topic_name]
            assert standing.state is not GroupState.NOT_SYNCED, standing
            current = checkpoints.current.get(topic_name, {}).get((remote, 0))
            if current is not None:
                assert current.downstream <= far.end(remote)
                assert far.committed(topic_name)[remote, 0].offset == current.downstream
                turns.append((position, current.downstream, standing.state is GroupState.SYNCED))
            time.sleep(0.1)
        writer.join()
        records = near.read(topic_name, committed=True)
        wait_for(lambda: far.end(remote) == len(records), "all is copied", 60)
        near.commit(topic_name, {(topic_name, 0): near.end(topic_name)})

        def at_the_end() -> bool:
            checkpoints.run()
            return checkpoints.standings[topic_name].state is GroupState.SYNCED

        if with_receipts:
            wait_for(at_the_end, "the pump says that only a marker follows", 30)
        else:
            checkpoints.run()
        assert checkpoints.current[topic_name][remote, 0].downstream == len(records)
    flow.close()
    copies = far.read(remote)
    assert len(turns) > 3
    assert [downstream for _, downstream, _ in turns] == sorted(downstream for _, downstream, _ in turns)
    for upstream, downstream, exact in turns:
        rest, wanted = from_offset(copies, downstream), from_offset(records, upstream)
        assert (rest == wanted) if exact else (rest[len(rest) - len(wanted) :] == wanted), (upstream, downstream)
    assert any(exact for _, _, exact in turns)
