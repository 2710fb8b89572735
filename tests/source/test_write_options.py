"""Options of the writer: names and values of Spark's Kafka sink, each mistake a line."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.kafka.wire.batches import CODECS
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.source.write_options import WriteOptions, write_options

PLAIN = {"kafka.bootstrap.servers": "a:9092,b:9092", "topic": "orders"}
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="%s";'
FILE = """
clusters = A, B, C
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
C.bootstrap.servers = c:9092
A->B.enabled = true
A->C.enabled = true
topics = orders
"""


def read(**more: str) -> WriteOptions:
    return write_options(PLAIN | {key.replace("__", "."): value for key, value in more.items()})


def test_defaults() -> None:
    given = read(checkpointLocation="/checkpoints/orders", queryName="orders", INCLUDEHEADERS="true")
    assert given.cluster.bootstrap_servers == ("a:9092", "b:9092")
    assert (given.topic, given.codec, given.application, given.version) == ("orders", Codec(CODECS.index("lz4")), "", 0)
    assert pickle.loads(pickle.dumps(given)) == given  # noqa: S301 - our own bytes


def test_settings_of_producers() -> None:
    given = read(kafka__compression__type="zstd", kafka__acks="1", kafka__client__id="mine", kafka__linger__ms="50")
    assert (given.codec, given.cluster.client_id) == (Codec(CODECS.index("zstd")), "mine")
    assert read(txnAppId="nightly", txnVersion="42")[-2:] == ("nightly", 42)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"topics": "a"}, "topics: is not known; did you mean topic?"),
        ({"path": "/rows"}, "path: is for files: name the topic by the option topic, or by a column"),
        ({"txnAppId": "nightly"}, "txnVersion: is missing: the two name a job that may run again"),
        ({"txnAppId": "nightly", "txnVersion": "-1"}, "txnVersion: is '-1': write a number"),
        ({"kafka.ackz": "1"}, "kafka.ackz: is no setting of a cluster's clients"),
        ({"kafka.fetch.min.bytes": "1"}, "kafka.fetch.min.bytes: is no setting of a cluster's clients"),
        ({"flow": "A->B"}, "flow: is about the file config, which is not given"),
    ],
)
def test_mistakes(wrong: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        write_options(PLAIN | wrong)
    assert str(raised.value).startswith(f"option: {words}")


def test_a_flow_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE)
    given = {"config": str(file), "topic": "orders", "kafka.compression.type": "none"}
    assert write_options(given | {"flow": "A->C"}).cluster.alias == "C", "the flow's target"
    with pytest.raises(ConfigError, match="flow: is missing: there are A->B, A->C; choose one"):
        write_options(given)
    with pytest.raises(ConfigError, match=r"kafka\.bootstrap\.servers: the file config has the clusters"):
        write_options(given | PLAIN)


def test_passwords_are_references(tmp_path: Path) -> None:
    """The options travel to the tasks, and no writer can ask whether they do so in clear."""
    signs_in = {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN"}
    providers = {
        "kafka.config.providers": "file",
        "kafka.config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    kept = tmp_path / "kept.properties"
    kept.write_text("password = hunter2\n")
    reference = LOGIN % f"${{file:{kept}:password}}"
    given = write_options(PLAIN | signs_in | providers | {"kafka.sasl.jaas.config": reference})
    assert given.cluster.signs_in
    assert b"hunter2" not in pickle.dumps(given)
    with pytest.raises(ConfigError, match=r"kafka\.\*: has passwords.*use foreachBatch\(sm\.Sink\(\.\.\.\)\)"):
        write_options(PLAIN | signs_in | {"kafka.sasl.jaas.config": LOGIN % "p"})
    file = tmp_path / "mm2.properties"
    lines = ["B.security.protocol = SASL_SSL", "B.sasl.mechanism = PLAIN", f"B.sasl.jaas.config = {LOGIN % 'p'}"]
    file.write_text("\n".join([FILE, *lines]))
    with pytest.raises(ConfigError, match=r"config: has passwords"):
        write_options({"config": str(file), "flow": "A->B", "topic": "orders"})
