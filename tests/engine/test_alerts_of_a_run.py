"""Each deployed alert fires and ends by a real fault: a real Prometheus scrapes two real processes on one file."""

from __future__ import annotations

import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alerting import Alerts, alerts_of
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata
from lab import Authority, KafkaCluster
from lab.quotas import set_quota
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp
from tests.support.loaded_flow import running
from tests.support.members import joined
from tests.support.secure_clusters import of_cluster

from sparkmirror.demo.ports import free_ports

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

FLOW = "A->B"
LIVE, LARGE, BULK, SHORT = "alerts-live", "alerts-large", "alerts-bulk", "alerts-short"
LIVE_GROUP, BULK_GROUP = "shop", "reader"
PER_S = 10
OBJECTIVE_S = 15
QUOTA = 100_000
SETTINGS = {
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "sync.topic.configs.enabled": "false",
    "A.consumer.isolation.level": "read_committed",
    "groups": f"{LIVE_GROUP}, {BULK_GROUP}",
    "sparkmirror.objective.seconds": str(OBJECTIVE_S),
}


class Stage:
    """Two clusters, two processes that mirror from one to the other, and what their alerts say."""

    def __init__(self, source: KafkaCluster, target: KafkaCluster, authority: Authority, directory: Path) -> None:
        self.source, self.target, self.authority, self.directory = source, target, authority, directory
        self.keys = authority.issue(directory / "mirror.pem", "mirror")
        self.ports = free_ports(2)
        self.processes: dict[int, mp.MirrorProcess] = {}
        self.alerts: Alerts
        tls = {**authority.client_settings(), "ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.keys)}
        for port in self.ports:
            mp.write_properties(
                self.file(port),
                source.bootstrap_servers,
                target.tls_bootstrap_servers,
                "alerts-.*",
                {
                    **SETTINGS,
                    **of_cluster("B", tls),
                    "sparkmirror.metrics.listeners": f"http://127.0.0.1:{port}",
                },
            )

    def file(self, port: int) -> Path:
        return self.directory / f"mm2-{port}.properties"

    def start(self, port: int) -> None:
        command = (sys.executable, str(Path(__file__).with_name("hurried.py")), "run")
        self.processes[port] = mp.MirrorProcess(self.file(port), self.directory / f"mirror-{port}.log", command=command)

    def start_all(self) -> None:
        for port in self.ports:
            if port not in self.processes:
                self.start(port)

    def kill(self, ports: Sequence[int]) -> None:
        """Without a word."""
        for port in ports:
            self.processes.pop(port).kill_all()

    def role(self, role: str) -> int:
        """The port of the process that has it."""
        ports: list[int] = []

        def told() -> bool:
            found = self.alerts.query(f'sparkmirror_flow_role{{role="{role}"}} == 1')
            ports[:] = [int(labels["instance"].rpartition(":")[2]) for labels, _ in found]
            return len(ports) == 1

        mp.wait_for(told, 60, f"one process is {role}")
        return ports[0]

    def sparkmirror(self, verb: str, *words: str, code: int = 0) -> str:
        """What a verb prints for the mirror's file, in lower case."""
        done = self._run(verb, *words)
        assert done.returncode == code
        return done.stdout.lower()

    def _run(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [mp.COMMAND, *verb.split(), str(self.file(self.ports[0])), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
        print(verb, *words, done.returncode, done.stdout, done.stderr)
        return done

    def wait_until_told(self, text: str, verb: str, *words: str, code: int = 0) -> None:
        """Until a verb prints it: what it reads is published every five seconds."""

        def is_told() -> bool:
            done = self._run(verb, *words)
            return done.returncode == code and text in done.stdout.lower()

        mp.wait_for(is_told, 30, f"{verb} tells {text}")

    @contextmanager
    def paused(self, topics: str) -> Iterator[None]:
        """They are left alone for the length of the context."""
        self.sparkmirror("pause", "--topics", topics)
        try:
            yield
        finally:
            self.sparkmirror("resume")

    def lost(self) -> list[float]:
        """What each process that tells it says of lost records."""
        return [count for _, count in self.alerts.query("sparkmirror_lost_records_total")]

    def copied(self, topic: str) -> int:
        return mp.end_offsets(self.target.bootstrap_servers, f"A.{topic}", 1)[0]

    def produce(self, topic: str, records: int, size: int = 200) -> None:
        mp.produce(self.source.bootstrap_servers, topic, 1, records, codec=None, size=size)

    def commit(self, group: str, topic: str, offset: int) -> None:
        """As a group of the source that has read so far."""
        with closing(KafkaConsumer(bootstrap_servers=self.source.bootstrap_servers, group_id=group)) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)})


