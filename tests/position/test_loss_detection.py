"""What the two sides of a partition show to be lost, and where the copy continues (cuts: `test_cuts`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from sparkmirror.config import LossPolicy
from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.durable.loss_kinds import LossOutcome
from sparkmirror.exact.durable.losses import Loss, LossKind
from sparkmirror.exact.position.decision import Position
from sparkmirror.exact.position.foreign import ForeignRecords
from sparkmirror.exact.position.loss_detection import (
    Found,
    LedgerPosition,
    Writers,
    look_for_losses,
    not_ours,
    recreated_loss,
    shrunk_by_claim,
    target_recreated,
    target_truncated,
    truncated_loss,
)
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.kafka.wire.topic_ids import NO_ID

ROUTE = PartitionPair("orders", "us.orders", 3)
OLD, NEW, TARGET = b"o" * 16, b"n" * 16, b"t" * 16
COPIED = Position(
    sequence=20,
    upstream=70,
    downstream=25,
    claim_due=False,
    leader_epoch=4,
    source_topic_id=OLD,
    newest_timestamp_ms=None,
)
"""Twenty records, the source's up to offset 69; what comes next lands at 25."""
HALT = LossPolicy(expired="halt", truncated="halt", recreated="halt")
GO_ON = LossPolicy(expired="continue", truncated="continue", recreated="restart")


def look(policy: LossPolicy = GO_ON, **changed: Any) -> Found:
    values: dict[str, Any] = {"foreign": (), "source_topic_id": OLD, "source_start": 0, **changed}
    return look_for_losses(ROUTE, COPIED, policy=policy, target_topic_id=TARGET, **values)


def test_nothing_is_lost_where_the_source_has_what_comes_next() -> None:
    assert look(HALT) == Found((), 70)
    assert look(HALT, source_start=70) == Found((), 70)
    assert look(HALT, cut_at=70) == Found((), 70)
    assert look(HALT, cut_at=None) == Found((), 70)


@pytest.mark.parametrize(("copied_id", "id_now"), [(OLD, NO_ID), (NO_ID, NEW), (NO_ID, NO_ID)])
def test_a_topic_that_gets_or_loses_its_id_is_the_same_topic(copied_id: bytes, id_now: bytes) -> None:
    """Its cluster was upgraded or downgraded: nothing is copied again."""
    position = replace(COPIED, source_topic_id=copied_id)
    found = look_for_losses(ROUTE, position, (), id_now, 0, HALT, target_topic_id=TARGET)
    assert found == Found((), 70)


def test_what_expired_of_a_topic_that_was_created_again_hides_no_earlier_entry() -> None:
    """Nothing was copied in between, so both are at one place of the target."""
    (before,) = look(source_start=90).losses
    recreated, first = look(source_topic_id=NEW, source_start=30, known=[before]).losses
    assert len({before.key, recreated.key, first.key}) == 3
    assert len({before.number, recreated.number, first.number}) == 3
    grown = look(source_topic_id=NEW, source_start=40, known=[before, recreated, first]).losses[1]
    assert (grown.key, grown.first, grown.end) == (first.key, 0, 40)
    known = [before, recreated, first]
    claimed = replace(COPIED, source_topic_id=NEW, upstream=30)
    (later,) = look_for_losses(ROUTE, claimed, (), NEW, 50, GO_ON, target_topic_id=TARGET, known=known).losses
    assert (later.key, later.first, later.end) == (first.key, 0, 50), "a copy that stands still has one entry"
    third = look(source_topic_id=b"3" * 16, source_start=5, known=known).losses[1]
    assert third.key not in {loss.key for loss in known}
    (again,) = look(source_start=95, known=[before]).losses
    assert (again.key, again.first, again.end) == (before.key, 70, 95)


def test_what_expired_behind_records_that_a_transform_dropped_is_an_entry_of_its_own() -> None:
    """So behind markers. The target's end stays, though records between the two losses were read."""

    def losses(source_start: int, passed: int, *known: Loss) -> list[Loss]:
        return list(look(GO_ON, source_start=source_start, passed=(passed, 25), known=known).losses)

    (before,) = losses(90, 70)
    (longer,) = losses(95, 90, before)
    assert (longer.key, longer.first, longer.end) == (before.key, 70, 95)
    (behind,) = losses(120, 100, before)
    assert (behind.first, behind.end, behind.key == before.key) == (100, 120, False)
    (grown,) = losses(130, 100, before, behind)
    assert (grown.key, grown.first, grown.end) == (behind.key, 100, 130)


