"""Translated offsets as Connect's REST interface and Flink's source take them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparkmirror.cli import offsets
from sparkmirror.cli.app import app
from sparkmirror.cli.positions import System, positions
from sparkmirror.mirror.sync.application_translator import Translation

FOUND = [
    Translation("A.orders", 0, 7),
    Translation("A.orders", 1, None, "not copied yet"),
    Translation('A."stock"', 2, 2**40),
]


def test_connect_takes_a_body() -> None:
    body = json.loads(positions(System.CONNECT, FOUND))
    assert body == {
        "offsets": [
            {"partition": {"kafka_topic": "A.orders", "kafka_partition": 0}, "offset": {"kafka_offset": 7}},
            {"partition": {"kafka_topic": 'A."stock"', "kafka_partition": 2}, "offset": {"kafka_offset": 2**40}},
        ]
    }


def test_flink_takes_an_expression() -> None:
    assert positions(System.FLINK, FOUND).splitlines() == [
        "OffsetsInitializer.offsets(Map.ofEntries(",
        '    Map.entry(new TopicPartition("A.orders", 0), 7L),',
        '    Map.entry(new TopicPartition("A.\\"stock\\"", 2), 1099511627776L)))',
    ]


@pytest.mark.parametrize("given", ["--topic", "--csv"])
def test_what_is_missing_is_named_on_the_other_channel(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "_translated", lambda _, stored, __: FOUND[: len(stored)])
    file, table = tmp_path / "mm2.properties", tmp_path / "table.csv"
    file.write_text(
        "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:1\nA->B.enabled = true\n"
    )
    table.write_text("topic,partition,offset\norders,0,9\norders,1,99\n")
    words = {"--topic": ["--topic", "orders", "--offset", "9"], "--csv": ["--csv", str(table)]}[given]
    done = CliRunner().invoke(app, ["offsets", "translate", str(file), *words, "--for", "connect"])
    assert len(json.loads(done.stdout)["offsets"]) == 1
    assert done.exit_code == (1 if given == "--csv" else 0)
    assert ("orders-1 at 99: not copied yet" in done.stderr) == (given == "--csv")
