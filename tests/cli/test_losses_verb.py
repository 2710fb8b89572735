"""`sparkmirror losses`, `losses ack` and `losses undo`, over a ledger in memory."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.support.in_process import sparkmirror

from sparkmirror.exact.durable.losses import Loss, LossKind
from sparkmirror.kafka.cluster.topic_log import LogEntry

FILE = "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:1\nA->B.enabled = true\n"
LONG = "offsets 3 to 6 of source orders-0 are gone; " + "a long way to say what happened, " * 20


class LedgerTopic:
    """A topic in memory, in the place of the target's."""

    def __init__(self) -> None:
        self.records: list[LogEntry] = []

    def append(self, _: int, entries: list[tuple[bytes, bytes | None]]) -> None:
        self.records += [LogEntry(len(self.records) + at, *entry) for at, entry in enumerate(entries)]

    def read(self, _: int, offset: int) -> tuple[list[LogEntry], int]:
        return self.records[offset:], len(self.records)

    def add(self, kind: LossKind, topic: str, partition: int, words: str = "as it was") -> Loss:
        loss = Loss(
            kind=kind,
            source_topic=topic,
            target_topic=f"A.{topic}",
            partition=partition,
            first=3,
            end=7,
            downstream=3,
            target_topic_id="0" * 32,
            action="continued",
            words=words,
            at_ms=1_764_000_000_000,
        )
        self.append(0, [(loss.key.encode(), loss.model_dump_json().encode())])
        return loss


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> LedgerTopic:
    made = LedgerTopic()
    monkeypatch.setattr("sparkmirror.snapshot.ledger.TopicLog", lambda *_: made)
    return made


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return str(path)


def acknowledged(file: str) -> list[str]:
    """What is said of each entry, by topic and partition."""
    rows = json.loads(sparkmirror("losses", file, "--flow", "A->B", "-o", "json").stdout)
    said = {f"{row['source_topic']}-{row['partition']}": row["acknowledged"] for row in rows}
    return [f"{place}: {word['why']}" for place, word in said.items() if word is not None]


def test_in_a_pipe_a_line_stays_a_line_and_ends_with_its_last_word(ledger: LedgerTopic, file: str) -> None:
    assert "nothing was lost" in sparkmirror("losses", file, "--flow", "A->B").stdout
    ledger.add(LossKind.EXPIRED, "orders", 0, LONG.strip())
    ledger.add(LossKind.FENCED, "orders", 1)
    shown = sparkmirror("losses", file, "--flow", "A->B").stdout
    assert shown == sparkmirror("losses", "list", file, "--flow", "A->B").stdout
    lines = shown.splitlines()
    assert len(lines) == 3
    assert lines == [line.rstrip() for line in lines]
    assert lines[1].endswith(LONG.strip())
    assert re.search(r" orders-0 +3-6 +4 +continued +lost +offsets", lines[1])
    assert re.search(r" A\.orders-1 +3-6 +4 +continued +expected +as it was$", lines[2])


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ((), ["orders-0", "orders-1", "bills-0"]),
        (("--topics", "orders"), ["orders-0", "orders-1"]),
        (("--topics", "orders", "--partition", "1"), ["orders-1"]),
        (("--entry", "BILLS", "--entry", "ORDERS"), ["orders-0", "bills-0"]),
    ],
    ids=str,
)
def test_the_word_is_about_what_is_chosen(
    ledger: LedgerTopic, file: str, options: tuple[str, ...], chosen: list[str]
) -> None:
    first = ledger.add(LossKind.EXPIRED, "orders", 0)
    ledger.add(LossKind.EXPIRED, "orders", 1)
    other = ledger.add(LossKind.FOREIGN, "bills", 0)
    ledger.add(LossKind.FENCED, "fenced", 0)
    options = tuple({"BILLS": other.number, "ORDERS": first.number}.get(word, word) for word in options)
    said = sparkmirror("losses", "ack", file, "known here", "--flow", "A->B", *options)
    assert said.returncode == 0, said.stderr
    assert f"{len(chosen)} entr" in said.stdout
    assert acknowledged(file) == [f"{place}: known here" for place in chosen], "and not what is expected anyway"
    taken = sparkmirror("losses", "undo", file, "--flow", "A->B", *options, "-o", "json")
    assert [f"{row['source_topic']}-{row['partition']}" for row in json.loads(taken.stdout)] == chosen
    assert acknowledged(file) == []


def test_an_earlier_word_stays(ledger: LedgerTopic, file: str) -> None:
    ledger.add(LossKind.EXPIRED, "orders", 0)
    sparkmirror("losses", "ack", file, "the first", "--flow", "A->B")
    ledger.add(LossKind.EXPIRED, "orders", 1)
    sparkmirror("losses", "ack", file, "the second", "--flow", "A->B")
    assert acknowledged(file) == ["orders-0: the first", "orders-1: the second"]
    (line,) = [line for line in sparkmirror("losses", file, "--flow", "A->B").stdout.splitlines() if "orders-0" in line]
    assert re.search(r"as it was \(acknowledged \d{4}-\d\d-\d\d [\d:]{8} UTC by \S+@\S+: the first\)$", line)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ack", "FILE", " "), "WHY: say why the losses are acceptable"),
        (("ack", "FILE", "known", "--topics", "bills"), "the loss ledger: no open entry matches"),
        (("ack", "FILE", "known", "--topics", "("), "--topics"),
        (
            ("ack", "FILE", "known", "--entry", "NUMBER", "--entry", "00000000"),
            "--entry: 00000000: no entry that this can be said of has this number",
        ),
        (("undo", "FILE"), "the loss ledger: no acknowledged entry matches"),
    ],
    ids=str,
)
def test_a_wrong_choice_is_refused_and_nothing_is_said(
    ledger: LedgerTopic, file: str, words: tuple[str, ...], told: str
) -> None:
    number = ledger.add(LossKind.EXPIRED, "orders", 0).number
    given = [{"FILE": file, "NUMBER": number}.get(word, word) for word in words]
    refused = sparkmirror("losses", *given, "--flow", "A->B")
    assert refused.returncode == 2
    assert told in refused.stderr
    assert len(ledger.records) == 1
