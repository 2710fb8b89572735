"""The snapshot of a mirror at work, and of drivers that were told what their flows' pumps say."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_verify import IDENTITY, plain, write
from tests.support import mirror_process as mp
from tests.support.mirror_thread import run_config
from tests.support.receipts import receipt

from sparkmirror.config import ClusterConfig, FlowConfig, load_mm2_properties
from sparkmirror.kafka.cluster.topic_descriptions import PartitionDescription, TopicDescription
from sparkmirror.mirror.engine import flow_duties, lag_monitor, publishing
from sparkmirror.mirror.engine.duties import Duties, Schedule
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.mirror.engine.observer import MOVES_S, Observer
from sparkmirror.mirror.engine.surroundings import Surroundings
from sparkmirror.mirror.engine.transaction_watch import HeldBack
from sparkmirror.mirror.sync.share_group_offsets import ShareGroupOffsets
from sparkmirror.mirror.sync.topics import MirroredTopic, TopicSync
from sparkmirror.pump.messages.orders import FlowReport, Receipt
from sparkmirror.snapshot.group_standing import GroupStanding, GroupState, standing
from sparkmirror.snapshot.snapshot import Cause, Flow, FlowState, PartitionState, Role, Topic
from sparkmirror.snapshot.status_topic import read_status

COUNT = 300
FAST = {
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
}


def commit(cluster: KafkaCluster, group: str, topic: str, offset: int) -> None:
    with closing(KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, group_id=group)) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)})


def flow_of(mirror: Mirror) -> Flow:
    """The flow as it is now, not as it was a second ago."""
    (flow,) = mirror.observer.snapshot(newest=True).flows
    return flow


def admin_connections(mirror: Mirror) -> int:
    flow = flow_of(mirror)
    return min(flow.source.admin_connections, flow.target.admin_connections)


def topic_of(mirror: Mirror, name: str) -> Topic:
    return next(topic for topic in flow_of(mirror).topics if topic.topic == name)


@pytest.mark.broker
@pytest.mark.spark
def test_it_tells_what_is_so(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module, name in ((flow_duties, "GROUP_WATCH_S"), (publishing, "INTERVAL_S"), (lag_monitor, "LOOK_S")):
        monkeypatch.setattr(module, name, 1.0)
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    write(source_cluster, topic_name, plain(range(COUNT)))
    commit(source_cluster, topic_name, topic_name, 200)
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    settings = {**IDENTITY, **FAST, "groups": topic_name}
    config = load_mm2_properties(str(mp.write_properties(tmp_path / "mm2.properties", *servers, topic_name, settings)))
    with run_config(config, spark) as mirror:
        mp.wait_for(lambda: any(group.partitions for group in flow_of(mirror).groups), 90, "a group is seen")
        mp.wait_for(lambda: flow_of(mirror).state is FlowState.CAUGHT_UP, 30, "it has caught up")
        flow = flow_of(mirror)
        assert (flow.role, flow.lag, flow.lag_s, flow.unknown, flow.records) == (Role.LEADER, 0, 0.0, 0, COUNT)
        assert sum(flow.latency.counts) + sum(flow.heartbeat_latency.counts) == COUNT
        assert flow.source.bytes >= flow.target.bytes == flow.bytes > 0
        mp.wait_for(lambda: admin_connections(mirror) >= 1, 30, "the connections that ask are counted")
        first, second = topic_of(mirror, topic_name).partitions
        assert (first.position, first.end, first.downstream, first.records) == (COUNT, COUNT, COUNT, COUNT)
        assert first.latency_ms is not None
        assert first.latency_ms.least <= first.latency_ms.mean <= first.latency_ms.most
        assert (second.position, second.end, second.lag, second.records) == (0, 0, 0, 0)
        assert first.state is second.state is PartitionState.RUNNING
        assert sum(pump.records for pump in flow.pumps) == COUNT
        checkpoints = next(duty for duty in flow.duties if duty.duty == "checkpoints")
        assert checkpoints.succeeded_ms is not None
        assert time.time() * 1000 - checkpoints.succeeded_ms < 60_000
        (driver,) = mirror.drivers

        def is_seen_refused() -> bool:
            """Also if the topic duty has just looked again."""
            refused = {topic_name: "it can't be given more partitions"}
            driver.topics.newest = replace(driver.topics.newest, refused=refused)
            return bool(topic_of(mirror, topic_name).refused)

        mp.wait_for(is_seen_refused, 5, "it is refused, though it is copied")
        assert len(topic_of(mirror, topic_name).partitions) == 2
        mp.wait_for(lambda: flow_of(mirror).groups[0].reread == 0, 30, "the group is at the target")
        (group,) = flow_of(mirror).groups
        (at,) = group.partitions
        assert (group.state, at.source_offset, at.target_offset) == (GroupState.SYNCED, 200, 200)
        assert (at.source_lag, at.target_lag) == (COUNT - 200, COUNT - 200)
        # A new driver of the same flow keeps counting.
        mirror.change(config, restart=[flow.flow])
        seen = [flow.records]

        def counts(records: int) -> bool:
            flows = mirror.observer.snapshot().flows
            seen.extend(one.records for one in flows)
            return seen[-1] == records and any(one.epochs.get("settings") == 1 for one in flows)

        mp.wait_for(lambda: counts(COUNT), 30, "the round has ended for the sake of the settings")
        write(source_cluster, topic_name, plain(range(COUNT, COUNT + 50)))
        mp.wait_for(lambda: counts(COUNT + 50), 60, "what has come since is copied")
        assert seen == sorted(seen)
        (flow_config,) = config.flows

        def published() -> int:
            status = read_status(flow_config)
            return status.flow.records if status.flow is not None else 0

        mp.wait_for(lambda: published() == COUNT + 50, 30, "it is published at the target")
        status = read_status(flow_config)
        assert status.flow is not None
        assert [topic.topic for topic in status.flow.topics] == [topic.topic for topic in flow_of(mirror).topics]
        assert [one.group for one in status.flow.groups] == [topic_name]
        age_s = status.age_s()
        assert age_s is not None
        assert age_s < 15
    process = mirror.observer.snapshot().process
    assert process.spark_version
    assert process.jvm_memory_bytes > 0


# --- drivers that were told ---------------------------------------------------------------------


FLOW = FlowConfig(
    source=ClusterConfig(alias="A", bootstrap_servers=("127.0.0.1:1",)),
    target=ClusterConfig(alias="B", bootstrap_servers=("127.0.0.1:1",)),
)


def a_driver(partitions: int, refused: dict[str, str] | None = None) -> FlowDriver:
    """A driver of A->B whose topic duty has run, with as many partitions of the topic t."""
    driver = FlowDriver(FLOW, "incarnation", use_lease=False, once=False)
    rows = tuple(
        PartitionDescription(partition=number, leader=1, leader_epoch=0, replicas=(1,), in_sync=(1,))
        for number in range(partitions)
    )
    mirrored = MirroredTopic(*(TopicDescription(name, b"1" * 16, rows) for name in ("t", "A.t")))
    driver.topics.newest = TopicSync(
        mirrored=(mirrored,) if partitions else (), created=(), grown=(), refused=refused or {}
    )
    driver.topics.synced = True
    return driver


def of_t(number: int, position: int, **changes: Any) -> Receipt:
    return receipt(number, **{"source_topic": "t", "upstream": position, **changes})


def tell(driver: FlowDriver, *receipts: Receipt, at_ms: int = 0, **changes: Any) -> None:
    """Have a pump tell this, at a time of its own clock."""
    report = FlowReport(
        epoch=1, task=0, pump="1/0", incarnation="incarnation", at_ms=at_ms, receipts=receipts
    ).model_copy(update=changes)
    driver.view.note(report)
    driver.view.take_report("A->B", report)


def copying(driver: FlowDriver, positions: dict[int, tuple[int, int]], **changes: Any) -> None:
    """Have the pump be at these positions of these ends."""
    driver.view.take_ends({("t", number): end for number, (_, end) in positions.items()}, {})
    tell(driver, *(of_t(number, position, **changes) for number, (position, _) in positions.items()))


def observers(*drivers: FlowDriver) -> Iterator[Flow]:
    """The flow as one observer sees these drivers, each in place of the one before."""
    at_work: list[FlowDriver] = []
    surroundings = Surroundings(list, lambda _: False, lambda: None, lease=False)
    observer = Observer(lambda: at_work, lambda _: None, surroundings)
    for driver in drivers:
        at_work[:] = [driver]
        yield from observer.snapshot(newest=True).flows


def looked_at(*drivers: FlowDriver) -> list[Flow]:
    """All that the observer sees."""
    return list(observers(*drivers))


def an_observer(driver: FlowDriver) -> Callable[[], Flow]:
    """Looks at one driver, again and again."""
    seen = observers(*itertools.repeat(driver, 100))
    return lambda: next(seen)


@dataclass
class SaidShareGroups:
    """Standings in the place of a duty's."""

    standings: dict[str, GroupStanding]


