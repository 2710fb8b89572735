"""The next micro-batch of a query: each offset is in one batch, whatever the logs do, or in a loss."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config import ClusterConfig, FetchConfig, FlowConfig, LossPolicy
from sparkmirror.exact.durable.losses import Loss
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.leader_epochs import EpochStart
from sparkmirror.kafka.wire.splice import NO_END
from sparkmirror.kafka.wire.topic_ids import NO_ID
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.queries.copied_logs import CopiedLog
from sparkmirror.queries.plan_log import NOT_KNOWN, PlannedBatch, PlannedRange, TargetEnd
from sparkmirror.queries.source_ranges import (
    Halt,
    QueriedLog,
    due_logs,
    next_ranges,
    present,
    shortened,
    shrunk_losses,
    unknown_end,
)

ID, OTHER_ID, TARGET_ID, OTHER_TARGET = "0a" * 16, "0b" * 16, b"\1" * 16, b"\2" * 16
SERVERS = ClusterConfig(alias="A", bootstrap_servers=("a:1",))
FLOW = FlowConfig(source=SERVERS, target=SERVERS.model_copy(update={"alias": "B"}))
AT_END = FLOW.model_copy(update={"fetch": FetchConfig(auto_offset_reset="latest")})


def log(
    partition: int,
    start: int,
    end: int,
    until: int = NO_END,
    topic_id: str = ID,
    *,
    copied: int = 0,
    target_id: bytes = TARGET_ID,
    cut_at: int | None = None,
) -> QueriedLog:
    return QueriedLog(
        route=PartitionPair("t", "A.t", partition),
        topic_id=topic_id,
        start=start,
        end=end,
        until=until,
        target_topic_id=target_id,
        target_end=copied,
        cut_at=cut_at,
    )


@settings(max_examples=200)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60)), min_size=3, max_size=3), min_size=1, max_size=12
    ),
    st.integers(1, 50),
)
def test_each_offset_is_planned_once_or_lost(steps: list[list[tuple[int, int]]], most: int) -> None:
    """Logs grow and expire between batches; in the end all since the first batch is planned, or in the ledger.

    The target's end stays, as where a transform drops all records.
    """
    starts, ends = [0, 0, 0], [0, 0, 0]
    before: PlannedBatch | None = None
    planned: list[set[int]] = [set(), set(), set()]
    lost: list[set[int]] = [set(), set(), set()]
    ledger: dict[str, Loss] = {}
    for step in [*steps, *[[(0, 0)] * 3] * 400]:
        for partition, (expired, grown) in enumerate(step):
            ends[partition] += grown
            starts[partition] = min(starts[partition] + expired, ends[partition])
        following = next_ranges(before, [log(at, starts[at], ends[at]) for at in range(3)], FLOW, most)
        if before is None:
            lost = [set(range(start)) for start in starts]
        assert not following.halted
        ledger |= {loss.key: loss for loss in following.losses}
        batch = following.batch
        if batch is None:
            assert before is not None
            assert [before.ends["t", at] for at in range(3)] == ends
            continue
        assert batch.number == (0 if before is None else before.number + 1)
        for partition in range(3):
            each = batch.ranges["t", partition]
            fresh = set(range(each.begin, each.end))
            assert not fresh & planned[partition]
            assert each.begin >= starts[partition] or not fresh
            planned[partition] |= fresh
        before = batch
    for loss in ledger.values():
        assert not lost[loss.partition] & set(range(loss.first, loss.end))
        lost[loss.partition].update(range(loss.first, loss.end))
    for partition in range(3):
        assert planned[partition] | lost[partition] == set(range(ends[partition]))
        assert not planned[partition] & lost[partition]


def spans(batch: PlannedBatch | None) -> dict[int, tuple[int, int]]:
    assert batch is not None
    return {partition: each[:2] for (_, partition), each in batch.ranges.items()}


def test_a_flow_that_begins_at_the_end_takes_later_partitions_from_their_start() -> None:
    first = next_ranges(None, [log(0, 3, 10)], AT_END).batch
    assert spans(first) == {0: (10, 10)}
    assert spans(next_ranges(first, [log(0, 3, 12), log(1, 2, 5)], AT_END).batch) == {0: (10, 12), 1: (2, 5)}


def test_a_flow_that_begins_at_the_end_awaits_its_first_log() -> None:
    """Partitions without leaders may be all that there are."""
    assert next_ranges(None, [], AT_END) == (None, (), {})
    assert next_ranges(None, [log(0, 0, 10, copied=4)], AT_END).batch is None
    assert spans(next_ranges(None, [log(0, 3, 10)], AT_END).batch) == {0: (10, 10)}


def test_a_flow_that_begins_at_the_end_notes_the_ends_of_paused_partitions() -> None:
    """When they are resumed they begin there."""
    logs = {("t", partition): log(partition, 3, 10) for partition in range(2)}
    wanted = {("t", 1)}
    assert due_logs(None, logs, wanted, FLOW) == [logs["t", 1]]
    first = next_ranges(None, due_logs(None, logs, wanted, AT_END), AT_END).batch
    assert spans(first) == {0: (10, 10), 1: (10, 10)}
    assert due_logs(first, logs, wanted, AT_END) == [logs["t", 1]]
    assert spans(next_ranges(first, [log(0, 3, 12), log(1, 3, 10)], AT_END).batch) == {0: (10, 12), 1: (10, 10)}


def test_a_flow_that_begins_at_the_end_notes_the_ends_of_partitions_without_a_leader_at_the_target() -> None:
    """Such a partition begins there if its copy proves empty; till then the query writes nothing into that topic."""
    following = next_ranges(None, [log(0, 3, 10, copied=-1), log(1, 0, 7)], AT_END)
    assert spans(following.batch) == {0: (10, 10), 1: (7, 7)}
    assert following.halted["t", 0].cause is Cause.NO_LEADER
    waiting = next_ranges(following.batch, [log(0, 3, 12, copied=-1), log(1, 0, 9)], AT_END)
    assert waiting.batch is None
    assert [halt.cause for halt in waiting.halted.values()] == [Cause.NO_LEADER] * 2
    back = next_ranges(following.batch, [log(0, 3, 12), log(1, 0, 9)], AT_END)
    assert (spans(back.batch), back.losses, back.halted) == ({0: (10, 12), 1: (7, 9)}, (), {})
    assert spans(next_ranges(back.batch, [log(0, 3, 15, copied=2)], AT_END).batch) == {0: (12, 15), 1: (9, 9)}


def test_a_flow_that_begins_at_the_end_waits_for_partitions_without_a_leader_at_the_source() -> None:
    """Later they would be taken from their start, as new ones are."""
    logs = {("t", 0): log(0, 3, 10)}
    held_up = {("t", 1): Halt(Cause.NO_LEADER, "its leader at the source isn't known now")}
    halt = unknown_end(None, logs, held_up, AT_END)
    assert halt is not None
    assert halt.cause is Cause.NO_LEADER
    assert halt.reason.startswith("t-1: its leader at the source isn't known now, so where the query begins")
    first = next_ranges(None, logs.values(), AT_END).batch
    assert unknown_end(None, logs, {("t", 0): halt}, AT_END) is None
    assert unknown_end(None, logs, held_up, FLOW) is None
    assert unknown_end(first, logs, held_up, AT_END) is None


def test_a_first_batch_at_the_end_knows_the_epoch_before_it() -> None:
    """Else a log that was cut there and has grown again would not be noticed."""
    history = (EpochStart(4, 0),)
    first = next_ranges(None, [log(0, 0, 10)._replace(history=history)], AT_END).batch
    assert first is not None
    assert first.ranges["t", 0].epochs == history


def test_a_noted_end_counts_no_more_where_others_wrote() -> None:
    """Once the copy is deleted, the query copies all, as its reason says."""
    first = next_ranges(None, [log(0, 3, 10, copied=-1)], AT_END).batch
    foreign = next_ranges(first, [log(0, 3, 12, copied=4)], AT_END)
    assert foreign.halted["t", 0].cause is Cause.TAKEOVER
    assert spans(foreign.batch) == {}
    again = next_ranges(foreign.batch, [log(0, 3, 12, copied=4)], AT_END)
    assert again.batch is None
    deleted = next_ranges(foreign.batch, [log(0, 3, 12, target_id=OTHER_TARGET)], AT_END)
    assert (spans(deleted.batch), deleted.losses) == ({0: (3, 12)}, ())


def test_the_copy_ends_where_it_is_wanted_and_never_goes_back() -> None:
    first = next_ranges(None, [log(0, 0, 10, until=8)], FLOW).batch
    assert spans(first) == {0: (0, 8)}
    assert next_ranges(first, [log(0, 0, 20, until=8)], FLOW).batch is None
    late = next_ranges(first, [log(0, 0, 20, until=5)], FLOW)
    assert (late.batch, late.halted) == (None, {}), "an end below what is copied is no cut log"


@pytest.mark.parametrize("policy", ["halt", "continue"])
def test_a_log_that_was_cut_halts_its_partition_alone_or_goes_on(policy: str) -> None:
    flow = FLOW.model_copy(update={"loss": LossPolicy.model_validate({"truncated": policy})})
    first = next_ranges(None, [log(0, 0, 10), log(1, 0, 10)], flow).batch
    following = next_ranges(first, [log(0, 0, 16, cut_at=6), log(1, 0, 11, cut_at=10)], flow)
    assert [(loss.kind.value, loss.first, loss.end) for loss in following.losses] == [("truncated", 6, 10)]
    if policy == "halt":
        assert following.halted["t", 0].cause is Cause.TRUNCATED
        assert spans(following.batch) == {0: (10, 10), 1: (10, 11)}, "the halted one keeps its place"
    else:
        assert spans(following.batch) == {0: (6, 16), 1: (10, 11)}


@pytest.mark.parametrize("end", [5, 10, 20])
@pytest.mark.parametrize("policy", ["restart", "halt"])
def test_a_topic_that_was_created_again_begins_at_its_start_or_halts(policy: str, end: int) -> None:
    """Also with exactly as many records as before."""
    flow = FLOW.model_copy(update={"loss": LossPolicy.model_validate({"recreated": policy})})
    first = next_ranges(None, [log(0, 0, 10)], flow).batch
    following = next_ranges(first, [log(0, 2, end, topic_id=OTHER_ID)], flow)
    if policy == "halt":
        assert following.halted["t", 0].cause is Cause.RECREATED
        assert following.batch is None
        return
    assert spans(following.batch) == {0: (2, end)}
    assert [(loss.kind.value, loss.first, loss.end) for loss in following.losses] == [
        ("recreated", 10, 10),
        ("expired", 0, 2),
    ]


@pytest.mark.parametrize("ids", [(NO_ID.hex(), ID), (ID, NO_ID.hex())], ids=["upgrade", "downgrade"])
def test_a_topic_keeps_its_place_when_its_cluster_begins_or_ends_to_give_ids(ids: tuple[str, str]) -> None:
    before, after = ids
    first = next_ranges(None, [log(0, 0, 10, topic_id=before)], FLOW).batch
    assert first is not None
    following = next_ranges(first, [log(0, 2, 15, topic_id=after)], FLOW)
    assert (following.losses, spans(following.batch)) == ((), {0: (10, 15)})
    cut = log(0, 2, 15, topic_id=after, cut_at=6)
    assert shortened(first, {("t", 0): cut}, FLOW.loss)[0].ends == {("t", 0): 6}
    assert present(first, {("t", 0): log(0, 0, 15, topic_id=after)}, FLOW.loss) == ({("t", 0): (0, 10)}, [])


def test_each_partition_of_a_topic_that_was_created_again_begins_at_its_start() -> None:
    """Also one that comes later than the others."""
    first = next_ranges(None, [log(0, 0, 10), log(1, 0, 10)], FLOW).batch
    second = next_ranges(first, [log(0, 0, 5, topic_id=OTHER_ID)], FLOW).batch
    assert spans(second) == {0: (0, 5), 1: (10, 10)}
    third = next_ranges(second, [log(0, 0, 5, topic_id=OTHER_ID), log(1, 0, 15, topic_id=OTHER_ID)], FLOW)
    assert spans(third.batch) == {0: (5, 5), 1: (0, 15)}


def test_a_copy_that_nobody_has_planned_is_not_begun() -> None:
    """Pumps, MirrorMaker 2 or another query have copied there, nobody knows how far."""
    following = next_ranges(None, [log(0, 0, 10, copied=4), log(1, 0, 10)], FLOW)
    assert following.halted["t", 0].cause is Cause.TAKEOVER
    assert "A.t-0 ends at 4, and no plan of this query knows" in following.halted["t", 0].reason
    assert "delete A.t to have the query copy all, or take t out of the query" in following.halted["t", 0].reason
    routed = next_ranges(None, [log(0, 0, 10, copied=4)._replace(ends_in="all")], FLOW).halted["t", 0].reason
    assert "all-0 ends at 4, and" in routed
    assert "delete all to have" in routed
    assert spans(following.batch) == {1: (0, 10)}
    assert spans(next_ranges(following.batch, [log(0, 0, 10), log(1, 0, 10)], FLOW).batch) == {0: (0, 10), 1: (10, 10)}


def test_a_copy_that_is_deleted_is_copied_again_unless_somebody_wrote_there() -> None:
    first = next_ranges(None, [log(0, 0, 10)], FLOW).batch
    again = next_ranges(first, [log(0, 3, 12, target_id=OTHER_TARGET)], FLOW)
    assert spans(again.batch) == {0: (3, 12)}
    assert [loss.kind.value for loss in again.losses] == ["target-recreated"]
    written = next_ranges(first, [log(0, 3, 12, target_id=OTHER_TARGET, copied=2)], FLOW)
    assert written.halted["t", 0].cause is Cause.TAKEOVER


def test_an_expiry_may_halt() -> None:
    flow = FLOW.model_copy(update={"loss": LossPolicy.model_validate({"expired": "halt"})})
    first = next_ranges(None, [log(0, 0, 10)], flow).batch
    following = next_ranges(first, [log(0, 12, 20)], flow)
    assert following.batch is None
    assert following.halted["t", 0].cause is Cause.EXPIRED


@pytest.mark.parametrize(
    ("now", "ranges", "losses"),
    [
        (log(0, 0, 10), {("t", 0): (0, 10)}, []),
        (log(0, 4, 12), {("t", 0): (4, 10)}, [("expired", 0, 4)]),
        (log(0, 40, 50), {}, [("expired", 0, 10)]),
        (log(0, 2, 20, cut_at=6), {("t", 0): (2, 6)}, [("truncated", 6, 10), ("expired", 0, 2)]),
        (log(0, 0, 20, cut_at=10), {("t", 0): (0, 10)}, []),
        (log(0, 0, 99, topic_id=OTHER_ID), {}, [("recreated", 0, 0)]),
        (log(0, 0, 10, target_id=OTHER_TARGET), {}, []),
    ],
)
def test_a_begun_batch_has_what_is_still_there(
    now: QueriedLog, ranges: dict[TopicPartition, tuple[int, int]], losses: list[tuple[str, int, int]]
) -> None:
    batch = next_ranges(None, [log(0, 0, 10)], FLOW).batch
    assert batch is not None
    begun, disowned = shortened(batch, {("t", 0): now}, LossPolicy())
    left, lost = present(begun, {("t", 0): now}, LossPolicy())
    assert left == ranges
    assert [(loss.kind.value, loss.first, loss.end) for loss in [*disowned, *lost]] == losses


@pytest.mark.parametrize(
    ("topic_id", "target_id", "shrunk"),
    [(OTHER_ID, TARGET_ID.hex(), 1), (ID, TARGET_ID.hex(), 0), (OTHER_ID, NOT_KNOWN, 0)],
)
def test_partitions_that_a_topic_created_again_lacks_are_told(topic_id: str, target_id: str, shrunk: int) -> None:
    """Not those of the same topic, or whose copy was never known."""
    route = PartitionPair("t", "A.t", 2)
    before = PlannedBatch(3, {("t", 2): PlannedRange(4, 10, ID, target_id)})
    ends = {("A.t", 2): TargetEnd(TARGET_ID.hex(), CopiedLog(6, ()))}
    former = [(at, bytes.fromhex(topic_id)) for at in (route, PartitionPair("u", "A.u", 0))]
    losses = shrunk_losses(before, former, ends)
    assert [(each.kind.value, each.source_topic, each.first) for each in losses] == [("shrunk", "t", 10)] * shrunk