def test_an_entry_of_an_earlier_release_is_the_same_entry() -> None:
    """Its number, by which operators name it, stays."""
    (before,) = look(source_start=90).losses
    written = before.model_dump(exclude={"apart"})
    assert Loss.model_validate(written) == before
    assert before.key == f'["expired", "orders", 3, "{TARGET.hex()}", 25]'


def test_nothing_can_be_lost_of_what_was_never_copied() -> None:
    never = Position(
        sequence=0,
        upstream=None,
        downstream=0,
        claim_due=True,
        leader_epoch=-1,
        source_topic_id=None,
        newest_timestamp_ms=None,
    )
    found = look_for_losses(ROUTE, never, (), NEW, 500, HALT, target_topic_id=TARGET)
    assert found == Found((), None)


def test_markers_that_were_passed_over_are_no_loss() -> None:
    assert look(HALT, source_start=73, passed=(73, 25)) == Found((), 73)
    assert look(HALT, source_start=73, passed=(75, 25)) == Found((), 75)
    (loss,) = look(GO_ON, source_start=80, passed=(73, 25)).losses
    assert (loss.first, loss.end) == (73, 80)


@pytest.mark.parametrize("changed", [{"passed": (73, 24)}, {"passed": (-1, -1)}, {"passed": (73, 25), "cut_at": 70}])
def test_what_was_passed_over_counts_only_of_the_same_place_and_log(changed: dict[str, Any]) -> None:
    (loss,) = look(GO_ON, source_start=73, **changed).losses
    assert (loss.first, loss.end) == (70, 73)


@pytest.mark.parametrize(
    ("other", "cut_at", "recreated"),
    [(recreated_loss, None, True), (truncated_loss, 90, True), (recreated_loss, None, False)],
    ids=["new topic", "cut log", "before the cut"],
)
def test_what_was_passed_over_of_another_log_does_not_count(other: Any, cut_at: int | None, recreated: bool) -> None:
    """The target lost the last three records, and as many of another log were copied in their place."""
    at = LedgerPosition(TARGET, 22 if recreated else 9)
    first = (30,) if other is recreated_loss else (30, 67)
    known = [target_truncated(ROUTE, TARGET, 22, 25), other(ROUTE, at, *first, GO_ON)]
    position = replace(COPIED, source_topic_id=NEW, upstream=33)
    found = look_for_losses(
        ROUTE, position, (), NEW, 40, GO_ON, target_topic_id=TARGET, known=known, passed=(80, 25), cut_at=cut_at
    )
    if recreated:
        assert found.resume_at == 40
        assert [(loss.kind, loss.first, loss.end) for loss in found.losses] == [(LossKind.EXPIRED, 33, 40)]
    else:
        assert found == Found((), 80), "the same log's records were copied again"


def test_what_was_passed_over_counts_behind_fences_that_came_since() -> None:
    """Markers of the source were passed over and deleted, then a takeover of release 0.1 wrote marker fences."""
    fenced = replace(COPIED, downstream=28, end=25)
    two = ForeignRecords(25, 26, fence=True), ForeignRecords(26, 28, fence=True)

    def passed_at(downstream: int, *foreign: ForeignRecords) -> int:
        return next((loss.first for loss in found(downstream, foreign) if loss.kind is LossKind.EXPIRED), 73)

    def found(downstream: int, foreign: tuple[ForeignRecords, ...]) -> tuple[Loss, ...]:
        return look_for_losses(
            ROUTE, fenced, foreign, OLD, 73, GO_ON, target_topic_id=TARGET, passed=(73, downstream)
        ).losses

    assert [passed_at(at, *two) for at in (24, 25, 26, 27, 28, 29)] == [70, 73, 73, 73, 73, 70]
    assert passed_at(25, ForeignRecords(25, 28)) == 70, "a stranger may have written where ours were lost"
    assert passed_at(26, ForeignRecords(25, 26), ForeignRecords(26, 28, fence=True)) == 73
    assert passed_at(25, ForeignRecords(25, 26), ForeignRecords(26, 28, fence=True)) == 70


def test_what_was_passed_over_is_looked_at_again_while_the_source_has_it() -> None:
    assert look(HALT, passed=(73, 25)) == Found((), 70)


