"""A second producer that aborts: what a reader of committed records has to leave out."""

from __future__ import annotations

import threading
from typing import Any, Self

from kafka import KafkaProducer

from bench.producing import ProducingFailed
from bench.workloads import Workload

TRANSACTION_RECORDS = 400
PAUSE_S = 0.05
_STOP_TIMEOUT_S = 60.0


class Aborter:
    """As a context, writes transactions to all partitions of a topic and aborts them, next to other producers.

    Every one of them has reached the log when it is aborted. Leaving it raises ProducingFailed if it failed.
    """

    def __init__(self, workload: Workload, bootstrap_servers: str, topic: str, partitions: int) -> None:
        self._values = workload.lines()[:TRANSACTION_RECORDS]
        self._topic = topic
        self._partitions = partitions
        self._producer: Any = KafkaProducer(
            bootstrap_servers=bootstrap_servers,
            transactional_id=f"{topic}-aborter",
            compression_type=None if workload.codec == "none" else workload.codec,
            batch_size=workload.batching.batch_bytes,
            linger_ms=workload.batching.linger_ms,
        )
        self._failure: Exception | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="aborter", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(_STOP_TIMEOUT_S)
        if self._failure is not None:
            raise ProducingFailed(f"the producer that aborts failed: {self._failure}")

    def _run(self) -> None:
        try:
            self._producer.init_transactions()
            while not self._ended.wait(PAUSE_S):
                self._producer.begin_transaction()
                for number, value in enumerate(self._values):
                    self._producer.send(self._topic, value=value, partition=number % self._partitions)
                self._producer.flush()
                self._producer.abort_transaction()
        except Exception as error:
            self._failure = error
        finally:
            self._producer.close()
