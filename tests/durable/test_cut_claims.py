"""Claims that an unclean election of the segments topic has cut, its number of homes, and what is written when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from tests.support.cut_log import EACH, HERE, TOPIC_ID, Topic, View, claim, known

from sparkmirror.exact.durable.claim_log import KEPT_CLAIMS, ClaimLog, in_safe_order
from sparkmirror.exact.durable.claims import (
    Claim,
    Homes,
    Retracted,
    claim_record,
    home_partition,
    homes_record,
    read_record,
)
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.own_records import KEPT_BYTES, OwnRecord, OwnRecords
from sparkmirror.kafka.cluster import topic_log
from sparkmirror.kafka.cluster.client import ClusterClient, PartitionLeader, TopicLeaders
from sparkmirror.kafka.cluster.fetch_once import FetchReply
from sparkmirror.kafka.cluster.list_offsets import ListedOffset
from sparkmirror.kafka.cluster.topic_log import LogCut, LogEntry, LogPlace, LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.fetch_session import FetchedPartition

PLACED_APART = next(p for p in range(99) if home_partition(TOPIC_ID, p, 8) != home_partition(TOPIC_ID, p, 16))


@pytest.fixture
def topic() -> Topic:
    return Topic()


@pytest.fixture
def home(topic: Topic) -> int:
    return home_partition(*HERE, topic.partitions)


# --- cuts -------------------------------------------------------------------------------------------------


def test_a_reader_writes_again_what_it_has_read_and_finds_no_more(topic: Topic, home: int) -> None:
    """Whoever wrote it may be dead: without it the claims before would continue without end."""
    ClaimLog(View(topic)).claim([claim(0), claim(1), claim(2)])
    reader = ClaimLog(View(topic))
    assert known(reader) == [claim(0), claim(1), claim(2)]
    topic.cut(home, 1)
    assert known(ClaimLog(View(topic))) == [claim(0)]
    reader.refresh([HERE])
    assert reader.take_cut() == {home}
    assert len(topic.entries[home]) == 3, "what was not lost is not written again"
    assert known(ClaimLog(View(topic))) == [claim(0), claim(1), claim(2)]
    assert known(reader) == [claim(0), claim(1), claim(2)]


@pytest.mark.parametrize("failing", ["read_on", "append_all"])
def test_a_reader_keeps_the_claims_it_has_read_until_they_are_written_again(
    topic: Topic, home: int, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    ClaimLog(View(topic)).claim([claim(number) for number in range(6)])
    view = View(topic)
    reader = ClaimLog(view)
    known(reader)
    topic.cut(home, 4)
    tries = iter([None] * (2 if failing == "read_on" else 0))  # the cut is seen, and a part is read again
    works = getattr(view, failing)

    def fails(*given: Any) -> Any:
        if next(tries, LogUnavailable) is not None:
            raise LogUnavailable("topic", "it has no leader", ErrorCode.LEADER_NOT_AVAILABLE)
        return works(*given)

    monkeypatch.setattr(view, failing, fails)
    for _ in range(2):
        with pytest.raises(LogUnavailable, match="no leader"):
            reader.refresh([HERE])
    assert reader.take_cut() == {home}
    ClaimLog(View(topic)).revise([replace(claim(0), confirmed=True)], [claim(1), claim(4)])
    monkeypatch.undo()
    reader.refresh([HERE])
    left = [claim(2), claim(3), replace(claim(0), confirmed=True), claim(5)]
    assert not reader.take_cut()
    assert sorted(known(reader), key=lambda one: one.sequence) == sorted(left, key=lambda one: one.sequence)
    assert len(topic.entries[home]) == 4 + 3 + 1
    assert len(known(ClaimLog(View(topic)))) == 4


def test_a_claim_that_came_where_the_log_was_cut_is_not_passed_over(topic: Topic, home: int) -> None:
    """The log is as long as it was when it was read: by its length nothing is to be seen."""
    ClaimLog(View(topic)).claim([claim(0), claim(1)])
    reader = ClaimLog(View(topic))
    known(reader)
    topic.cut(home, 1)
    ClaimLog(View(topic)).claim([claim(2)])
    assert known(reader) == [claim(0), claim(2)]
    assert known(reader) == [claim(0), claim(2), claim(1)]


def test_a_claim_that_was_taken_back_is_not_written_again(topic: Topic, home: int) -> None:
    ClaimLog(View(topic)).claim([claim(0), claim(1), claim(2)])
    reader = ClaimLog(View(topic))
    known(reader)
    topic.cut(home, 2)
    ClaimLog(View(topic)).revise((), [claim(1)])
    known(reader)
    assert known(ClaimLog(View(topic))) == [claim(0), claim(2)]


def test_a_clean_election_costs_no_reading_again(topic: Topic, home: int) -> None:
    ClaimLog(View(topic)).claim([claim(number) for number in range(9)])
    reader = ClaimLog(View(topic))
    known(reader)
    topic.elect(home)
    topic.asked.clear()
    assert len(known(reader)) == 9
    assert topic.asked == ["fetch"]
    assert not reader.take_cut()


def test_a_writer_writes_again_what_was_cut_off_before_it_says_that_the_next_claim_is_durable(
    topic: Topic, home: int
) -> None:
    writer = ClaimLog(View(topic), 4, remembers=True)
    writer.claim([claim(0)])
    writer.claim([claim(1)])
    writer.claim([replace(claim(0), confirmed=True)])
    topic.cut(home, 1)
    writer.claim([claim(2)])
    assert writer.take_cut() == {home}
    assert known(ClaimLog(View(topic))) == [replace(claim(0), confirmed=True), claim(2), claim(1)]


def test_a_writer_that_has_nothing_to_write_looks_for_cuts(topic: Topic, home: int) -> None:
    writer = ClaimLog(View(topic), 4, remembers=True)
    writer.look_for_cuts()
    assert not topic.asked, "nothing was written"
    writer.claim([claim(0), claim(1)])
    topic.asked.clear()
    writer.look_for_cuts()
    assert topic.asked == ["metadata"], "the leader is the same"
    topic.cut(home, 0)
    writer.look_for_cuts()
    assert writer.take_cut() == {home}
    assert known(ClaimLog(View(topic))) == [claim(0), claim(1)]


def test_claims_on_records_that_the_target_may_have_lost_are_not_written_again(topic: Topic, home: int) -> None:
    """The log has been looked at since: it ended after the first claim."""
    writer = ClaimLog(View(topic), 4, remembers=True)
    writer.claim([claim(0), claim(1), claim(0, 8)])
    writer.forget(HERE, EACH)
    topic.cut(home, 0)
    topic.cut(home_partition(TOPIC_ID, 8, 4), 0)
    writer.look_for_cuts()
    assert known(ClaimLog(View(topic))) == [claim(0)]
    writer.forget((TOPIC_ID, 8), 0)


@pytest.mark.parametrize(("end", "left"), [(0, []), (EACH, [claim(0)])], ids=["none", "those before the cut"])
def test_a_cut_that_leaves_nothing_to_write_again_is_told_once(
    topic: Topic, home: int, end: int, left: list[Claim]
) -> None:
    writer = ClaimLog(View(topic), 4, remembers=True)
    writer.claim([claim(0)])
    writer.claim([claim(1)])
    writer.forget(HERE, end)
    topic.cut(home, 1)
    writer.look_for_cuts()
    assert writer.take_cut() == {home}
    writer.look_for_cuts()
    assert not writer.take_cut()
    topic.cut(home, 0)
    writer.look_for_cuts()
    assert writer.take_cut() == {home}
    assert known(ClaimLog(View(topic))) == left


def test_a_writer_remembers_no_more_than_it_may() -> None:
    own = OwnRecords()
    large = b"x" * (KEPT_BYTES // 4)
    for number in range(9):
        own.add(OwnRecord(number, HERE, EACH, (b"%d" % number, large)))
    assert [record.record[0] for record in own.missing({})] == [b"6", b"7", b"8"]
    assert own.lowest_offset == 6
    own.add(OwnRecord(10, HERE, EACH, (b"7", b"")))
    assert [(record.first, record.record[0]) for record in own.missing({})] == [(6, b"6"), (8, b"8"), (10, b"7")]


@pytest.mark.parametrize(
    ("newest", "is_missing"),
    [
        (LogEntry(5, b"key", b"mine"), False),
        (LogEntry(4, b"key", b"mine"), False),
        (LogEntry(9, b"key", b"newer"), False),
        (LogEntry(9, b"key", None), False),
        (LogEntry(4, b"key", b"older"), True),
        (LogEntry(5, b"other", b"mine"), True),
    ],
    ids=["it is there", "written by a reader", "replaced", "taken back", "only the one before", "none of its key"],
)
def test_whether_a_record_is_missing(newest: LogEntry, is_missing: bool) -> None:
    own = OwnRecords()
    own.add(OwnRecord(5, HERE, EACH, (b"key", b"mine")))
    assert newest.key is not None
    assert bool(own.missing({newest.key: newest})) == is_missing


@pytest.mark.parametrize("between", [0, 1], ids=["at rest", "between two claims"])
def test_a_leader_that_has_another_epoch_and_all_records_is_no_cut(topic: Topic, home: int, between: int) -> None:
    """As after its restart. Who only writes does not notice, and takes its last claim for one of the epoch before."""
    writer = ClaimLog(View(topic), 4, remembers=True)
    writer.claim([claim(0)])
    topic.raise_epoch(home)
    for number in range(1, 2 + between):
        writer.claim([claim(number)])
    for _ in range(2):
        writer.look_for_cuts()
        assert not writer.take_cut()
    if between:
        topic.elect(home)
        writer.claim([claim(3)])
        assert not writer.take_cut()
    assert len(topic.entries[home]) == 2 + 2 * between, "nothing is written again"
    topic.cut(home, 1)
    writer.look_for_cuts()
    assert writer.take_cut() == {home}
    everything = [claim(number) for number in ((0, 1, 2, 3) if between else (0, 1))]
    assert known(ClaimLog(View(topic))) == everything


def test_what_was_cut_under_an_epoch_that_was_not_noticed_is_written_again(topic: Topic, home: int) -> None:
    """The leader's answer names an end before records that are still there."""
    writer = ClaimLog(View(topic), 4, remembers=True)
    writer.claim([claim(0)])
    topic.raise_epoch(home)
    writer.claim([claim(1), claim(2)])
    writer.claim([claim(3)])
    topic.cut(home, 2)
    writer.look_for_cuts()
    assert writer.take_cut() == {home}
    assert known(ClaimLog(View(topic))) == [claim(number) for number in range(4)]
    assert len(topic.entries[home]) == 4, "what is there is not written again"