@pytest.mark.parametrize(
    ("turn_is_over", "stretch", "action"),
    [
        (False, ForeignRecords(25, 30), "continued"),
        (True, ForeignRecords(25, 30), "expected"),
        (True, ForeignRecords(21, 25), "continued"),
    ],
)
def test_what_follows_a_turn_is_the_next_turns(turn_is_over: bool, stretch: ForeignRecords, action: str) -> None:
    """The records that end the log; a straggler among the copies is named, whenever it is found."""
    (loss,) = look(foreign=(stretch,), target_end=30, writers=Writers.IN_TURNS, turn_is_over=turn_is_over).losses
    assert (loss.kind, loss.action) == (LossKind.FOREIGN, action)


def test_what_the_target_lost_is_healed() -> None:
    values: dict[str, Any] = {"foreign": (), "source_topic_id": OLD, "source_start": 0, "target_topic_id": TARGET}
    found = look_for_losses(ROUTE, replace(COPIED, lost=8, lost_to=33), policy=HALT, **values)
    (loss,) = found.losses
    assert (loss.kind, loss.first, loss.end, loss.action) == (LossKind.TARGET_TRUNCATED, 25, 33, "healed")
    assert found.resume_at == 70


def noted(*stretches: ForeignRecords) -> list[Loss]:
    return [not_ours(ROUTE, TARGET, stretch) for stretch in stretches]


def lost_at_target(position: Position, *notes: ForeignRecords, target_end: int) -> list[tuple[int, int]]:
    """What is not where it was noted is named once; what still is there is not."""
    found = look_for_losses(
        ROUTE, position, (), OLD, 0, HALT, target_topic_id=TARGET, target_end=target_end, known=noted(*notes)
    )
    assert {loss.kind for loss in found.losses} <= {LossKind.TARGET_TRUNCATED}
    assert found.resume_at == 70
    return [(loss.first, loss.end) for loss in found.losses]


def test_what_strangers_wrote_is_lost_where_the_log_ends_before_it() -> None:
    stretch = ForeignRecords(25, 40)
    assert lost_at_target(COPIED, stretch, ForeignRecords(10, 20), target_end=40) == []
    assert lost_at_target(COPIED, stretch, target_end=25) == [(25, 40)]
    assert lost_at_target(COPIED, stretch, target_end=30) == [(30, 40)]
    assert lost_at_target(COPIED, ForeignRecords(27, 29), ForeignRecords(33, 40), target_end=25) == [(27, 40)]
    assert lost_at_target(replace(COPIED, lost=3, lost_to=28), stretch, target_end=25) == [(25, 40)]
    assert lost_at_target(replace(COPIED, lost=20, lost_to=45), ForeignRecords(30, 40), target_end=25) == [(25, 45)]


def test_what_was_lost_lay_behind_what_was_noted_and_still_is_there() -> None:
    behind = replace(COPIED, downstream=30, end=25, lost=5, lost_to=35)
    assert lost_at_target(behind, ForeignRecords(25, 30), target_end=30) == [(30, 35)]
    assert lost_at_target(behind, ForeignRecords(25, 30), target_end=28) == [(28, 35)]
    both = replace(COPIED, end=23, lost=7, lost_to=35)
    assert lost_at_target(both, ForeignRecords(25, 30), target_end=23) == [(23, 35)], "ours on both sides of it"


def test_what_was_lost_is_named_where_it_was_also_if_somebody_else_has_filled_its_place() -> None:
    """By claims, or by what was acknowledged; it is named once, and what is there now is known."""
    filled = replace(COPIED, downstream=36, end=25)
    new = ForeignRecords(25, 36)

    def found(position: Position, *known: Loss, appended: int = -1) -> list[Loss]:
        values: dict[str, Any] = {"target_topic_id": TARGET, "target_end": 36}
        foreign = [] if known else [new]
        return list(
            look_for_losses(ROUTE, position, foreign, OLD, 0, HALT, known=known, appended=appended, **values).losses
        )

    def named(position: Position, *notes: ForeignRecords, appended: int = -1) -> list[tuple[str, int, int]]:
        return [(loss.kind.value, loss.first, loss.end) for loss in found(position, *noted(*notes), appended=appended)]

    stranger = ("foreign-writer", 25, 36)
    lost = ("target-truncated", 25, 30)
    assert named(filled, appended=30) == [lost, stranger]
    assert named(replace(filled, lost=5, lost_to=30)) == [lost, stranger]
    assert named(filled, appended=25) == [stranger]
    assert named(filled, new, appended=30) == []
    for place in (27, 36):
        partly = replace(filled, downstream=place)
        first = found(partly, appended=40)
        assert [(loss.first, loss.end) for loss in first[:1]] == [(25, 40)]
        known = [first[0], *noted(ForeignRecords(25, place))]
        assert found(partly, *known, appended=40) == [], "met again, it is the same one"
        (grown,) = found(partly, *known, appended=41)
        assert grown.end == 41


