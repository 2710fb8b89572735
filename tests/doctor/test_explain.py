"""Why something is or isn't mirrored: a case for every reason that can be given, and the order of checks."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.support.snapshot_samples import NOW_MS, flow, group, partition, topic

from sparkmirror.cli.explain import lines
from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.exact.durable.losses import Loss, LossKind
from sparkmirror.kafka.cluster.missing_rights import MissingRights
from sparkmirror.look.doctor.explain_group import explain_group
from sparkmirror.look.doctor.explain_names import group_answer, topic_answers
from sparkmirror.look.doctor.explain_topic import explain_topic
from sparkmirror.look.doctor.explanation import (
    Explanation,
    GroupFacts,
    Mark,
    Reason,
    Running,
    TopicFacts,
    TopicSide,
)
from sparkmirror.look.doctor.parked import WAITS
from sparkmirror.mirror.sync.name_refusals import LeftOut, NameAnswer
from sparkmirror.mirror.sync.other_flows import refusal_of_second
from sparkmirror.mirror.sync.topic_rules import group_filter, topic_rules
from sparkmirror.policy import matching
from sparkmirror.policy.replication import AWS_SAME_NAME
from sparkmirror.pump.messages.control import DoneTopic
from sparkmirror.pump.quiet import GRACE_S
from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.snapshot import Cause, ClusterFigures, Duty, FlowState, PartitionState, Topic

FLOW = FlowConfig(
    source=ClusterConfig(alias="A", bootstrap_servers=("a:9092",)),
    target=ClusterConfig(alias="B", bootstrap_servers=("b:9092",)),
)
LOSS = Loss(
    kind=LossKind.EXPIRED,
    source_topic="orders",
    target_topic="A.orders",
    partition=0,
    first=3,
    end=7,
    downstream=3,
    target_topic_id="",
    action="continued",
    words="4 records expired",
)


class Picky:
    """A filter of the user's own."""

    def should_replicate_topic(self, topic: str) -> bool:
        return topic == "orders"


def named(topic: str = "orders", *, picky: bool = False, **settings: Any) -> tuple[NameAnswer, ...]:
    """What the rules of A->B answer to a topic's name."""
    changes = {"topic_filter_class": "ours:Picky"} if picky else {}
    rules = topic_rules(FLOW.model_copy(update=settings))
    rules = dataclasses.replace(rules, topics=Picky()) if picky else rules
    return topic_answers(FLOW.model_copy(update=settings | changes), rules, topic)


def group_named(*groups: str) -> NameAnswer:
    own = FLOW.model_copy(update={"group": FLOW.group.model_copy(update={"groups": groups})})
    return group_answer(own, group_filter(own), "shop")


def running(**changes: Any) -> Running:
    return Running(flow=flow(**changes), age_s=3.0)


def lacking(alias: str, topic: str, operation: str) -> MissingRights:
    cluster = ClusterConfig(alias=alias, bootstrap_servers=(f"{alias.lower()}:9092",))
    return MissingRights(cluster=cluster, principal="User:mirror", topic=topic, operations=(operation,), denied_by=())


def of_orders(**changes: Any) -> TopicFacts:
    """The topic orders of A->B, which is mirrored."""
    facts = TopicFacts(
        flow="A->B",
        topic="orders",
        partition=None,
        names=named(),
        source=TopicSide(alias="A", partitions=1, told=True),
        target=TopicSide(alias="B", partitions=1, told=True),
        remote="A.orders",
    )
    return dataclasses.replace(facts, **{"running": running(), **changes})


def of_shop(**changes: Any) -> GroupFacts:
    """The group shop of A->B, which is at the target."""
    facts = GroupFacts(
        flow="A->B",
        group="shop",
        filtered=group_named(".*"),
        source="A",
        topics=("orders",),
    )
    return dataclasses.replace(facts, **{"copied": ("orders",), "running": running(), **changes})


def at(state: PartitionState, cause: Cause = Cause.NONE, reason: str = "") -> Running:
    bad = partition(1, state=state, cause=cause, reason=reason)
    return running(topics=(topic("orders", partition(), bad, partition(2, lag=9)),))


