"""Taking over from MirrorMaker 2 and handing back, against real brokers that hold what it would have written."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.errors import TopicAlreadyExistsError
from lab import KafkaCluster
from tests.support.copied_flow import Side, built, wait_for
from tests.takeover.mirrored import AT_SOURCE, BEGAN_MS, Mirrored

from sparkmirror.config.model import LegacyConfig
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.losses import LossLedger, losses_topic
from sparkmirror.exact.maps.partition_map import Unmapped
from sparkmirror.exact.mm2.connect_offsets import (
    DEDICATED_CONNECTOR,
    STRIMZIS_TOPIC,
    SourcePartition,
    java_partition,
    offset_value,
    strimzis_connector,
)
from sparkmirror.exact.mm2.record_formats import OffsetSync
from sparkmirror.exact.mm2.stored_offsets import StoredOffsets, read_stored_offsets
from sparkmirror.exact.position.decision import TargetReading
from sparkmirror.exact.position.loss_detection import target_recreated
from sparkmirror.exact.position.route import PartitionPair, Refusal
from sparkmirror.exact.position.target_reading import TargetReader, Unserved
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.groups import Committed, Groups
from sparkmirror.kafka.cluster.list_offsets import ListedOffset
from sparkmirror.kafka.cluster.log_range import RangeUnread
from sparkmirror.kafka.cluster.log_tail import TailUnread
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.rpc import RpcConnection
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.connect_offsets import ConnectOffsets
from sparkmirror.mirror.sync.group_maps import GroupMaps, TranslatedOffset
from sparkmirror.mirror.sync.mm1_commits import OURS
from sparkmirror.mirror.takeover import from_mm2
from sparkmirror.mirror.takeover import our_records as foreign_ends
from sparkmirror.mirror.takeover.from_mm1 import GroupTakeover
from sparkmirror.mirror.takeover.last_copied import LastCopied, LastCopiedReader
from sparkmirror.mirror.takeover.log_bounds import BothLogs
from sparkmirror.mirror.takeover.our_records import ForeignEnds
from sparkmirror.policy import DefaultReplicationPolicy

pytestmark = pytest.mark.broker


@pytest.fixture
def mirrored(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str) -> Iterator[Mirrored]:
    sides = Side("them", source_cluster), Side("us", target_cluster)
    mirrored = Mirrored(*sides, topic_name, f"A-{topic_name}"[:80])
    mirrored.produce(mirrored.source, topic_name, range(AT_SOURCE))
    yield mirrored
    mirrored.takeover.close()
    for side in sides:
        side.close()


def test_after_a_clean_stop_it_continues_behind_the_stored_offset(mirrored: Mirrored) -> None:
    mirrored.copy(0, 40)
    mirrored.store(20)
    mirrored.store(39)
    assert "already holds offsets 0 to 39" in str(mirrored.read())
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (0, 40, 40)
    assert mirrored.takeover.taken == 1


def test_after_a_kill_the_targets_tail_tells(mirrored: Mirrored) -> None:
    """And what a crash before that one had repeated does not irritate."""
    mirrored.copy(0, 30)
    mirrored.copy(15, 33)
    mirrored.store(20, "them->us.MirrorSourceConnector")
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (0, 33, 48)


def test_offset_syncs_of_another_cluster_of_the_same_name_are_left_alone(
    mirrored: Mirrored, caplog: pytest.LogCaptureFixture
) -> None:
    """Two deployments to targets of one alias share the source's topic of offset syncs."""
    mirrored.sync((12, 12), (55, 55))
    mirrored.copy(0, 40)
    for _ in range(2):
        assert mirrored.look() == ""
        mirrored.takeover.begin()
    assert mirrored.takeover.taken == 0
    said = [record.getMessage() for record in caplog.records if "are left alone" in record.getMessage()]
    assert len(said) == 1
    assert f"tell of offset 55 of {mirrored.route.target_topic}-0, which ends at 40" in said[0]


def test_a_topic_without_records_needs_no_taking_over(mirrored: Mirrored) -> None:
    mirrored.sync((12, 12))
    mirrored.store(20)
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (0, None, 0)


def test_a_topic_that_this_flow_has_made_needs_no_taking_over(mirrored: Mirrored) -> None:
    """Whoever has written to it since."""
    mirrored.copy(0, 30)
    mirrored.copy(55, 57)
    mirrored.store(20)
    mirrored.takeover.look(mirrored.identity, [mirrored.route], made={mirrored.route.target_topic})
    assert not mirrored.takeover.refused
    assert mirrored.takeover.taken == 0