@contextmanager
def traffic(servers: str) -> Iterator[None]:
    """Records of the live topic, and a group that reads them two seconds later."""
    ended = threading.Event()

    def send() -> None:
        with (
            closing(KafkaProducer(bootstrap_servers=servers)) as producer,
            closing(KafkaConsumer(bootstrap_servers=servers, group_id=LIVE_GROUP)) as consumer,
        ):
            consumer.assign([TopicPartition(LIVE, 0)])
            sent = 0
            while not ended.wait(1 / PER_S):
                with suppress(KafkaError):  # while the source stands still
                    producer.send(LIVE, b"x" * 100)
                    sent += 1
                    if sent % PER_S == 0 and sent > 2 * PER_S:
                        place = {TopicPartition(LIVE, 0): OffsetAndMetadata(sent - 2 * PER_S, "", -1)}
                        consumer.commit(place, timeout_ms=2000)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(30)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("alerts", numbered=False)
    authority = Authority(directory / "authority")
    patient = {"broker.session.timeout.ms": "60000"}
    source = KafkaCluster(directory / "source", properties=patient)
    target = KafkaCluster(directory / "target", properties=patient, tls=authority)
    with ExitStack() as stack:
        stack.enter_context(running(source))
        stack.enter_context(running(target))
        stage = Stage(source, target, authority, directory)
        for topic in (LIVE, LARGE, BULK, SHORT):
            mp.create_topic(source.bootstrap_servers, topic, 1)
        for topic in (LARGE, BULK, SHORT):
            stage.produce(topic, 100)
        stage.commit(BULK_GROUP, BULK, 50)
        stack.enter_context(traffic(source.bootstrap_servers))
        stage.alerts = stack.enter_context(alerts_of(directory, *stage.ports))
        try:
            stage.start_all()
            mp.wait_for(lambda: stage.copied(SHORT) == 100, 120, "the first records")
            yield stage
        finally:
            for process in stage.processes.values():
                process.kill_all()


@pytest.fixture
def stage(run: Stage) -> Iterator[Stage]:
    """Both processes, one at work and one that stands by, and no alert."""
    run.start_all()
    mp.wait_for(lambda: [count for _, count in run.alerts.query("sparkmirror_processes")] == [2, 2], 120, "both run")
    run.alerts.begin()
    yield run
    for process in run.processes.values():
        assert process.process.poll() is None


def test_no_standby(stage: Stage) -> None:
    """The second process is killed, and started again."""
    standby = stage.role("standby")
    stage.kill([standby])
    stage.alerts.wait_until_firing("NoStandby", flow=FLOW)
    stage.start(standby)
    stage.alerts.wait_until_over("NoStandby", flow=FLOW)
    assert stage.alerts.fired() == {"NoStandby"}


def test_sparkmirror_down(stage: Stage) -> None:
    """Both are killed: nobody answers, until one is started again."""
    stage.kill(stage.ports)
    stage.alerts.wait_until_firing("SparkmirrorDown")
    assert stage.alerts.fired() == {"SparkmirrorDown"}
    health = f"http://127.0.0.1:{stage.ports[0]}/health"
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(health, timeout=5)
    stage.start_all()
    stage.alerts.wait_until_over("SparkmirrorDown")  # one of the two answers

    def answers() -> bool:
        with suppress(OSError), urllib.request.urlopen(health, timeout=5) as answer:
            return bool(answer.status == 200)
        return False

    mp.wait_for(answers, 60, "the first answers")


