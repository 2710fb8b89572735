"""Records that release 0.1 wrote are read as it meant them.

`written_by_0_1.json` was made by the code of commit a2793a5: keys and values as its topics have them, and with each
what was written.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, cast

import pytest

from sparkmirror.exact.durable.claims import Claim, Retracted, read_record
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.known_topics import TopicMemory
from sparkmirror.exact.durable.losses import read_losses
from sparkmirror.exact.durable.noted_progress import ProgressLog, ReportedProgress
from sparkmirror.kafka.cluster.topic_log import LogEntry, TopicLog
from sparkmirror.pump.messages.control import ControlState
from sparkmirror.pump.messages.receipts import read_reports

GOLDEN: dict[str, list[dict[str, Any]]] = json.loads(Path(__file__).with_name("written_by_0_1.json").read_text())


def entries(topic: str, *kinds: str) -> list[LogEntry]:
    """The topic's records, with offsets from 0."""
    return [
        LogEntry(offset, _bytes(record["key"]), _bytes(record["value"]))
        for offset, record in enumerate(GOLDEN[topic])
        if not kinds or record["kind"] in kinds
    ]


def said(topic: str, kind: str) -> list[dict[str, Any]]:
    """What was written in records of one kind."""
    return [record["said"] for record in GOLDEN[topic] if record["kind"] == kind]


def _bytes(digits: str | None) -> bytes | None:
    return None if digits is None else bytes.fromhex(digits)


class FixedLog:
    """A topic that holds these records."""

    def __init__(self, records: list[LogEntry]) -> None:
        self._records = records

    def read(self, partition: int, offset: int) -> tuple[list[LogEntry], int]:
        """All of them."""
        return self._records, len(self._records)


def plain(value: Any) -> Any:
    """A claim's values as the golden file has them."""
    if isinstance(value, bytes):
        return value.hex()
    if dataclasses.is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    return [plain(each) for each in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize("record", [one for one in GOLDEN["segments"] if one["kind"] == "claim"])
def test_claims(record: dict[str, Any]) -> None:
    key = bytes.fromhex(record["key"])
    claim = read_record(key, _bytes(record["value"]))
    assert isinstance(claim, Claim)
    assert plain(claim) == record["said"] | {"ended": False, "changed": False, "turn": False}


def test_claims_that_were_taken_back() -> None:
    (record,) = entries("segments", "retracted")
    (wanted,) = said("segments", "retracted")
    assert record.key is not None
    read = read_record(record.key, record.value)
    assert read == Retracted(bytes.fromhex(wanted["target_topic_id"]), 3, 70, 5)


def test_identities() -> None:
    for record, wanted in zip(entries("segments", "identity"), said("segments", "identity"), strict=True):
        assert record.key is not None
        identity = read_record(record.key, record.value)
        assert isinstance(identity, Identity)
        assert [list(producer) for producer in identity.former] == wanted.pop("former")
        assert {name: getattr(identity, name) for name in wanted} == wanted


def test_control_records() -> None:
    state = ControlState()
    state.apply(entries("control"))
    (leader,), (epoch,), (routes,) = (said("control", kind) for kind in ("leader", "epoch", "routes"))
    assert state.leader is not None
    assert state.leader.model_dump(exclude={"rank"}) == leader
    assert state.last_round is not None
    assert state.last_round.model_dump() == epoch
    added = state.added_to(routes["incarnation"], routes["epoch"])
    assert added is not None, "a route of 0.1 names the fence, which is passed over"
    (route,) = added.routes[routes["task"]]
    for name in ("source_topic", "target_topic", "partition", "appended"):
        assert getattr(route, name) == routes[name]
    assert list(route.passed) == routes["passed"]
    assert state.is_paused("orders.eu")
    assert not state.is_paused("payments")
    (throttle,) = said("control", "throttle")
    assert state.bytes_per_second == throttle["bytes_per_second"]
    assert state.backfill_bytes_per_second == throttle["backfill_bytes_per_second"]


def test_receipts() -> None:
    (report,) = read_reports(entries("receipts"))
    (wanted,) = said("receipts", "report")
    (receipt,), (wanted_receipt,) = report.receipts, wanted.pop("receipts")
    told = report.model_dump(mode="json")
    assert {name: told[name] for name in wanted} == wanted
    told = receipt.model_dump(mode="json")
    assert {name: told[name] for name in wanted_receipt} == wanted_receipt


def test_losses() -> None:
    losses = list(read_losses(entries("losses", "loss")))
    assert [loss.model_dump(mode="json", exclude={"apart"}) for loss in losses] == said("losses", "loss")
    assert [loss.apart for loss in losses] == [""] * len(losses), "0.1 did not write it"
    assert [loss.key.encode() for loss in losses] == [record.key for record in entries("losses", "loss")]


def test_progress_and_known_topics() -> None:
    log = cast("TopicLog", FixedLog(entries("losses")))
    (progress,) = ProgressLog(log).known.values()
    assert progress.model_dump(mode="json") == said("losses", "progress")[0]
    (written,) = entries("losses", "progress")
    assert (progress.key, progress.model_dump_json().encode()) == (written.key, written.value), "written as before"
    assert progress.partitions[0] == ReportedProgress(10, 8, 8, progress.standing_of)
    (topic,) = TopicMemory(log).known.values()
    assert topic.model_dump(mode="json") == said("losses", "topic")[0]