def test_when_a_group_was_last_at_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """As its standing says; what was known stays while it can't be set, or no time is known; never of a moved one."""
    driver = a_driver(1)
    monkeypatch.setattr(FlowDriver, "duties", Duties("A->B", [], lambda: True))
    look = an_observer(driver)
    times = []
    for standing_of_turn in (
        standing("shop", 1),
        standing("shop", 1, synced_ms=5_000),
        standing("shop", 1, ahead=["t-0: at 5"], synced_ms=6_000),
        standing("shop", 1, missing=["it has members at B"], synced_ms=7_000),
        standing("shop", 1, ahead=["t-0: at 5"]),
        standing("shop", 1, beyond=["t-0: at 9"], synced_ms=8_000),
        standing("shop", 1, moved=["it has members at B"]),
        standing("shop", 1, moved=["it reads what B->A has copied"], synced_ms=9_000),
    ):
        driver.groups.share = cast(ShareGroupOffsets, SaidShareGroups({"shop": standing_of_turn}))
        times.append(look().groups[0].synced_ms)
    assert times == [None, 5_000, 6_000, 6_000, 6_000, 8_000, None, None]


def test_commands_reach_the_clusters_as_the_file_has_them() -> None:
    (flow,) = looked_at(a_driver(1))
    assert flow.target.tools == "--bootstrap-server 127.0.0.1:1"
    signed = FLOW.target.model_copy(
        update={"bootstrap_servers": ("b1:9093", "b2:9093"), "security_protocol": "SASL_SSL"}
    )
    driver = FlowDriver(FLOW.model_copy(update={"target": signed}), "incarnation", use_lease=False, once=False)
    (flow,) = looked_at(driver)
    assert flow.target.tools == "--bootstrap-server b1:9093,b2:9093 --command-config admin.properties"


