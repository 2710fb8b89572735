"""How often a process looks around."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from mirror_process import wait_for

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.engine import surroundings
from sparkmirror.engine.surroundings import Surroundings


def test_without_spark_the_clusters_are_asked_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A standby on a cluster starts no Spark for as long as it stands by."""
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "ab")
    looks: list[float] = []
    asked: list[float] = []
    monkeypatch.setattr(surroundings, "SPARK_S", 0.005)
    monkeypatch.setattr(surroundings, "FIRST_REST_S", 0.04)
    monkeypatch.setattr(Surroundings, "_look", lambda *_: looks.append(time.monotonic()))
    looking = Surroundings(
        lambda: [FlowConfig(source=source, target=target)],
        lambda _: False,
        lambda: asked.append(0.0),
        lease=True,
    )
    looking.start()
    wait_for(lambda: len(looks) >= 4, 30, "four looks")
    looking.close()
    rests = [later - earlier for earlier, later in pairwise(looks)]
    assert len(rests) >= 2
    assert all(rest >= 0.04 * 2**number for number, rest in enumerate(rests))
    assert len(asked) > 2 * len(looks)
