"""Stored offsets, both ways, by the function and by the verb; against what was really copied."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from group_flow import Cluster, GroupFlow, from_offset
from lab import KafkaCluster
from tests.support.in_process import sparkmirror
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.errors import ConfigError, NotTranslated
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.exact.durable.noted_progress import ProgressLog, ReportedProgress, TopicProgress
from sparkmirror.exact.maps.offset_map import Copied
from sparkmirror.exact.maps.partition_map import NOTHING_YET, Unmapped
from sparkmirror.frames.rewrite_checkpoint import rewrite_checkpoint
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import LogEntry, TopicLog
from sparkmirror.mirror.sync import application_translator as translator_module
from sparkmirror.mirror.sync import noted_markers
from sparkmirror.mirror.sync.application_translator import ApplicationTranslator, Stored, Translation
from sparkmirror.pump.messages.control import Control, DoneTopic, control_topic
from sparkmirror.pump.messages.receipts import receipts_topic

pytestmark = pytest.mark.broker

COMMAND = str(Path(sys.executable).with_name("sparkmirror"))
TOPIC = "stored"
TRANSACTIONS = 20


class Behind(NamedTuple):
    """A topic of five records, and the end of its log at the source."""

    topic: str
    end: int
    source_id: bytes
    target_id: bytes
    client: ClusterClient
    """To the target."""


@pytest.fixture(scope="module")
def copied(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GroupFlow]:
    here, there = Cluster("here", source_cluster), Cluster("there", target_cluster)
    here.create(TOPIC, 2)
    here.transactions(TOPIC, TRANSACTIONS)
    flow = GroupFlow(
        here, there, TOPIC, tmp_path_factory.mktemp("stored"), **{"here.consumer.isolation.level": "read_committed"}
    )
    flow.copy()
    yield flow
    flow.close()


@pytest.fixture
def translator(copied: GroupFlow) -> Iterator[ApplicationTranslator]:
    with ApplicationTranslator.of(copied.flow) as translator:
        yield translator


def test_every_offset_there_and_back(copied: GroupFlow, translator: ApplicationTranslator) -> None:
    """Also those of markers and aborted records, and the log's end, behind an aborted transaction."""
    records = copied.source.read(TOPIC, committed=True)
    copies = copied.target.read(f"here.{TOPIC}")
    end = copied.source.end(TOPIC)
    forth = translator.translate_each([Stored(TOPIC, 0, offset) for offset in range(end + 2)])
    assert forth[-1] == Translation(f"here.{TOPIC}", 0, None, f"not copied yet: everything below {end} is")
    for upstream, one in enumerate(forth[:-1]):
        assert one.offset is not None
        assert from_offset(copies, one.offset) == from_offset(records, upstream)
    for downstream in range(len(copies) + 1):
        back = translator.translate(f"here.{TOPIC}", 0, downstream, reverse=True)
        assert back.topic == TOPIC
        assert back.offset is not None
        assert from_offset(records, back.offset) == from_offset(copies, downstream)
    beyond = translator.translate(f"here.{TOPIC}", 0, len(copies) + 1, reverse=True)
    assert beyond == Translation(TOPIC, 0, None, f"nothing is there yet: the copy ends at {len(copies)}")


def test_what_cant_be_translated_says_why(translator: ApplicationTranslator) -> None:
    assert translator.translate(TOPIC, 1, 0) == Translation(f"here.{TOPIC}", 1, None, "nothing was copied yet")
    assert translator.translate("nothing", 0, 0).reason == "the target has no topic here.nothing"
    assert "has no partition 9" in translator.translate(TOPIC, 9, 0).reason
    assert translator.translate(TOPIC, 0, 0, reverse=True).reason == (
        "it is no copy of a topic of here: in reverse, give its name at the target"
    )


def test_what_is_copied_later_is_known(copied: GroupFlow, translator: ApplicationTranslator) -> None:
    where = "later"
    copied.source.create(where)
    copied.source.produce(where, 5)
    flow = copied.flow
    copied.flow = flow.model_copy(update={"topics": (where,)})
    try:
        copied.copy()
        assert translator.translate(where, 0, 5).offset == 5
        assert translator.translate(where, 0, 8).offset is None
        copied.source.produce(where, 5)
        copied.copy()
        assert translator.translate(where, 0, 8).offset == 8
    finally:
        copied.flow = flow