def test_a_forgotten_pause(stage: Stage) -> None:
    """Nothing is copied, so what groups have read is not at the target either; the end of the pause ends it all."""
    with stage.paused(".*"):
        stage.alerts.wait_until_firing("FlowNoProgress", flow=FLOW)
        stage.alerts.wait_until_firing("LagOverObjective", flow=FLOW)
        stage.alerts.wait_until_firing("GroupSyncLate", flow=FLOW, group=LIVE_GROUP)
        stage.wait_until_told("(paused)", "status")
        stage.wait_until_told("catching up", "groups")
        assert stage.alerts.firing("GroupSyncLate") == [{"flow": FLOW, "group": LIVE_GROUP}]
    for name in ("FlowNoProgress", "LagOverObjective"):
        stage.alerts.wait_until_over(name, flow=FLOW)
    stage.alerts.wait_until_over("GroupSyncLate", flow=FLOW, group=LIVE_GROUP)
    assert stage.alerts.fired() == {"FlowNoProgress", "LagOverObjective", "GroupSyncLate"}


def test_a_target_that_hangs(stage: Stage) -> None:
    """Nobody has the lease, so nobody works, and nobody knows the lag."""
    (broker,) = stage.target.brokers
    broker.pause()
    try:
        stage.alerts.wait_until_firing("ClusterUnreachable", flow=FLOW, side="target", cluster="B")
        stage.alerts.wait_until_firing("NobodyWorks", flow=FLOW)
        stage.sparkmirror("status", code=3)
    finally:
        broker.resume()
    stage.alerts.wait_until_over("ClusterUnreachable", flow=FLOW, side="target", cluster="B")
    stage.alerts.wait_until_over("NobodyWorks", flow=FLOW)


def test_a_source_that_hangs(stage: Stage) -> None:
    """The lag is not known."""
    (broker,) = stage.source.brokers
    broker.pause()
    try:
        stage.alerts.wait_until_firing("ClusterUnreachable", flow=FLOW, side="source", cluster="A")
        stage.alerts.wait_until_firing("FlowNoProgress", flow=FLOW)
        stage.wait_until_told("lag not known", "status")
        stage.wait_until_told("unreachable (cluster a has not answered since", "status", "--check", code=1)
        stage.wait_until_told("timed out", "doctor", "--wait", "0", code=1)
    finally:
        broker.resume()
    stage.alerts.wait_until_over("ClusterUnreachable", flow=FLOW, side="source", cluster="A")
    stage.alerts.wait_until_over("FlowNoProgress", flow=FLOW)


def test_a_transaction_that_stays_open(stage: Stage) -> None:
    """What comes after it is not copied, until its producer ends it."""
    before = stage.copied(BULK)
    with closing(KafkaProducer(bootstrap_servers=stage.source.bootstrap_servers, transactional_id="stays")) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(BULK, b"open", partition=0).get(30)
        stage.produce(BULK, 10)
        stage.alerts.wait_until_firing("TransactionOpen", flow=FLOW)
        stage.wait_until_told("transactional id stays", "doctor", "--wait", "0", code=1)
        stage.wait_until_told("kafka-transactions.sh", "status", "--check", code=1)
        assert stage.copied(BULK) == before
        producer.commit_transaction()
    stage.alerts.wait_until_over("TransactionOpen", flow=FLOW)
    mp.wait_for(lambda: stage.copied(BULK) == before + 11, 60, "all is copied")
    assert stage.alerts.fired() - {"LagOverObjective"} == {"TransactionOpen"}


def test_a_record_that_is_too_large(stage: Stage) -> None:
    """The target's limit is below it; the others continue."""
    mp.alter_topic(stage.target.bootstrap_servers, f"A.{LARGE}", {"max.message.bytes": "5000"})
    before = stage.copied(LARGE)
    stage.produce(LARGE, 1, size=20_000)
    stage.produce(LARGE, 10)
    stage.alerts.wait_until_firing("PartitionsParked", flow=FLOW, cause="too-large")
    stage.wait_until_told("max.message.bytes=5000", "status")
    mp.alter_topic(stage.target.bootstrap_servers, f"A.{LARGE}", {"max.message.bytes": "100000"})
    mp.wait_for(lambda: stage.copied(LARGE) == before + 11, 90, "it is tried again")
    stage.alerts.wait_until_over("PartitionsParked", flow=FLOW, cause="too-large")
    assert stage.alerts.fired() - {"LagOverObjective"} == {"PartitionsParked"}


