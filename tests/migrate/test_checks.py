"""Each obstacle that is planted in a migration's facts is found by its check, and by no other check unless told."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.lint.test_cluster_rules import entry
from tests.migrate.checked_facts import (
    A,
    B,
    Change,
    both,
    changed_flow,
    changed_group,
    changed_probe,
    changed_topic,
    changed_word,
    described,
    facts,
)
from tests.support.snapshot_samples import flow as status_of
from tests.support.snapshot_samples import partition
from tests.support.snapshot_samples import topic as status_topic
from tools.checks_page import page

from sparkmirror.kafka.cluster.append_check import AppendCheck, AppendVerdict, Trial
from sparkmirror.kafka.cluster.coordinators import group_refusal
from sparkmirror.kafka.cluster.groups import FetchedOffsets, ListedGroup
from sparkmirror.kafka.cluster.share_groups import SHARE, FetchedStarts
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.lint.probe import FlowProbe
from sparkmirror.migrate.atomic_sets import AtomicSets
from sparkmirror.migrate.checks import CHECKS, CheckResult, CheckVerdict, gather, run_checks
from sparkmirror.migrate.checks.facts import Facts, OutsideGroup, still_to_move
from sparkmirror.migrate.observation import FenceSeen, MemberSeen
from sparkmirror.migrate.ties import AtomicSet
from sparkmirror.migrate.verifications import TopicVerdict, VerifiedFlow
from sparkmirror.schemas import SchemaCheck
from sparkmirror.snapshot.snapshot import PartitionState

OK, WARN, FAIL, UNKNOWN = CheckVerdict
ALWAYS_UNKNOWN = {"acks-zero"}
MEMBER = (MemberSeen("billing-1", "10.0.0.7"),)
PAGE = Path(__file__).parents[2] / "docs" / "migrate_checks.md"


def results(seen: Facts) -> dict[str, CheckResult]:
    return {each.id: each for each in run_checks(seen)}


def found(seen: Facts) -> dict[str, tuple[CheckVerdict, str]]:
    """What is not ok, but for what no cluster ever tells."""
    return {
        name: (each.verdict, each.words)
        for name, each in results(seen).items()
        if each.verdict is not OK and not (name in ALWAYS_UNKNOWN and each.verdict is UNKNOWN)
    }


def fence(reason: str) -> Change:
    return changed_topic(A, fence=FenceSeen(impossible=reason))


def reader(**changes: Any) -> Change:
    one = replace(OutsideGroup(group="other", topics=("orders",), active=True), **changes)
    return lambda seen: replace(seen, readers={A: (one,)})


def unread(kind: str = "consumer") -> Change:
    groups = {"other": ListedGroup("other", "", "Empty", kind)}
    refused = {"other": group_refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)}
    return lambda seen: replace(seen, listed={**seen.listed, A: groups}, unread={A: refused})


def config(side: str, name: str, value: str) -> Change:
    def change(probe: FlowProbe) -> None:
        getattr(probe, side).configs["orders"] = {
            **getattr(probe, side).configs["orders"],
            name: replace(entry(name, value), source="DYNAMIC_TOPIC_CONFIG"),
        }

    return changed_probe(A, change)


def partitions(count: int) -> Change:
    return changed_probe(A, lambda probe: probe.target.topics.update(orders=described(count)))


def appends(check: AppendCheck | None) -> Change:
    return changed_probe(A, lambda probe: setattr(probe.target, "appends", check))


def rights(side: str, had: frozenset[str]) -> Change:
    return changed_probe(A, lambda probe: getattr(probe, side).topic_operations.update(orders=had))


def skew(seconds: float | None) -> Change:
    return changed_probe(A, lambda probe: setattr(probe.source, "skew_s", seconds))


def operations(*had: str) -> Change:
    return changed_probe(A, lambda probe: setattr(probe.source, "operations", frozenset(had)))


def parked(reason: str) -> Change:
    part = partition(state=PartitionState.PARKED, reason=reason)
    return lambda seen: replace(seen, status={A: status_of(topics=(status_topic("orders", part),))})


def status(**changes: Any) -> Change:
    return lambda seen: replace(seen, status={A: status_of(**changes)})


def verified(
    words: str = "equal", *, good: bool = True, hours: float = 1, ranges: int = 4, flow: str = "A->B"
) -> Change:
    """A verification of the topic that began some hours before the look."""

    def change(seen: Facts) -> Facts:
        began_ms = seen.seen.at_ms - int(hours * 3_600_000)
        topics = {"orders": TopicVerdict(words=words, good=good)}
        one = VerifiedFlow(flow=flow, began_ms=began_ms, ranges=ranges, all_ranges=4, topics=topics)
        return replace(seen, verified={(flow, "orders"): one})

    return change


def superusers(there: bool | None) -> Change:
    return lambda seen: replace(seen, super_users={A: there})


def denied_there(*who: str) -> Change:
    """B denies principals of whom A lets two write."""
    writers = frozenset({"User:shop", "User:batch"})
    return both(
        changed_topic(A, fence=FenceSeen(writers=writers, denied_somewhere=frozenset({"User:batch"}))),
        changed_topic(B, fence=FenceSeen(denied_somewhere=frozenset({"User:batch", *who}))),
    )


def group_rights(*had: str) -> Change:
    return lambda seen: replace(seen, group_rights={A: {"billing": frozenset(had)}, B: {"billing": frozenset(had)}})


def protocol(name: str) -> Change:
    return lambda seen: replace(seen, listed={A: {"billing": ListedGroup("billing", name, "Empty", "classic")}})


def ties(topics: Set[str] = frozenset(), streams: Set[str] = frozenset(), unknown: str = "") -> Change:
    one = AtomicSet(
        topics=frozenset(topics),
        groups=frozenset(),
        transactional_ids=frozenset({"pay"}),
        streams=frozenset(streams),
    )
    seen = AtomicSets(sets=(one,) if topics else (), sinks={}, unknown=(unknown,) if unknown else ())
    return lambda facts: replace(facts, ties={A: seen})


def renamed_copies(change: Change) -> Change:
    return both(changed_word(A, copy="A.orders"), changed_word(B, copy="B.orders"), change)


def schemas(checked: SchemaCheck | str) -> Change:
    return lambda seen: replace(seen, schemas=checked)


MOVED = both(
    changed_word(A, done=True, ends={0: 10}, reached={0: 10}),
    changed_word(B, begun=True, lag=0),
    changed_topic(B, ends={0: 12}),
)
"""The topic has moved to B, and producers write there."""

PLANTED: list[tuple[str, CheckVerdict, str, Change]] = [
    ("fence-complete", FAIL, "would hold the mirror, too", fence("`ALLOW WRITE`: would hold the mirror, too")),
    ("fence-complete", FAIL, "no authorizer", fence("its brokers have no authorizer")),
    ("denied-there", FAIL, "an ACL at B denies User:shop to write to orders", denied_there("User:shop")),
    ("super-users", UNKNOWN, "brokers of A have super users", superusers(True)),
    ("super-users", UNKNOWN, "is not known", superusers(None)),
    (
        "open-transactions",
        UNKNOWN,
        "orders at A: partition 0: no",
        changed_topic(A, transactions_untold="partition 0: no"),
    ),
    ("open-transactions", WARN, "payments-tx", changed_topic(A, open_transactions=("payments-tx",))),
    ("written-early", WARN, "offsets 3 to 7", changed_word(B, foreign=("offsets 3 to 7 are no copies",))),
    ("written-early", WARN, "orders at A: offset 11", both(MOVED, changed_word(B, foreign=("offset 11 is no copy",)))),
    ("leaking", WARN, "3 offsets of orders", renamed_copies(both(MOVED, changed_topic(A, ends={0: 13})))),
    ("target-records", WARN, "offset 4 is no copy", changed_word(A, foreign=("offset 4 is no copy",))),
    (
        "target-records",
        FAIL,
        "holds 10 offsets",
        both(changed_word(A, lag=None), lambda seen: replace(seen, status={})),
    ),
    ("missing-topic", FAIL, "has no topic orders", changed_topic(A, ends={})),
    ("leaderless", FAIL, "orders-0 has no leader", changed_topic(A, leaderless=(0,))),
    ("lag", FAIL, "lacks 5,000 offsets", changed_word(A, lag=5_000)),
    (
        "topic-config-drift",
        WARN,
        "retention.ms of orders is 7 at A, 9 at B",
        both(config("source", "retention.ms", "7"), config("target", "retention.ms", "9")),
    ),
    ("topic-config-drift", WARN, "1 partitions at A, its copy 2", partitions(2)),
    ("message-size", WARN, "orders", config("source", "max.message.bytes", "9999999")),
    ("record-age", FAIL, "older than", changed_probe(A, lambda probe: probe.too_old.update(orders=3_600_000))),
    (
        "copy-keeps-less",
        WARN,
        "orders",
        both(config("source", "retention.ms", "9"), config("target", "retention.ms", "7")),
    ),
    ("schema-ids", FAIL, "orders", schemas(SchemaCheck("A->B", 1, (), {"orders": "no leader"}))),
    ("schema-ids", UNKNOWN, "refused", schemas("connection refused")),
    ("transactional-sets", FAIL, "transactional id pay ties shop to payments", ties(topics={"orders", "payments"})),
    ("transactional-sets", FAIL, "ties shop to B.stock", renamed_copies(ties(topics={"orders", "B.stock"}))),
    (
        "transactional-sets",
        FAIL,
        "Streams application app ties shop",
        ties(topics={"orders", "app-x-changelog"}, streams={"app"}),
    ),
    ("transactional-sets", WARN, "app is a Streams application", ties(topics={"orders"}, streams={"app"})),
    ("transactional-sets", UNKNOWN, "READ on __transaction_state", ties(unknown="READ on __transaction_state")),
    ("mirror-down", FAIL, "no mirror works on A->B", changed_flow(A, at_work=False)),
    ("reverse-flow-ready", FAIL, "no mirror works on B->A", changed_flow(B, at_work=False)),
    ("standby-present", WARN, "no process stands by for A->B", changed_flow(A, standbys=0)),
    ("parked", FAIL, "orders-0 is parked: too large", parked("too large")),
    (
        "append-check",
        FAIL,
        "B does not check",
        appends(AppendCheck((Trial("gap", AppendVerdict.FAILS, "a batch that leaves a gap is taken"),))),
    ),
    ("append-check", UNKNOWN, "whether B checks", appends(AppendCheck(untold="not authorized"))),
    ("rights", FAIL, "READ", rights("source", frozenset({"DESCRIBE", "DESCRIBE_CONFIGS"}))),
    ("rights", FAIL, "ALTER on the cluster A", operations("DESCRIBE")),
    (
        "clusters",
        FAIL,
        "a broker is too old",
        changed_probe(A, lambda probe: setattr(probe.target, "too_old", ("2.7",))),
    ),
    ("clock", WARN, "ahead of", skew(60.0)),
    ("clock", UNKNOWN, "clock can't be read", skew(None)),
    ("verify-fresh", FAIL, "orders by A->B was different 60 min ago", verified("different", good=False)),
    ("verify-fresh", WARN, "orders by A->B was equal 1,500 min ago", verified(hours=25)),
    ("verify-fresh", WARN, "orders by A->B was equal so far 60 min ago", verified("equal so far")),
    (
        "verify-fresh",
        UNKNOWN,
        "the migration's evidence can't be read: no right",
        lambda seen: replace(seen, verified_untold="no right"),
    ),
    ("verify-fresh", UNKNOWN, "no verification of orders by A->B since", verified(flow="B->A")),
    ("retention-race", FAIL, "deletes records of orders-0", status(retention_s=60.0, retention_of="orders-0")),
    ("groups-left-out", FAIL, "other reads orders at A", reader()),
    ("groups-left-out", WARN, "no members now", reader(active=False)),
    ("groups-left-out", FAIL, "groups.exclude leaves it out", reader(group="connect-s3", excluded=True)),
    ("groups-left-out", UNKNOWN, "offsets of group other at A can't be read: GROUP_AUTHORIZATION_FAILED", unread()),
    ("groups-left-out", UNKNOWN, "A lists no group that sparkmirror's principal may not DESCRIBE", operations("ALTER")),
    ("share-groups", UNKNOWN, "A lists no group that sparkmirror's principal may not DESCRIBE", operations("ALTER")),
    ("share-groups", UNKNOWN, "offsets of group other at A can't be read: GROUP_AUTHORIZATION_FAILED", unread(SHARE)),
    ("share-groups", WARN, "is a share group", reader(share=True)),
    (
        "groups-missing",
        WARN,
        "billing has no offsets",
        both(changed_group(A, offsets={}), changed_group(B, offsets={})),
    ),
    ("group-rights", FAIL, "READ on group billing at B", group_rights("DESCRIBE")),
    ("unrouted-commits", WARN, "commits without membership: no request shows who made them", protocol("")),
    (
        "unrouted-commits",
        FAIL,
        "1 newer commits at A",
        both(changed_group(B, state="Stable", members=MEMBER, offsets={("orders", 0): 6})),
    ),
    (
        "unrouted-commits",
        FAIL,
        "a consumer without membership commits for billing at A",
        both(
            changed_group(A, offsets={("orders", 0): 8}),
            changed_flow(A, positions={"billing": {("orders", 0): 8}}),
        ),
    ),
    (
        "on-both-sides",
        FAIL,
        "billing has members at A and at B",
        both(changed_group(A, state="Stable", members=MEMBER), changed_group(B, state="Stable", members=MEMBER)),
    ),
]


@pytest.mark.parametrize(
    ("name", "verdict", "words", "plant"), PLANTED, ids=[f"{name}: {words}" for name, _, words, _ in PLANTED]
)
def test_a_planted_obstacle_is_found(name: str, verdict: CheckVerdict, words: str, plant: Change) -> None:
    seen = found(plant(facts()))
    assert name in seen
    assert seen[name][0] is verdict
    assert words in seen[name][1]
    assert results(plant(facts()))[name].remedy


def test_without_an_obstacle_all_is_ok() -> None:
    assert found(facts()) == {}
    assert {each.id for each in run_checks(facts()) if each.verdict is UNKNOWN} == ALWAYS_UNKNOWN


def test_a_samples_share_is_told() -> None:
    assert results(verified(ranges=3, hours=24)(facts()))["verify-fresh"] == CheckResult(
        id="verify-fresh", verdict=OK, words="orders by A->B was equal 1,440 min ago in 3 of 4 ranges"
    )


def test_groups_must_move_first_only_if_the_file_says_so() -> None:
    at_home = changed_group(A, state="Stable", members=MEMBER)
    assert "consumers-first" not in found(at_home(facts()))
    first = at_home(facts(type="consumers-first"))
    assert "billing must move to B first: `switch consumers` is next" in results(first)["consumers-first"].words
    assert found(first) == {}
    left = changed_word(A, done=True, ends={0: 10})(first)
    assert found(left)["consumers-first"] == (FAIL, "billing must move to B first")


def test_what_needs_no_acl_is_not_asked_for() -> None:
    seen = both(fence("no authorizer"), superusers(True), operations("DESCRIBE"))(facts(fence="none"))
    assert found(seen) == {"denied-there": (UNKNOWN, "with another fence than ACLs no ACL is read")}
    assert results(seen)["acks-zero"].verdict is OK


def test_renamed_copies_move_without_a_flow_back_and_say_so() -> None:
    seen = both(changed_word(A, copy="A.orders"), changed_flow(B, at_work=False))(facts())
    assert found(seen)["reverse-flow-ready"][0] is WARN


def test_records_where_producers_of_renamed_copies_go_are_told() -> None:
    assert found(changed_word(A, copy="A.orders")(facts()))["target-records"] == (
        WARN,
        "orders at B, where the producers go, holds 10 offsets already",
    )


def test_after_a_move_the_way_back_is_checked() -> None:
    seen = both(MOVED, verified(flow="B->A"))(facts())
    assert found(seen) == {}
    assert found(changed_flow(B, at_work=False)(seen))["mirror-down"] == (FAIL, "no mirror works on B->A")


def test_copies_at_the_side_that_was_left_are_no_stragglers() -> None:
    seen = both(MOVED, verified(flow="B->A"))
    assert found(changed_topic(A, ends={0: 12})(seen(facts()))) == {}
    told = found(changed_word(B, foreign=("offset 11 is no copy",))(seen(facts())))
    assert told == {"written-early": (WARN, "orders at A: offset 11 is no copy")}


def test_accepted_stragglers_of_renamed_copies_are_told_no_more() -> None:
    late = renamed_copies(both(MOVED, changed_topic(A, ends={0: 13})))
    assert found(late(facts()))["leaking"][1].startswith("3 offsets of orders were written at A")
    accepted = both(late, changed_word(A, accepted={0: 12}))
    assert found(accepted(facts()))["leaking"][1].startswith("1 offsets of orders were written at A")
    assert "leaking" not in found(both(late, changed_word(A, accepted={0: 13}))(facts()))


def test_without_an_answer_on_rights_groups_are_taken_as_listed() -> None:
    untold = changed_probe(A, lambda probe: setattr(probe.source, "operations", None))
    assert not {"groups-left-out", "share-groups"} & found(untold(facts())).keys()


def test_groups_are_listed_in_full_at_the_side_that_a_set_leaves() -> None:
    def there(probe: FlowProbe) -> None:
        probe.target.operations = frozenset({"ALTER"})

    assert "groups-left-out" not in found(changed_probe(A, there)(facts()))
    told = results(both(MOVED, changed_probe(A, there))(facts()))["groups-left-out"]
    assert (told.verdict, told.remedy) == (UNKNOWN, "grant sparkmirror's principal DESCRIBE on the cluster B")


def test_complete_sets_are_left_out() -> None:
    seen = both(MOVED, changed_word(A, done=True, ends={0: 10}, reached={0: 10}, closed=True))(facts())
    assert still_to_move(seen.seen, seen.sets) == ()
    assert list(run_checks(replace(seen, sets=()))) == []


def test_the_other_sides_copies_tie_nothing() -> None:
    """A group that has come back read them in its transactions."""
    assert "transactional-sets" not in found(renamed_copies(ties(topics={"orders", "B.orders"}))(facts()))


def test_many_finds_are_cut_short() -> None:
    several = tuple(OutsideGroup(group=f"g{number}", topics=("orders",), active=True) for number in range(5))
    words = results(replace(facts(), readers={A: several}))["groups-left-out"].words
    assert words.count("is in no set") == 3
    assert words.endswith("; and 2 more")


def test_each_check_has_a_plant() -> None:
    planted = {name for name, *_ in PLANTED} | ALWAYS_UNKNOWN | {"consumers-first"}
    assert [check.id for check in CHECKS if check.id not in planted] == []
    assert len({check.id for check in CHECKS}) == len(CHECKS)


def test_each_check_is_documented() -> None:
    assert PAGE.read_text() == page(), "python -m tools.checks_page > docs/migrate_checks.md"


def test_groups_whose_offsets_are_refused_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what they read, so they are no reason to say that no group is left out."""
    why = group_refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)

    class Refusing:
        def __init__(self, _: object) -> None: ...

        def committed(self, groups: set[str]) -> FetchedOffsets:
            return FetchedOffsets({}, dict.fromkeys(groups, why))

        def starts(self, groups: list[str]) -> FetchedStarts:
            return FetchedStarts({}, dict.fromkeys(groups, why))

    monkeypatch.setattr(gather, "Groups", Refusing)
    monkeypatch.setattr(gather, "ShareGroups", Refusing)
    pair: Any = SimpleNamespace(clients={A: None}, flows={}, copy_of=lambda _, topic: topic)
    listed = {name: ListedGroup(name, "", "Empty", kind) for name, kind in (("other", "consumer"), ("work", SHARE))}
    outside = gather.outside_groups(facts().file, pair, A, listed)
    assert outside.unread == {"other": why, "work": why}
    told = results(replace(facts(), listed={A: listed}, unread={A: outside.unread}))
    assert told["groups-left-out"].remedy == "grant sparkmirror's principal DESCRIBE on these groups at A"