def test_claims_are_missed_though_the_leader_names_an_end_behind_them(topic: Topic, home: int) -> None:
    """A leader of long ago leads again: it has other records in their place, of an older epoch, and more of them.

    Its first answer, for the claims' epoch, names that epoch's end, where the logs do not part.
    """
    writer, other = ClaimLog(View(topic), 4, remembers=True), ClaimLog(View(topic))
    writer.claim([claim(0)])
    theirs = [(topic.epochs[home], claim_record(claim(20 + number))) for number in range(5)]
    topic.elect(home)
    writer.claim([claim(1), claim(2)])
    topic.entries[home][1:] = theirs
    topic.elect(home)
    other.claim([claim(30)])
    writer.look_for_cuts()
    assert writer.take_cut() == {home}
    there = known(ClaimLog(View(topic)))
    assert there == [claim(0), *(claim(20 + number) for number in range(5)), claim(30), claim(1), claim(2)]
    writer.look_for_cuts()
    assert not writer.take_cut()


def test_what_others_wrote_later_of_a_claim_is_not_overwritten(topic: Topic, home: int) -> None:
    """A reader has settled it since; then the log is cut behind."""
    writer, reader = ClaimLog(View(topic), 4, remembers=True), ClaimLog(View(topic))
    writer.claim([claim(0), claim(1)])
    settled = replace(claim(0), confirmed=True)
    reader.revise([settled], [claim(1)])
    writer.claim([claim(2)])
    topic.cut(home, 4)
    writer.look_for_cuts()
    assert writer.take_cut() == {home}
    assert known(ClaimLog(View(topic))) == [settled, claim(2)]