def test_a_topic_that_the_target_refuses(stage: Stage) -> None:
    """With the alias before it its name is too long; it is deleted."""
    name = f"alerts-{'x' * 241}"
    mp.create_topic(stage.source.bootstrap_servers, name, 1)
    stage.alerts.wait_until_firing("TopicsRefused", flow=FLOW)
    stage.wait_until_told(name, "topics list")
    (line,) = [line for line in stage.sparkmirror("topics list").splitlines() if line.startswith(name)]
    assert "refused" in line
    lt.delete_topic(stage.source, name)
    stage.alerts.wait_until_over("TopicsRefused", flow=FLOW)
    assert stage.alerts.fired() == {"TopicsRefused"}


def test_a_retention_that_is_too_short(stage: Stage) -> None:
    """A paused topic is kept for two hours, then for longer."""
    here = stage.source.bootstrap_servers
    with stage.paused(SHORT):
        mp.alter_topic(here, SHORT, {"retention.ms": str(2 * 3_600_000)})
        stage.produce(SHORT, 100)
        stage.alerts.wait_until_firing("RetentionWillWin", flow=FLOW)
        stage.wait_until_told(f"{SHORT}-0: the source will delete", "doctor", "--wait", "0", code=1)
        mp.alter_topic(here, SHORT, {"retention.ms": str(7 * 86_400_000)})
        stage.alerts.wait_until_over("RetentionWillWin", flow=FLOW)
    assert stage.alerts.fired() - {"LagOverObjective"} == {"RetentionWillWin"}


def test_a_writer_that_has_not_moved(stage: Stage) -> None:
    """Its topic is said to be done, and it writes on; that is taken back, and all is copied."""
    before = stage.copied(LARGE)
    stage.sparkmirror("topics done", "--topics", LARGE)
    stage.wait_until_told("released", "topics list")
    stage.produce(LARGE, 7)
    stage.alerts.wait_until_firing("LateRecords", flow=FLOW)
    stage.wait_until_told("7 offsets came to the source after its writers had moved", "status", "--check", code=1)
    assert stage.copied(LARGE) == before
    stage.sparkmirror("topics undo", "--topics", LARGE)
    stage.alerts.wait_until_over("LateRecords", flow=FLOW)
    mp.wait_for(lambda: stage.copied(LARGE) == before + 7, 60, "all is copied")
    assert stage.alerts.fired() - {"LagOverObjective"} == {"LateRecords"}


def lose(stage: Stage, records: int) -> int:
    """Delete so many that were not copied, and some are left; the offset of the first."""
    first = mp.end_offsets(stage.source.bootstrap_servers, SHORT, 1)[0]
    with stage.paused(SHORT):
        stage.produce(SHORT, records + 20)
        lt.delete_records(stage.source, SHORT, 0, before=first + records)
    stage.alerts.wait_until_firing("RecordsLost", flow=FLOW, kind="expired")
    return first


def test_losses_before_and_after_a_restart(stage: Stage) -> None:
    """Who comes next counts on: that is no loss, and one that is smaller than the one before is one."""
    first = lose(stage, 60)
    assert f"{first}-{first + 59}" in stage.sparkmirror("losses")
    stage.alerts.wait_until_over("RecordsLost", flow=FLOW, kind="expired")
    assert stage.alerts.fired() - {"LagOverObjective"} == {"RecordsLost"}

    stage.alerts.begin()
    known = stage.lost()
    stage.kill(stage.ports)
    mp.wait_for(lambda: not stage.lost(), 60, "nobody answers")
    stage.start_all()
    mp.wait_for(lambda: stage.lost() == known, 60, "another process has read the ledger")
    stage.role("standby")
    assert "RecordsLost" not in stage.alerts.fired()
    lose(stage, 20)
    assert stage.lost() == [known[0] + 20]
    stage.alerts.wait_until_over("RecordsLost", flow=FLOW, kind="expired")


