"""A source log of 44 KB that unpacks to a gigabyte, in a flow that compresses again: copied, and no worker grows."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil
import pytest
from kafka.record.default_records import DefaultRecordBatch
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.bombs import ZSTD, bomb

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.log_range import read_batches
from sparkmirror.kafka.wire import produce

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

MB = 1 << 20
MOST_RESIDENT = 300 * MB
BOMBS: tuple[Sequence[Sequence[int]], ...] = ([[MB] * 200] * 4, [[5, 200 * MB, 7]], [[10]] * 20)
"""Of each partition: its batches, the sizes of their records."""
PARTITIONS = len(BOMBS)
COUNTS = [sum(map(len, batches)) for batches in BOMBS]
NOT_LEADER = 6


def client_of(cluster: KafkaCluster) -> ClusterClient:
    return ClusterClient(ClusterConfig(alias="any", bootstrap_servers=(cluster.bootstrap_servers,)), "test")


def append(cluster: KafkaCluster, topic: str) -> int:
    """Bytes of the bombs."""
    client, size = client_of(cluster), 0
    leaders = client.metadata([topic])[topic]
    for partition, batches in enumerate(BOMBS):
        connection = client.broker(leaders.partitions[partition].leader)
        version = connection.version(produce.API_KEY, produce.VERSIONS, "Produce")
        field = produce.topic_field(version, topic, leaders.topic_id)
        for sizes in batches:
            batch = bomb(ZSTD, sizes)
            size += len(batch)
            ack_error = NOT_LEADER
            while ack_error == NOT_LEADER:
                request = produce.produce_request(version, 1, b"test", 60_000, {field: {partition: memoryview(batch)}})
                ((ack,)) = produce.read_answer(version, connection.exchange_raw(request))[1]
                ack_error = ack.error
            assert not ack_error
    client.close()
    return size


def sizes_at(cluster: KafkaCluster, topic: str, partition: int) -> list[int]:
    """How many zeros each record has, as kafka-python reads them."""
    client, found = client_of(cluster), []
    for _, view in read_batches(client, client.metadata([topic])[topic], partition, 0, read_committed=False):
        batch = DefaultRecordBatch(view)
        assert batch.validate_crc()
        for record in batch:
            assert record.value.count(0) == len(record.value)
            found.append(len(record.value))
    client.close()
    return found


def peaks(processes: Iterable[psutil.Process]) -> dict[int, int]:
    """The most that each process had in memory so far (VmHWM), in bytes."""
    found = {}
    for process in processes:
        with contextlib.suppress(OSError):
            said = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
            if said:
                found[process.pid] = int(said[1]) * 1024
    return found


def test_a_bomb_is_copied_in_the_memory_that_any_copy_takes(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, PARTITIONS, {"retention.ms": "-1"})
    size = append(source_cluster, topic_name)
    assert size < 64 * 1024
    properties = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        target_cluster.bootstrap_servers,
        topic_name,
        {"tasks.max": "1", "A->B.producer.override.compression.type": "gzip"},
    )
    largest: dict[int, int] = {}
    ends: list[int] = []
    with mp.MirrorProcess(properties, tmp_path / "mirror.log") as mirror:
        deadline = time.monotonic() + 300
        asked = 0.0
        while ends != COUNTS:
            assert time.monotonic() < deadline, ends
            largest |= peaks(mirror.workers())
            if time.monotonic() - asked > 2:
                ends, asked = (
                    mp.end_offsets(target_cluster.bootstrap_servers, f"A.{topic_name}", PARTITIONS),
                    time.monotonic(),
                )
            time.sleep(0.2)
        largest |= peaks(mirror.workers())
        assert mirror.terminate() == 0
    print(f"{size} bytes; peaks of the workers: {[peak // MB for peak in largest.values()]} MB")
    assert 0 < max(largest.values()) < MOST_RESIDENT
    for partition, batches in enumerate(BOMBS):
        assert sizes_at(target_cluster, f"A.{topic_name}", partition) == [one for sizes in batches for one in sizes]

    verify = subprocess.Popen(
        [mp.COMMAND, "verify", str(properties)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=dict(os.environ),
    )
    largest = {}
    root = psutil.Process(verify.pid)
    while verify.poll() is None:
        with contextlib.suppress(psutil.Error):
            largest |= peaks(one for one in root.children(recursive=True) if "pyspark.daemon" in mp.command_line(one))
        time.sleep(0.2)
    said = verify.stdout.read() if verify.stdout else ""
    print(f"{said}\npeaks of verify's workers: {[peak // MB for peak in largest.values()]} MB")
    assert verify.returncode == 0, said
    assert max(largest.values()) < MOST_RESIDENT