@pytest.mark.parametrize(("refused", "state"), [({"t": "no right to create"}, "held up"), ({}, "caught up")])
def test_a_flow_that_has_no_partition_does_not_start_for_ever(refused: dict[str, str], state: str) -> None:
    driver = a_driver(0, refused)
    driver.topics.synced = False
    (flow,) = looked_at(driver)
    assert flow.state is FlowState.STARTING
    driver.topics.synced = True
    (flow,) = looked_at(driver)
    assert (flow.state, flow.unknown) == (state, 0)


def test_a_refused_topic_is_no_partition_whose_lag_is_not_known() -> None:
    driver = a_driver(1, {"u": "no right to create"})
    copying(driver, {0: (90, 100)})
    (flow,) = looked_at(driver)
    assert (flow.unknown, flow.lag) == (0, 10)
    assert flow.lag_s is not None
    copying(driver, {0: (100, 100)})
    (flow,) = looked_at(driver)
    assert (flow.state, flow.unknown, flow.lag, flow.lag_s) == (FlowState.HELD_UP, 0, 0, 0.0)


@pytest.mark.parametrize("stuck", [{"state": "parked"}, {"state": "waiting", "cause": Cause.PAUSED}])
def test_what_is_not_copied_has_no_part_in_the_time_that_is_left(stuck: dict[str, Any]) -> None:
    driver = a_driver(3)
    driver.view.take_ends({("t", 0): 10_000_000, ("t", 1): 1_000, ("t", 2): 1_000}, {})
    look = an_observer(driver)
    look()

    def progress(stuck_at: int, moving_at: int) -> Flow:
        tell(driver, of_t(0, stuck_at, **stuck), of_t(1, 900), of_t(2, moving_at), records=1_000)
        return look()

    def waiting(progress: Flow) -> int | None:
        """The records that the time left is meant for."""
        return None if progress.eta_s is None else round(progress.eta_s * progress.records_per_s)

    both = progress(0, 900)
    assert (both.lag, waiting(both)) == (10_000_200, 200)
    nowhere = progress(-1, 900)
    assert (nowhere.lag, nowhere.unknown, waiting(nowhere)) == (200, 1, 200), "it is known of all that is copied"
    assert waiting(progress(0, -1)) is None, "the position of a partition that is copied is not known"


OFFSETS = st.integers(-1, 20)
PARTITION = st.fixed_dictionaries(
    {
        "told": st.booleans(),
        "position": OFFSETS,
        "end": OFFSETS,
        "end_of_pump": OFFSETS,
        "start": OFFSETS,
        "stable": OFFSETS,
        "is_held_back": st.booleans(),
        "state": st.sampled_from(["running", "done", "parked", "waiting", "paused"]),
    }
)