@contextmanager
def member(servers: str, group: str, topic: str) -> Iterator[None]:
    """Somebody reads as the group for the length of the context, and commits nothing."""
    consumer, ended = joined(servers, group, topic), threading.Event()

    def read() -> None:
        with closing(consumer):
            while not ended.is_set():
                consumer.poll(200)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(30)


def test_a_group_that_is_in_use_at_the_target(stage: Stage) -> None:
    """It reads on at the source, and its offsets can't be set; also not by a process that takes over."""
    late = {"flow": FLOW, "group": BULK_GROUP}
    with member(stage.target.bootstrap_servers, BULK_GROUP, f"A.{BULK}"):
        stage.produce(BULK, 20_000, size=1)
        stage.commit(BULK_GROUP, BULK, 20_100)
        stage.alerts.wait_until_firing("GroupWouldReread", **late)
        stage.alerts.wait_until_firing("GroupSyncLate", **late)
        stage.wait_until_told("it has members at b", "groups")
        assert stage.alerts.fired() == {"GroupWouldReread", "GroupSyncLate"}
        leader = stage.role("leader")
        stage.kill([leader])
        stage.alerts.wait_until_over("GroupSyncLate", **late)
        stage.alerts.wait_until_firing("GroupSyncLate", **late)
        stage.alerts.wait_until_firing("GroupWouldReread", **late)
        stage.start(leader)
    stage.alerts.wait_until_over("GroupWouldReread", **late)
    stage.alerts.wait_until_over("GroupSyncLate", **late)
    (place,) = [line for line in stage.sparkmirror("groups").splitlines() if line.startswith(BULK_GROUP)]
    assert "synced" in place


def test_a_group_that_was_set_back(stage: Stage) -> None:
    """Its offset at the target stays, and it would skip what lies between; its offsets there are deleted."""
    back = {"flow": FLOW, "group": BULK_GROUP}
    exact = f'sparkmirror_group_reread_records{{group="{BULK_GROUP}"}} == 0'
    mp.wait_for(lambda: bool(stage.alerts.query(exact)), 60, "it is at the target")
    stage.commit(BULK_GROUP, BULK, 10)
    stage.alerts.wait_until_firing("GroupWouldSkip", **back)
    stage.wait_until_told("--delete-offsets", "doctor", "--wait", "0", code=1)
    with closing(KafkaAdminClient(bootstrap_servers=stage.target.bootstrap_servers)) as admin:
        admin.delete_groups([BULK_GROUP])
    stage.alerts.wait_until_over("GroupWouldSkip", **back)
    assert stage.alerts.fired() == {"GroupWouldSkip"}


def test_a_quota_at_the_target(stage: Stage) -> None:
    """A backlog, and a quota far below what the mirror could write, until the mirror is capped below the quota."""
    set_quota(stage.target, "producer_byte_rate", QUOTA, f"{FLOW}|sparkmirror-produce")
    try:
        stage.produce(BULK, 10_000, size=1_000)
        stage.alerts.wait_until_firing("TargetThrottles", flow=FLOW, side="target", cluster="B")
        stage.sparkmirror("throttle", "50K")
        stage.alerts.wait_until_over("TargetThrottles", flow=FLOW, side="target", cluster="B")
        assert stage.alerts.query("sparkmirror_lag_records > 1000")
    finally:
        set_quota(stage.target, "producer_byte_rate", None, f"{FLOW}|sparkmirror-produce")
        stage.sparkmirror("throttle", "off")
    assert stage.alerts.fired() - {"LagOverObjective", "GroupSyncLate"} == {"TargetThrottles"}


def test_our_certificate_ends_soon(stage: Stage) -> None:
    """Until another one is written to the same place."""
    stage.authority.issue(stage.keys, "mirror", valid_until=datetime.now(UTC) + timedelta(days=13))
    stage.alerts.wait_until_firing("CertificateExpires", flow=FLOW, side="target", cluster="B")
    stage.authority.issue(stage.keys, "mirror")
    stage.alerts.wait_until_over("CertificateExpires", flow=FLOW, side="target", cluster="B")
    assert stage.alerts.fired() == {"CertificateExpires"}