def test_an_emptied_log_that_was_cut_stays_until_a_claim_says_where_to_continue() -> None:
    """However far somebody else fills it up meanwhile."""

    def found(position: Position, *known: Loss, appended: int = 30) -> Found:
        return look_for_losses(
            ROUTE, position, (), OLD, 0, HALT, target_topic_id=TARGET, target_end=25, known=known, appended=appended
        )

    blind = replace(COPIED, end=25, unseen=True)
    (cut,) = found(blind).losses
    assert (cut.kind, cut.first, cut.end, cut.action) == (LossKind.TARGET_TRUNCATED, 25, 30, "halted")
    assert "a foreign producer may have written in their place" in cut.words
    for end in (25, 27, 30, 40):
        filled = replace(blind, end=end, downstream=end)
        assert found(filled, cut).losses == found(filled, cut, appended=-1).losses == (cut,)
    assert found(blind, appended=25).losses == ()
    behind = replace(blind, end=20)
    assert [(loss.first, loss.end) for loss in found(behind, *noted(ForeignRecords(20, 25))).losses] == [(25, 30)]
    assert [loss.action for loss in found(COPIED).losses] == ["healed"], "the log shows ours"
    (released,) = found(COPIED, cut, appended=25).losses
    assert (released.key, released.action) == (cut.key, "healed")
    assert found(blind, released, appended=25).losses == (), "it was another time"


def test_what_strangers_wrote_is_lost_where_the_log_has_ours() -> None:
    """The log was cut and written to again before anybody looked."""
    ours = replace(COPIED, downstream=28, end=25, ours_from=5)
    assert lost_at_target(ours, ForeignRecords(0, 5), ForeignRecords(25, 28), target_end=28) == []
    assert lost_at_target(ours, ForeignRecords(3, 7), ForeignRecords(20, 28), target_end=28) == [(5, 7), (20, 25)]
    assert lost_at_target(replace(ours, ours_from=-1), ForeignRecords(3, 7), target_end=28) == []


@pytest.mark.parametrize(
    ("kind", "changed", "first", "end", "resume_at", "gone_on"),
    [
        (LossKind.EXPIRED, {"source_start": 82}, 70, 82, 82, "continued"),
        (LossKind.TRUNCATED, {"cut_at": 60}, 60, 70, 60, "continued"),
        (LossKind.RECREATED, {"source_topic_id": NEW}, 70, 70, 0, "restarted"),
        (LossKind.RECREATED, {"source_topic_id": NEW, "cut_at": 8}, 70, 70, 0, "restarted"),
    ],
)
def test_a_loss_halts_or_is_stepped_over_as_the_user_says(
    kind: LossKind, changed: dict[str, Any], first: int, end: int, resume_at: int, gone_on: str
) -> None:
    for policy, action in ((HALT, "halted"), (GO_ON, gone_on)):
        found = look(policy, **changed)
        (loss,) = found.losses
        assert (loss.kind, loss.first, loss.end, loss.action) == (kind, first, end, action)
        assert (loss.source_topic, loss.target_topic, loss.partition) == ("orders", "us.orders", 3)
        assert (loss.downstream, loss.target_topic_id) == (25, TARGET.hex())
        assert ("set sparkmirror.on." in loss.words) == (action == "halted")
        assert found.resume_at == resume_at


def test_what_expired_above_a_cut_is_a_loss_of_its_own() -> None:
    """Offsets 60 to 64 of the present log are not the records that were copied from there."""
    (halted,) = look(HALT, cut_at=60, source_start=65).losses
    assert (halted.kind, halted.action) == (LossKind.TRUNCATED, "halted")
    found = look(GO_ON, cut_at=60, source_start=65)
    assert [(loss.kind, loss.first, loss.end, loss.action) for loss in found.losses] == [
        (LossKind.TRUNCATED, 60, 70, "continued"),
        (LossKind.EXPIRED, 60, 65, "continued"),
    ]
    assert found.resume_at == 65
    assert len({loss.key for loss in found.losses}) == 2


