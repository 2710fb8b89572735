"""What a worker's process tells of itself before it has connectors."""

from __future__ import annotations

from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.connect_files import WorkerSettings
from sparkmirror.connect.worker import ConnectWorker
from sparkmirror.look.metrics.collector import MirrorCollector
from sparkmirror.look.metrics.profile import Profile


def test_it_is_there_and_names_its_mode() -> None:
    file = WorkerSettings(
        {"bootstrap.servers": Entry(key="bootstrap.servers", value="kafka:9092", where="file")}, "file"
    )
    worker = ConnectWorker(file, "host:8083")
    text = MirrorCollector(worker.snapshots, tuple(Profile)).text().decode()
    assert 'mode="serve"' in text
    assert "kafka_connect_worker_connector_count 0" in text