@given(st.lists(PARTITION, max_size=4), st.booleans())
def test_a_flows_lag_and_state_are_those_of_its_partitions(told: list[dict[str, Any]], is_refused: bool) -> None:
    """Of whatever driver and pumps have read; -1: nothing yet."""
    driver = a_driver(len(told), {"u": "no right to create"} if is_refused else {})
    ends = {("t", number): one["end"] for number, one in enumerate(told) if one["end"] >= 0}
    stable = {at: min(told[at[1]]["stable"], end) for at, end in ends.items() if told[at[1]]["stable"] >= 0}
    driver.view.take_ends(ends, {}, stable)
    driver.view.source_starts = {("t", number): one["start"] for number, one in enumerate(told) if one["start"] >= 0}
    driver.view.held_back = {at: HeldBack("producer 7", "end it") for at in stable if told[at[1]]["is_held_back"]}
    receipts = []
    for number, one in enumerate(told):
        paused = {"state": "waiting", "cause": Cause.PAUSED} if one["state"] == "paused" else {"state": one["state"]}
        if one["told"]:
            receipts.append(of_t(number, one["position"], source_end=one["end_of_pump"], **paused))
    tell(driver, *receipts)
    (flow,) = looked_at(driver)
    lags: list[int | None] = []
    states = set()
    for one in told:
        end = max(one["end"], one["end_of_pump"]) if one["told"] else one["end"]
        known = one["told"] and one["position"] >= 0 and end >= 0
        lag = max(end - max(one["position"], one["start"], 0), 0) if known else None
        lags.append(lag)
        stable_end = end if one["stable"] < 0 or one["end"] < 0 else min(one["stable"], one["end"])
        readable = max(stable_end, one["end_of_pump"]) if one["told"] else stable_end
        waits = bool(lag) and readable < end
        stuck = one["state"] == "parked" or (waits and one["is_held_back"] and one["state"] == "running")
        if not one["told"]:
            states.add("starting")
        elif lag is None:
            states.add("held up" if one["state"] == "parked" else "finding out")
        elif stuck:
            states.add("held up")
        elif lag and max(one["position"], one["start"]) < readable:
            states.add("copying")
    known_lag = sum(lag or 0 for lag in lags)
    assert flow.unknown == lags.count(None)
    assert flow.lag == (None if None in lags and not known_lag else known_lag)
    states |= {"held up"} if is_refused else {"caught up"}
    order = ("starting", "finding out", "copying", "held up", "caught up")
    assert flow.state == next(state for state in order if state in states)


@pytest.mark.parametrize("ahead_s", [-3_600, 0, 3_600])
def test_the_clock_of_an_executor_does_not_decide_what_moves(ahead_s: int, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = a_driver(1)
    driver.view.take_ends({("t", 0): 1_000}, {})
    now_ms = int((time.time() + ahead_s) * 1000)
    tell(driver, of_t(0, 100, records=100, bytes=1_000), at_ms=now_ms - 2_000)
    tell(driver, of_t(0, 300, records=300, bytes=3_000), at_ms=now_ms)
    (flow,) = looked_at(driver)
    (partition,) = flow.topics[0].partitions
    assert (partition.records_per_s, partition.bytes_per_s, partition.eta_s) == (100, 1_000, 7)
    assert abs(flow.at_ms - flow.pumps[0].at_ms) < 2_000
    later = time.time() + MOVES_S + 0.001  # the observer counts whole milliseconds
    monkeypatch.setattr(time, "time", lambda: later)
    (flow,) = looked_at(driver)
    (partition,) = flow.topics[0].partitions
    assert (partition.records_per_s, flow.at_ms - flow.pumps[0].at_ms >= MOVES_S * 1000) == (0, True)


def test_no_count_falls_when_another_driver_works_on_the_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    duties_of: dict[FlowDriver, Duties] = {}
    monkeypatch.setattr(FlowDriver, "duties", property(duties_of.get))

    def told(records: int, failures: int) -> FlowDriver:
        driver = a_driver(1)
        tell(driver, of_t(0, 100, records=records, bytes=records * 10), records=records, bytes=records * 10)
        schedule = Schedule(name="heartbeats", interval_s=1.0, make=lambda: pytest.fail("is not started"))
        duties = duties_of[driver] = Duties("A->B", [schedule], lambda: True)
        for _ in range(failures):
            duties.failed("heartbeats", "no answer")
        return driver

    first, second, third = told(70, 3), told(0, 0), told(5, 1)
    flows = looked_at(first, second, third)
    counts = [(one.topics[0].partitions[0].records, one.topics[0].partitions[0].bytes) for one in flows]
    assert counts == [(one.records, one.bytes) for one in flows] == [(70, 700), (70, 700), (75, 750)]
    assert [one.duties[0].failures for one in flows] == [3, 3, 4]


def test_a_topics_counts_have_those_of_partitions_whose_copy_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """One partition after another comes to the end that `topics done` noted, and leaves; no counter may fall."""
    monkeypatch.setattr(FlowDriver, "duties", property(lambda _: None))
    driver = a_driver(2)
    tell(driver, *(of_t(number, 100, records=70, bytes=700) for number in range(2)))
    look = an_observer(driver)
    counts = []
    for reached in (set[int](), {0}):
        monkeypatch.setattr(
            driver.topics.done_topics, "is_reached", lambda _, number, reached=reached: number in reached
        )
        driver.view.changes += 1
        (topic,) = look().topics
        counts.append((len(topic.partitions), topic.records, topic.bytes))
    assert counts == [(2, 140, 1400), (1, 140, 1400)]