def group_at(state: GroupState, reason: str) -> Running:
    return running(groups=(group(state=state, reason=reason),))


def set_back(**changes: Any) -> Running:
    """The group shop was set back at the source, after its offsets had been set at B."""
    place = dataclasses.replace(group().partitions[0], source_offset=10, target_offset=5_000, skipped=4_990, reread=0)
    return running(**{"groups": (group(partitions=(place,)),), "duties": (SETS,), **changes})


def beyond_the_end(**changes: Any) -> Running:
    """The group shop is far beyond the end of orders-0 at A."""
    place = dataclasses.replace(
        group().partitions[0], source_offset=999_999, source_lag=None, skipped=None, reread=None, beyond_end=True
    )
    reason = "orders-0: at 999999, and the source ends at 11344"
    shop = group(state=GroupState.BEYOND_END, reason=reason, partitions=(place,))
    return running(**{"groups": (shop,), **changes})


A, B = (ClusterFigures(alias=alias, tools=f"--bootstrap-server {alias.lower()}:9092") for alias in ("A", "B"))
SETS = Duty(duty="group offsets", interval_s=60.0)


MOVED = DoneTopic(ends={0: 7})
CASES: dict[LeftOut | Reason, tuple[TopicFacts | GroupFacts, str, str]] = {
    LeftOut.NOTHING_COPIED: (of_orders(names=named(copies=False)), "copies no records", "enable the flow"),
    LeftOut.NOT_LISTED: (of_orders(names=named(topics=("bills",))), "no expression of topics", "add it to topics"),
    LeftOut.EXCLUDED: (
        of_orders(names=named(topics_exclude=("x", "ord.*"))),
        "ord.* of topics.exclude",
        "take ord.* out of topics.exclude",
    ),
    LeftOut.OWN_FILTER: (
        of_orders(names=named("bills", picky=True)),
        "ours:Picky does not want it",
        "topic.filter.class",
    ),
    LeftOut.INTERNAL_OF_MM2: (
        of_orders(names=named("mm2-x.internal", topics_exclude=())),
        "MirrorMaker 2's own",
        "another name",
    ),
    LeftOut.INTERNAL: (
        of_orders(names=named("__x", topics_exclude=())),
        "internal topics are never copied",
        "another name",
    ),
    LeftOut.ILLEGAL_NAME: (of_orders(names=named("x" * 298)), "300", "shorter"),
    LeftOut.CYCLE: (of_orders(names=named("B.x")), "a copy that came from B", "does not begin with an alias"),
    LeftOut.OWN_HEARTBEATS: (
        of_orders(names=named("heartbeats", replication_policy_class=AWS_SAME_NAME)),
        "B's own heartbeats",
        "nothing",
    ),
    Reason.FAN_IN: (
        of_orders(fan_in=refusal_of_second("A->B", "C->B", "A.orders")),
        "topic A.orders at the target is a copy that flow C->B keeps",
        "take the topic out of A->B.topics",
    ),
    Reason.SOURCE_UNREACHABLE: (
        of_orders(source=TopicSide(alias="A", trouble="cluster A is away")),
        "A is away",
        "A's brokers run",
    ),
    Reason.TARGET_UNREACHABLE: (
        of_orders(target=TopicSide(alias="B", trouble="cluster B is away")),
        "B is away",
        "B's brokers run",
    ),
    Reason.SOURCE_PERMISSION: (
        of_orders(source=TopicSide(alias="A", partitions=1, told=True, lacks=lacking("A", "orders", "READ"))),
        "User:mirror lacks READ on topic orders of A",
        "--bootstrap-server a:9092 --add --allow-principal User:mirror --operation Read --topic orders",
    ),
    Reason.TARGET_PERMISSION: (
        of_orders(target=TopicSide(alias="B", partitions=1, told=True, lacks=lacking("B", "A.orders", "WRITE"))),
        "User:mirror lacks WRITE on topic A.orders of B",
        "--operation Write --topic A.orders",
    ),
    Reason.NOT_AT_SOURCE: (of_orders(source=TopicSide(alias="A")), "A has no topic orders", "slip in the name"),
    Reason.NOT_AT_TARGET: (of_orders(target=TopicSide(alias="B")), "A.orders is not there at B", "each 600 s"),
    Reason.REFUSED: (
        of_orders(running=running(topics=(topic(refused="of another flow"),))),
        "of another flow",
        "what the reason names",
    ),
    Reason.GONE: (of_orders(running=running(topics=(topic(gone=True),))), "deleted at the source", "delete the copy"),
    Reason.OPPOSITE_TURN: (
        of_orders(turn_of="B->A", done=DoneTopic(ends={0: 7}, reached={0: 7})),
        "it is the turn of B->A: the topic is live at B",
        "migration reverse",
    ),
    Reason.RELEASED: (
        of_orders(done=DoneTopic(ends={0: 7}, reached={0: 7})),
        "all was copied, and it is left alone",
        "topics undo FILE --topics orders",
    ),
    Reason.LATE: (
        of_orders(done=MOVED, running=running(topics=(topic(late_in={0: 12}),))),
        "12 offsets came",
        "topics undo",
    ),
    Reason.ENDS: (of_orders(done=MOVED), "up to where it ended", "topics undo"),
    Reason.PAUSED: (of_orders(paused_by="ord.*"), "an operator has paused ord.*", "sparkmirror resume FILE"),
    Reason.PARKED: (
        of_orders(running=at(PartitionState.PARKED, Cause.TOO_LARGE, "a batch of 2 MB")),
        "orders-1 (1 of 3 partitions) is parked: a batch of 2 MB",
        "max.message.bytes",
    ),
    Reason.WAITING: (
        of_orders(running=at(PartitionState.WAITING, Cause.NO_LEADER)),
        "orders-1 (1 of 3 partitions) waits: no-leader",
        "replicas back",
    ),
    Reason.NOT_SEEN: (of_orders(running=running(topics=())), "does not list it yet", "each 600 s"),
    Reason.NOT_REPORTED: (of_orders(running=at(PartitionState.UNKNOWN)), "no task has reported orders-1", "slots"),
    Reason.NOBODY_WORKS: (
        of_orders(running=Running(flow=flow(), age_s=90.0, leader="host-1:4711")),
        "90 s old (caught up); last was host-1:4711",
        "start `sparkmirror run FILE`",
    ),
    Reason.THROTTLED: (
        of_orders(running=at(PartitionState.WAITING, Cause.THROTTLED, "throttled for 2 s")),
        "throttled for 2 s",
        "Raise the quota",
    ),
    Reason.CAPPED: (of_orders(bytes_per_s_cap=5e6), "5,000,000 bytes/s in all", "sparkmirror throttle FILE off"),
    Reason.LOST: (
        of_orders(losses=(LOSS,)),
        "1 open entry, 4 offsets, newest (lost): 4 records expired",
        "sparkmirror losses FILE",
    ),
    Reason.CHECKPOINTS_OFF: (of_shop(checkpoints=False), "emit.checkpoints.enabled", "= true"),
    Reason.GROUP_TYPE: (of_shop(looked_after=False, type="streams"), "a streams group", "by hand"),
    Reason.NO_OFFSETS: (of_shop(topics=()), "committed no offset", "nothing"),
    Reason.NO_COPIED_TOPIC: (of_shop(copied=()), "of orders, and none", "add orders to topics"),
    Reason.NOT_SYNCED: (
        of_shop(running=group_at(GroupState.NOT_SYNCED, "it has members at B")),
        "it has members at B",
        "what the reason names",
    ),
    Reason.BEYOND_END: (
        of_shop(running=beyond_the_end(source=A)),
        "orders-0: at 999999, and the source ends at 11344",
        "`kafka-consumer-groups.sh --bootstrap-server a:9092 --group shop --reset-offsets --to-latest "
        "--topic orders:0 --execute`",
    ),
    Reason.WOULD_SKIP: (
        of_shop(running=set_back(target=B)),
        "4,990 records would be skipped, 0 records would be read again",
        "`kafka-consumer-groups.sh --bootstrap-server b:9092 --group shop --delete-offsets --topic A.orders`",
    ),
    Reason.CATCHING_UP: (
        of_shop(running=group_at(GroupState.CATCHING_UP, "the copy is not so far yet")),
        "not so far",
        "wait for the copy",
    ),
    Reason.CHECKPOINTS_ONLY: (of_shop(sync=False), "not set at the target", "sync.group.offsets.enabled = true"),
}
NOTES = {
    *(Reason.ENDS, Reason.THROTTLED, Reason.CAPPED, Reason.LOST),
    *(Reason.WOULD_SKIP, Reason.CATCHING_UP, Reason.CHECKPOINTS_ONLY),
}
"""It is mirrored nevertheless."""


