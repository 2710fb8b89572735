#!/usr/bin/env python3
"""What Kubernetes runs in an executor's pod before it ends it: drain the executor, and wait until it has ended.

Spark names this /opt/decom.sh (`spark.kubernetes.decommission.script`). Kubernetes' grace period bounds the wait.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_EXECUTOR = b"KubernetesExecutorBackend"
_POLL_S = 0.2


def main() -> None:
    """Tell each executor of this container, then wait for it."""
    executors = [process for process in Path("/proc").glob("[0-9]*") if _is_executor(process)]
    for process in executors:
        with suppress(ProcessLookupError):
            os.kill(int(process.name), signal.SIGPWR)
    while any(_is_executor(process) for process in executors):
        time.sleep(_POLL_S)


def _is_executor(process: Path) -> bool:
    with suppress(OSError):
        return _EXECUTOR in (process / "cmdline").read_bytes()
    return False


if __name__ == "__main__":
    main()