def test_claims_in_a_partition_without_a_leader_fail_alone(topic: Topic, home: int) -> None:
    log = ClaimLog(View(topic), 4, remembers=True)
    claims = [claim(0, partition) for partition in range(12)]
    topic.leaderless = {home}
    failed = log.claim_each(claims)
    assert [(at, str(error)) for at, error in failed.items()] == [
        (home, f"topic topic: partition {home} has no leader now (error 5)")
    ]
    with pytest.raises(LogUnavailable, match="no leader"):
        log.claim(claims)
    with pytest.raises(LogUnavailable, match="no leader"):
        log.revise(claims, ())
    there = {at for at, entries in topic.entries.items() if entries}
    assert there == {home_partition(TOPIC_ID, partition, 4) for partition in range(12)} - {home}
    topic.leaderless = set()
    topic.elect(home)
    log.look_for_cuts()
    assert not log.take_cut()
    assert known(ClaimLog(View(topic))) == [], "what has failed is not written again by itself"


def test_a_partition_that_can_not_be_looked_at_keeps_no_other_from_being_restored(
    topic: Topic, home: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = View(topic)
    writer = ClaimLog(view, 4, remembers=True)
    both = [claim(0), next(one for number in range(99) if _home(one := claim(0, number)) != home)]
    other = _home(both[1])
    writer.claim(both)
    topic.cut(home, 0)
    topic.cut(other, 0)
    see_whole = view.see_whole

    def fails(partition: int, place: LogPlace) -> None:
        if partition == home:
            raise LogUnavailable("topic", "it can't be read", 5)
        see_whole(partition, place)

    monkeypatch.setattr(view, "see_whole", fails)
    with pytest.raises(LogUnavailable, match="can't be read"):
        writer.look_for_cuts()
    assert writer.take_cut() == {other}
    assert list(writer.claim_each([replace(one, incarnation=99) for one in both])) == [home]
    monkeypatch.undo()
    writer.look_for_cuts()
    assert writer.take_cut() == {home}
    assert claim(0) in known(ClaimLog(View(topic)))


def _home(one: Claim) -> int:
    return home_partition(one.target_topic_id, one.partition, 4)


class Fetched:
    """One answer to a Fetch, and what was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answer: Any) -> None:
        self.asked: list[int] = []
        """Epochs of the last batch read."""
        self.epoch = 5
        self._answer = answer
        monkeypatch.setattr(topic_log, "fetch_once", self._fetch)
        monkeypatch.setattr(topic_log, "list_offsets", lambda *_: {("topic", 0): ListedOffset(3, 0)})
        monkeypatch.setattr(topic_log, "_PAUSE_S", 0.0)
        self.log = TopicLog(cast("ClusterClient", self), "topic")

    def metadata(self, _: list[str]) -> dict[str, TopicLeaders]:
        return {"topic": TopicLeaders("topic", bytes(16), 0, {0: PartitionLeader(1, self.epoch)})}

    def hang_up(self) -> None:
        """There are no connections."""

    def _fetch(self, *_: object, last_epoch: int, **__: object) -> FetchReply:
        self.asked.append(last_epoch)
        part: dict[str, Any] = {"topic": "topic", "partition": 0, "asked_offset": 9, "error": 0}
        part |= {"high_watermark": 9, "last_stable_offset": 9, "log_start_offset": 0}
        part |= {"records": memoryview(b""), "diverging": None}
        return FetchReply(0, False, iter([FetchedPartition(**(part | self._answer))]))


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ({"diverging": (3, 6)}, LogPlace(6, 3)),
        ({"diverging": (3, 12)}, LogPlace(9, 3)),
        ({"high_watermark": 8}, LogPlace(8)),
        ({"error": ErrorCode.OFFSET_OUT_OF_RANGE, "log_start_offset": -1}, LogPlace(3)),
    ],
    ids=[
        "where the logs part",
        "an older epoch's later end",
        "an end below, from brokers that don't tell",
        "an offset that it has not",
    ],
)
def test_an_answer_tells_that_the_log_was_cut(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], place: LogPlace
) -> None:
    fetched = Fetched(monkeypatch, **answer)
    for look in (fetched.log.read_on, fetched.log.see_whole):
        with pytest.raises(LogCut) as cut:
            look(0, LogPlace(9, 4))
        assert cut.value.place == place
    assert fetched.asked == [4, 4]


def test_a_log_whose_start_has_moved_is_no_cut_log(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = Fetched(monkeypatch, error=ErrorCode.OFFSET_OUT_OF_RANGE, log_start_offset=-1)
    assert fetched.log.read_on(0, LogPlace(2, 4)) == ([], LogPlace(3), True)


def test_the_leader_that_took_the_last_record_is_not_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = Fetched(monkeypatch)
    fetched.log.see_whole(0, LogPlace(9, 5))
    assert fetched.asked == []


# --- homes ------------------------------------------------------------------------------------------------


def apart(number: int) -> Claim:
    return claim(number, PLACED_APART)


def test_claims_stay_where_they_are_when_the_topic_gets_more_partitions() -> None:
    topic = Topic(8)
    ClaimLog(View(topic)).fix_homes(8)
    writer = ClaimLog(View(topic))
    writer.claim([apart(0)])
    topic.partitions = 16
    for log in (writer, ClaimLog(View(topic)), ClaimLog(View(topic), 8)):
        assert log.homes == 8
    ClaimLog(View(topic)).claim([apart(1)])
    reader = ClaimLog(View(topic))
    reader.refresh([(TOPIC_ID, PLACED_APART)])
    assert list(reader.claims(TOPIC_ID, PLACED_APART)) == [apart(0), apart(1)]


def test_the_first_record_of_the_number_counts() -> None:
    topic = Topic(8)
    for count in (8, 5):
        ClaimLog(View(topic)).fix_homes(count)
    View(topic).append(0, [homes_record(3, bytes(16))])
    log = ClaimLog(View(topic))
    assert log.agree("cluster", Identity("cluster", 4000, 0)) == Identity("cluster", 4000, 0)
    assert log.homes == 8


def test_without_a_record_of_the_number_the_topics_own_counts() -> None:
    """As for releases before."""
    topic = Topic(5)
    assert ClaimLog(View(topic)).homes == 5
    assert not ClaimLog(View(topic)).has_fixed_homes


def test_the_number_by_which_claims_were_dealt_is_told_by_where_they_are() -> None:
    topic = Topic(8)
    ClaimLog(View(topic)).claim([claim(0, partition) for partition in range(40)])
    topic.partitions = 16
    assert ClaimLog(View(topic)).fitting_homes() == 8
    ClaimLog(View(topic), 16).claim([claim(1, partition) for partition in range(40)])
    assert ClaimLog(View(topic)).fitting_homes() is None


def test_a_record_of_the_number_is_nothing_to_a_release_that_does_not_know_it() -> None:
    key, value = homes_record(8, bytes(16))
    assert read_record(key, value) == Homes(8)
    assert key[2] == 3, "older releases pass over kinds that they don't know"
    assert read_record(key, None) is None


def test_an_answer_with_fewer_partitions_is_partial(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a new topic's may be: no home is ever derived from it."""
    monkeypatch.setattr(topic_log, "_PAUSE_S", 0.0)
    answers = [{0, 1}, {0, 1, 3}, {0, 1, 2, 3}]

    class Cluster:
        def metadata(self, _: list[str]) -> dict[str, TopicLeaders]:
            listed = answers.pop(0) if len(answers) > 1 else answers[0]
            return {"topic": TopicLeaders("topic", bytes(16), 0, {index: PartitionLeader(1, 0) for index in listed})}

        def hang_up(self) -> None:
            """There are no connections."""

    log = TopicLog(cast("ClusterClient", Cluster()), "topic")
    log.expect(4)
    assert log.partitions == 4
    answers = [{0, 1}]
    with pytest.raises(LogUnavailable, match="4 partitions, and a broker names only 2"):
        log.look_again()


# --- what is written when ---------------------------------------------------------------------------------


def test_an_ended_claim_is_read_back_as_such() -> None:
    ended = replace(claim(0, confirmed=True), ended=True)
    assert read_record(*claim_record(ended)) == ended
    assert read_record(*claim_record(claim(0))) == claim(0)
    changed = replace(claim(0), changed=True)
    assert read_record(*claim_record(changed)) == changed


def test_whoever_is_killed_while_settling_leaves_no_less_known_than_before() -> None:
    """A split claim is shortened last, and a rival taken back when what it is false for is there."""
    first, part, rival = claim(0, confirmed=True), claim(1, confirmed=True), claim(3)
    found = in_safe_order([first, part], [rival, claim(1)])
    assert found == [part, first, Retracted(TOPIC_ID, 7, rival.sequence, rival.incarnation)]


def test_a_claim_that_heals_below_what_is_in_memory_is_known(topic: Topic) -> None:
    """The target lost what was confirmed long ago: the position is below all claims that are kept."""
    claims = [claim(number, confirmed=True) for number in range(3 * KEPT_CLAIMS)]
    writer, reader = ClaimLog(View(topic)), ClaimLog(View(topic))
    writer.claim(claims)
    assert claims[1] not in known(reader)
    healing = replace(claim(1, heals=True), incarnation=999)
    writer.revise([healing], claims[2:])
    assert known(reader) == [claims[0], claims[1], healing]
