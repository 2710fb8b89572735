"""Connect's offsets of MirrorMaker 2, byte for byte, and where Java's producer puts them."""

from __future__ import annotations

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.config.model import ConnectStorage
from sparkmirror.exact.mm2.connect_offsets import (
    DEDICATED_CONNECTOR,
    SourcePartition,
    java_partition,
    offset_value,
    offsets_topics,
    read_key,
    read_value,
    strimzis_connector,
)
from sparkmirror.exact.mm2.connector_names import is_configured, may_be

GOLDEN = b'["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"topic1"}]'


def test_golden_bytes() -> None:
    partition = SourcePartition(DEDICATED_CONNECTOR, "A", "topic1", 3)
    assert (partition.key(), offset_value(42)) == (GOLDEN, b'{"offset":42}')
    assert (read_key(GOLDEN), read_value(b'{"offset":42}')) == (partition, 42)


@pytest.mark.parametrize("connector", ["src->tgt.MirrorSourceConnector", "any name", 'quo"te', "Überträger"])
def test_any_connector_name(connector: str) -> None:
    partition = SourcePartition(connector, "src", "a.topic", 0)
    assert read_key(partition.key()) == partition


@pytest.mark.parametrize(
    "key",
    [
        None,
        b"",
        b"\xff",
        b"{}",
        b'["MirrorCheckpointConnector",{"partition":3,"topic":"A.topic-2","group":"group-1"}]',
        b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]',
        b'["file",{"filename":"x"}]',
        b'["MirrorSourceConnector",{"cluster":"A","partition":"3","topic":"t"}]',
        b'["MirrorSourceConnector",{"cluster":"A","partition":true,"topic":"t"}]',
    ],
)
def test_other_connectors_keys_are_passed_over(key: bytes | None) -> None:
    assert read_key(key) is None


STRIMZIS = strimzis_connector("A", "B")


@pytest.mark.parametrize(
    ("name", "configured", "possible"),
    [
        ("mine", {"mine"}, {"mine"}),
        (STRIMZIS, {STRIMZIS}, {STRIMZIS}),
        (DEDICATED_CONNECTOR, {DEDICATED_CONNECTOR, STRIMZIS}, {DEDICATED_CONNECTOR, STRIMZIS, "mine"}),
    ],
)
def test_a_connectors_own_file_says_the_only_name(name: str, configured: set[str], possible: set[str]) -> None:
    """Any other is perhaps of a flow to another target, also where it is the dedicated mode's."""
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=("b:9092",)) for alias in "AB")
    flow = FlowConfig(source=source, target=target, connect=ConnectStorage(connector=name))
    names = {"mine", STRIMZIS, DEDICATED_CONNECTOR, strimzis_connector("A", "other")}
    assert {one for one in names if is_configured(flow, one)} == configured
    assert {one for one in names if may_be(flow, one)} == possible


@pytest.mark.parametrize("value", [None, b"", b"null", b"{}", b'{"offset":"42"}', b'{"offset":-1}', b'{"offset":true}'])
def test_deleted_and_odd_values_say_nothing(value: bytes | None) -> None:
    assert read_value(value) is None


@pytest.mark.parametrize(
    ("key", "java"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_partitions_as_javas_producer_chooses_them(key: bytes, java: int) -> None:
    """`java`: what `Utils.murmur2` returns."""
    assert java_partition(key, 25) == (java & 0x7FFFFFFF) % 25


def test_where_they_are() -> None:
    assert offsets_topics("A")[0] == "mm2-offsets.A.internal"
    assert {"connect-offsets", "mirrormaker2-cluster-offsets"} < set(offsets_topics("A"))
    assert offsets_topics("A", "elsewhere") == ("elsewhere",)