def test_what_expires_while_a_copy_stands_still_stays_one_loss_that_grows() -> None:
    """Each reading resumes at the source's start: what expired before that is lost all the same."""
    (first,) = look(GO_ON, source_start=100).losses
    (more,) = look(GO_ON, source_start=150, known=(first,), passed=(100, 25)).losses
    assert [(loss.first, loss.end) for loss in (first, more)] == [(70, 100), (70, 150)]
    assert first.key == more.key
    elsewhere = first.model_copy(update={"downstream": 24})
    (other,) = look(GO_ON, source_start=150, known=(elsewhere,), passed=(100, 25)).losses
    assert (other.first, other.end) == (100, 150)


def test_a_log_that_begins_at_its_cut_has_lost_nothing_more() -> None:
    (truncated,) = look(GO_ON, cut_at=60, source_start=60).losses
    assert truncated.kind is LossKind.TRUNCATED


def test_what_somebody_else_wrote_halts_nothing() -> None:
    found = look(HALT, foreign=(ForeignRecords(4, 9), ForeignRecords(12, 13)))
    assert [(one.kind, one.first, one.end, one.downstream, one.action) for one in found.losses] == [
        (LossKind.FOREIGN, 4, 9, 4, "continued"),
        (LossKind.FOREIGN, 12, 13, 12, "continued"),
    ]
    assert found.resume_at == 70


@pytest.mark.parametrize(("expired", "action"), [("continue", "continued"), ("halt", "halted")])
def test_what_a_new_topic_lost_before_it_was_met_is_named_too(
    expired: Literal["continue", "halt"], action: str
) -> None:
    found = look(
        LossPolicy(expired=expired, truncated="halt", recreated="restart"), source_topic_id=NEW, source_start=90
    )
    recreated, gone = found.losses
    assert (recreated.kind, recreated.first, recreated.action) == (LossKind.RECREATED, 70, "restarted")
    assert (gone.kind, gone.first, gone.end, gone.action) == (LossKind.EXPIRED, 0, 90, action)
    assert gone.key != recreated.key
    assert found.resume_at == 90


def test_a_new_topic_that_is_not_copied_has_lost_nothing_yet() -> None:
    (recreated,) = look(HALT, source_topic_id=NEW, source_start=90).losses
    assert (recreated.kind, recreated.action) == (LossKind.RECREATED, "halted")


def test_the_same_loss_has_the_same_key_while_it_grows() -> None:
    (one,), (other,) = look(source_start=82).losses, look(source_start=90).losses
    assert one.key == other.key
    assert one.key != look(source_topic_id=NEW).losses[0].key


def test_what_the_target_lost_is_copied_again() -> None:
    loss = target_truncated(ROUTE, TARGET, 25, 40)
    assert (loss.kind, loss.first, loss.end, loss.action) == (LossKind.TARGET_TRUNCATED, 25, 40, "healed")


@pytest.mark.parametrize(
    ("source_start", "end", "action", "outcome"),
    [
        (0, 30, "healed", LossOutcome.HEALED),
        (30, 30, "healed", LossOutcome.HEALED),
        (44, 44, "healed", LossOutcome.LOST),
        (None, 30, "restarted", LossOutcome.LOST),
    ],
)
def test_a_new_target_topic_is_filled_from_what_the_source_has(
    source_start: int | None, end: int, action: str, outcome: LossOutcome
) -> None:
    loss = target_recreated(ROUTE, TARGET, 30, source_start)
    assert (loss.kind, loss.first, loss.end, loss.action) == (LossKind.TARGET_RECREATED, 30, end, action)
    assert loss.outcome is outcome


def test_a_partition_that_is_gone_was_copied_up_to_its_last_claim() -> None:
    newest = Claim(
        target_topic_id=TARGET,
        partition=3,
        sequence=10,
        incarnation=1,
        producer_id=4000,
        producer_epoch=0,
        source_topic_id=OLD,
        source_leader_epoch=4,
        downstream=15,
        runs=(Run(100, 4), Run(110, 2)),
        confirmed=True,
    )
    loss = shrunk_by_claim(ROUTE, newest, target_end=20)
    assert (loss.kind, loss.first, loss.end, loss.downstream, loss.action) == (LossKind.SHRUNK, 111, 111, 20, "halted")
