"""The process that works is killed, frozen or cut off: the next takes over in time, and the old one keeps still."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from lab import KafkaCluster, RealMirrorMaker
from tests.support import mirror_process as mp
from tests.support.loaded_flow import LoadedFlow, running

from sparkmirror.config import ClusterConfig
from sparkmirror.demo.jvm import QUICK_START
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.engine.lease import BEATS_PER_SESSION
from sparkmirror.pump.messages.control import SILENCE_S, ControlState, control_topic
from sparkmirror.pump.pump import DRAIN_S

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SESSION_S = 6.0
"""As `mirror_process.write_properties` has it."""
MARGIN_S = SESSION_S / BEATS_PER_SESSION + 2.0
"""A standby hears of the change with its next heartbeat; then it joins, proves it, and announces itself."""
START_S = 120.0
"""Spark and its workers start with the first process, and tests share their machine."""
FRESH_S = SESSION_S + 60.0
"""Until fresh records are copied after a fault: the new one's Spark runs already, its pumps' workers start."""
ELSEWHERE = "standing by: another process works on it"

Fault = Callable[[mp.MirrorProcess, KafkaCluster], None]


@pytest.fixture(scope="module")
def proxied_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    cluster = KafkaCluster(tmp_path_factory.mktemp("proxied", numbered=False), proxied=True)
    with running(cluster):
        yield cluster


@pytest.fixture
def flow(source_cluster: KafkaCluster, proxied_target: KafkaCluster, topic_name: str, tmp_path: Path) -> LoadedFlow:
    return LoadedFlow(source_cluster, proxied_target, topic_name, tmp_path)


def leader(target: KafkaCluster) -> int | None:
    """Process id of the one that has announced itself last, as the control topic says."""
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=(target.direct_servers,)), "test")
    try:
        state = ControlState()
        state.apply(TopicLog(client, control_topic("A")).read(0, 0)[0])
        return state.leader.pid if state.leader else None
    finally:
        client.close()


def wait_until_it_leads(mirror: mp.MirrorProcess, target: KafkaCluster) -> None:
    mp.wait_for(lambda: leader(target) == mirror.process.pid, SESSION_S + MARGIN_S, "its announcement")


def signal_all(mirror: mp.MirrorProcess, number: signal.Signals) -> None:
    for one in mirror.family():
        with contextlib.suppress(psutil.NoSuchProcess):
            one.send_signal(number)


def kill(mirror: mp.MirrorProcess, _: KafkaCluster) -> None:
    mirror.kill_all()


def freeze(mirror: mp.MirrorProcess, _: KafkaCluster) -> None:
    signal_all(mirror, signal.SIGSTOP)


def thaw(mirror: mp.MirrorProcess, _: KafkaCluster) -> None:
    signal_all(mirror, signal.SIGCONT)


def cut(_: mp.MirrorProcess, target: KafkaCluster) -> None:
    for broker in target.brokers:
        assert broker.proxy is not None
        broker.proxy.cut()


def stall(_: mp.MirrorProcess, target: KafkaCluster) -> None:
    for broker in target.brokers:
        assert broker.proxy is not None
        broker.proxy.stall()


def heal(_: mp.MirrorProcess, target: KafkaCluster) -> None:
    for broker in target.brokers:
        assert broker.proxy is not None
        broker.proxy.heal()


def pumps(mirror: mp.MirrorProcess, flow: LoadedFlow) -> list[psutil.Process]:
    """The Python workers that have a connection to the target; Spark keeps idle ones for a while."""
    addresses = f"{flow.target.bootstrap_servers},{flow.target.direct_servers}"
    ports = {int(address.rpartition(":")[2]) for address in addresses.split(",")}

    def connected(worker: psutil.Process) -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            return any(one.raddr and one.raddr.port in ports for one in worker.net_connections("tcp"))
        return False

    return [worker for worker in mirror.workers() if connected(worker)]


def said_since(mirror: mp.MirrorProcess, offset: int) -> str:
    """What a process printed after the first `offset` bytes."""
    return mirror.log.read_bytes()[offset:].decode(errors="replace")


@contextlib.contextmanager
def standing_by(flow: LoadedFlow) -> Iterator[mp.MirrorProcess]:
    """A second process, which no proxy stands before, for the length of a `with`."""
    properties = flow.write_properties("direct.properties", flow.target.direct_servers)
    with flow.start(log="second", properties=properties) as second:
        mp.wait_for(lambda: ELSEWHERE in said_since(second, 0), 180, "the second stands by")
        assert not pumps(second, flow)
        yield second


def wait_until_it_copies(flow: LoadedFlow, fault: str, broken: float) -> None:
    """Wait for fresh records, and see that the time since the fault is within bounds."""
    flow.wait_for_progress(START_S)
    fresh_s = time.monotonic() - broken
    print(f"{fault}: fresh records after {fresh_s:.1f} s")
    assert fresh_s <= FRESH_S, f"{fault}: fresh records only after {fresh_s:.1f} s, not within {FRESH_S:.0f} s"


def take_over(flow: LoadedFlow, first: mp.MirrorProcess, second: mp.MirrorProcess, fault: Fault) -> None:
    """Break the first, and see that the second announces itself in time, and copies."""
    flow.wait_for_progress(START_S)
    assert leader(flow.target) == first.process.pid
    fault(first, flow.target)
    broken = time.monotonic()
    wait_until_it_leads(second, flow.target)
    print(f"{fault.__name__}: announced after {time.monotonic() - broken:.1f} s")
    wait_until_it_copies(flow, fault.__name__, broken)


def test_killed(flow: LoadedFlow) -> None:
    with flow.load(), flow.start(log="first") as first:
        flow.wait_for_progress(START_S)
        with standing_by(flow) as second:
            take_over(flow, first, second, kill)
            assert second.terminate() == 0
    flow.finish()


@pytest.mark.parametrize(("fault", "mend"), [(freeze, thaw), (cut, heal), (stall, heal)])
def test_frozen_or_cut_off_for_a_while(flow: LoadedFlow, fault: Fault, mend: Fault) -> None:
    """The old one ends its pumps and stands by, and is as good as any: it takes over when the new one dies."""
    with flow.load(), flow.start(log="first") as first:
        flow.wait_for_progress(START_S)
        with standing_by(flow) as second:
            printed = first.log.stat().st_size
            take_over(flow, first, second, fault)
            mend(first, flow.target)
            mended = time.monotonic()
            mp.wait_for(lambda: not pumps(first, flow), SILENCE_S + DRAIN_S, "the old one's pumps have hung up")
            mp.wait_for(lambda: ELSEWHERE in said_since(first, printed), SESSION_S + MARGIN_S, "the old one stands by")
            print(f"{mend.__name__}: stood by after {time.monotonic() - mended:.1f} s")
            flow.wait_for_progress(START_S)
            assert not pumps(first, flow)
            assert pumps(second, flow)
            assert leader(flow.target) == second.process.pid
            second.kill_all()
            killed = time.monotonic()
            wait_until_it_leads(first, flow.target)
            print(f"kill: announced after {time.monotonic() - killed:.1f} s")
            wait_until_it_copies(flow, "kill", killed)
            assert first.terminate() == 0
    flow.finish()


def test_a_real_mirror_maker_that_still_runs_is_named_and_waited_for(flow: LoadedFlow, tmp_path: Path) -> None:
    """It copies another topic here: of what it has copied we would not know where to continue."""
    theirs = f"{flow.topic}-theirs"
    mp.create_topic(flow.source.bootstrap_servers, theirs, 1)
    mp.produce(flow.source.bootstrap_servers, theirs, 1, 100)
    mirror_maker = RealMirrorMaker(
        {
            "clusters": "A, B",
            "A.bootstrap.servers": flow.source.bootstrap_servers,
            "B.bootstrap.servers": flow.target.bootstrap_servers,
            "A->B.enabled": "true",
            "topics": theirs,
            "emit.heartbeats.enabled": "false",
            "B.session.timeout.ms": "6000",
            **mp.ONE_REPLICA,
        },
        tmp_path / "mm2",
        jvm_options=QUICK_START,
    )
    named = (
        "standing by: a MirrorMaker 2 (or another Connect worker) still runs in group A-mm2 on cluster B; stop it first"
    )

    def copied() -> int:
        return sum(mp.end_offsets(flow.target.bootstrap_servers, f"A.{theirs}", 1))

    with flow.load(), mirror_maker:
        mp.wait_for(lambda: copied() == 100, 90, "MirrorMaker 2 copies")
        with flow.start() as mirror:
            mp.wait_for(lambda: named in said_since(mirror, 0), 180, "it is named")
            time.sleep(2 * SESSION_S)
            assert not pumps(mirror, flow)
            assert ELSEWHERE not in said_since(mirror, 0)
            assert "lease held" not in said_since(mirror, 0)
            mirror_maker.stop()
            stopped = time.monotonic()
            wait_until_it_leads(mirror, flow.target)
            print(f"MirrorMaker 2 ended: announced after {time.monotonic() - stopped:.1f} s")
            mp.wait_for(lambda: bool(pumps(mirror, flow)), START_S, "our pumps")
            flow.wait_for_progress()
            assert mirror.terminate() == 0
    flow.finish()
