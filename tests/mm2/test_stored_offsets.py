"""Topics that may hold offsets of a MirrorMaker 2 and can't be read: named once, in one line."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from kafka.admin import ACLOperation
from lab import Authority, KafkaCluster
from tests.support import mirror_process as mp
from tests.support.rights import allow

from sparkmirror.config import ClusterConfig, load_mm2_properties
from sparkmirror.exact.mm2 import stored_offsets
from sparkmirror.exact.mm2.stored_offsets import StoredOffsets, read_stored_offsets
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_ids import NO_ID

FORBIDDEN, MISSING = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Described:
    """A client that only describes topics."""

    config = ClusterConfig(alias="dc2", bootstrap_servers=("dc2:9092",))

    def __init__(self, errors: dict[str, int]) -> None:
        self._errors = errors

    def metadata(self, topics: Iterable[str]) -> dict[str, TopicLeaders]:
        return {topic: TopicLeaders(topic, NO_ID, self._errors[topic], {}) for topic in topics}


@pytest.mark.broker
def test_a_topic_that_may_only_be_described(
    guarded: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    """Metadata and ListOffsets take DESCRIBE; only Fetch takes READ."""
    mp.create_topic(guarded.bootstrap_servers, topic_name, 1)
    mp.produce(guarded.bootstrap_servers, topic_name, 1, 1)
    keys = {"type": "PEM", "location": str(authority.issue(tmp_path / "keys.pem", "describer.example"))}
    settings = authority.client_settings() | {f"ssl.keystore.{key}": value for key, value in keys.items()}
    servers = guarded.tls_bootstrap_servers, guarded.tls_bootstrap_servers
    secured = {f"A.{key}": value for key, value in settings.items()}
    file = mp.write_properties(tmp_path / "mm2.properties", *servers, topic_name, secured)
    allow(guarded, topic_name, ACLOperation.DESCRIBE)
    with closing(ClusterClient(load_mm2_properties(str(file)).flows[0].source, "test")) as client:
        mp.wait_for(lambda: not client.metadata([topic_name])[topic_name].error, 30, "the ACL counts")
        assert read_stored_offsets(client, [topic_name], "dc1") == StoredOffsets({}, frozenset({topic_name}))


def test_they_are_named_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver looks at each start of a flow; without the right nothing tells that they are not even there."""
    monkeypatch.setattr(stored_offsets, "_named", set())
    caplog.set_level(logging.WARNING)
    client = cast("ClusterClient", Described({"b-offsets": FORBIDDEN, "a-offsets": FORBIDDEN, "c-offsets": MISSING}))
    for _ in range(2):
        stored = read_stored_offsets(client, ["b-offsets", "a-offsets", "c-offsets"], "dc1")
        assert stored == StoredOffsets({}, frozenset({"a-offsets", "b-offsets"}))
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(
        "cluster dc2: topic a-offsets and topic b-offsets can't be read, or isn't there: if a MirrorM"
    )
    assert "c-offsets" not in line