def told(facts: TopicFacts | GroupFacts) -> Explanation:
    return explain_topic(facts) if isinstance(facts, TopicFacts) else explain_group(facts)


def test_what_is_mirrored_passes_every_check() -> None:
    explanation = explain_topic(of_orders())
    assert [step.check for step in explanation.steps] == [
        *("filter", "internal", "cycle", "policy", "fan-in", "permission", "exists", "refused", "released", "paused"),
        *("state", "lease", "limit", "loss"),
    ]
    assert {step.mark for step in explanation.steps} == {Mark.YES}
    assert (explanation.mirrored, explanation.changes, explanation.kind) == (True, (), "topic")
    group_told = explain_group(of_shop())
    assert {step.mark for step in group_told.steps} == {Mark.YES}
    assert "0 records would be skipped, 5 records would be read again" in group_told.steps[-2].words


def test_a_group_that_would_skip_and_is_not_set_by_the_mirror_is_set_by_hand() -> None:
    explanation = explain_group(of_shop(running=set_back(duties=()), sync=False))
    assert "`sparkmirror offsets translate FILE --topic orders --partition 0 --offset 10`" in explanation.changes[0]


def test_commands_quote_names_and_say_where_brokers_are_not_known() -> None:
    """A status of an earlier release does not tell how the tools reach a cluster."""
    shop = dataclasses.replace(next(iter(set_back().flow.groups)), group="it's ours")  # type: ignore[union-attr]
    explanation = explain_group(of_shop(group="it's ours", running=set_back(groups=(shop,))))
    assert "--bootstrap-server B --group 'it'\"'\"'s ours' --delete-offsets" in explanation.changes[0]


