"""A mirror in a thread of the tests' own process, on the one Spark session."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from sparkmirror.config import MirrorConfig, load_mm2_properties
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.mirror.engine.progress_display import OnProgress
from sparkmirror.mirror.engine.queries import Queries
from sparkmirror.pump.messages.orders import Receipt


@contextlib.contextmanager
def run_mirror(path: Path, spark: SparkSession, queries: Queries | None = None) -> Iterator[Mirror]:
    """Run what a file says in a thread for the length of a `with`; what `run` raises is raised at its end."""
    with run_config(load_mm2_properties(str(path)), spark, queries=queries) as mirror:
        yield mirror


@contextlib.contextmanager
def run_config(
    config: MirrorConfig,
    spark: SparkSession,
    on_progress: OnProgress | None = None,
    *,
    use_lease: bool = False,
    queries: Queries | None = None,
) -> Iterator[Mirror]:
    """The same for a configuration."""
    mirror = Mirror(config, use_lease=use_lease, spark=spark, on_progress=on_progress, queries=queries)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            mirror.run()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield mirror
    finally:
        mirror.stop()
        thread.join(40)
    assert not thread.is_alive(), "the mirror did not stop"
    if failures:
        raise failures[0]


def is_paused(mirror: Mirror) -> bool:
    """Whether every partition's pump has heard that it shall pause, and said so."""
    (driver,) = mirror.drivers
    receipts = [view.receipt for view in list(driver.view.partitions.values())]
    return bool(receipts) and all(one is not None and one.reason == "paused" for one in receipts)


def reasons(mirror: Mirror) -> list[str]:
    """What the status line would say: why pumps wait, why partitions are parked, why duties fail."""
    (driver,) = mirror.drivers
    receipts = [view.receipt for view in list(driver.view.partitions.values()) if view.receipt is not None]
    waiting = [report.waiting for report in list(driver.view.pumps.values())]
    return [*(receipt.reason for receipt in receipts), *waiting]


def receipt(mirror: Mirror, topic: str) -> Receipt | None:
    """The newest of a topic's only partition."""
    (driver,) = mirror.drivers
    found = [view.receipt for key, view in driver.view.partitions.items() if key.topic == topic]
    return found[0] if found else None
