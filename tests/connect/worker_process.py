"""A worker as a process that tests can kill: connectors come as JSON, and it runs them until it is stopped."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from pathlib import Path

from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.connect_files import WorkerSettings
from sparkmirror.connect.connector_model import ConnectorSpec, TargetState
from sparkmirror.connect.worker import ConnectWorker


def main(path: str) -> None:
    """`path`: a file with `worker`, its settings, and `connectors`, by name."""
    logging.basicConfig(level=logging.INFO)
    given = json.loads(Path(path).read_text())
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    file = WorkerSettings(
        {key: Entry(key=key, value=value, where=path) for key, value in given["worker"].items()}, path
    )
    worker = ConnectWorker(file, "worker:8083")
    worker.start()
    connectors = given["connectors"].items()
    worker.apply(
        {name: ConnectorSpec(name=name, config=config, target_state=TargetState.STARTED) for name, config in connectors}
    )
    stop.wait()
    worker.close()


if __name__ == "__main__":
    main(sys.argv[1])
