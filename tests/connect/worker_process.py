"""A worker as a process that tests can kill: connectors come as JSON, and it runs them until it is stopped."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from pathlib import Path

from connectors import specs, worker_file

from sparkmirror.connect.worker import ConnectWorker


def main(path: str) -> None:
    """`path`: a file with `worker`, its settings, and `connectors`, by name."""
    logging.basicConfig(level=logging.INFO)
    given = json.loads(Path(path).read_text())
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    worker = ConnectWorker(worker_file(given["worker"]), "worker:8083")
    worker.start()
    worker.apply(specs(given["connectors"]))
    stop.wait()
    worker.close()


if __name__ == "__main__":
    main(sys.argv[1])
