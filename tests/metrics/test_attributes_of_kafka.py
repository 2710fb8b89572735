"""Each attribute of Connect and of the clients is one that Kafka's own classes register."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.metrics.rich_snapshot import RICH
from tests.metrics.scrapes import scraped

from sparkmirror.demo.jars import MIRROR_MAKER, jar_directory
from sparkmirror.look.metrics.profile import Profile


def attributes() -> set[str]:
    """Attributes of the MBeans, from the names that leave nothing out."""
    names = {name for name in scraped(RICH, Profile.JMX_EXPORTER) if "_metrics_" in name}
    return {name.partition("_metrics_")[2].replace("_", "-") for name in names}


def classes() -> Iterator[bytes]:
    for jar in jar_directory(MIRROR_MAKER).rglob("*.jar"):
        if jar.name.startswith(("connect-runtime", "kafka-clients")):
            with zipfile.ZipFile(jar) as opened:
                yield from (opened.read(name) for name in opened.namelist() if is_of_metrics(Path(name)))


def is_of_metrics(path: Path) -> bool:
    """Whether a class may name attributes."""
    return path.suffix == ".class" and path.stem.partition("$")[0] in {
        "ConnectMetricsRegistry",
        "WorkerCoordinator",
        "FetchMetricsRegistry",
        "SenderMetricsRegistry",
        "BufferPool",
        "KafkaProducerMetrics",
        "RecordAccumulator",
        "Selector",
    }


def test_attributes_are_those_of_kafka() -> None:
    known = b"".join(classes())
    told = attributes()
    assert {"source-record-write-total", "records-consumed-total", "completed-rebalances-total"} <= told
    unknown = {
        attribute
        for attribute in told
        if attribute.encode() not in known
        and attribute.removesuffix("-total").encode() not in known  # meters add the suffix
    }
    assert unknown == set()
