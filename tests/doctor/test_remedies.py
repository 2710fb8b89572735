"""Remedies of parked partitions: where to set a limit so that it stays, with the names and values that are known."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.planted_flows import with_parked
from tests.support.snapshot_samples import NOW_MS

from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.look.doctor.findings import diagnose
from sparkmirror.look.doctor.parked import action
from sparkmirror.pump.refused import Refused
from sparkmirror.snapshot.snapshot import Cause, ClusterFigures, Process, Snapshot

SOURCE = ClusterFigures(alias="A", tools="--bootstrap-server a1:9092,a2:9092")
TARGET = ClusterFigures(alias="B", tools="--bootstrap-server b1:9092 --command-config admin.properties")
SIZE = "max.message.bytes"
BEFORE, AFTER, OLD = (f"message.timestamp.{which}.max.ms" for which in ("before", "after", "difference"))
LARGE = "source offset 7: MESSAGE_SIZE_TOO_LARGE (10), the batch of 100091 bytes is larger than the target's " + SIZE
NO_LIMIT = 9223372036854775807


def remedy(cause: Cause, words: str, target: dict[str, str], source: dict[str, str], **changes: Any) -> str:
    reason = Refused(ErrorCode.MESSAGE_TOO_LARGE, words, "A.orders").with_limits(target, source)
    parked = with_parked(cause, reason, source=SOURCE, target=TARGET, **changes)
    ((topic, partition),) = parked.parked
    return action(parked, topic, partition)


def test_a_size_is_raised_where_the_mirror_does_not_set_it_back() -> None:
    """To what the source's topic takes, so that its producers' larger batches are still taken there."""
    said = remedy(Cause.TOO_LARGE, LARGE, {SIZE: "50000"}, {SIZE: "1048588"})
    at_topic, at_brokers, excluded = said.split(" Or")
    assert (
        "`kafka-configs.sh --bootstrap-server a1:9092,a2:9092 --alter --entity-type topics --entity-name orders"
        " --add-config max.message.bytes=1048588`" in at_topic
    )
    assert (
        "`kafka-configs.sh --bootstrap-server b1:9092 --command-config admin.properties --alter --entity-type brokers"
        " --entity-default --add-config message.max.bytes=1048588`" in at_brokers
    )
    assert "`config.properties.exclude = +max.message.bytes`" in excluded


def test_a_batch_that_is_larger_than_the_source_takes_now() -> None:
    """The source's limit was lowered since."""
    assert f"{SIZE}=100091`" in remedy(Cause.TOO_LARGE, LARGE, {SIZE: "5000"}, {SIZE: "5000"})


def test_a_size_of_a_copy_that_the_mirror_leaves_alone() -> None:
    said = remedy(Cause.TOO_LARGE, LARGE, {SIZE: "50000"}, {SIZE: "1048588"}, unsynced=(SIZE,))
    assert said == (
        "Raise max.message.bytes on the copy: `kafka-configs.sh --bootstrap-server b1:9092 --command-config"
        " admin.properties --alter --entity-type topics --entity-name A.orders --add-config max.message.bytes=1048588`."
    )


def test_no_value_is_told_that_could_be_below_the_sources() -> None:
    said = remedy(Cause.TOO_LARGE, LARGE, {SIZE: "50000"}, {})
    assert f"--entity-name orders --add-config {SIZE}=N`" in said
    assert said.endswith("N is at least 100091, and not below what the source's topic takes now.")


def test_the_segments_topic() -> None:
    words = "its claim of 1200000 bytes is larger than topic mm2-sparkmirror-segments.A.internal takes: raise it"
    said = remedy(Cause.TOO_LARGE, words, {}, {})
    assert f"--entity-name mm2-sparkmirror-segments.A.internal --add-config {SIZE}=1200000`" in said
    assert TARGET.tools in said


@pytest.mark.parametrize(("at_ms", "name"), [(1_000_000_000_000, BEFORE), (NOW_MS + 86_400_000, AFTER)])
def test_timestamps(at_ms: int, name: str) -> None:
    words = f"source offset 0: INVALID_TIMESTAMP (32), the target refuses the record's timestamp (timestamp {at_ms}, …)"
    limits = {BEFORE: "86400000", AFTER: "3600000", OLD: str(NO_LIMIT)}
    said = remedy(Cause.TIMESTAMP, words, limits, limits)
    assert f"{SOURCE.tools} --alter --entity-type topics --entity-name orders --add-config {name}={NO_LIMIT}`" in said
    assert f"--entity-default --add-config log.{name}={NO_LIMIT}`" in said
    said = remedy(Cause.TIMESTAMP, words, limits, {OLD: "1"})
    assert f"Raise {name} on the copy: `kafka-configs.sh {TARGET.tools} " in said, "the source's brokers don't know it"
    said = remedy(Cause.TIMESTAMP, words, {OLD: "86400000"}, {OLD: "1"}, unsynced=(OLD,))
    assert f"--entity-name A.orders --add-config {OLD}={NO_LIMIT}`" in said, "Kafka before 3.6"


def test_words_of_an_earlier_release_get_the_general_remedy() -> None:
    said = remedy(Cause.TOO_LARGE, "MESSAGE_SIZE_TOO_LARGE (20057 bytes)", {}, {})
    assert "source's topic, from where the mirror brings it to the copy" in said
    assert "has the commands" not in said, "a finding has none then"
    assert "INVALID" not in remedy(Cause.TIMESTAMP, "INVALID_TIMESTAMP", {}, {})


def test_the_finding_has_it() -> None:
    reason = Refused(ErrorCode.MESSAGE_TOO_LARGE, LARGE, "A.orders").with_limits({SIZE: "5000"}, {SIZE: "6000"})
    parked = with_parked(Cause.TOO_LARGE, reason, source=SOURCE, target=TARGET)
    process = Process(host="h", pid=1, version="1", started_ms=0)
    finding = next(each for each in diagnose(Snapshot(process, NOW_MS, (parked,))) if each.rule == "parked-too-large")
    assert f"{SOURCE.tools} --alter" in finding.action
