"""What the brokers see of `client.id` and `request.timeout.ms`: of a cluster that listens and never answers."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from sparkmirror.config import FlowConfig, load_mm2_properties
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.pump.flow_clients import FlowClients
from sparkmirror.pump.messages.orders import FlowOrder, PumpOrder, RouteOrder
from sparkmirror.pump.pump import pump

_HEADER = struct.Struct(">ihhih")
"""Size, API key, version, correlation id, length of the client id."""


class SilentBroker:
    """Hears the first request of each connection."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.server = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.client_ids: set[str] = set()
        self._open: list[socket.socket] = []
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                connection = self._listening.accept()[0]
                self._open.append(connection)
                Thread(target=self._hear, args=(connection,), daemon=True).start()

    def _hear(self, connection: socket.socket) -> None:
        with suppress(OSError, struct.error):
            heard = connection.recv(1024)
            length = _HEADER.unpack_from(heard)[-1]
            self.client_ids.add(heard[_HEADER.size : _HEADER.size + length].decode())

    def close(self) -> None:
        for one in (self._listening, *self._open):
            one.close()


@pytest.fixture
def silent() -> Iterator[tuple[SilentBroker, SilentBroker]]:
    pair = SilentBroker(), SilentBroker()
    yield pair
    for broker in pair:
        broker.close()


def flow_of(silent: tuple[SilentBroker, SilentBroker], tmp_path: Path, *lines: str) -> FlowConfig:
    file = tmp_path / "mm2.properties"
    head = ("clusters = us, eu", "us->eu.enabled = true")
    servers = (f"{alias}.bootstrap.servers = {one.server}" for alias, one in zip(("us", "eu"), silent, strict=True))
    file.write_text("\n".join((*head, *servers, *lines)))
    config = load_mm2_properties(str(file))
    assert config.warnings == ()
    return config.flows[0]


def test_what_is_asked_of_a_cluster(silent: tuple[SilentBroker, SilentBroker], tmp_path: Path) -> None:
    flow = flow_of(
        silent,
        tmp_path,
        "us.admin.client.id = ops",
        "us.admin.request.timeout.ms = 300",
        "us->eu.target.admin.client.id = team",
        "us->eu.admin.request.timeout.ms = 3000",
    )
    took = []
    for cluster in flow.source, flow.target:
        began = time.monotonic()
        with pytest.raises(ClusterUnreachable):
            ClusterClient(cluster, "test").metadata([])
        took.append(time.monotonic() - began)
    assert silent[0].client_ids == {"ops"}
    assert silent[1].client_ids == {"team"}
    assert 0.3 <= took[0] < 3 <= took[1] < 30


def test_the_admin_clients(silent: tuple[SilentBroker, SilentBroker], tmp_path: Path) -> None:
    flow = flow_of(silent, tmp_path, "us.admin.client.id = ops")
    with pytest.raises(ClusterUnreachable):
        ClusterAdmin.connect(flow.source, "test", 2)
    assert "ops" in silent[0].client_ids


def test_ids_are_as_written_or_one_for_each_role(silent: tuple[SilentBroker, SilentBroker], tmp_path: Path) -> None:
    """A quota by client id holds only for the very id."""
    written = FlowClients(flow_of(silent, tmp_path, "us.consumer.client.id = reader", "eu.producer.client.id = writer"))
    ids = [client.client_id for client in (written.source, written.target, written.idle, written.claims)]
    assert ids == ["reader", "writer", "writer", "us->eu|sparkmirror-claims"]
    own = FlowClients(flow_of(silent, tmp_path))
    assert [own.source.client_id, own.target.client_id] == ["us->eu|sparkmirror-fetch", "us->eu|sparkmirror-produce"]


def test_clients_that_fetch_and_write_may_have_other_ids(
    silent: tuple[SilentBroker, SilentBroker], tmp_path: Path
) -> None:
    flow = flow_of(
        silent,
        tmp_path,
        "us->eu.admin.client.id = ops",
        "us->eu.admin.request.timeout.ms = 200",
        "us.consumer.client.id = reader",
        "eu.producer.client.id = writer",
    )
    order = FlowOrder(
        flow=flow,
        cluster_id="x",
        producer_id=1,
        producer_epoch=0,
        routes=(RouteOrder(source_topic="t", target_topic="us.t", partition=0),),
    )
    pump(PumpOrder(epoch=1, task=0, incarnation="test", seconds=2, flows=(order,)))
    assert silent[0].client_ids == {"reader"}
    assert silent[1].client_ids == {"ops"}
