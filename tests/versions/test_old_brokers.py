"""Old brokers in a minute: 2.8.2 with ZooKeeper and 3.6.2 with KRaft, each the source of the other."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import topics
from cluster_of import cluster_of
from tests.support import mirror_process as mp
from topics import Topic

pytestmark = [pytest.mark.broker, pytest.mark.spark]

OLDER = [
    Topic("older-lz4", "lz4", "keyed"),
    Topic("older-transactional", "gzip", "transactional"),
    Topic("older-v1", "lz4", "old", {"message.format.version": topics.OLD_FORMATS["v1"]}),
]
NEWER = [Topic("newer-zstd", "zstd", "keyed"), Topic("newer-transactional", "lz4", "transactional")]

WAIT_S = 240
"""For a verb; it takes a tenth of that, on a machine that does nothing else."""


@pytest.mark.full
def test_old_brokers_copy_to_each_other(tmp_path: Path) -> None:
    older = cluster_of("2.8.2", tmp_path / "older", properties={"log.cleaner.enable": "false"})
    newer = cluster_of("3.6.2 KRaft", tmp_path / "newer", properties={"log.cleaner.enable": "false"})
    ways = ((older, OLDER, newer, "A"), (newer, NEWER, older, "B"))
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda cluster: cluster.start(), (older, newer)))
            list(pool.map(lambda way: topics.write(way[0], way[1]), ways))
        settings = {
            "A.consumer.isolation.level": "read_committed",
            "B.consumer.isolation.level": "read_committed",
            "B->A.enabled": "true",
            "B->A.topics": "newer-.*",
            "tasks.max": "1",
        }
        file = mp.write_properties(
            tmp_path / "mm2.properties", older.bootstrap_servers, newer.bootstrap_servers, "older-.*", settings
        )
        copied = subprocess.run(
            [mp.COMMAND, "run", str(file), "--once"], capture_output=True, text=True, timeout=WAIT_S
        )
        assert copied.returncode == 0, (copied.stdout + copied.stderr)[-2000:]
        for source, written, target, alias in ways:
            for topic in written:
                records = topics.read(source.bootstrap_servers, topic.name)
                copies = topics.read(target.bootstrap_servers, f"{alias}.{topic.name}")
                assert any(records.values())
                assert not topics.difference(records, copies), topic.name
        verified = subprocess.run([mp.COMMAND, "verify", str(file)], capture_output=True, text=True, timeout=WAIT_S)
        assert verified.returncode == 0, (verified.stdout + verified.stderr)[-2000:]
    finally:
        older.cleanup(keep_logs=True)
        newer.cleanup(keep_logs=True)
