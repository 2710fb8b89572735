"""What is copied: sizes, contents, codec. A workload is data; nothing here runs."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from dataclasses import dataclass

PAYLOADS = 10_000
"""Different values in a workload; the producer draws from them at random."""

_STATES = ("pending", "confirmed", "packed", "shipped", "delivered", "returned", "cancelled", "partial")


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of data. `share` is its part of the gigabytes asked for, for those that take long."""

    name: str
    what: str
    codec: str
    line: Callable[[random.Random, int], bytes]
    share: float = 1.0
    records_per_s: int = 0
    """For latency only: the producer's pace. 0: as fast as it can, before the mirror starts."""

    @property
    def is_paced(self) -> bool:
        return self.records_per_s > 0

    def payloads(self) -> bytes:
        """The payload file: `PAYLOADS` lines, the same ones in every run."""
        source = random.Random(self.name)
        return b"\n".join(self.line(source, number) for number in range(PAYLOADS))


def _order(source: random.Random, number: int) -> bytes:
    """A JSON document of about 1 kB, such as services send each other: a third of it is structure."""
    document = {
        "event_id": f"{source.getrandbits(128):032x}",
        "sequence": number,
        "occurred_at": f"2025-03-{source.randrange(1, 29):02d}T{source.randrange(24):02d}:00:00.{number % 1000:03d}Z",
        "type": "order.updated",
        "customer": {"id": f"C-{source.randrange(10**9):09d}", "email": f"{source.getrandbits(40):x}@example.com"},
        "items": [
            {
                "sku": f"{source.getrandbits(48):012x}",
                "quantity": source.randrange(1, 20),
                "unit_price": source.randrange(100, 100_000) / 100,
                "state": source.choice(_STATES),
                "token": f"{source.getrandbits(192):048x}",
            }
            for _ in range(5)
        ],
        "trace": f"{source.getrandbits(256):064x}",
        "signature": f"{source.getrandbits(384):096x}",
    }
    return json.dumps(document, separators=(",", ":")).encode()


def _reading(source: random.Random, number: int) -> bytes:
    """A JSON document of about 100 B: one sensor's reading."""
    document = {
        "sensor": f"s-{source.randrange(10**6):06d}",
        "at": 1_740_000_000_000 + number * 7919,
        "value": source.randrange(10**6) / 1000,
        "unit": "C",
        "trace": f"{source.getrandbits(64):016x}",
    }
    return json.dumps(document, separators=(",", ":")).encode()


def _noise(source: random.Random, _: int) -> bytes:
    """1000 characters of base64: nothing that lz4 could shorten, and no newline."""
    return base64.b64encode(source.randbytes(750))


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("json-lz4", "1 kB JSON, lz4", "lz4", _order),
        Workload("random-1k", "1 kB that can't be compressed, no codec", "none", _noise),
        Workload("small-lz4", "100 B JSON, lz4", "lz4", _reading, share=0.25),
        Workload("latency", "500 records/s of 1 kB JSON, no codec, linger 0", "none", _order, records_per_s=500),
    )
}