@pytest.fixture
def behind_a_marker(copied: GroupFlow, topic_name: str) -> Iterator[Behind]:
    """A copied topic with aborted records at its end, of which no receipt is left."""
    copied.source.create(topic_name)
    copied.source.produce(topic_name, 5)
    copied.source.aborted(topic_name)
    flow = copied.flow
    copied.flow = flow.model_copy(update={"topics": (topic_name,)})
    copied.copy()
    copied.flow = flow
    end = copied.source.end(topic_name)
    assert end > 5
    ids: dict[str, bytes] = {}
    for side, config, name in (("source", flow.source, topic_name), ("target", flow.target, f"here.{topic_name}")):
        with ClusterAdmin.connect(config, "test") as admin:
            ids[side] = admin.topics([name])[name].topic_id
    with closing(ClusterClient(flow.target, "test")) as client, pytest.MonkeyPatch.context() as patch:
        patch.setattr(translator_module, "read_reports", lambda _: ())
        yield Behind(topic_name, end, ids["source"], ids["target"], client)


def test_a_marker_at_the_end_is_known_when_no_receipt_is_left(copied: GroupFlow, behind_a_marker: Behind) -> None:
    """By the progress that the mirror has noted; or by the end of a topic whose writers have moved."""
    topic, end, source_id, target_id, client = behind_a_marker
    remote, unknown = f"here.{topic}", "not copied yet: everything below 5 is"
    notes = ProgressLog(TopicLog(client, losses_topic("here")))
    control = Control(TopicLog(client, control_topic("here")))

    def at_the_end() -> Translation:
        with ApplicationTranslator.of(copied.flow) as translator:
            assert translator.translate(topic, 0, end + 1).offset is None
            return translator.translate(topic, 0, end)

    assert at_the_end() == Translation(remote, 0, 5)
    for topic_id, upstream in ((b"x" * 16, end), (target_id, 5)):
        progress = {0: ReportedProgress(upstream, 5, 5)}
        notes.learn([TopicProgress(target_topic=remote, standing_of=topic_id.hex(), partitions=progress)])
        assert at_the_end().reason == unknown
    for topic_id, reached in ((b"x" * 16, 5), (source_id, 4)):
        control.done(topic, DoneTopic(source_topic_id=topic_id.hex(), ends={0: end}, reached={0: reached}))
        assert at_the_end().reason == unknown
    control.done(topic, DoneTopic(source_topic_id=source_id.hex(), ends={0: end}, reached={0: 5}))
    assert at_the_end() == Translation(remote, 0, 5)
    control.done(topic, None)


def test_where_a_flow_has_ended_its_word_tells_the_copys_end(copied: GroupFlow, behind_a_marker: Behind) -> None:
    """And of a topic that was created again at the source nothing is copied yet."""
    topic, end, source_id, _, client = behind_a_marker
    control = Control(TopicLog(client, control_topic("here")))

    def at(source: bytes) -> Copied | Unmapped:
        with ApplicationTranslator.of(copied.flow) as translator:
            return translator.copied([(topic, 0)], {topic: source})[topic, 0]

    assert at(source_id) == Copied(5, 5, 5)
    assert at(b"x" * 16) is NOTHING_YET
    for word_of, reached_at in ((b"x" * 16, 5), (source_id, end)):
        control.done(topic, DoneTopic(source_topic_id=word_of.hex(), ends={0: end}, reached={0: 5}))
        told = at(source_id)
        assert isinstance(told, Copied)
        assert told.upstream == reached_at
    control.done(topic, None)


def test_a_query_does_not_move_past_records_that_only_the_source_still_has(
    copied: GroupFlow, topic_name: str, tmp_path: Path
) -> None:
    copied.source.create(topic_name)
    copied.source.produce(topic_name, 10)
    flow = copied.flow
    copied.flow = flow.model_copy(update={"topics": (topic_name,)})
    try:
        copied.copy()
        copied.target.delete_records(f"here.{topic_name}", 6)
        files = {"metadata": "{}", "offsets/0": f'v1\n{{}}\n{{"{topic_name}":{{"0":4}}}}', "commits/0": "v1\n{}"}
        for name, text in files.items():
            (tmp_path / "ck" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "ck" / name).write_text(text)
        with pytest.raises(NotTranslated, match=f"{topic_name}-0 at 4: here.{topic_name} lacks offsets 4 to 5"):
            rewrite_checkpoint(tmp_path / "ck", tmp_path / "new", copied.flow)
        copied.source.delete_records(topic_name, 6)
        done = rewrite_checkpoint(tmp_path / "ck", tmp_path / "new", copied.flow)
    finally:
        copied.flow = flow
    assert [each.translation.offset for each in done.offsets] == [6]


def test_notes_that_cant_be_read_are_none(
    copied: GroupFlow, behind_a_marker: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noted_markers, "losses_topic", lambda _: "no-such-topic")
    with ApplicationTranslator.of(copied.flow) as translator:
        said = translator.translate(behind_a_marker.topic, 0, behind_a_marker.end)
    assert said.reason == "not copied yet: everything below 5 is"