@pytest.mark.parametrize("reason", [*LeftOut, *Reason])
def test_every_reason(reason: LeftOut | Reason) -> None:
    facts, words, change = CASES[reason]
    explanation = told(facts)
    (step,) = [step for step in explanation.steps if step.reason is not None]
    assert step.reason is reason
    assert words in step.words
    assert change in step.change
    assert explanation.changes == (step.change,)
    assert explanation.mirrored is (reason in NOTES)
    assert step is explanation.last or reason in NOTES


def test_a_partition_that_waits_for_a_predecessor_is_told_how_long() -> None:
    explanation = told(of_orders(running=at(PartitionState.WAITING, Cause.PREDECESSOR)))
    assert explanation.last.reason is Reason.WAITING
    assert f"has not moved for {GRACE_S:.0f} s" in explanation.changes[0]


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause not in WAITS])
def test_every_cause_of_a_parked_partition_has_something_to_do(cause: Cause) -> None:
    explanation = told(of_orders(running=at(PartitionState.PARKED, cause)))
    if cause is Cause.THROTTLED:
        assert explanation.last.reason is Reason.PARKED
    assert explanation.changes[0].strip()
    assert cause in explanation.last.words


def test_the_earlier_check_decides() -> None:
    """Each topic's blocking reason, with all the later ones true as well."""
    order = [
        Reason.FAN_IN,
        Reason.SOURCE_PERMISSION,
        Reason.NOT_AT_TARGET,
        Reason.OPPOSITE_TURN,
        Reason.RELEASED,
        Reason.PAUSED,
    ]
    changes: dict[str, Any] = {"running": at(PartitionState.PARKED, Cause.OTHER)}
    for reason in reversed(order):
        facts, plain = CASES[reason][0], of_orders()
        names = [one.name for one in dataclasses.fields(plain)]
        changes |= {
            name: getattr(facts, name)
            for name in names
            if name != "running" and getattr(facts, name) != getattr(plain, name)
        }
        assert told(of_orders(**changes)).last.reason is reason
    internal, cycle = f"B.{'x' * 230}.checkpoints.internal", f"B.{'x' * 246}"
    for answers, left_out in [
        (named("x" * 248), LeftOut.ILLEGAL_NAME),
        (named(cycle), LeftOut.CYCLE),
        (named(internal), LeftOut.INTERNAL_OF_MM2),
        (named(internal, topics=("bills",)), LeftOut.NOT_LISTED),
    ]:
        assert told(of_orders(**changes | {"names": answers})).last.reason is left_out