def test_a_refusal_ends_when_this_flow_has_made_the_topic_again(mirrored: Mirrored) -> None:
    """Deleting the topic is the remedy that refusals name: the flow makes the topic again, and continues."""
    mirrored.copy(0, 30)
    mirrored.copy(55, 57)
    mirrored.store(20)
    assert "delete " + mirrored.route.target_topic in mirrored.look()
    mirrored.takeover.look(mirrored.identity, [mirrored.route], made={mirrored.route.target_topic})
    assert mirrored.takeover.refused == {}


def test_nothing_is_waited_for_when_the_topic_is_no_longer_mirrored(
    mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrored.sync((12, 12))
    monkeypatch.setattr(foreign_ends, "list_offsets", lambda *_, **__: {mirrored.route.target: ListedOffset(-1, 6)})
    assert "can't be read (NOT_LEADER_FOR_PARTITION (6))" in mirrored.look()
    waited = mirrored.takeover.waiting
    mirrored.takeover.look(mirrored.identity, [])
    assert (waited, mirrored.takeover.waiting, mirrored.takeover.refused) == (True, False, {})


def test_a_leader_that_does_not_know_a_new_topic_yet_tells_nothing_of_it(
    mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NOT_LEADER_OR_FOLLOWER, moments after a topic was created: its log was taken for one with foreign records."""
    mirrored.sync((12, 12))
    answer = ListedOffset(-1, 6)
    monkeypatch.setattr(foreign_ends, "list_offsets", lambda *_, **__: {mirrored.route.target: answer})
    assert "can't be read (NOT_LEADER_FOR_PARTITION (6))" in mirrored.look()
    assert mirrored.takeover.waiting, "it is looked at again soon"
    monkeypatch.undo()
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (0, None, 0)


def test_after_a_kill_before_any_offset_was_stored_an_offset_sync_tells(mirrored: Mirrored) -> None:
    mirrored.copy(0, 40)
    mirrored.sync((12, 12))
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (0, 40, 40)
    assert mirrored.takeover.taken == 1


def test_a_pump_of_ours_reads_its_position_behind_a_long_foreign_log(mirrored: Mirrored) -> None:
    for _ in range(300):  # more batches than a search for our last one steps over
        mirrored.target.append(mirrored.route.target_topic, 1)
    assert "already holds offsets 0 to 299" in str(mirrored.read())


def test_what_cannot_be_told_is_refused_and_says_what_to_do(mirrored: Mirrored) -> None:
    mirrored.copy(0, 30)
    mirrored.copy(55, 57)
    mirrored.store(20)
    assert "start MirrorMaker 2 once more and stop it" in mirrored.look()
    mirrored.store(AT_SOURCE)
    assert "was created again" in mirrored.look()
    assert "already holds" in str(mirrored.read())
    assert mirrored.takeover.taken == 0


def test_a_log_that_mirror_maker_says_nothing_of_is_left_alone(mirrored: Mirrored) -> None:
    mirrored.copy(0, 30)
    assert mirrored.look() == ""
    assert "already holds" in str(mirrored.read())


def test_an_end_that_can_not_be_read_matters_only_where_mirror_maker_copied(
    mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrored.copy(0, 30)

    def unread(*_: object) -> list[BothLogs]:
        raise TailUnread(mirrored.route.target_topic, 0, 6)

    monkeypatch.setattr(ForeignEnds, "among", unread)
    assert mirrored.look() == ""
    assert not mirrored.takeover.waiting
    mirrored.takeover.begin()
    mirrored.store(29)
    assert "the tail of the log can't be read" in mirrored.look()
    assert mirrored.takeover.waiting


def of_equal_records(mirrored: Mirrored) -> tuple[str, bytes]:
    """From now on a topic without records is mirrored; return its name, and a batch of equal records for it."""
    topic = f"{mirrored.topic}-same"
    mirrored.source.create(topic, 1)
    mirrored.target.create(f"{mirrored.alias}.{topic}", 1)
    mirrored.topic, mirrored.route = topic, PartitionPair(topic, f"{mirrored.alias}.{topic}", 0)
    return topic, built([b"same"] * 20)


def test_an_offset_sync_tells_what_equal_records_do_not(mirrored: Mirrored) -> None:
    topic, same = of_equal_records(mirrored)
    # Records a millisecond apart tell themselves apart; these have the same times again and again.
    for _ in range(3):
        mirrored.source.send(topic, same)
    for _ in range(2):
        mirrored.target.send(mirrored.route.target_topic, same)
    mirrored.store(19)
    assert "records that look alike" in mirrored.look()
    if not mirrored.source.topic_id(mirrored.syncs_topic):
        mirrored.source.create(mirrored.syncs_topic, 1)
    sync = OffsetSync(topic, 0, 39, 39)
    TopicLog(mirrored.source.client, mirrored.syncs_topic).append(0, [(sync.key(), sync.value())])
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (0, 40, 40)


def test_many_partitions_cost_few_requests(mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those whose tails must be read are asked about one by one; there were a dozen requests for each."""
    many, unread = 60, 5
    topic = f"{mirrored.topic}-many"
    routes = [PartitionPair(topic, f"{mirrored.alias}.{topic}", partition) for partition in range(many)]
    mirrored.source.create(topic, many)
    mirrored.target.create(routes[0].target_topic, many)
    copied, more = built([b"first", b"second"]), built([b"third"])
    offsets = TopicLog(mirrored.target.client, mirrored.offsets_topic)
    for route in routes:
        mirrored.source.send(topic, copied, route.partition)
        mirrored.target.send(route.target_topic, copied, route.partition)
        if route.partition < unread:
            mirrored.source.send(topic, more, route.partition)
        key = SourcePartition("MirrorSourceConnector", mirrored.alias, *route.source).key()
        offsets.append(java_partition(key, offsets.partitions), [(key, offset_value(1))])
    asked: list[str] = []
    for name in "call", "send_raw":
        whole = getattr(RpcConnection, name)

        def counted(*args: Any, whole: Any = whole, **options: Any) -> Any:
            asked.append("")
            return whole(*args, **options)

        monkeypatch.setattr(RpcConnection, name, counted)
    mirrored.takeover.look(mirrored.identity, routes)
    assert mirrored.takeover.refused == {}
    assert mirrored.takeover.taken == many
    assert len(asked) < 3 * many
    asked.clear()
    mirrored.takeover.look(mirrored.identity, routes)
    assert not asked
    monkeypatch.undo()
    claims = ClaimLog(TopicLog(mirrored.target.client, mirrored.segments))
    whole_claims = claims.wholes((mirrored.target.topic_id(routes[0].target_topic), index) for index in range(many))
    assert [[one.upstream for one in some] for some in whole_claims.values()] == [[2]] * many


def test_there_and_back_and_there_again(mirrored: Mirrored) -> None:
    mirrored.copy(0, 30)
    mirrored.store(29)
    assert mirrored.look() == ""
    ours = (mirrored.identity.producer_id, 0, 0)
    mirrored.target.send(mirrored.route.target_topic, built([b"30", b"31"], ours, first_ms=BEGAN_MS + 30, header="n"))
    assert mirrored.begins_at() == (2, 32, 32)
    mirrored.copy(32, 45)  # MirrorMaker 2 again
    mirrored.store(40)
    mirrored.takeover.begin()
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (2, 45, 45)
    mirrored.takeover.begin()
    assert mirrored.look() == ""
    assert mirrored.takeover.taken == 2


@pytest.mark.parametrize("cleared", [False, True])
def test_what_an_offsets_topic_that_may_not_be_read_may_say_is_waited_for(
    mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch, cleared: bool
) -> None:
    """Nothing else tells that MirrorMaker 2 copied again, or where, if the target kept none of it."""
    mirrored.copy(0, 30)
    if not cleared:
        mirrored.store(29)
        assert mirrored.look() == ""
        ours = (mirrored.identity.producer_id, 0, 0)
        mirrored.target.send(mirrored.route.target_topic, built([b"30"], ours, first_ms=BEGAN_MS + 30, header="n"))
    mirrored.copy(31, 45)
    mirrored.store(44)
    if cleared:
        mirrored.target.delete_records(mirrored.route.target_topic, 44)
    mirrored.takeover.begin()
    with monkeypatch.context() as forbidden:
        told = StoredOffsets({}, frozenset({mirrored.offsets_topic}))
        forbidden.setattr(from_mm2, "read_stored_offsets", lambda *_: told)
        assert f"may not read topic {mirrored.offsets_topic} of cluster" in mirrored.look()
        assert mirrored.takeover.waiting
    if not cleared:
        assert mirrored.look() == ""
        assert mirrored.begins_at()[1] == 45


def test_an_offsets_topic_that_may_not_be_read_matters_only_where_it_may_tell(
    mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An end that is not known now is waited for; what this flow wrote and the target deleted is no riddle."""
    ours = (mirrored.identity.producer_id, 0, 0)
    mirrored.copy(0, 30)
    mirrored.store(29)
    assert mirrored.look() == ""
    mirrored.target.send(mirrored.route.target_topic, built([b"30"], ours, first_ms=BEGAN_MS + 30, header="n"))
    told = StoredOffsets({}, frozenset({mirrored.offsets_topic}))
    monkeypatch.setattr(from_mm2, "read_stored_offsets", lambda *_: told)
    with monkeypatch.context() as away:

        def unread(*_: object) -> list[BothLogs]:
            raise TailUnread(mirrored.route.target_topic, 0, 6)

        away.setattr(ForeignEnds, "among", unread)
        mirrored.takeover.begin()
        assert "the tail of the log can't be read" in mirrored.look()
        assert mirrored.takeover.waiting
    mirrored.target.delete_records(mirrored.route.target_topic, 31)
    assert mirrored.look() == ""
    assert mirrored.begins_at()[1] == 31


def test_both_were_killed_and_the_stored_offset_is_older_than_our_own_copy(mirrored: Mirrored) -> None:
    """MirrorMaker 2 continued from there, repeated what we had, and copied more."""
    mirrored.copy(0, 30)
    mirrored.store(29)
    assert mirrored.look() == ""
    ours = (mirrored.identity.producer_id, 0, 0)
    batch = built([b"%d" % value for value in range(30, 36)], ours, first_ms=BEGAN_MS + 30, header="n")
    mirrored.target.send(mirrored.route.target_topic, batch)
    assert mirrored.begins_at() == (6, 36, 36)
    mirrored.store(32)
    mirrored.copy(33, 45)
    mirrored.takeover.begin()
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (6, 45, 48)


def test_what_somebody_else_wrote_behind_ours_is_not_taken_for_mirror_makers(mirrored: Mirrored) -> None:
    mirrored.copy(0, 30)
    mirrored.store(29)
    assert mirrored.look() == ""
    ours = (mirrored.identity.producer_id, 0, 0)
    mirrored.target.send(mirrored.route.target_topic, built([b"30", b"31"], ours, first_ms=BEGAN_MS + 30, header="n"))
    mirrored.store(31)  # by ourselves
    mirrored.target.append(mirrored.route.target_topic, 3)
    mirrored.takeover.begin()
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (2, 32, 35)


@pytest.mark.parametrize("ours_are_deleted", [False, True])
def test_markers_that_we_passed_over_are_no_word_of_mirror_makers(mirrored: Mirrored, ours_are_deleted: bool) -> None:
    """Our own stored offset is behind a transaction's marker, and somebody else has written to the target since."""
    producer = KafkaProducer(
        bootstrap_servers=list(mirrored.source.config.bootstrap_servers),
        transactional_id=mirrored.topic,
        retry_backoff_ms=10,
    )
    producer.init_transactions()
    producer.begin_transaction()
    value = b"%d" % AT_SOURCE
    producer.send(mirrored.topic, value, headers=[("n", value)], timestamp_ms=BEGAN_MS + AT_SOURCE, partition=0)
    producer.commit_transaction()
    producer.close()
    mirrored.copy(0, 30)
    mirrored.store(29)
    assert mirrored.look() == ""
    ours = (mirrored.identity.producer_id, 0, 0)
    values = [b"%d" % value for value in range(30, AT_SOURCE + 1)]
    mirrored.target.send(mirrored.route.target_topic, built(values, ours, first_ms=BEGAN_MS + 30, header="n"))
    marker = AT_SOURCE + 1
    mirrored.store(marker)
    mirrored.target.append(mirrored.route.target_topic, 3)
    if ours_are_deleted:
        mirrored.target.delete_records(mirrored.route.target_topic, marker)
    mirrored.produce(mirrored.source, mirrored.topic, [marker + 1])
    mirrored.takeover.begin()
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (len(values), marker, marker + 3)


def test_somebody_else_wrote_and_the_stored_offset_is_old(mirrored: Mirrored) -> None:
    mirrored.copy(0, 30)
    mirrored.store(29)
    assert mirrored.look() == ""
    ours = (mirrored.identity.producer_id, 0, 0)
    batch = built([b"%d" % value for value in range(30, 36)], ours, first_ms=BEGAN_MS + 30, header="n")
    mirrored.target.send(mirrored.route.target_topic, batch)
    mirrored.target.append(mirrored.route.target_topic, 3)
    mirrored.takeover.begin()
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (6, 36, 39)


def test_one_that_still_writes_is_taken_over_where_it_ends(mirrored: Mirrored) -> None:
    mirrored.copy(0, 30)
    mirrored.store(29)
    assert mirrored.look() == ""
    mirrored.copy(30, 34)
    assert isinstance(mirrored.read(), Refusal)
    mirrored.takeover.begin()
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (0, 34, 34)


def test_a_log_that_grows_while_it_is_read_is_looked_at_again(
    mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken for settled, what MirrorMaker 2 had copied since would be copied a second time."""
    mirrored.copy(0, 30)
    mirrored.store(29)
    assert mirrored.look() == ""
    ours = (mirrored.identity.producer_id, 0, 0)
    mirrored.target.send(mirrored.route.target_topic, built([b"30", b"31"], ours, first_ms=BEGAN_MS + 30, header="n"))
    mirrored.copy(32, 45)
    mirrored.store(44)
    read = TargetReader.read

    def growing(*asked: Any) -> dict[TopicPartition, TargetReading | Unserved]:
        answers = read(*asked)
        for partition, answer in answers.items():
            assert isinstance(answer, TargetReading)
            answers[partition] = dataclasses.replace(answer, log_end_before=answer.log_end_before - 1)
        return answers

    monkeypatch.setattr(TargetReader, "read", growing)
    mirrored.takeover.begin()
    assert "more than this flow wrote" in mirrored.look()
    assert mirrored.takeover.waiting
    monkeypatch.undo()
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (2, 45, 45)


@pytest.mark.parametrize("stamp", ["CreateTime", "LogAppendTime"])
def test_our_own_word_does_not_count_in_a_target_that_was_created_again(mirrored: Mirrored, stamp: str) -> None:
    """Believed, it would leave out the whole partition; a pump says that somebody else wrote there."""
    topic = mirrored.route.target_topic
    mirrored.target.delete(topic)
    mirrored.target.create(topic, 1, **{"message.timestamp.type": stamp})
    mirrored.target.append(topic, 1)
    mirrored.store(AT_SOURCE - 1)  # by ourselves
    ledger = LossLedger(TopicLog(mirrored.target.client, losses_topic(mirrored.alias)))
    ledger.record(target_recreated(mirrored.route, mirrored.target.topic_id(topic), 0, 0))
    assert mirrored.look() == ""
    assert mirrored.takeover.taken == 0
    assert "already holds" in str(mirrored.read())
    mirrored.target.delete_records(topic, 1)
    mirrored.takeover.begin()
    assert "delete" in mirrored.look()
    mirrored.copy(0, AT_SOURCE)  # by a MirrorMaker 2, after all
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (0, AT_SOURCE, AT_SOURCE + 1)


@pytest.mark.parametrize("other", ["to-others", DEDICATED_CONNECTOR])
def test_the_offset_of_another_flows_connector_does_not_count(mirrored: Mirrored, other: str) -> None:
    """One worker, one source alias, two targets: it has gone on, this flow's was stopped."""
    mirrored.copy(0, 40)
    mirrored.store(39, "mine")
    mirrored.store(AT_SOURCE - 1, other)
    mirrored.is_named("mine")
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (0, 40, 40)


def test_connectors_of_which_each_may_be_this_flows_must_agree(mirrored: Mirrored) -> None:
    """Or else the logs have to tell that both do."""
    mirrored.copy(0, 40)
    mirrored.store(39, "to-us")
    mirrored.store(AT_SOURCE - 1, "to-others")
    assert f"to-others ({AT_SOURCE - 1}) and to-us (39)" in mirrored.look()
    assert not mirrored.takeover.waiting
    mirrored.store(35, "to-others")
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (0, 40, 40)


def test_a_lone_name_is_this_flows_unless_the_logs_say_otherwise(mirrored: Mirrored) -> None:
    mirrored.copy(0, 40)
    mirrored.store(39)
    mirrored.store(AT_SOURCE - 1, "to-others")
    assert f"to-others ({AT_SOURCE - 1}) and {DEDICATED_CONNECTOR} (39)" in mirrored.look()
    mirrored.store(39)
    assert mirrored.look() == "", "what the configuration names is the newest"
    assert mirrored.begins_at() == (0, 40, 40)


def test_an_old_offset_does_not_gainsay_a_lone_name(mirrored: Mirrored) -> None:
    """The logs don't tell it: something has altered all records."""
    mirrored.target.send(mirrored.route.target_topic, built([b"altered"] * AT_SOURCE))
    mirrored.store(39)
    mirrored.store(AT_SOURCE - 1, "mm2-msc")
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (0, AT_SOURCE, AT_SOURCE)


def test_an_old_offset_that_many_readings_fit_gainsays_a_lone_name(mirrored: Mirrored) -> None:
    """Left out, it would leave the newest to the source's end alone: what was not copied would never be."""
    topic, same = of_equal_records(mirrored)
    for side, name, copies in (mirrored.source, topic, 3), (mirrored.target, mirrored.route.target_topic, 2):
        for _ in range(copies):
            side.send(name, same)
    mirrored.store(19)
    mirrored.store(AT_SOURCE - 1, "to-others")
    assert f"to-others ({AT_SOURCE - 1}) and {DEDICATED_CONNECTOR} (19)" in mirrored.look()
    assert not mirrored.takeover.waiting


def test_an_old_offset_that_can_not_be_examined_now_is_waited_for(
    mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrored.copy(0, 40)
    mirrored.store(39)
    mirrored.store(AT_SOURCE - 1, "to-others")

    def throttled(*_: object) -> LastCopied:
        raise RangeUnread("throttled")

    monkeypatch.setattr(LastCopiedReader, "find", throttled)
    assert "throttled" in mirrored.look()
    assert mirrored.takeover.waiting
    monkeypatch.undo()
    assert f"to-others ({AT_SOURCE - 1}) and {DEDICATED_CONNECTOR} (39)" in mirrored.look()


@pytest.mark.parametrize(("copied", "newest"), [(AT_SOURCE, AT_SOURCE - 1), (AT_SOURCE, 50), (50, 49)])
def test_an_old_offset_below_the_log_start_gainsays_no_shown_end(mirrored: Mirrored, copied: int, newest: int) -> None:
    mirrored.copy(0, copied)
    mirrored.target.delete_records(mirrored.route.target_topic, 30)
    mirrored.source.delete_records(mirrored.topic, 10)
    mirrored.store(5)
    mirrored.store(newest, "mm2-msc")
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (0, copied, copied)


def test_a_stored_offset_below_both_log_starts_is_not_guessed_at(mirrored: Mirrored) -> None:
    """MirrorMaker 2 was killed long after it could store the last; the target keeps records for less long."""
    mirrored.copy(0, AT_SOURCE)
    mirrored.target.delete_records(mirrored.route.target_topic, 30)
    mirrored.source.delete_records(mirrored.topic, 10)
    mirrored.store(5)
    assert "may have copied more than it has stored (offset 5)" in mirrored.look()


def test_after_a_kill_a_cut_target_log_tells(mirrored: Mirrored) -> None:
    mirrored.copy(0, 50)
    mirrored.target.delete_records(mirrored.route.target_topic, 30)
    mirrored.store(20)
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (0, 50, 50)


def test_of_offsets_stored_in_one_millisecond_none_is_the_newest(mirrored: Mirrored) -> None:
    mirrored.copy(0, 40)
    for upstream, name in (39, DEDICATED_CONNECTOR), (AT_SOURCE - 1, "to-others"):
        mirrored.store(upstream, name, at_ms=BEGAN_MS)
    assert f"{DEDICATED_CONNECTOR} (39)" in mirrored.look()
    mirrored.store(39)
    assert mirrored.look() == ""
    assert mirrored.begins_at() == (0, 40, 40)


def test_an_old_offset_below_the_log_start_may_be_right(mirrored: Mirrored) -> None:
    """This flow's MirrorMaker 2 was stopped for longer than the source keeps records; another flow's continued."""
    mirrored.copy(0, 6)
    mirrored.source.delete_records(mirrored.topic, 10)
    mirrored.store(5)
    mirrored.store(AT_SOURCE - 1, "to-others")
    assert f"does not end with the source's record at offset {AT_SOURCE - 1}" in mirrored.look()
    assert not mirrored.takeover.waiting
    mirrored.source.delete_records(mirrored.topic, AT_SOURCE)
    assert mirrored.look() == "", "nothing is left that could be left out"
    assert mirrored.takeover.taken == 1


def test_offsets_are_handed_back_under_the_name_that_is_found(mirrored: Mirrored) -> None:
    """A partition that is new since then, too."""
    mirrored.store(29, "mm2-msc")
    copied = {(mirrored.topic, 0): 41}
    with handed_back(mirrored, copied) as duty:
        duty.run()
        copied |= {(mirrored.topic, 0): 43, ("new", 0): 3}
        duty.run()
        duty.run()
    assert stored_names(mirrored, mirrored.topic) == {("mm2-msc", 43), (DEDICATED_CONNECTOR, 43)}
    assert stored_names(mirrored, "new") == {("mm2-msc", 3), (DEDICATED_CONNECTOR, 3)}


def test_another_flows_connector_is_not_told_what_this_one_copies(mirrored: Mirrored) -> None:
    """By Strimzi's name for another target; and of two others, one may be: what is new is under neither."""
    elsewhere = strimzis_connector(mirrored.alias, "other")
    for name in ("to-us", "to-others", elsewhere):
        mirrored.store(29, name)
    with handed_back(mirrored, {(mirrored.topic, 0): 41, ("new", 0): 3}) as duty:
        duty.run()
    found = {("to-us", 41), ("to-others", 41), (DEDICATED_CONNECTOR, 41), (elsewhere, 29)}
    assert stored_names(mirrored, mirrored.topic) == found
    assert stored_names(mirrored, "new") == {(DEDICATED_CONNECTOR, 3)}


def test_a_connectors_file_says_what_it_is_called(mirrored: Mirrored) -> None:
    """Where the worker's file is not there, its topic may be the one of Connect's examples."""
    there(mirrored, "connect-offsets")
    mirrored.is_named("mine")
    mirrored.store(29, "to-others")
    mirrored.store(28)
    with handed_back(mirrored, {(mirrored.topic, 0): 41}) as duty:
        duty.run()
    assert stored_names(mirrored, mirrored.topic) == {("mine", 41), ("to-others", 29), (DEDICATED_CONNECTOR, 28)}
    assert stored_names(mirrored, mirrored.topic, "connect-offsets") == {("mine", 41)}


def test_offsets_are_handed_back_to_a_strimzi_that_had_stored_none(mirrored: Mirrored) -> None:
    """Its topic is there from its start on, and its connector's name can be told; also when we come back."""
    there(mirrored, STRIMZIS_TOPIC)
    strimzis = strimzis_connector(mirrored.alias, mirrored.flow.target.alias)
    mirrored.store(29)
    for upstream in 41, 43:
        with handed_back(mirrored, {(mirrored.topic, 0): upstream}) as duty:
            duty.run()
        assert stored_names(mirrored, mirrored.topic) == {(DEDICATED_CONNECTOR, upstream)}
        assert stored_names(mirrored, mirrored.topic, STRIMZIS_TOPIC) == {(strimzis, upstream)}


@pytest.mark.parametrize(("code", "said"), [(29, "may be another flow's"), (3, "is gone")])
def test_a_worker_that_is_none_of_ours_holds_nothing_up(
    mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int, said: str
) -> None:
    there(mirrored, STRIMZIS_TOPIC)
    append = TopicLog.append
    tried = []

    def refused(log: TopicLog, *arguments: Any) -> int:
        if log.topic == STRIMZIS_TOPIC:
            tried.append(arguments)
            raise LogUnavailable(log.topic, "a record was refused", code)
        return append(log, *arguments)

    monkeypatch.setattr(TopicLog, "append", refused)
    caplog.set_level(logging.INFO)
    with handed_back(mirrored, {("a", index): 41 for index in range(9)}) as duty:
        duty.run()
        duty.run()
    assert stored_names(mirrored, "a") == {(DEDICATED_CONNECTOR, 41)}
    assert len(tried) == 1
    assert sum(said in record.message for record in caplog.records) == 1


def test_the_offsets_topic_is_made_again(mirrored: Mirrored) -> None:
    """What has not moved since is written again, too."""
    copied = {(mirrored.topic, 0): 41, ("other", 0): 5}
    with handed_back(mirrored, copied) as duty:
        duty.run()
        mirrored.target.delete(mirrored.offsets_topic)
        copied[mirrored.topic, 0] = 42

        def runs() -> bool:
            with contextlib.suppress(ConnectionError):
                duty.run()
                return True
            return False

        wait_for(runs, "the topic is there again")
    wait_for(lambda: reads(mirrored, mirrored.offsets_topic), "every partition has its leader")
    assert stored_names(mirrored, mirrored.topic) == {(DEDICATED_CONNECTOR, 42)}
    assert stored_names(mirrored, "other") == {(DEDICATED_CONNECTOR, 5)}


def there(mirrored: Mirrored, topic: str) -> None:
    """An offsets topic that other tests may have made."""
    with contextlib.suppress(TopicAlreadyExistsError):
        mirrored.target.create(topic, 25)
    wait_for(lambda: reads(mirrored, topic), "every partition has its leader")


@contextlib.contextmanager
def handed_back(mirrored: Mirrored, copied: Mapping[TopicPartition, int]) -> Iterator[ConnectOffsets]:
    with ClusterAdmin.connect(mirrored.target.config, "test", 10) as admin:
        duty = ConnectOffsets(mirrored.flow, admin, lambda: copied)
        yield duty
        duty.close()


def stored_names(mirrored: Mirrored, topic: str, offsets_topic: str = "") -> set[tuple[str, int]]:
    found = read_stored_offsets(mirrored.target.client, [offsets_topic or mirrored.offsets_topic], mirrored.alias)
    return {(one.of.connector, one.upstream) for one in found.by_partition[topic, 0]}


def reads(mirrored: Mirrored, topic: str) -> bool:
    with contextlib.suppress(ConnectionError):
        read_stored_offsets(mirrored.target.client, [topic], mirrored.alias)
        return True
    return False


@pytest.mark.parametrize(
    ("metadata", "taken", "how"),
    [("", 1, "group {} has committed"), (OURS, 0, "as this flow has committed before")],
)
def test_only_mirror_maker_1s_own_commit_is_a_takeover(
    mirrored: Mirrored, caplog: pytest.LogCaptureFixture, metadata: str, taken: int, how: str
) -> None:
    """Ours is the same for a partition that was empty so far; the copy begins there all the same."""
    where, group = mirrored.route.source, mirrored.topic
    Groups(mirrored.source.client).commit({group: {where: Committed(20, metadata)}})
    takeover = GroupTakeover(mirrored.flow, LegacyConfig(group_id=group))
    with caplog.at_level(logging.INFO, "sparkmirror.mirror.takeover"):
        takeover.look(mirrored.identity, [mirrored.route])
    takeover.close()
    assert (takeover.refused, takeover.taken) == ({}, taken)
    assert f"{mirrored.topic}-0 begins at source offset 20, {how.format(group)}" in caplog.text
    assert mirrored.begins_at() == (0, 20, 0)


@pytest.mark.parametrize(("stored", "begins"), [(40, (10, 40, 20)), (30, (10, 30, 20))])
def test_what_mirror_maker_1_has_copied_since_is_passed_over(
    mirrored: Mirrored, stored: int, begins: tuple[int, int, int]
) -> None:
    """We began at its offset, it ran again after us, and now we continue where its group stands."""
    place, group = mirrored.route.source, mirrored.topic
    commits = Groups(mirrored.source.client)
    takeover = GroupTakeover(mirrored.flow, LegacyConfig(group_id=group))
    commits.commit({group: {place: Committed(20, "")}})
    takeover.look(mirrored.identity, [mirrored.route])
    ours = (mirrored.identity.producer_id, 0, 0)
    values = [b"%d" % value for value in range(20, 30)]
    mirrored.target.send(mirrored.route.target_topic, built(values, ours, first_ms=BEGAN_MS + 20, header="n"))
    mirrored.copy(30, 40)
    commits.commit({group: {place: Committed(stored, "")}})
    takeover.close()
    again = GroupTakeover(mirrored.flow, LegacyConfig(group_id=group))
    again.look(mirrored.identity, [mirrored.route])
    again.close()
    assert again.refused == {}
    assert mirrored.begins_at() == begins


def test_groups_from_before_go_by_mirror_makers_own_syncs(mirrored: Mirrored) -> None:
    """Exactly where two syncs are as far apart on both sides; else as it would, reading some records twice."""
    mirrored.copy(0, 20)
    mirrored.copy(15, 40)
    mirrored.store(39)
    mirrored.sync((2, 2), (12, 12), (30, 35))
    ClaimLog(TopicLog(mirrored.target.client, mirrored.segments)).agree(mirrored.identity.cluster_id, mirrored.identity)
    assert mirrored.look() == ""
    policy = DefaultReplicationPolicy()
    places = GroupMaps(mirrored.flow, policy, mirrored.source.client, mirrored.target.client, list)
    where = mirrored.route.source
    places.refresh([where])
    assert places.place(where, 7, 7).cost is None, "the syncs are not read yet"
    found = {offset: places.of(where, offset) for offset in (0, 2, 7, 12, 20, 30, 39, 40)}
    costs = [places.place(where, *pair).cost for pair in ((7, 7), (7, 20), (40, 35), (12, 9))]
    assert costs == [(0, 0), (13, 0), (0, 10), (0, 3)]
    for source, target in ((0, 5), (20, 13), (39, 36), (7, None)):
        assert places.place(where, source, target) == (None, False), "not known exactly, or not at the target"
    assert places.place(where, 43, 45) == ((0, 3), True), "ahead of the copy"
    mirrored.target.delete_records(mirrored.route.target_topic, 10)
    places.refresh([where])
    behind = places.of(where, 7)
    assert places.place(where, 7, 20).cost == (10, 0), "ten are deleted"
    places.close()
    assert places.place(where, 7, 20) == (None, True)
    assert isinstance(behind, TranslatedOffset)
    assert behind.offset == 10, "where the target's log starts now"
    unknown = found.pop(0)
    assert isinstance(unknown, Unmapped)
    assert "this flow began at offset 40 of the source and 45 of the target" in unknown.reason
    offsets = {upstream: place.offset for upstream, place in found.items() if isinstance(place, TranslatedOffset)}
    assert offsets == {2: 2, 7: 7, 12: 12, 20: 13, 30: 35, 39: 36, 40: 45}