def test_receipts_that_were_deleted_unread_make_earlier_ones_void(
    copied: GroupFlow, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A translator that was idle for hours asks the log instead."""
    copied.source.create(topic_name)
    flow = copied.flow
    copied.flow = flow.model_copy(update={"topics": (topic_name,)})
    try:
        copied.source.produce(topic_name, 5)
        copied.copy()
        with ApplicationTranslator.of(flow) as translator:
            assert translator.translate(topic_name, 0, 5).offset == 5
            copied.source.produce(topic_name, 5)
            copied.copy()
            read = TopicLog.read

            def deleted(log: TopicLog, *args: int) -> tuple[list[LogEntry], int]:
                entries, end = read(log, *args)
                return ([] if log.topic == receipts_topic("here") else entries), end

            monkeypatch.setattr(TopicLog, "read", deleted)
            assert translator.translate(topic_name, 0, 10).offset == 10
    finally:
        copied.flow = flow


# --- the verb ------------------------------------------------------------------------------------


def test_one_offset(copied: GroupFlow) -> None:
    """There by a process of its own, as users run it."""
    verb = "offsets", "translate", str(copied.file)
    command = [COMMAND, *verb, "--topic", TOPIC, "--offset", "5"]
    there = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (there.stdout, there.returncode) == (f"here.{TOPIC} 0 4\n", 0), there.stderr
    back = sparkmirror(*verb, "--topic", f"here.{TOPIC}", "--partition", "0", "--offset", "4", "--reverse")
    assert (back.stdout, back.returncode) == (f"{TOPIC} 0 5\n", 0), back.stderr


def test_a_table_with_columns_of_its_own(copied: GroupFlow, tmp_path: Path) -> None:
    """With a byte order mark before it, as spreadsheets write it."""
    table = tmp_path / "stored.csv"
    table.write_text(f"\ufeffid,topic,partition,offset\na,{TOPIC},0,5\nb,{TOPIC},0,100000\nc,none,0,1\n")
    found = sparkmirror("offsets", "translate", str(copied.file), "--csv", str(table))
    assert found.returncode == 1
    rows = list(csv.reader(io.StringIO(found.stdout)))
    assert rows == [
        ["id", "topic", "partition", "offset", "translated_topic", "translated_offset"],
        ["a", TOPIC, "0", "5", f"here.{TOPIC}", "4"],
        ["b", TOPIC, "0", "100000", f"here.{TOPIC}", ""],
        ["c", "none", "0", "1", "here.none", ""],
    ]
    assert f"{TOPIC}-0 at 100000: not copied yet" in found.stderr
    assert "none-0 at 1: " in found.stderr


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            "topic,partition\nt,0\n",
            "it needs the columns topic, partition, offset, with commas between them; its first line is topic,",
        ),
        ("topic;partition;offset\nt;0;1\n", "its first line is topic;partition;offset"),
        ("", "it is empty"),
        ("topic,partition,offset\nt,0,five\n", "line 2: partition and offset must be whole numbers"),
        ("topic,partition,offset\nt,0,1\nt,0\n", "line 3: partition and offset must be whole numbers"),
        ("topic,partition,offset\nt,0,-1\n", "line 2: a topic, and a partition and an offset of at least 0"),
    ],
)
def test_a_table_that_is_none(copied: GroupFlow, tmp_path: Path, content: str, reason: str) -> None:
    table = tmp_path / "stored.csv"
    table.write_text(content)
    found = CliRunner().invoke(app, ["offsets", "translate", str(copied.file), "--csv", str(table)])
    assert isinstance(found.exception, ConfigError)
    assert reason in str(found.exception)
    assert found.stdout == ""


def test_too_little_and_too_much_on_the_command_line(copied: GroupFlow) -> None:
    for arguments in ((), ("--topic", TOPIC), ("--offset", "1"), ("--offset", "1", "--csv", "x.csv")):
        found = CliRunner().invoke(app, ["offsets", "translate", str(copied.file), *arguments])
        assert isinstance(found.exception, ConfigError)
        assert "give --topic, --partition and --offset, or --csv" in str(found.exception)


def test_back_with_a_policy_that_does_not_tell_the_name_at_the_source(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """Amazon's keeps all names, and answers None for each copy's (F4.7)."""
    here, there = Cluster("here", source_cluster), Cluster("there", target_cluster)
    here.create(topic_name)
    here.produce(topic_name, 5)
    policy = {"replication.policy.class": "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"}
    with closing(GroupFlow(here, there, topic_name, tmp_path, **policy)) as flow:
        flow.copy()
        with ApplicationTranslator.of(flow.flow) as translator:
            assert translator.translate(topic_name, 0, 3, reverse=True) == Translation(topic_name, 0, 3)
