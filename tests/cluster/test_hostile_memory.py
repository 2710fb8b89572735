"""Memory of a process whose brokers mean harm, as its peak above what an honest broker takes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator

import pytest
from hostile_broker import Asked, HostileBroker, endless, framed
from tests.support.schema_answers import KINDS, Crowded, arrays, schema_of, uvarint

from sparkmirror.kafka.wire.answer_bounds import ALL_METADATA, BOUNDS, LISTING, MOST_ENTRIES, MOST_PARTITIONS

MB = 1 << 20
ABOVE_HONEST_MB = 300
"""Of any answer but a listing of all topics."""
ALL_TOPICS_MB = 500
"""Of a listing of all topics as large as it may be; a real one of 100,000 topics takes about half."""
LEAST_S = 4

CHILD = """
import sys, time
import kafka.protocol.admin, kafka.protocol.consumer, kafka.protocol.metadata, kafka.protocol.producer
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_descriptions import describe_topics
from sparkmirror.config import ClusterConfig
from sparkmirror.mirror.engine.lease import Lease
from sparkmirror.errors import SparkMirrorError

def status(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field)) // 1024

def peak(call):
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = status("VmRSS")
    try:
        result = call()
        outcome = f"{len(result)} found" if isinstance(result, dict) else type(result).__name__
    except (ConnectionError, SparkMirrorError) as error:
        outcome = " ".join(str(error).split())
    print(status("VmHWM") - before, outcome, sep="\\t", flush=True)

def request(name):
    for module in (kafka.protocol.admin, kafka.protocol.consumer, kafka.protocol.metadata, kafka.protocol.producer):
        if hasattr(module, name):
            made = getattr(module, name)()
            break
    if name == "MetadataRequest":
        made.topics = None
    return made

def hold_lease():
    lease = Lease(config, "g", "t", 3000)
    lease.start()
    time.sleep(float(sys.argv[3]))
    return lease

port, names = int(sys.argv[1]), sys.argv[2].split(",")
config = ClusterConfig(alias="A", bootstrap_servers=(f"127.0.0.1:{port}",))
client = ClusterClient(config, "test")
client.metadata([])
peak(lambda: client.metadata([]))
for name in names:
    if name == "Lease":
        peak(hold_lease)
    elif name == "Topics":
        peak(lambda: describe_topics(client))
    else:
        peak(lambda: client.ask(1, request(f"{name}Request")))
"""


@pytest.fixture
def broker() -> Iterator[HostileBroker]:
    hostile = HostileBroker()
    yield hostile
    hostile.close()


def peaks(broker: HostileBroker, *names: str, lease_s: float = LEAST_S) -> list[tuple[int, str]]:
    """MB above the memory before, and the outcome: of an honest answer, and of each request."""
    broker.asked.clear()
    command = [sys.executable, "-c", CHILD, str(broker.port), ",".join(names), str(lease_s)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=300, env=dict(os.environ))
    found = [line.split("\t") for line in child.stdout.splitlines()]
    assert len(found) == len(names) + 1, child.stderr
    print(names, found)
    return [(int(size), outcome) for size, outcome in found]


def above_honest(broker: HostileBroker, *names: str, lease_s: float = LEAST_S) -> list[tuple[int, str]]:
    (honest, _), *hostile = peaks(broker, *names, lease_s=lease_s)
    return [(size - honest, outcome) for size, outcome in hostile]


def but_the_first(broker: HostileBroker, bad: object) -> None:
    """Answer honestly to the metadata that leads to the broker, and then `bad`."""

    def answer(asked: Asked) -> Iterable[bytes] | None:
        first = asked.name == "Metadata" and broker.asked.count("Metadata") <= FIRST_METADATA
        return None if first else bad(asked)  # type: ignore[operator]

    broker.answer = answer


FIRST_METADATA = 2


@pytest.mark.parametrize("piece", [b"\0", b"\1\2"])
def test_an_endless_answer(broker: HostileBroker, piece: bytes) -> None:
    """Announced as the largest that is read, so that it is read."""
    but_the_first(broker, lambda asked: endless(asked, LISTING, piece * 65_536))
    for size, outcome in above_honest(broker, "ListGroups", "DescribeAcls"):
        assert size < ABOVE_HONEST_MB, outcome
    but_the_first(broker, lambda asked: endless(asked, ALL_METADATA, piece * 65_536))
    ((size, outcome),) = above_honest(broker, "Topics")
    assert size < ABOVE_HONEST_MB, outcome


def test_a_frame_of_two_gigabytes(broker: HostileBroker) -> None:
    but_the_first(broker, lambda asked: endless(asked, 2**31 - 1, b"\0" * 65_536))
    for size, outcome in above_honest(broker, "ListGroups", "Metadata", "OffsetFetch"):
        assert size < 10
        assert "bytes, and at most" in outcome


def test_an_endless_answer_to_the_leases_client(broker: HostileBroker) -> None:
    """kafka-python's own client: it gathered whatever came before it looked at the length."""
    broker.answer = lambda asked: endless(asked, 2**31 - 1, b"\0" * MB) if asked.name == "FindCoordinator" else None
    ((size, _),) = above_honest(broker, "Lease")
    assert "FindCoordinator" in broker.asked
    assert size < 60