def test_what_is_asked_of_one_partition_is_told_of_that() -> None:
    parked = at(PartitionState.PARKED, Cause.TOO_LARGE)
    three = TopicSide(alias="A", partitions=3, told=True), TopicSide(alias="B", partitions=3, told=True)
    assert told(of_orders(partition=0, running=parked)).mirrored
    sides = {"source": three[0], "target": three[1]}
    assert told(of_orders(partition=1, running=parked, **sides)).last.reason is Reason.PARKED
    assert "9 offsets behind" in told(of_orders(partition=2, running=parked, **sides)).steps[10].words
    beyond = told(of_orders(partition=3, running=parked, **sides))
    assert (beyond.last.reason, beyond.name) == (Reason.NOT_AT_SOURCE, "orders:3")
    smaller = told(of_orders(partition=2, source=three[0], target=TopicSide(alias="B", partitions=2, told=True)))
    assert (smaller.last.reason, "only 2 partitions" in smaller.last.words) == (Reason.NOT_AT_TARGET, True)


def test_a_topic_whose_newest_partitions_are_refused_is_copied_in_part() -> None:
    grown = running(topics=(topic("orders", *map(partition, range(10)), refused="no right to add partitions"),))
    sides = {
        "source": TopicSide(alias="A", partitions=12, told=True),
        "target": TopicSide(alias="B", partitions=10, told=True),
    }
    assert told(of_orders(partition=9, running=grown, **sides)).mirrored
    new = told(of_orders(partition=10, running=grown, **sides))
    assert (new.last.reason, new.in_part) == (Reason.NOT_AT_TARGET, False)
    assert "no right to add partitions" in new.last.words
    for target in (sides["target"], sides["source"]):
        whole = told(of_orders(running=grown, source=sides["source"], target=target))
        assert (whole.mirrored, whole.in_part) == (False, True)
        assert lines(whole)[0].startswith("A->B: topic orders is not mirrored in full: ")
    nothing = told(of_orders(running=running(topics=(Topic(topic="orders", target_topic="", refused="no right"),))))
    assert (nothing.last.reason, nothing.in_part) == (Reason.REFUSED, False)


def test_a_topic_that_was_created_again_after_its_writers_had_moved_is_not_mirrored() -> None:
    """The running mirror may not have seen it yet."""
    for released in (MOVED, DoneTopic(ends={0: 7}, reached={0: 7})):
        last = told(of_orders(done=released, recreated=True)).last
        assert (last.reason, last.words[:37]) == (Reason.LATE, "it was created again at the source af")
        assert "topics undo FILE --topics orders" in last.change


def test_late_records_are_told_of_their_partition() -> None:
    late = running(topics=(topic("orders", *map(partition, range(4)), late_in={3: 12}),))
    of_four = {
        "source": TopicSide(alias="A", partitions=4, told=True),
        "target": TopicSide(alias="B", partitions=4, told=True),
        "done": MOVED,
        "running": late,
    }
    assert told(of_orders(partition=0, **of_four)).mirrored
    third = told(of_orders(partition=3, **of_four))
    assert (third.last.reason, third.last.words[:10], third.in_part) == (Reason.LATE, "12 offsets", False)
    whole = told(of_orders(**of_four))
    assert (whole.last.reason, whole.in_part) == (Reason.LATE, True)


