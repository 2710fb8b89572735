"""Spark's Python daemon, with the pump imported before it forks workers.

Spark runs `python -m sparkmirror.engine.python_daemon pyspark.worker` on each executor (`spark.python.daemon.module`).
A forked worker shares the imported modules' memory with the daemon, and spends no time on their import.
"""

from __future__ import annotations

import gc

from pyspark.daemon import manager

import sparkmirror.pump.pump  # noqa: F401 - for the workers; pyarrow starts a thread, so a worker imports it itself


def main() -> None:
    """Fork workers until Spark has no use for them any more."""
    gc.collect()
    gc.freeze()  # a worker's collector leaves these objects alone, so their pages stay shared
    manager()


if __name__ == "__main__":
    main()
