"""Consumers that are members of a group."""

from __future__ import annotations

import time
from typing import Any

from kafka import KafkaConsumer
from tests.support.mirror_process import PATIENCE


def joined(servers: str, group: str, topic: str, **settings: Any) -> KafkaConsumer:
    """Return a consumer that has joined the group and been given partitions; it commits only when told to.

    Raises AssertionError when a patient minute did not suffice, and what `poll` raises.
    """
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        enable_auto_commit=False,
        metadata_max_age_ms=1000,  # a leader that does not know the topic yet assigns nothing until it asks again
        **settings,
    )
    try:
        deadline = time.monotonic() + 60 * PATIENCE
        while not consumer.assignment():
            consumer.poll(timeout_ms=3000)  # a join that is cut in two by the end of a poll may never end
            assert time.monotonic() < deadline, f"{group} has no partition of {topic}"
    except BaseException:
        consumer.close()
        raise
    return consumer
