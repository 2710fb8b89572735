"""What the records hold: each function makes one value, the same one in every run."""

from __future__ import annotations

import base64
import json
import random

_STATES = ("pending", "confirmed", "packed", "shipped", "delivered", "returned", "cancelled", "partial")


def order(source: random.Random, number: int) -> bytes:
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


def reading(source: random.Random, number: int) -> bytes:
    """A JSON document of about 100 B: one sensor's reading."""
    document = {
        "sensor": f"s-{source.randrange(10**6):06d}",
        "at": 1_740_000_000_000 + number * 7919,
        "value": source.randrange(10**6) / 1000,
        "unit": "C",
        "trace": f"{source.getrandbits(64):016x}",
    }
    return json.dumps(document, separators=(",", ":")).encode()


def noise(source: random.Random, _: int) -> bytes:
    """1000 characters of base64: nothing that lz4 could shorten, and no newline."""
    return base64.b64encode(source.randbytes(750))
