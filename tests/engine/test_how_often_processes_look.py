"""How often a process looks around."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from tests.support.mirror_process import wait_for
from tests.support.snapshot_samples import flow

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.mirror.engine import surroundings
from sparkmirror.mirror.engine.surroundings import OLD_STATUS_S, Surroundings
from sparkmirror.snapshot.status_topic import Status


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


@pytest.mark.parametrize("stands_by", [True, False])
def test_a_standby_learns_where_the_page_is_and_whether_the_process_is_silent(
    monkeypatch: pytest.MonkeyPatch, *, stands_by: bool
) -> None:
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
    mirrored = FlowConfig(source=source, target=target)
    looking = Surroundings(lambda: [mirrored], lambda _: stands_by, lambda: None, lease=True)
    now_ms = int(time.time() * 1000)
    said = [flow(at_ms=now_ms, page="http://host-2:9404/"), flow(at_ms=now_ms - int(OLD_STATUS_S * 1000) - 1_000), None]
    monkeypatch.setattr(surroundings, "read_status", lambda _: Status(said.pop(0), 0))
    looking._compare(mirrored)  # noqa: SLF001
    assert looking.pages == ({"A->B": "http://host-2:9404/"} if stands_by else {})
    assert looking.silent_ms == {}
    looking._compare(mirrored)  # noqa: SLF001
    assert looking.pages == {}
    assert looking.silent_ms.keys() == ({"A->B"} if stands_by else set())
    looking._compare(mirrored)  # noqa: SLF001
    assert looking.silent_ms == {}, "nothing was ever published: nothing is known"
