"""What is said of flows: true, and never well where something is not known."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.snapshot_samples import NOW_MS, flow, level_group, partition, topic

from sparkmirror.exact.durable.loss_kinds import LossOutcome
from sparkmirror.look.doctor.findings import Finding, Severity
from sparkmirror.look.page.cut_over import CheckMark, CutOverVerdict, cut_over
from sparkmirror.look.page.problems import problems
from sparkmirror.look.page.sentences import Tone, headline, short
from sparkmirror.look.page.words import clock, count, duration, listed, rate, size
from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.snapshot import (
    ELSEWHERE,
    Cause,
    ClusterFigures,
    Duty,
    Flow,
    FlowState,
    Group,
    GroupPartition,
    LossCount,
    Partition,
    PartitionState,
    Role,
    Topic,
)


def parked(number: int = 3, **changes: Any) -> Partition:
    reason = "the target's max.message.bytes is 1,048,588, the batch has 2,000,000."
    return partition(
        number, **{"state": PartitionState.PARKED, "cause": Cause.TOO_LARGE, "reason": reason, "lag": 5, **changes}
    )


def place(**changes: Any) -> GroupPartition:
    """A place where a group would continue at the exact record."""
    return dataclasses.replace(level_group().partitions[0], **changes)


NEWEST: dict[str, Any] = {"newest_ms": NOW_MS - 9_000, "words": "orders-1: as it was"}
LOSS = LossCount(
    kind="expired", entries=2, offsets=1_200, newest_ms=NOW_MS - 9_000, words="orders-1: 1,200 offsets had expired"
)

MOVES = (topic("orders", partition(records_per_s=200.0)),)

SAID = [
    (
        flow(),
        Tone.GOOD,
        "Caught up: all that can be read at the source is at the target.",
        "Caught up since 15:59 UTC (1 min).",
    ),
    (
        flow(state=FlowState.DONE),
        Tone.GOOD,
        "Done: all 1 partition were copied to their ends.",
        "Done since 15:59 UTC (1 min).",
    ),
    (
        flow(state=FlowState.COPYING, lag=1_200_000, lag_s=200.0, records_per_s=45_000.0, eta_s=26.7, topics=MOVES),
        Tone.WORKING,
        "1,200,000 records behind, the oldest 3 min 20 s old; 45,000 records/s.",
        "Copying since 15:59 UTC (1 min). Caught up in about 27 s.",
    ),
    (
        flow(state=FlowState.COPYING, lag=40, lag_s=0.4, records_per_s=200.0, topics=MOVES),
        Tone.GOOD,
        "Keeps up at 200 records/s: 40 records on the way, the oldest 0.4 s old.",
        "Copying since 15:59 UTC (1 min).",
    ),
    (
        flow(state=FlowState.COPYING, lag=40, lag_s=4.0, records_per_s=200.0, objective_s=2.0, topics=MOVES),
        Tone.WORKING,
        "40 records behind, the oldest 4 s old; 200 records/s.",
        "Copying since 15:59 UTC (1 min). When it will have caught up isn't known.",
    ),
    (
        flow(state=FlowState.CAUGHT_UP, lag=40, lag_s=0.4),
        Tone.GOOD,
        "Caught up: 40 records on the way, the oldest 0.4 s old.",
        "Caught up since 15:59 UTC (1 min).",
    ),
    (
        flow(state=FlowState.CAUGHT_UP, lag=40, lag_s=2.0, records_per_s=200.0, topics=MOVES),
        Tone.GOOD,
        "Caught up: 40 records on the way, the oldest 2 s old.",
        "Caught up since 15:59 UTC (1 min).",
    ),
    (
        flow(state=FlowState.CAUGHT_UP, lag=40, lag_s=2.0, records_per_s=200.0),
        Tone.WARNING,
        "40 records behind, the oldest 2 s old, and nothing moves just now.",
        "Since 15:59 UTC (1 min).",
    ),
    (
        flow(state=FlowState.CAUGHT_UP, lag=40, lag_s=3.5, records_per_s=200.0),
        Tone.WARNING,
        "40 records behind, the oldest 3.5 s old, and nothing moves just now.",
        "Since 15:59 UTC (1 min).",
    ),
    (
        flow(state=FlowState.COPYING, lag=0),
        Tone.WORKING,
        "Copying: nothing that was seen is left to copy.",
        "Copying since 15:59 UTC (1 min).",
    ),
    (
        flow(state=FlowState.COPYING, lag=40, lag_s=None),
        Tone.WARNING,
        "40 records behind, how old isn't known, and nothing moves just now.",
        "Copying since 15:59 UTC (1 min).",
    ),
    (
        flow(state=FlowState.FINDING_OUT, lag=None, lag_s=None, unknown=7),
        Tone.UNKNOWN,
        "How far behind it is isn't known yet: the lag of 7 partitions isn't known.",
        "Finding out since 15:59 UTC (1 min).",
    ),
    (
        flow(state=FlowState.CAUGHT_UP, lag=None, unknown=2),
        Tone.UNKNOWN,
        "Seems to have caught up, which isn't certain: the lag of 2 partitions isn't known.",
        "Since 15:59 UTC (1 min).",
    ),
    (
        flow(
            state=FlowState.STARTING, lag=None, topics=(topic("a", partition(state=PartitionState.UNKNOWN, lag=None)),)
        ),
        Tone.UNKNOWN,
        "Starting: 0 of 1 partition have reported.",
        "Starting since 15:59 UTC (1 min).",
    ),
    (
        flow(state=FlowState.HELD_UP, lag=5, lag_s=61.0, topics=(topic("orders", partition(), parked()),)),
        Tone.BAD,
        (
            "1 partition is parked (orders-3: a batch is larger than the target takes); 5 records behind, "
            "the oldest 1 min 1 s old, and the rest has caught up."
        ),
        "Held up since 15:59 UTC (1 min).",
    ),
    (
        flow(state=FlowState.HELD_UP, topics=(Topic(topic="x", target_topic="", refused="no right"),)),
        Tone.BAD,
        "1 topic can't be copied at all (x: no right); all that can be copied now is copied.",
        "Held up since 15:59 UTC (1 min).",
    ),
    (
        flow(state=FlowState.NOTHING, reason="no topic of A matches topics = ordrs", topics=()),
        Tone.BAD,
        "Nothing to copy: no topic of A matches topics = ordrs.",
        "Nothing to copy since 15:59 UTC (1 min).",
    ),
    (
        flow(state=FlowState.FINDING_OUT, lag=40, lag_s=2.0, unknown=1),
        Tone.UNKNOWN,
        (
            "How far behind it is isn't known yet: 40 records behind, the oldest 2 s old in the others; the "
            "lag of 1 partition isn't known."
        ),
        "Finding out since 15:59 UTC (1 min).",
    ),
    (
        flow(
            state=FlowState.UNREACHABLE,
            lag=None,
            source=ClusterFigures(alias="A", away="cluster A has not answered since noon: refused", away_since_ms=1),
            duties=(Duty(duty="checkpoints", interval_s=60.0, failing="A: no broker answers"),),
            waiting="cluster A: no broker answers",
        ),
        Tone.BAD,
        (
            "Source A can't be reached since 1970-01-01 00:00 UTC; nothing is copied; the newest copied "
            "record is of 15:59:59 UTC."
        ),
        "Unreachable since 15:59 UTC (1 min). It continues by itself once a broker answers (refused).",
    ),
    (
        flow(
            state=FlowState.HELD_UP,
            lag=6,
            lag_s=90.0,
            topics=(
                topic(
                    "pay",
                    partition(
                        state=PartitionState.WAITING, cause=Cause.OPEN_TRANSACTION, reason="6 wait", lag=6, held_back=6
                    ),
                ),
            ),
        ),
        Tone.BAD,
        (
            "An open transaction holds 1 partition back (pay-0: 6 wait); 6 records behind, the oldest 1 min "
            "30 s old, and the rest has caught up."
        ),
        "Held up since 15:59 UTC (1 min).",
    ),
    (
        flow(
            state=FlowState.HELD_UP,
            lag=6_000,
            lag_s=90.0,
            topics=(topic(), Topic(topic="x", target_topic="", released=True, late_in={0: 4})),
        ),
        Tone.BAD,
        (
            "Writers that were said to have moved wrote 4 records at the source; 6,000 records behind, the "
            "oldest 1 min 30 s old."
        ),
        "Held up since 15:59 UTC (1 min).",
    ),
    (
        flow(losses=(LOSS,)),
        Tone.BAD,
        ("1,200 offsets were lost for good; caught up: all that can be read at the source is at the target."),
        "Caught up since 15:59 UTC (1 min).",
    ),
    (
        flow(losses=(dataclasses.replace(LOSS, acknowledged=True),)),
        Tone.GOOD,
        "Caught up: all that can be read at the source is at the target.",
        "Caught up since 15:59 UTC (1 min).",
    ),
    (
        flow(losses=(LossCount(kind="recreated", outcome=LossOutcome.MAY_BE_LOST, entries=2, offsets=0, **NEWEST),)),
        Tone.WARNING,
        ("Records may be lost (2 entries); caught up: all that can be read at the source is at the target."),
        "Caught up since 15:59 UTC (1 min).",
    ),
    (
        flow(losses=(LossCount(kind="foreign-writer", outcome=LossOutcome.FOREIGN, entries=1, offsets=5, **NEWEST),)),
        Tone.WARNING,
        (
            "Another producer has written 5 offsets to copies; caught up: all that can be read at the "
            "source is at the target."
        ),
        "Caught up since 15:59 UTC (1 min).",
    ),
    (
        flow(losses=(LOSS, dataclasses.replace(LOSS, kind="truncated", outcome=LossOutcome.TAKEN_BACK, offsets=1))),
        Tone.BAD,
        ("1,200 offsets were lost for good; caught up: all that can be read at the source is at the target."),
        "Caught up since 15:59 UTC (1 min). Also: the source took back 1 offset that was copied.",
    ),
    (
        flow(state=FlowState.STANDING_BY, role=Role.STANDBY, lag=None, topics=(), groups=(), leader="host-2:9"),
        Tone.STANDBY,
        "Stands by: host-2:9 works on it, and knows its figures.",
        "Standing by since 15:59 UTC (1 min). This process takes over if that one ends.",
    ),
    (
        flow(state=FlowState.JOINING, role=Role.JOINING, lag=None, reason="cluster A can't be reached", topics=()),
        Tone.UNKNOWN,
        "Nothing is copied here yet: cluster A can't be reached.",
        "Joining since 15:59 UTC (1 min). It tries again by itself.",
    ),
    (
        flow(
            topics=(
                topic("orders", partition(state=PartitionState.PAUSED, lag=9)),
                Topic(topic="x", target_topic="", refused="no right"),
            )
        ),
        Tone.WARNING,
        (
            "1 topic can't be copied at all (x: no right); caught up: all that can be read at the source is "
            "at the target."
        ),
        "Caught up since 15:59 UTC (1 min). Also: 1 partition is paused by an operator.",
    ),
    (
        flow(
            groups=(level_group(), level_group("b", state=GroupState.NOT_SYNCED)),
            duties=(Duty(duty="checkpoints", interval_s=60.0, failing="no right"),),
            waiting="broker 1 of B does not answer",
        ),
        Tone.WARNING,
        (
            "The offsets of 1 group can't be set at the target; caught up: all that can be read at the "
            "source is at the target."
        ),
        "Caught up since 15:59 UTC (1 min). Also: checkpoints fails and pumps wait.",
    ),
]


@pytest.mark.parametrize(("of", "tone", "what", "then"), SAID, ids=[what[:40] for _, _, what, _ in SAID])
def test_it_is_said(of: Flow, tone: Tone, what: str, then: str) -> None:
    said = headline(of, NOW_MS)
    assert (said.what, said.then, said.tone) == (what, then, tone)


STANDING_BY: dict[str, Any] = {
    "state": FlowState.STANDING_BY,
    "role": Role.STANDBY,
    "lag": 9_684,
    "topics": (),
    "groups": (),
    "leader": "host-2:9",
}
LOST_LEASE: dict[str, Any] = {**STANDING_BY, "role": Role.JOINING, "leader": "host-1:4711"}


@pytest.mark.parametrize(
    ("changes", "tone", "what"),
    [
        ({}, Tone.STANDBY, "Stands by: host-2:9 works on it, and knows its figures."),
        ({"reason": ELSEWHERE}, Tone.STANDBY, "Stands by: host-2:9 works on it, and knows its figures."),
        ({"leader": "host-1:4711"}, Tone.STANDBY, "Stands by: another process has the flow's lease."),
        ({"leader": ""}, Tone.STANDBY, "Stands by: another process has the flow's lease."),
        (
            {"leader_silent_ms": NOW_MS - 60_000},
            Tone.WARNING,
            "Another process has the flow's lease, and host-2:9, the last that announced itself, has published nothing "
            "since 15:59 UTC.",
        ),
        (
            {"leader_silent_ms": NOW_MS - 60_000, "leader": "host-1:4711"},
            Tone.WARNING,
            "Another process has the flow's lease, and it has published nothing since 15:59 UTC.",
        ),
    ],
)
def test_a_standby_names_only_another_process_that_works(changes: dict[str, Any], tone: Tone, what: str) -> None:
    said = headline(flow(**{**STANDING_BY, **changes}), NOW_MS, (), "host-1:4711")
    assert (said.tone, said.what) == (tone, what)


def test_the_begin_of_an_absence_is_told_once() -> None:
    away_ms = NOW_MS - 7 * 60_000
    target = ClusterFigures(alias="B", away="cluster B has not answered since noon: refused", away_since_ms=away_ms)
    said = headline(flow(state=FlowState.UNREACHABLE, state_since_ms=away_ms + 900, target=target), NOW_MS)
    assert said.what.startswith("Target B can't be reached since 15:53 UTC; nothing is copied; ")
    assert said.then == "For 6 min 59 s. It continues by itself once a broker answers (refused)."
    old = headline(flow(state=FlowState.UNREACHABLE, state_since_ms=away_ms, target=target), NOW_MS + 60_000)
    assert old.then.startswith("As of 1 min ago: for 7 min. ")


def test_an_absent_target_comes_before_the_lease_that_it_keeps() -> None:
    target = ClusterFigures(alias="B", brokers_up=0, brokers_known=3)
    said = headline(flow(**LOST_LEASE, target=target, reason="A-mm2: no answer from b:9092"), NOW_MS)
    assert said.what == (
        "Target B does not answer: nothing is copied by this process, which does not have the flow's lease: A-mm2: no "
        "answer from b:9092."
    )


def test_a_process_without_the_lease_says_why() -> None:
    said = headline(flow(**LOST_LEASE, reason="A-mm2: no answer from b:9092"), NOW_MS, (), "host-1:4711")
    assert said.tone is Tone.BAD
    assert said.what == (
        "Nothing is copied by this process, which does not have the flow's lease: A-mm2: no answer from b:9092."
    )
    assert "host-1" not in said.what + said.then


def finding(severity: Severity, rule: str = "some-rule", *explains: str, of: str = "A->B") -> Finding:
    return Finding(
        rule=rule,
        severity=severity,
        flow=of,
        subject="",
        title="A title",
        evidence="5",
        cause="Of it.",
        action="Do it.",
        explains=explains,
    )


def test_the_tone_is_at_least_that_of_the_worst_finding() -> None:
    warned = headline(flow(), NOW_MS, [finding(Severity.NOTICE), finding(Severity.WARNING)])
    assert (warned.tone, warned.then) == (Tone.WARNING, "Caught up since 15:59 UTC (1 min). Look below: a title.")
    assert headline(flow(**STANDING_BY), NOW_MS, [finding(Severity.CRITICAL)]).tone is Tone.BAD
    assert headline(flow(), NOW_MS, [finding(Severity.NOTICE)]).tone is Tone.GOOD, "a notice is no problem"


def test_only_the_worst_of_many_facts_are_named() -> None:
    many = flow(
        topics=(topic("orders", parked()), Topic(topic="x", target_topic="", refused="no right")),
        losses=(LOSS,),
        groups=(level_group(state=GroupState.NOT_SYNCED),),
        duties=(Duty(duty="checkpoints", interval_s=60.0, failing="no right"),),
        waiting="broker 1",
        retention_s=60.0,
        retention_of="orders-3",
    )
    said = headline(many, NOW_MS)
    assert said.what.startswith("1 partition is parked (orders-3: a batch is larger than the target takes); ")
    assert said.then.endswith(
        "Also: 1,200 offsets were lost for good, the source deletes what isn't copied of orders-3 in 1 min, 1 topic "
        "can't be copied at all and 3 more."
    )


def test_effects_are_folded_under_their_causes() -> None:
    away = finding(Severity.CRITICAL, "source-unreachable", "duty-failing", "duty-late")
    duty = finding(Severity.WARNING, "duty-failing", "group-sync-late")
    late, lost = finding(Severity.WARNING, "group-sync-late"), finding(Severity.CRITICAL, "records-lost")
    elsewhere = finding(Severity.WARNING, "duty-failing", of="B->A")
    parked = finding(Severity.WARNING, "parked-expired", "records-lost")
    folded = problems([away, duty, duty, late, parked, lost, elsewhere])
    assert [(each.finding, each.effects) for each in folded] == [
        (away, [duty, duty, late]),
        (parked, []),
        (lost, []),
        (elsewhere, []),
    ]
    assert (
        problems([finding(Severity.NOTICE, "a", "b"), finding(Severity.WARNING, "b")])[0].severity is Severity.WARNING
    )


def test_a_long_reason_keeps_its_figures_at_both_ends() -> None:
    reason = "5,019,377 is the first " + "and more " * 60 + "the limit is 1,048,588."
    assert short(reason).startswith("5,019,377 is")
    assert short(reason).endswith("the limit is 1,048,588")
    assert len(short(reason)) < 410


def test_times_of_another_day_have_a_date() -> None:
    assert clock(NOW_MS, NOW_MS) == "16:00 UTC"
    assert clock(NOW_MS - 86_400_000, NOW_MS, seconds=True) == "2025-11-23 16:00:00 UTC"


def test_old_figures_are_called_old_and_not_good() -> None:
    said = headline(flow(), NOW_MS + 42_000)
    assert said.then == "As of 42 s ago: caught up since 15:59 UTC (1 min)."
    assert said.tone is Tone.UNKNOWN
    assert cut_over(flow(groups=(level_group(),)), NOW_MS + 42_000).verdict is CutOverVerdict.UNKNOWN


DEFECTS: dict[str, tuple[dict[str, Any], bool]] = {
    "lag not known": ({"lag": None}, True),
    "partitions not known": ({"unknown": 2}, True),
    "a row not known": ({"topics": (topic("orders", partition(), partition(1, lag=None)),)}, True),
    "parked": ({"topics": (topic("orders", parked(lag=0)),)}, True),
    "paused": ({"topics": (topic("orders", partition(state=PartitionState.PAUSED)),)}, True),
    "refused": ({"topics": (topic(), Topic(topic="x", target_topic="", refused="no right"))}, True),
    "late writers": ({"topics": (topic(), Topic(topic="x", target_topic="", released=True, late_in={0: 4}))}, True),
    "lost": ({"losses": (LOSS,)}, True),
    "lost, offsets not known": ({"losses": (dataclasses.replace(LOSS, offsets=0),)}, True),
    "taken back": ({"losses": (dataclasses.replace(LOSS, outcome=LossOutcome.TAKEN_BACK),)}, True),
    "may be lost": ({"losses": (dataclasses.replace(LOSS, outcome=LossOutcome.MAY_BE_LOST, offsets=0),)}, True),
    "foreign": ({"losses": (dataclasses.replace(LOSS, outcome=LossOutcome.FOREIGN),)}, False),
    "group not synced": ({"groups": (level_group(state=GroupState.NOT_SYNCED),)}, True),
    "group beyond the end": ({"groups": (level_group(state=GroupState.BEYOND_END),)}, True),
    "group would skip": ({"groups": (level_group(partitions=(place(skipped=4_990),)),)}, True),
    "retention": ({"retention_s": 60.0}, False),
    "duty fails": ({"duties": (Duty(duty="heartbeats", interval_s=1.0, failing="no right"),)}, False),
    "pumps wait": ({"waiting": "broker 1"}, False),
}


@pytest.mark.parametrize(("changes", "against"), DEFECTS.values(), ids=DEFECTS)
@pytest.mark.parametrize("state", [FlowState.CAUGHT_UP, FlowState.DONE])
def test_one_defect_is_enough_not_to_be_good(changes: dict[str, Any], against: bool, state: FlowState) -> None:
    well = {"lag": 0, "lag_s": 0.1, "records_per_s": 5.0, "groups": (level_group(),), "state": state}
    assert headline(flow(**well), NOW_MS).tone is Tone.GOOD
    assert cut_over(flow(**well), NOW_MS).verdict is CutOverVerdict.READY
    ill = flow(**{**well, **changes})
    assert headline(ill, NOW_MS).tone is not Tone.GOOD
    assert (cut_over(ill, NOW_MS).verdict is not CutOverVerdict.READY) is against


lags = st.none() | st.integers(0, 10**12)
partitions = st.builds(
    Partition,
    partition=st.integers(0, 9),
    state=st.sampled_from(PartitionState),
    cause=st.sampled_from(Cause),
    reason=st.text(max_size=300).filter(lambda reason: "None" not in reason),
    lag=lags,
    lag_s=st.none() | st.floats(0, 1e9),
)
topics = st.builds(
    Topic,
    topic=st.sampled_from(["orders", "bills"]),
    target_topic=st.just("A.orders"),
    partitions=st.lists(partitions, max_size=3).map(tuple),
    released=st.booleans(),
    gone=st.booleans(),
    refused=st.sampled_from(["", "no right"]),
    late_in=st.dictionaries(st.integers(0, 3), st.integers(0, 9), max_size=2),
)
counts = st.none() | st.integers(0, 9)
places = st.builds(place, skipped=counts, reread=counts, beyond_end=st.booleans())
groups = st.builds(
    level_group,
    state=st.sampled_from(GroupState),
    partitions=st.lists(places, max_size=3).map(tuple),
    looked_at=st.booleans(),
)
flows = st.builds(
    flow,
    groups=st.lists(groups, max_size=3).map(tuple),
    state=st.sampled_from(FlowState),
    role=st.sampled_from(Role),
    lag=lags,
    lag_s=st.none() | st.floats(0, 1e9),
    eta_s=st.none() | st.floats(0, 1e9),
    records_per_s=st.floats(0, 1e9),
    unknown=st.integers(0, 3),
    waiting=st.sampled_from(["", "broker 1"]),
    topics=st.lists(topics, max_size=3).map(tuple),
    losses=st.lists(
        st.builds(
            LossCount,
            kind=st.just("expired"),
            entries=st.integers(0, 3),
            offsets=st.integers(0, 9),
            newest_ms=st.just(NOW_MS),
            words=st.just("some"),
            outcome=st.sampled_from(LossOutcome),
            acknowledged=st.booleans(),
        ),
        max_size=2,
    ).map(tuple),
    retention_s=st.none() | st.floats(0, 1e6),
)


@given(flows, st.integers(0, 60_000))
def test_good_and_ready_only_where_all_is_known_and_well(one: Flow, later_ms: int) -> None:
    said, board = headline(one, NOW_MS + later_ms), cut_over(one, NOW_MS + later_ms)
    for line in (said.what, said.then):
        assert line.endswith(".")
        assert "\n" not in line
    assert "None" not in said.what + said.then + board.words
    marks = {condition.mark for condition in board.conditions}
    assert (board.verdict is CutOverVerdict.READY) is not (marks & {CheckMark.NOT, CheckMark.UNKNOWN} != set())
    found = headline(one, NOW_MS + later_ms, [finding(Severity.CRITICAL)])
    assert found.tone is Tone.BAD
    assert headline(one, NOW_MS + later_ms, [finding(Severity.NOTICE)]) == said
    rows = [row for topic in one.topics for row in topic.partitions]
    unknown = one.lag is None or one.unknown or any(row.lag is None for row in rows) or later_ms > 5_000
    stuck = (
        one.parked
        or one.retention_s is not None
        or any(loss.is_open_loss and loss.entries for loss in one.losses)
        or any(row.state is PartitionState.PAUSED for row in rows)
        or any(topic.refused or topic.late for topic in one.topics)
    )
    costly = any(not _moves_exactly(each) for each in one.groups)
    if unknown or stuck or (one.role is not Role.LEADER and one.state in (FlowState.JOINING, FlowState.STANDING_BY)):
        assert said.tone is not Tone.GOOD
    away = one.state in (FlowState.UNREACHABLE, FlowState.WRONG_CLUSTER, FlowState.NOTHING)
    if away:
        assert said.tone is Tone.BAD
    if unknown or (stuck and one.retention_s is None) or one.lag or costly or one.role is not Role.LEADER or away:
        assert board.verdict is not CutOverVerdict.READY


def _moves_exactly(group: Group) -> bool:
    at = group.partitions
    known = group.looked_at and bool(at) and group.state is GroupState.SYNCED
    return known and all((each.skipped, each.reread, each.beyond_end) == (0, 0, False) for each in at)


def test_words() -> None:
    assert [duration(one) for one in (0.04, 0.4, 9.96, 59.6, 60, 3599, 3600, 90_000, 1e6)] == [
        "0 s", "0.4 s", "10 s", "1 min", "1 min", "59 min 59 s", "1 h", "1 d 1 h", "11 d 13 h",
    ]  # fmt: skip
    assert [count(one, "record") for one in (0, 1, 1234, 12_345_678)] == [
        "0 records", "1 record", "1,234 records", "12.3 million records",
    ]  # fmt: skip
    assert [size(one) for one in (0, 999, 1_500, 20e6, 3e15)] == ["0 B", "999 B", "1.5 kB", "20.0 MB", "3000 TB"]
    assert rate(0.4, "records") == "0.4 records/s"
    assert listed([]) == ""
    assert listed(["a", "b", "c"]) == "a, b and c"
