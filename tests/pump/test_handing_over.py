"""A pump that releases a partition with records, claims and answers on their way, and a pump that takes it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from model_broker import TARGET_ID
from played_run import LEADERS, PlayedRun

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.position.route import PartitionReading
from sparkmirror.pump import look_ahead, moved_routes, quiet
from sparkmirror.pump.messages.control import ControlState, DoneTopic
from sparkmirror.pump.messages.moves import NO_TASK, Place, Release, RouteMove, RouteMoves, TaskWords
from sparkmirror.pump.messages.orders import RouteOrder
from sparkmirror.pump.moved_routes import MovedRoutes
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.source_connection import HELD_BACK_WAIT_MS
from sparkmirror.pump.source_connections import SourceConnections

Make = Callable[..., PlayedRun]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Make:
    def made(*, attempt: int = 0, partitions: Sequence[int] = (0, 1, 2)) -> PlayedRun:
        run = PlayedRun(monkeypatch, attempt=attempt, partitions=partitions)
        request.addfinalizer(run.close)
        return run

    return made


def heard(*, before: int = 0, task: int = 1, words: Sequence[TaskWords] = (), partition: int = 0) -> ControlState:
    """The control topic, with the only move of a round and tasks' words on it."""
    state = ControlState()
    route = RouteOrder(source_topic="t", target_topic="A.t", partition=partition)
    move = RouteMove(number=1, route=route, before=before, task=task)
    state.moves["i"] = RouteMoves(incarnation="i", epoch=1, moves=(move,), shares={0: 0.5, 1: 0.5})
    for word in words:
        state.words["i", word.task] = word
    return state


def ready(task: int = 1) -> TaskWords:
    return TaskWords(incarnation="i", epoch=1, task=task, ready=1)


def released(run: PlayedRun) -> list[Release]:
    return [word for words in run.words[-1:] for word in words.releases]


def test_what_was_to_be_claimed_is_not_claimed_once_the_round_ends(make: Make) -> None:
    """Its partition may have dropped it since, while the claims of another one were being written."""
    run = make(partitions=(0,))
    begun, may_end = threading.Event(), threading.Event()
    claimed: list[Claim] = []

    def claim(claims: Sequence[Claim]) -> None:
        claimed.extend(claims)
        begun.set()
        assert may_end.wait(20)

    run.claim = claim
    try:
        run.turn_until(begun.is_set)
        run.pump.add([RouteOrder(source_topic="t", target_topic="A.t", partition=1)])
        run.turn_until(lambda: 1 in run.readings and len(run.waits_ms) > 1)
        run.end_waits()
        run.turn_until(lambda: bool(run.copy_of(1).queue))
        for _ in range(5):
            run.turn()
        run.pump.end(20)
        run.copy_of(1).doubt("its broker was lost", run.loop.now)
    finally:
        may_end.set()
    for _ in range(20):
        run.turn()
    assert {segment.partition for segment in claimed} == {0}


def test_what_is_in_flight_is_acknowledged_before_the_partition_is_released(make: Make) -> None:
    run = make()
    run.turn_until(lambda: run.sent == set(LEADERS))
    leaving = run.copy_of(0)
    run.hear(heard(words=[ready()]))
    assert leaving.queue, "more was fetched"
    for _ in range(5):
        run.turn()
    assert (run.words, run.copy_of(0)) == ([], leaving)
    run.acknowledge(1, {})
    run.turn_until(lambda: released(run) != [])
    (word,) = released(run)
    assert (word.number, word.unclean, word.target_topic_id) == (1, False, TARGET_ID.hex())
    assert word.passed == (word.appended, word.appended) == (leaving.progress.upstream, leaving.progress.downstream)
    assert {copy.route.partition for copy in run.pump.copies} == {1, 2}
    run.acknowledge(2, {})
    run.turn_until(lambda: run.sent == {1, 2})
    run.run.report()
    last = {receipt.partition: receipt for receipt in run.reports[-1].receipts}
    assert (last[0].released, last[0].records, last[1].released) == (True, word.appended, False)
    assert [receipt.released for receipt in run.close().receipts if receipt.partition == 0] == [True]


