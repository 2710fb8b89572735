"""`sparkmirror schemas check` with real brokers and two real registries (Apicurio)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from apicurio import NEW, OLD, Apicurio, needs_new_java
from kafka import KafkaProducer
from lab import KafkaCluster
from typer.testing import CliRunner, Result

from sparkmirror.cli.app import app
from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec

pytestmark = [pytest.mark.broker, pytest.mark.full]

ORDER = {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "long"}]}
BILL = {"type": "record", "name": "Bill", "namespace": "shop", "fields": [{"name": "total", "type": "double"}]}
OTHER_BILL = {"type": "record", "name": "Bill", "namespace": "shop", "fields": [{"name": "total", "type": "string"}]}
PROTO = 'syntax = "proto3";\n// who buys\nmessage Buyer { string name = 1; }\n'
SAME_PROTO = 'syntax = "proto3"; message Buyer {\n  string name = 1;\n}'
HUSH = "hunter2-registry"


@pytest.fixture(scope="module")
def registries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Apicurio, Apicurio]]:
    """Source's and target's, with nothing in them."""
    pair = Apicurio(tmp_path_factory.mktemp("source")), Apicurio(tmp_path_factory.mktemp("target"))
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Apicurio.start, pair))
        yield pair
    finally:
        for registry in pair:
            registry.stop()


def framed(number: int, content: bytes = b"content") -> bytes:
    return b"\0" + number.to_bytes(4, "big") + content


Records = list[tuple[bytes | None, bytes | None]]


def write(cluster: KafkaCluster, topic: str, records: Records, codec: str = "") -> None:
    brokers = (cluster.bootstrap_servers,)
    with ClusterAdmin.connect(ClusterConfig(alias="x", bootstrap_servers=brokers), "test") as admin:
        admin.create_topics([NewTopicSpec(topic, 3, 1)])
    producer = KafkaProducer(bootstrap_servers=brokers, compression_type=codec or None)
    for key, value in records:
        producer.send(topic, key=key, value=value)
    producer.flush()
    producer.close()


@pytest.fixture
def check(
    cluster_pair: tuple[KafkaCluster, KafkaCluster], registries: tuple[Apicurio, Apicurio], tmp_path: Path
) -> Callable[..., Result]:
    """Run the verb."""
    file = tmp_path / "mm2.properties"
    source, target = cluster_pair
    file.write_text(
        "clusters = A, B\nA->B.enabled = true\n"
        f"A.bootstrap.servers = {source.bootstrap_servers}\nB.bootstrap.servers = {target.bootstrap_servers}\n"
        f"A->B.sparkmirror.schemas.source.url = {registries[0].url}/\n"
        f"sparkmirror.schemas.target.url = {registries[1].url}\n"
    )

    def run(*words: str) -> Result:
        return CliRunner().invoke(app, ["schemas", "check", str(file), *words])

    return run


def parts_of(result: Result) -> dict[tuple[str, str], Any]:
    (flow,) = json.loads(result.stdout)
    return {(part["topic"], part["field"]): part for part in flow["parts"]}


def test_ids_of_two_registries(
    check: Callable[..., Result],
    source_cluster: KafkaCluster,
    registries: tuple[Apicurio, Apicurio],
    topic_name: str,
) -> None:
    """Equal under other blanks, differing, of another type, missing; keys; what only looks so; a Glue id."""
    source, target = registries
    order, bill, buyer = (
        source.register("orders-value", ORDER),
        source.register("bills-value", BILL),
        source.register("buyers-value", PROTO, "PROTOBUF"),
    )
    gone = source.register("gone-value", {"type": "fixed", "name": "Gone", "size": 3})
    moved = source.register("moved-value", {"type": "enum", "name": "Moved", "symbols": ["A"]})
    assert target.register("orders-value", json.dumps(ORDER, indent=3)) == order
    assert target.register("bills-value", OTHER_BILL) == bill
    assert target.register("buyers-value", SAME_PROTO, "PROTOBUF") == buyer
    assert target.register("moved-value", {"type": "enum", "name": "Moved", "symbols": ["A"]}) == gone
    uuid = UUID("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63")
    write(source_cluster, topic_name, [(framed(order), framed(bill)), (None, framed(buyer)), (b"x", None)], "zstd")
    more: Records = [(None, framed(gone)), (None, framed(moved)), (None, b"\x03\0" + uuid.bytes)]
    write(source_cluster, f"{topic_name}-2", more)
    longs: Records = [(number.to_bytes(8, "big"), b"{}") for number in range(1 << 40, 3 << 40, 1 << 38)]
    write(source_cluster, f"{topic_name}-longs", longs)

    result = check("--topics", f"{topic_name}.*", "-o", "json")
    assert result.exit_code == 1, result.output
    parts = parts_of(result)
    keys, values = parts[topic_name, "key"], parts[topic_name, "value"]
    assert (keys["records"], keys["with_id"], keys["doubt"]) == (2, 1, "")
    assert [(one["id"], one["verdict"], one["subjects"]) for one in keys["ids"]] == [
        (str(order), "equal", ["orders-value version 1"])
    ]
    found = {one["id"]: one for one in values["ids"]}
    assert found[str(bill)]["verdict"] == "another schema"
    assert found[str(bill)]["detail"] == 'fields[total].type is "double", at the target "string"'
    assert found[str(buyer)]["verdict"] == "equal"
    others = {one["id"]: one for one in parts[f"{topic_name}-2", "value"]["ids"]}
    assert others[str(gone)]["verdict"] == "another schema"
    assert "at the target it is moved-value version 1" in others[str(gone)]["detail"]
    assert others[str(moved)]["verdict"] == "missing"
    assert others[str(moved)]["detail"] == f"this schema has id {gone} there"
    assert others[str(uuid)]["verdict"] == "not checked"
    numbers = parts[f"{topic_name}-longs", "key"]
    assert numbers["with_id"] == 8
    assert "8 of 8 begin as if with a schema id (different ids: 8)" in numbers["doubt"]
    assert parts[f"{topic_name}-longs", "value"]["ids"] == []

    table = check("--topics", f"{topic_name}.*", "--whole")
    assert table.exit_code == 1
    assert "unsure" in table.stdout
    assert "3 of 5 ids don't lead to an equal schema, 1 not checked" in table.stdout
    well = check("--topics", f"{topic_name}-longs|nothing")
    assert well.exit_code == 1
    assert "knows none of the ids" in well.output


def test_whole_logs_and_samples_of_every_codec(
    check: Callable[..., Result], source_cluster: KafkaCluster, registries: tuple[Apicurio, Apicurio], topic_name: str
) -> None:
    source, target = registries
    schema = {"type": "fixed", "name": "Sampled", "size": 5}
    number = source.register("sampled-value", schema)
    while target.register(f"filler-{len(target.ask('GET', '/subjects'))}", {**schema, "name": "F"}) < number - 1:
        schema = {**schema, "size": int(str(schema["size"])) + 1}
    for codec in ("", "gzip", "snappy", "lz4", "zstd"):
        write(source_cluster, topic_name, [(None, framed(number))] * 30, codec)
    whole = parts_of(check("--topics", topic_name, "-o", "json", "--whole"))[topic_name, "value"]
    assert (whole["records"], whole["with_id"]) == (150, 150)
    sampled = parts_of(check("--topics", topic_name, "-o", "json", "--sample", "2"))[topic_name, "value"]
    assert 2 <= sampled["records"] < 150
    assert sampled["with_id"] == sampled["records"]
    copies = check("--topics", topic_name, "-o", "json", "--at", "target")
    assert copies.exit_code == 1, "there is no copy, and what is not read is not well"
    assert json.loads(copies.stdout)[0]["unread"] == {topic_name: "UNKNOWN_TOPIC_OR_PARTITION (3)"}


@pytest.fixture
def another(tmp_path: Path) -> Iterator[Callable[[str], Apicurio]]:
    """Start one more, of a version."""
    with ExitStack() as stack:

        def start(version: str) -> Apicurio:
            registry = Apicurio(tmp_path, version)
            stack.callback(registry.stop)
            registry.start()
            return registry

        yield start


def test_an_export_keeps_ids(
    check: Callable[..., Result],
    source_cluster: KafkaCluster,
    registries: tuple[Apicurio, Apicurio],
    another: Callable[[str], Apicurio],
    topic_name: str,
) -> None:
    """The third way of docs/schemas.md: before it ids are missing, after it equal, with what they refer to."""
    source, target = registries[0], another(OLD)
    inner = source.register("id-value", {"type": "fixed", "name": "Id", "size": 4})
    outer = {"type": "record", "name": "Of", "fields": [{"name": "id", "type": "Id"}]}
    references: list[dict[str, object]] = [{"name": "Id", "subject": "id-value", "version": 1}]
    number = source.register("of-value", outer, references=references)
    write(source_cluster, topic_name, [(None, framed(number)), (None, framed(inner))])
    words = ("--topics", topic_name, "--target-registry", target.url, "-o", "json")
    before = check(*words)
    assert before.exit_code == 1, before.output
    assert {one["verdict"] for one in parts_of(before)[topic_name, "value"]["ids"]} == {"missing"}
    target.taken_in(source.exported())
    after = check(*words)
    assert after.exit_code == 0, after.output
    ids = {one["id"]: one for one in parts_of(after)[topic_name, "value"]["ids"]}
    assert {one["verdict"] for one in ids.values()} == {"equal"}
    assert ids[str(number)]["subjects"] == ["of-value version 1"]


def test_an_import_mode_that_gives_ids_of_its_own(
    check: Callable[..., Result],
    source_cluster: KafkaCluster,
    registries: tuple[Apicurio, Apicurio],
    another: Callable[[str], Apicurio],
    topic_name: str,
) -> None:
    """Apicurio 3.3.3 takes the mode and the id, says nothing, and counts for itself: the check tells."""
    needs_new_java()
    source, target = registries[0], another(NEW)
    number = source.register("imported-value", {"type": "fixed", "name": "Imported", "size": 4})
    write(source_cluster, topic_name, [(None, framed(number))])
    target.ask("PUT", "/mode", {"mode": "IMPORT"})
    form = source.ask("GET", "/subjects/imported-value/versions/1")
    given = target.ask("POST", "/subjects/imported-value/versions", form)["id"]
    result = check("--topics", topic_name, "--target-registry", target.url, "-o", "json")
    (found,) = parts_of(result)[topic_name, "value"]["ids"]
    if given == number:
        assert found["verdict"] == "equal"
    else:
        assert (found["verdict"], found["detail"]) == ("missing", f"this schema has id {given} there")
        assert result.exit_code == 1


def test_one_registry_for_both(
    check: Callable[..., Result], source_cluster: KafkaCluster, registries: tuple[Apicurio, Apicurio], topic_name: str
) -> None:
    source, _ = registries
    number = source.register("only-value", {"type": "fixed", "name": "Only", "size": 2})
    write(source_cluster, topic_name, [(None, framed(number))])
    assert check("--topics", topic_name, "--target-registry", source.url).exit_code == 0


def test_an_address_without_the_path_of_the_api(
    check: Callable[..., Result], source_cluster: KafkaCluster, registries: tuple[Apicurio, Apicurio], topic_name: str
) -> None:
    write(source_cluster, topic_name, [(None, framed(1))])
    result = check("--topics", topic_name, "--target-registry", registries[1].url.partition("/apis")[0])
    assert "does not answer as one: Confluent's API does not begin there" in str(result.exception)
