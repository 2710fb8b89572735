"""Passwords of the sink's cluster stay out of a Spark cluster's clear text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sparkmirror.client.settings import CONSUMER, cluster_config
from sparkmirror.errors import ConfigError
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.sink import writing
from sparkmirror.sink.agreement import MicroBatch
from sparkmirror.sink.writing import BatchWriter

SIGN_IN = {
    "bootstrap.servers": "127.0.0.1:1",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";',
}


def test_tasks_that_would_get_them_in_clear_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "settings_of", lambda _: {"spark.master": "spark://host:7077"})
    monkeypatch.setattr(writing, "record_columns", lambda frame, *_: frame)
    writer = BatchWriter(cluster_config(SIGN_IN, CONSUMER), "orders", Codec(0), is_gathered=True)
    frame: Any = SimpleNamespace(sparkSession=None)
    with pytest.raises(ConfigError, match="has passwords, which its tasks on a Spark cluster would"):
        writer.write(frame, MicroBatch("query", 0))
