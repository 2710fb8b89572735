"""Options of the data source: names and values of Spark's Kafka source, each mistake a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.source.read_options import ReadOptions, read_options

PLAIN = {"kafka.bootstrap.servers": "a:9092,b:9092", "subscribe": "orders, returns"}
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
FILE = """
clusters = A, B, C
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
C.bootstrap.servers = c:9092
A->B.enabled = true
A->C.enabled = true
A->C.consumer.isolation.level = read_committed
topics = orders
"""


def batch(**more: str) -> ReadOptions:
    return read_options(PLAIN | {key.replace("__", "."): value for key, value in more.items()}, streaming=False)


def test_defaults_are_sparks() -> None:
    read = batch()
    assert read.table == "records"
    assert read.source.bootstrap_servers == ("a:9092", "b:9092")
    assert read.choice.topics == ("orders", "returns")
    assert (read.starting.latest, read.ending.latest) == (False, True)
    assert (read.fail_on_data_loss, read.include_headers, read.read_committed) == (True, False, False)
    assert read_options(PLAIN, streaming=True).starting.latest


def test_names_in_any_case() -> None:
    read = batch(
        STARTINGOFFSETS='{"orders":{"0":5,"1":-2},"returns":{"0":7}}', kafka__ISOLATION__level="READ_COMMITTED"
    )
    assert read.starting.offsets == {("orders", 0): 5, ("orders", 1): -2, ("returns", 0): 7}
    assert read.read_committed


def test_settings_of_clients() -> None:
    read = batch(
        kafka__security__protocol="SASL_SSL",
        kafka__sasl__mechanism="PLAIN",
        kafka__sasl__jaas__config=LOGIN,
        kafka__client__id="mine",
        kafka__request__timeout__ms="7000",
        kafka__max__poll__records="5",
        kafka__group__id="any",
    )
    assert read.source.signs_in
    assert read.source.encrypted
    assert read.source.client_id == "mine"
    assert read.source.request_timeout_ms == 7000


def test_the_place_that_counts() -> None:
    read = batch(startingOffsets="earliest", startingOffsetsByTimestamp='{"orders":{"0":5}}', startingTimestamp="7")
    assert (read.starting.key, read.starting.time_ms, read.starting.none_is_latest) == ("startingTimestamp", 7, False)
    assert batch(startingTimestamp="7", startingOffsetsByTimestampStrategy="latest").starting.none_is_latest
    assert batch(endingTimestamp="7").ending.none_is_latest


def test_a_mirrors_file(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    given = {"config": str(path), "flow": "A->C", "subscribe": "orders"}
    read = read_options(given, streaming=False)
    assert read.source.bootstrap_servers == ("a:9092",)
    assert read.read_committed
    assert read_options(given | {"cluster": "target"}, streaming=False).source.bootstrap_servers == ("c:9092",)
    level = {"kafka.isolation.level": "read_uncommitted"}
    assert not read_options(given | level, streaming=False).read_committed
    both = read_options({"config": str(path), "table": "losses"}, streaming=False)
    assert [flow.name for flow in both.flows] == ["A->B", "A->C"]
    for wrong, words in (
        ({"flow": ""}, "option: flow: is missing: there are A->B, A->C; choose one"),
        ({"flow": "A->D"}, "option: flow: there is no A->D; there are A->B, A->C"),
        ({"kafka.bootstrap.servers": "a:1"}, "option: kafka.bootstrap.servers: the file config has the clusters"),
        ({"cluster": "B"}, "option: cluster: is 'B': write source or target"),
        ({"table": "groups"}, "option: subscribe: can't be used with the table groups"),
    ):
        with pytest.raises(ConfigError) as raised:
            read_options(given | wrong, streaming=False)
        assert str(raised.value).startswith(words)


BATCH: dict[str, tuple[dict[str, str | None], str]] = {
    "no brokers": ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers: is missing: write HOST:PORT,…, or name"),
    "no choice": ({"subscribe": None}, "subscribe, subscribePattern, assign: none is given: exactly one of them"),
    "no topic": ({"subscribe": " , "}, "subscribe: names no topic"),
    "an unknown name": ({"startingoffset": "1"}, "startingoffset: is not known; did you mean startingOffsets?"),
    "a strange name": ({"path": "/tmp"}, "path: is not known"),
    "a strange setting": ({"kafka.topics": "a"}, "kafka.topics: is no setting of a cluster's clients"),
    "a mistyped setting": (
        {"kafka.security.protocl": "SSL"},
        "kafka.security.protocl: is no setting of a cluster's clients; did you mean kafka.security.protocol?",
    ),
    "Kafka's own word": (
        {"kafka.auto.offset.reset": "latest"},
        "kafka.auto.offset.reset: is no setting of a cluster's",
    ),
    "a password that is missing": (
        {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN"},
        "kafka.sasl.jaas.config: is missing: write",
    ),
    "a trigger": ({"minOffsetsPerTrigger": "5"}, "minOffsetsPerTrigger: is not there: a micro-batch has all records"),
    "no number": ({"minPartitions": "few"}, "minPartitions: is 'few': write a number above 0"),
    "zero": ({"maxRecordsPerPartition": "0"}, "maxRecordsPerPartition: is '0': write a number above 0"),
    "no flag": ({"failOnDataLoss": "no"}, "failOnDataLoss: is 'no': write true or false"),
    "no level": ({"kafka.isolation.level": "all"}, "kafka.isolation.level: is 'all': write read_uncommitted or"),
    "no table": ({"table": "rows"}, "table: is 'rows': write records, batches, offset_map, groups, receipts or losses"),
    "a file that isn't named": ({"flow": "A->B"}, "flow: is about the file config, which is not given"),
    "a table without a file": (
        {"table": "losses", "kafka.bootstrap.servers": None, "subscribe": None},
        "config: is missing: the table losses is about the flows in a mirror's file",
    ),
    "a batch from the end": (
        {"startingOffsets": "latest"},
        "startingOffsets: a batch can't begin at the latest offsets",
    ),
    "a batch from an end": (
        {"startingOffsets": '{"a":{"0":-1}}'},
        "startingOffsets: a batch can't begin at the latest offsets",
    ),
    "a batch to the start": ({"endingOffsets": "earliest"}, "endingOffsets: a batch can't end at the earliest offsets"),
    "a negative offset": ({"startingOffsets": '{"a":{"0":-3}}'}, "startingOffsets: has an offset below -2"),
    "a half offset": ({"endingOffsets": '{"a":{"0":1.5}}'}, "endingOffsets: can't be read (1.5 is no whole number)"),
    "no partition": ({"endingOffsets": '{"a":{"x":1}}'}, "endingOffsets: can't be read (invalid literal for int()"),
    "no object": ({"endingOffsets": "[1]"}, "endingOffsets: can't be read ([1] is no object): write it like"),
    "no time": ({"startingTimestamp": "today"}, "startingTimestamp: is 'today': write milliseconds since 1970"),
    "no list": ({"subscribe": None, "assign": '{"a":0}'}, "assign: can't be read (0 is no list): write it like"),
    "no expression": ({"subscribe": None, "subscribePattern": "("}, "subscribePattern: is no regular expression: "),
}


@pytest.mark.parametrize("case", BATCH)
def test_mistakes(case: str) -> None:
    wrong, words = BATCH[case]
    given = {key: value for key, value in (PLAIN | wrong).items() if value is not None}
    with pytest.raises(ConfigError) as raised:
        read_options(given, streaming=False)
    assert str(raised.value).startswith(f"option: {words}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("key", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(key: str) -> None:
    with pytest.raises(ConfigError, match=f"^option: {key}: can't be used with a stream, which has no end$"):
        read_options(PLAIN | {key: "latest"}, streaming=True)


def test_tables_of_flows_are_no_streams() -> None:
    with pytest.raises(ConfigError, match=r"^option: table: receipts can't be streamed: read it as a batch$"):
        read_options({"table": "receipts", "config": "x"}, streaming=True)