def test_variants() -> None:
    assert told(of_orders(names=named("heartbeats", topics=("bills",)))).mirrored
    assert told(of_orders(names=named(picky=True))).mirrored
    assert "never copied" in told(of_orders(names=named("__x"))).last.change
    assert "came from B" in told(of_orders(names=named("B.orders", topics_exclude=("B.*",)))).last.change
    away = told(of_orders(target=TopicSide(alias="B", trouble="cluster B is away")))
    assert "of the file" in away.steps[4].words
    create = told(of_orders(target=TopicSide(alias="B"), may_create=False))
    assert (create.last.reason, "CREATE" in create.last.words) == (Reason.TARGET_PERMISSION, True)
    unseen = told(of_orders(target=TopicSide(alias="B"), refresh_s=None))
    assert "restart" in unseen.last.change
    refused = running(topics=(topic(refused="policy forbids it"),))
    assert "policy forbids it" in told(of_orders(target=TopicSide(alias="B"), running=refused)).last.words
    assert told(of_orders(running=at(PartitionState.PAUSED))).last.reason is Reason.PAUSED
    never = told(of_orders(running=Running(trouble="the topic can't be read")))
    assert (never.last.reason, never.last.words) == (Reason.NOBODY_WORKS, "the topic can't be read")
    assert "no process has published" in told(of_orders(running=Running())).last.words
    assert told(of_orders(source=TopicSide(alias="A", partitions=1))).mirrored
    unknown = told(of_orders(running=running(topics=(topic("orders", partition(lag=None)),))))
    assert "lag not known" in unknown.steps[10].words
    part = told(of_orders(running=running(topics=(topic("orders", partition(lag=None), partition(1, lag=7)),))))
    assert "2 partitions copied, 7 offsets behind (0 s), of 1 not known" in part.steps[10].words
    waits = partition(
        state=PartitionState.WAITING, cause=Cause.OPEN_TRANSACTION, reason="7 offsets wait", remedy="abort it"
    )
    held_back = told(of_orders(running=running(topics=(topic("orders", waits),))))
    assert (held_back.last.reason, "7 offsets wait" in held_back.last.words) == (Reason.WAITING, True)
    assert held_back.last.change.endswith("`abort it`")
    starting = told(of_orders(running=Running(flow=flow(state=FlowState.STARTING, topics=()), age_s=3.0)))
    assert starting.last.reason is Reason.NOT_SEEN
    assert told(of_orders(backfill_per_s_cap=1e6)).changes
    released = running(topics=(topic(released=True),))
    assert told(of_orders(running=released)).last.reason is Reason.RELEASED


def test_variants_of_groups() -> None:
    assert told(of_shop(filtered=group_named("bills"))).last.reason is LeftOut.NOT_LISTED
    assert told(of_shop(trouble="cluster A is away")).last.reason is Reason.SOURCE_UNREACHABLE
    refused = told(of_shop(refused="not authorized", grant="kafka-acls.sh --add --group shop"))
    assert (refused.last.reason, "--group shop" in refused.last.change) == (Reason.SOURCE_PERMISSION, True)
    assert told(of_shop(there=False)).last.reason is Reason.NOT_AT_SOURCE
    share = told(of_shop(type="share", sync=False, looked_after=False))
    assert (share.last.reason, "share groups" in share.last.change) == (Reason.GROUP_TYPE, True)
    assert told(of_shop(type="share", topics=(), copied=())).mirrored
    assert "a connect group" in told(of_shop(protocol="connect", looked_after=False)).last.words
    unseen = of_shop(running=running(groups=()))
    assert (told(unseen).last.reason, "each 600 s" in told(unseen).last.change) == (Reason.NOT_SEEN, True)
    assert "restart" in told(dataclasses.replace(unseen, refresh_s=None)).last.change
    old = of_shop(running=Running(flow=flow(at_ms=NOW_MS), age_s=90.0))
    assert told(old).last.reason is Reason.NOBODY_WORKS
    many = told(of_shop(copied=("a", "b", "c", "d", "e")))
    assert "a, b, c and 2 more" in many.steps[3].words


def test_the_expression_that_matches_is_named() -> None:
    assert matching(["bills", "ord.*", ".*"], "orders") == "ord.*"
    assert matching(["bills"], "orders") == ""
    assert matching([], "orders") == ""
    assert matching(["(a", "b)"], "b") == "(a,b)"
