"""A mirror on a real Spark standalone cluster, whose executors are killed under it."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import mirror_process as mp
import psutil
import pytest
from loaded_flow import LoadedFlow

from sparkmirror.demo.spark_cluster import standalone_cluster

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]


def executors() -> list[psutil.Process]:
    """Executor JVMs of the clusters that this process started."""
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if "CoarseGrainedExecutorBackend" in mp.command_line(process)
    ]


def test_executors_killed_under_load(flow: LoadedFlow, tmp_path: Path) -> None:
    with standalone_cluster(tmp_path) as settings:
        properties = flow.write_properties("standalone.properties", flow.target.bootstrap_servers, settings)
        with flow.load(), flow.start(properties=properties) as mirror:
            for _ in range(3):
                flow.wait_for_progress(90)
                random.choice(executors()).send_signal(signal.SIGKILL)
                time.sleep(2)
            flow.wait_for_progress(90)
            assert mirror.terminate() == 0
        flow.finish()