def test_what_was_not_sent_in_time_is_left_to_the_next_task(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make()
    run.turn_until(lambda: run.sent == set(LEADERS))
    run.hear(heard(words=[ready()]))
    leaving = run.copy_of(0)
    run.turn_until(lambda: not leaving.queue)
    assert leaving.in_flight
    run.acknowledge(1, {})
    run.turn_until(lambda: released(run) != [])
    (word,) = released(run)
    assert word.appended == 10, "one of four batches"
    place = word.place
    assert place is not None
    assert (place.sequence, place.upstream, place.downstream, place.target_leader) == (10, 10, 10, LEADERS[0])
    assert place.leader_epoch == leaving.backlog.leader_epoch
    assert place.age_s > 0, "its batch was sent before the next task was ready"


def test_what_can_be_sent_in_time_is_sent(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moved_routes, "LEAVE_S", 60.0)
    run = make()
    run.turn_until(lambda: run.sent == set(LEADERS))
    run.hear(heard(words=[ready()]))
    while not released(run):
        run.turn()
        for leader in (1, 2):
            run.acknowledge(leader, {})
    assert released(run)[0].appended == 40


def test_a_claim_that_is_being_written_is_waited_for(make: Make) -> None:
    run = make()
    began, may_end = threading.Event(), threading.Event()

    def claim(_: Sequence[Claim]) -> None:
        began.set()
        assert may_end.wait(20)

    run.claim = claim
    run.turn_until(began.is_set)
    run.hear(heard(words=[ready()]))
    leaving = run.copy_of(0)
    run.turn_until(lambda: not leaving.queue)
    for _ in range(5):
        run.turn()
    assert (run.words, run.copy_of(0)) == ([], leaving)
    may_end.set()
    run.turn_until(lambda: released(run) != [])
    assert not released(run)[0].unclean
    assert not leaving.progress.records
    assert released(run)[0].place is None, "the claim announces what was not sent"


def test_a_claim_that_may_have_been_written_is_told(make: Make) -> None:
    run = make()
    began, may_end = threading.Event(), threading.Event()

    def claim(_: Sequence[Claim]) -> None:
        began.set()
        assert may_end.wait(20)
        raise ConnectionError("nobody is there")

    run.claim = claim
    run.turn_until(began.is_set)
    run.hear(heard(words=[ready()]))
    may_end.set()
    run.turn_until(lambda: released(run) != [])
    assert released(run)[0].unclean


def test_a_confirmed_claim_that_is_being_written_is_waited_for(make: Make) -> None:
    """It could come after an election that the next task has seen already."""
    run = make()
    began, may_end = threading.Event(), threading.Event()

    def claim(claims: Sequence[Claim]) -> None:
        if any(segment.confirmed for segment in claims):
            began.set()
            assert may_end.wait(20)

    run.claim = claim
    while not began.is_set():
        run.turn()
        for leader in (1, 2):
            run.acknowledge(leader, {})
    while run.records() != [40, 40, 40]:
        run.turn()
        for leader in (1, 2):
            run.acknowledge(leader, {})
    run.hear(heard(words=[ready()]))
    for _ in range(5):
        run.turn()
    assert run.words == []
    may_end.set()
    run.turn_until(lambda: released(run) != [])
    assert released(run)[0].place is not None


def test_where_a_claim_announces_what_was_not_sent_the_position_is_read(make: Make) -> None:
    """The next task's reading shortens it."""
    run = make()
    run.source.compact(3, 2)
    run.turn_until(lambda: run.sent == set(LEADERS))
    run.hear(heard(words=[ready()]))
    leaving = run.copy_of(0)
    run.turn_until(lambda: not leaving.queue)
    run.acknowledge(1, {})
    run.turn_until(lambda: released(run) != [])
    assert leaving.progress.records
    assert released(run)[0].place is None


def test_where_a_claim_could_not_be_confirmed_the_position_is_read(make: Make) -> None:
    """By the next task: later the log may show less of the claim's batches."""
    run = make()

    def claim(claims: Sequence[Claim]) -> None:
        if any(segment.confirmed for segment in claims):
            raise ConnectionError("nobody is there")

    run.claim = claim
    while run.records() != [40, 40, 40]:
        run.turn()
        for leader in (1, 2):
            run.acknowledge(leader, {})
    run.hear(heard(words=[ready()]))
    run.turn_until(lambda: released(run) != [])
    assert released(run)[0].place is None


def test_batches_of_a_broken_connection_may_still_arrive(make: Make) -> None:
    run = make()
    run.turn_until(lambda: run.sent == set(LEADERS))
    run.hear(heard(words=[ready()]))
    run.brokers[1].hang_up()
    run.turn_until(lambda: released(run) != [])
    (word,) = released(run)
    assert (word.unclean, word.place) == (True, None)


@pytest.mark.parametrize("fenced", [False, True])
def test_at_the_end_of_the_round_nothing_is_released(make: Make, fenced: bool) -> None:
    """The receipts tell the next round. Who is fenced says nothing more at all."""
    run = make()
    run.turn_until(lambda: run.sent == set(LEADERS))
    run.hear(heard(words=[ready()]))
    if not fenced:
        run.run.end("")
    run.acknowledge(1, {1: 47} if fenced else {})
    for _ in range(10):
        run.turn()
    assert run.words == []
    assert not any(receipt.released for receipt in run.close().receipts)


def test_a_partition_is_copied_on_until_the_next_task_is_ready(make: Make) -> None:
    run = make()
    run.turn_until(lambda: run.sent == set(LEADERS))
    run.hear(heard())
    run.acknowledge(1, {})
    run.turn_until(lambda: run.sent == set(LEADERS))
    assert not run.words
    run.hear(heard(words=[ready(task=2)]))
    assert not run.is_leaving(0), "another task's word"
    run.hear(heard(words=[ready()]))
    assert run.is_leaving(0)


def sends_or_is_answered(run: PlayedRun) -> bool:
    """Whether partition 0 has sent; a batch that no state guards waits until nothing else is in flight there."""
    if 0 not in run.sent:
        run.acknowledge(LEADERS[1], {})
    return 0 in run.sent


def test_a_partition_that_comes_is_prepared_and_then_copied_from_where_it_is(make: Make) -> None:
    run = make(partitions=(1, 2))
    run.turn_until(lambda: run.sent == {1, 2})
    run.hear(heard(before=1, task=0))
    run.turn_until(lambda: run.ahead != [])
    for _ in range(5):
        run.turn()
    assert not run.words, "its first fetch would have to wait"
    run.end_waits()
    run.turn_until(lambda: bool(run.words))
    assert {*run.waits_ms} == {500, HELD_BACK_WAIT_MS}
    assert ([route.partition for route in run.ahead], run.words[-1].ready) == ([0], 1)
    assert 0 not in run.readings, "another task copies it"
    word = Release(number=1, source_topic="t", partition=0, target_topic_id=TARGET_ID.hex(), appended=7, passed=(9, 7))
    words = TaskWords(incarnation="i", epoch=1, task=1, releases=(word,))
    run.hear(heard(before=1, task=0, words=[words]))
    assert run.outdated == 1, "its losses may be in the ledger since"
    assert run.copy_of(0).progress.reported == (9, 7, 7, TARGET_ID.hex())
    run.turn_until(lambda: sends_or_is_answered(run))


def comes(run: PlayedRun, *, age_s: float = 0.0, **told: object) -> None:
    """Say that another task has released partition 0, and where its copy continues."""
    place = Place.of(settled(run), heard_at=settled(run).read_at + age_s).model_copy(update=told)
    word = Release(
        number=1, source_topic="t", partition=0, target_topic_id=TARGET_ID.hex(), appended=7, passed=(9, 7), place=place
    )
    words = TaskWords(incarnation="i", epoch=1, task=1, releases=(word,))
    run.hear(heard(before=1, task=0, words=[words]))


def settled(run: PlayedRun) -> PartitionReading:
    """A place in partition 0 that only another task knows."""
    copy = run.copy_of(1)
    reading = copy.reading
    assert reading is not None
    epoch = copy.backlog.leader_epoch
    position = replace(reading.position, sequence=10, upstream=10, downstream=10, claim_due=False, leader_epoch=epoch)
    return replace(reading, position=position, resume_at=10, target_leader=LEADERS[0])


def is_ready(run: PlayedRun) -> None:
    run.turn_until(lambda: run.sent == {1, 2})
    run.hear(heard(before=1, task=0))
    run.turn_until(lambda: bool(run.pump.sources._prompt_until and run.source_broker.correlation_ids))  # noqa: SLF001
    run.end_waits()
    run.turn_until(lambda: bool(run.words))


def test_a_partition_that_comes_continues_where_its_former_task_said(make: Make) -> None:
    """Nothing is read first, and nothing is claimed."""
    run = make(partitions=(1, 2))
    is_ready(run)
    claimed: list[Claim] = []
    run.claim = claimed.extend
    comes(run)
    run.turn_until(lambda: sends_or_is_answered(run))
    first = run.copy_of(0).in_flight[0]
    assert (first.sequence, first.runs[0].upstream, first.downstream) == (10, 10, 10)
    assert 0 not in run.readings
    assert [claim for claim in claimed if claim.partition == 0] == []
    assert len(run.copy_of(0).in_flight) == 1, "the first batch goes alone (R3)"


def lose_the_leader(run: PlayedRun) -> None:
    run.brokers[1].hang_up()
    run.turn_until(lambda: not run.pump._targets.is_connected(1))  # noqa: SLF001 - nobody else asks


@pytest.mark.parametrize("why", ["connection", "leader", "unready", "rivals"])
def test_what_a_former_task_said_is_believed_only_under_its_conditions(
    make: Make, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """As the former task itself would have believed it; else the position is read."""
    run = make(partitions=(1, 2))
    if why == "rivals":
        monkeypatch.setattr(MovedRoutes, "may_have_rivals", True)
    if why == "unready":
        run.turn_until(lambda: run.sent == {1, 2})
    else:
        is_ready(run)
    if why == "connection":
        lose_the_leader(run)
    comes(run, **({"target_leader": 2} if why == "leader" else {}))
    assert run.copy_of(0).reading is None
    run.turn_until(lambda: 0 in run.readings)


def test_a_place_ages_from_when_its_next_task_was_ready(make: Make) -> None:
    """What the former task had not had confirmed for a while before, is as much older here (R6)."""
    run = make(partitions=(1, 2))
    before = run.loop.clock()
    is_ready(run)
    told_at = run.loop.clock()
    comes(run, age_s=2.0)
    assert before - 2.0 <= run.copy_of(0).trust.confirmed_at <= told_at - 2.0


@pytest.mark.parametrize(
    ("told", "policy", "is_compacted"), [(True, "", True), (False, "compact", True), (False, "", False)]
)
def test_a_cleaned_log_is_copied_as_such_whoever_knows_of_it(
    make: Make, told: bool, policy: str, is_compacted: bool
) -> None:
    run = make(partitions=(1, 2))
    is_ready(run)
    run.pump.readings.reader._policies["t"] = policy  # noqa: SLF001 - as looking ahead has read it
    comes(run, compacted=told)
    reading = run.copy_of(0).reading
    assert reading is not None
    assert reading.compacted is is_compacted


def test_a_partition_comes_also_if_it_can_not_be_prepared(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its source is not connected to, say: its former task would copy it until the round ends."""
    monkeypatch.setattr(look_ahead, "AHEAD_S", 0.2)
    run = make(partitions=(1, 2))
    monkeypatch.setattr(SourceConnections, "is_prompt", lambda *_: False)
    run.hear(heard(before=1, task=0))
    run.turn_until(lambda: bool(run.words))
    assert run.words[-1].ready == 1


@pytest.mark.parametrize("unclean", [False, True])
def test_an_end_soon_after_taking_what_may_still_be_written_to_is_in_doubt(make: Make, unclean: bool) -> None:
    run = make(partitions=())
    word = Release(number=1, source_topic="t", partition=0, unclean=unclean)
    words = TaskWords(incarnation="i", epoch=1, task=1, releases=(word,))
    run.hear(heard(before=1, task=0, words=[words]))
    assert run.close().in_doubt is unclean


def test_a_further_attempt_begins_when_no_earlier_one_can_be_heard(make: Make) -> None:
    run = make(attempt=1)
    run.hear(heard())
    run.turn()
    assert (run.pump.copies, [words.attempt for words in run.words]) == ([], [1])
    run.hear(heard(words=[TaskWords(incarnation="i", epoch=1, task=0)]))
    assert run.pump.copies == []
    mine = TaskWords(incarnation="i", epoch=1, task=0, attempt=1)
    run.hear(heard(words=[mine]))
    assert {copy.route.partition for copy in run.pump.copies} == {1, 2}
    run.turn()
    assert [(word.number, word.unclean) for word in released(run)] == [(1, True)]
    assert {receipt.partition: receipt.released for receipt in run.close().receipts} == {0: True, 1: False, 2: False}


def test_an_attempt_ends_when_a_later_one_is_at_work(make: Make) -> None:
    run = make()
    run.turn_until(lambda: run.sent == set(LEADERS))
    run.hear(heard(words=[TaskWords(incarnation="i", epoch=1, task=0, attempt=1)]))
    run.turn_until(lambda: run.pump.ended or bool(run.sent))
    assert run.close().has_rival


def test_a_partition_that_is_left_alone_is_released_at_once(make: Make) -> None:
    run = make()
    run.turn_until(lambda: run.sent == set(LEADERS))
    run.hear(heard(task=NO_TASK))
    assert run.is_leaving(0)


def test_a_released_partitions_receipt_is_told_again_after_a_gap_in_the_reports(make: Make) -> None:
    run = make()
    run.turn_until(lambda: run.sent == set(LEADERS))
    run.hear(heard(task=NO_TASK))
    run.turn_until(lambda: not run.copy_of(0).queue)
    run.acknowledge(1, {})
    run.turn_until(lambda: len(run.pump.copies) == 2)
    for gap in (False, True):
        run.report_channel.gap = gap
        run.run.report()
        assert [receipt.partition for receipt in run.reports[-1].receipts if receipt.released] == [0]


def come_back(run: PlayedRun, done: DoneTopic | None = None) -> PartitionCopy:
    """Have partition 0 go away and come back; return its former copy."""
    run.turn_until(lambda: run.sent == set(LEADERS))
    run.hear(heard(task=NO_TASK))
    leaving = run.copy_of(0)
    state = heard(before=NO_TASK, task=0)
    state.moves["i"] = RouteMoves(
        incarnation="i",
        epoch=1,
        moves=tuple(move.model_copy(update={"number": 2}) for move in state.moves["i"].moves),
        shares={},
    )
    if done is not None:
        state.done["t"] = done
    run.hear(state)
    assert run.copy_of(0) is leaving
    run.turn_until(lambda: not leaving.queue)
    run.acknowledge(1, {})
    run.turn_until(lambda: run.copy_of(0) is not leaving)
    return leaving


def test_a_partition_that_comes_back_ends_where_its_writers_have_moved(make: Make) -> None:
    """Its task may have heard of that earlier than the driver that orders the move."""
    run = make()
    come_back(run, DoneTopic(source_topic_id="", ends={0: 20}))
    assert run.copy_of(0).end.done_at == 20


def test_a_partition_that_comes_back_is_counted_on(make: Make) -> None:
    run = make()
    copied = come_back(run).progress.records
    assert copied
    run.run.report()
    told = [receipt for receipt in run.reports[-1].receipts if receipt.partition == 0]
    assert [(receipt.released, receipt.records) for receipt in told] == [(True, copied), (False, copied)]
    ends = [receipt for receipt in run.close().receipts if receipt.partition == 0]
    assert [(receipt.released, receipt.records) for receipt in ends] == [(True, 0), (False, copied)]


def test_an_idle_partition_looks_again_when_its_leaders_connection_breaks(make: Make) -> None:
    """The next leader may lack what was acknowledged, and nothing that is sent would tell."""
    run = make(partitions=(1, 2))

    def all_are_acknowledged() -> bool:
        for leader in run.brokers:
            run.acknowledge(leader, {})
        return run.records() == [40, 40] and all(copy.is_at_rest for copy in run.pump.copies)

    run.turn_until(all_are_acknowledged)
    run.readings.clear()
    lose_the_leader(run)
    run.turn_until(lambda: bool(run.readings))
    assert run.readings == [1], "the other leader's partition is left alone"


def test_no_claim_is_confirmed_after_its_leaders_connection_broke(make: Make) -> None:
    """Another pump may look at the next leader's log first: what this pump saw acknowledged may be lost there."""
    run = make(partitions=(1, 2))
    run.turn_until(lambda: run.sent == {1, 2})
    written: list[Claim] = []
    run.claim = written.extend
    run.pump._claims._confirm_at = run.loop.now + 3600  # noqa: SLF001 - the last ones were written just now
    for leader in run.brokers:
        run.acknowledge(leader, {})
    run.turn_until(lambda: len(run.pump._claims._to_confirm) == 2)  # noqa: SLF001
    lose_the_leader(run)
    run.pump._claims._confirm_at = 0.0  # noqa: SLF001
    run.turn_until(lambda: any(claim.confirmed for claim in written))
    assert {claim.partition for claim in written if claim.confirmed} == {2}


def test_an_end_soon_after_giving_away_what_may_still_be_written_to_is_in_doubt(make: Make) -> None:
    """The next task may not have taken it when the round ends, so that nobody else knows of the doubt."""
    run = make()
    run.turn_until(lambda: run.sent == set(LEADERS))
    run.hear(heard(words=[ready()]))
    run.pump._on_target_lost(LEADERS[0], "gone", {run.copy_of(0): False})  # noqa: SLF001 - with batches in flight
    run.turn_until(lambda: released(run) != [])
    assert released(run)[0].unclean
    assert run.close().in_doubt


@pytest.mark.parametrize("broken", [True, False])
def test_an_end_soon_after_a_connection_broke_with_batches_in_flight_is_in_doubt(
    make: Make, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    """What was sent may arrive in the next round yet, also when what has moved is not in doubt any more."""
    monkeypatch.setattr(moved_routes, "GRACE_S", 0.0)
    run = make(partitions=(1, 2))
    run.turn_until(lambda: run.sent == {1, 2})
    if broken:
        lose_the_leader(run)
    assert run.close().in_doubt is broken


def test_no_pump_from_before_is_feared_for_ever(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the former task told of a partition that comes counts once an earlier attempt can't be alive any more."""
    for module in (moved_routes, quiet):
        monkeypatch.setattr(module, "GRACE_S", 0.2)
    run = make(attempt=1, partitions=(1, 2))
    mine = TaskWords(incarnation="i", epoch=1, task=0, attempt=1)
    run.hear(heard(before=1, task=0, words=[mine]))
    run.turn_until(lambda: not run.pump._moves.may_have_rivals)  # noqa: SLF001 - by the loop's clock
    is_ready(run)
    comes(run)
    assert run.copy_of(0).reading is not None