def crowded(asked: Asked, path: tuple[str, ...], text: bytes, size: int) -> Iterable[bytes]:
    most = MOST_PARTITIONS if asked.name == "Metadata" else MOST_ENTRIES
    return [framed(asked, Crowded(asked.kind, asked.version, path, text, size - 64, most - 9).data)]


def test_the_largest_listings_of_the_smallest_entries(broker: HostileBroker) -> None:
    but_the_first(broker, lambda asked: crowded(asked, ("groups",), b"", LISTING))
    ((size, outcome),) = above_honest(broker, "ListGroups")
    assert outcome == "ListGroupsResponse"
    assert size < ABOVE_HONEST_MB
    but_the_first(broker, lambda asked: crowded(asked, ("topics", "partitions"), b"", ALL_METADATA))
    ((size, outcome),) = above_honest(broker, "Topics")
    assert outcome == "0 found"  # a topic with an error, or none of its partitions
    assert size < ALL_TOPICS_MB


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(name.removesuffix("Request") for name in BOUNDS))
def test_the_largest_answer_of_the_smallest_entries_to_each_request(broker: HostileBroker, name: str) -> None:
    if name in ("ApiVersions", "SaslHandshake", "SaslAuthenticate"):
        pytest.skip("its bound is 128 kB, whatever stands in it")
    schema = schema_of(KINDS[f"{name}Response"])
    for path in arrays(schema, KINDS[f"{name}Response"].max_version):
        for text in (b"", b"ab"):
            bound = ALL_METADATA if name == "Metadata" else min(LISTING, BOUNDS[f"{name}Request"].fixed)
            but_the_first(broker, lambda asked: crowded(asked, path, text, bound))  # noqa: B023
            ((size, outcome),) = above_honest(broker, name)
            assert size < (ALL_TOPICS_MB if name == "Metadata" else ABOVE_HONEST_MB), (path, outcome)


def large_cluster(asked: Asked, topics: int) -> Iterable[bytes]:
    """Metadata of many topics with ten partitions each, on six brokers."""
    version, tail = asked.version, b"\0\0\0\0\0"
    replicas = b"".join((3 + at % 4).to_bytes(4, "big") for at in range(3))
    partitions = b"".join(
        b"\0\0" + at.to_bytes(4, "big") + b"\0\0\0\3" + b"\0\0\0\7" + (b"\4" + replicas) * 2 + b"\1\0"
        for at in range(10)
    )
    brokers = uvarint(2) + b"\0\0\0\1" + b"\x0a127.0.0.1" + asked.port.to_bytes(4, "big") + b"\0\0"
    names = (b"orders.of.region.%08d" % at for at in range(topics))
    listed = b"".join(
        b"\0\0" + uvarint(len(name) + 1) + name + os.urandom(16) + b"\0" + uvarint(11) + partitions + tail
        for name in names
    )
    assert version >= 10
    body = b"\0\0\0\0" + brokers + b"\2c" + b"\0\0\0\1" + uvarint(topics + 1) + listed
    return [framed(asked, body + (b"\0\0\0" if version >= 13 else b"\0"))]


@pytest.mark.parametrize("topics", [5_000, pytest.param(100_000, marks=pytest.mark.full)])
def test_a_cluster_of_many_topics_is_read(broker: HostileBroker, topics: int) -> None:
    but_the_first(broker, lambda asked: large_cluster(asked, topics))
    ((size, outcome),) = above_honest(broker, "Topics")
    assert outcome == f"{topics} found"
    assert size < max(ALL_TOPICS_MB * topics / 100_000, 40)
