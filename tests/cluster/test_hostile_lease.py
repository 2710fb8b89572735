"""A coordinator that means harm, or whose answers are damaged: the lease is asked for again."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from broker_between import BrokerBetween
from hostile_broker import Asked, framed
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.schema_answers import filled
from tests.support.started import started

from sparkmirror.config.model import ClusterConfig
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.mirror.engine.lease import Lease

pytestmark = [pytest.mark.broker, pytest.mark.full]

SESSION_MS = 6000


@pytest.mark.parametrize("seed", range(3))
def test_after_absurd_heartbeats_the_lease_is_asked_for_again(tmp_path: Path, seed: int) -> None:
    """Any error code, and throttles of weeks: kafka-python may never come back from a poll."""
    choose = random.Random(seed).randint
    cluster = KafkaCluster(tmp_path, proxied=True)
    with started(cluster):
        (broker,) = cluster.brokers
        assert broker.proxy is not None
        broker.proxy.close()
        between = BrokerBetween(broker.proxy.port, broker.port)
        config = ClusterConfig(alias="b", bootstrap_servers=(cluster.bootstrap_servers,))
        with ClusterAdmin.connect(config, "test", 10) as admin:
            admin.create_compacted_topic("lease", 1, 1)
        lease = Lease(config, "a-mm2", "lease", SESSION_MS)
        lease.start()
        mp.wait_for(lease.held, 180, "the lease")

        def absurd(asked: Asked) -> list[bytes] | None:
            if asked.name != "Heartbeat":
                return None
            made = filled(asked.kind, asked.version, lambda most: choose(0, most))
            return [framed(asked, bytes(made.encode()))]

        between.answer = absurd
        mp.wait_for(lambda: between.altered["Heartbeat"] > 0, 60, "an absurd answer")
        time.sleep(2 * SESSION_MS / 1000)
        between.answer = lambda _: None
        mp.wait_for(lease.held, 10 * SESSION_MS / 1000, "the lease again")
        lease.release()
        between.close()
