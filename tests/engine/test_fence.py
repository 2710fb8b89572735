"""The marker fence (R16): who was fenced writes nothing any more, and what its markers cost is told exactly."""

from __future__ import annotations

import contextlib
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import mirror_process as mp
import pytest
from bench.records import TopicReader
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from loaded_flow import PARTITIONS, LoadedFlow, running
from test_every_batch import contents, read
from test_old_records import run_overlapping
from test_rival_views import SteppedPump

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.cluster.transactions import Given, TransactionalId
from sparkmirror.config import FlowConfig, load_mm2_properties
from sparkmirror.demo import KafkaCluster
from sparkmirror.durable.losses import Loss, LossKind, LossLedger, losses_topic
from sparkmirror.engine.fence import Fence
from sparkmirror.engine.flow_driver import FlowDriver
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.pump.partition import Stage
from sparkmirror.translation.map_keeper import MapKeeper, PartitionMap

pytestmark = [pytest.mark.broker, pytest.mark.spark]

FENCE = {"sparkmirror.takeover.fence": "marker"}


class Fenced:
    """One topic with one partition, and drivers of the flow that follow each other without an end in order."""

    def __init__(self, source: KafkaCluster, target: KafkaCluster, topic: str, directory: Path, fence: str) -> None:
        # A segments topic of its own: the other tests' flow A->B stays who it is, and nobody was fenced a minute ago.
        alias = f"fenced-{zlib.crc32(topic.encode())}"
        self.source, self.target, self.topic, self.alias = source, target, topic, alias
        self.remote = f"{alias}.{topic}"
        path = directory / "fenced.properties"
        path.write_text(
            f"clusters = {alias}, B\n"
            f"{alias}.bootstrap.servers = {source.bootstrap_servers}\n"
            f"B.bootstrap.servers = {target.bootstrap_servers}\n"
            f"{alias}->B.enabled = true\n"
            f"{alias}->B.topics = {topic}\n"
            "replication.factor = 1\n"
            "heartbeats.replication.enabled = false\n"  # other tests leave such a topic behind
            "sparkmirror.merge.tiny.batches = false\n"
            f"sparkmirror.takeover.fence = {fence}\n"
        )
        self.flow: FlowConfig = load_mm2_properties(str(path)).flows[0]
        mp.create_topic(source.bootstrap_servers, topic, 1)
        self.client = ClusterClient(self.flow.target, "test")
        self._producer = KafkaProducer(bootstrap_servers=source.bootstrap_servers, linger_ms=10_000)
        self._written = 0
        self._opened: list[FlowDriver] = []

    def write(self, records: int, *, age_ms: int = 0) -> None:
        """One batch."""
        at_ms = int(time.time() * 1000) - age_ms
        for _ in range(records):
            self._producer.send(self.topic, value=b"%d" % self._written, partition=0, timestamp_ms=at_ms)
            self._written += 1
        self._producer.flush()

    def driver(self) -> FlowDriver:
        """One that takes over, and begins an epoch."""
        driver = FlowDriver(self.flow, f"{self.topic}-{len(self._opened)}", use_lease=False, once=False)
        self._opened.append(driver)
        driver.open()
        driver.take_charge()
        driver.sync_topics()
        driver.fence()
        driver.say(len(self._opened), "running")
        return driver

    def pump(self, driver: FlowDriver) -> SteppedPump:
        return SteppedPump(driver.order(driver.partitions()))

    def copied(self) -> list[object]:
        return read(self.target, self.remote)

    def assert_exact(self) -> list[int]:
        """Every record once, in order, and every offset translated exactly; where the markers lie."""
        records, copies = read(self.source, self.topic), self.copied()
        assert contents(copies) == contents(records)
        keeper = MapKeeper(ClusterClient(self.flow.target, "test-map"), self.alias)
        where = self.remote, 0
        found = keeper.refresh({where: None})[where]
        assert isinstance(found, PartitionMap), found
        for record, copy in zip(records, copies, strict=True):
            assert found.downstream(record.offset) == copy.offset  # type: ignore[attr-defined]
        keeper.close()
        offsets = {copy.offset for copy in copies}  # type: ignore[attr-defined]
        return [offset for offset in range(max(offsets)) if offset not in offsets]

    def noted(self) -> list[Loss]:
        """What the ledger says of this topic."""
        ledger = LossLedger(TopicLog(self.client, losses_topic(self.alias)))
        return [loss for loss in ledger.read() if loss.source_topic == self.topic]

    def close(self) -> None:
        for driver in self._opened:
            driver.close()
        self._producer.close()
        self.client.close()


@pytest.fixture(autouse=True)
def _as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine; what took too long would be waited for instead, without a marker."""
    monkeypatch.setattr("sparkmirror.engine.fence.SEEN_S", 60.0)
    monkeypatch.setattr("sparkmirror.cluster.transactions.PATIENCE_S", 60.0)


@pytest.fixture
def fenced(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> Iterator[Fenced]:
    flow = Fenced(source_cluster, target_cluster, topic_name, tmp_path, "marker")
    with contextlib.closing(flow):
        yield flow


def copies_up_to(pump: SteppedPump, upstream: int) -> None:
    pump.turn_until(lambda: pump.copy.acked_upstream == upstream)


def test_who_was_fenced_writes_nothing_any_more(fenced: Fenced, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has batches ready, and sends them without looking; each takeover costs one offset, which is accounted for."""
    monkeypatch.setattr("sparkmirror.pump.partition.MAX_CONFIRMATION_AGE_S", 1e9)  # it would look again by itself
    fenced.write(5)
    first_driver = fenced.driver()
    first = fenced.pump(first_driver)
    copies_up_to(first, 5)
    first.allowed = 0
    fenced.write(7)
    first.turn_until(lambda: bool(first.copy.queue))

    second_driver = fenced.driver()
    order = second_driver.order(second_driver.partitions())
    assert order.unclean
    assert order.routes[0].fenced
    assert order.producer_id != first_driver.identity.producer_id
    second = fenced.pump(second_driver)
    assert not second.copy.reason
    first.loop.on_suspended.clear()
    first.allowed = 1_000_000
    first.turn_until(lambda: first.copy.stage is Stage.PARKED)
    assert "INVALID_PRODUCER_EPOCH" in first.copy.reason
    assert first.fenced
    assert len(fenced.copied()) == 5
    copies_up_to(second, 12)
    # It looks again, and takes nothing of what its successor wrote for a stranger's.
    first.copy.seek_at = 0.0
    first.turn_until(lambda: "another process has taken this flow over" in first.copy.reason)
    assert first.fenced == first.copy.reason, "its driver must hear of it"
    first.close()
    second.close()

    assert fenced.assert_exact() == [5]
    third = fenced.pump(fenced.driver())
    fenced.write(3)
    copies_up_to(third, 15)
    third.close()
    assert fenced.assert_exact() == [5, 13]
    assert [(loss.kind, loss.first, loss.end) for loss in fenced.noted()] == [
        (LossKind.FENCED, 5, 6),
        (LossKind.FENCED, 13, 14),
    ]


def test_fences_of_an_idle_partition_outlive_its_records(fenced: Fenced) -> None:
    """Retention takes records and markers, and a restarted broker's state would be gone: the log's end alone tells."""
    fenced.write(5)
    copies_up_to(fenced.pump(fenced.driver()), 5)
    admin = KafkaAdminClient(bootstrap_servers=fenced.target.bootstrap_servers)
    for takeover in range(3):
        pump = fenced.pump(fenced.driver())
        copies_up_to(pump, 5)
        assert pump.copy.acked_downstream == 6 + takeover
        pump.close()
        admin.delete_records({TopicPartition(fenced.remote, 0): 6 + takeover})
    admin.close()
    assert {loss.kind for loss in fenced.noted()} == {LossKind.FENCED}
    fenced.write(4)
    pump = fenced.pump(fenced.driver())
    copies_up_to(pump, 9)
    pump.close()
    assert [copy.offset for copy in fenced.copied()] == [9, 10, 11, 12]  # type: ignore[attr-defined]
    assert contents(fenced.copied()) == contents(read(fenced.source, fenced.topic)[5:])


def test_a_marker_that_was_deleted_before_it_was_noted_is_not_taken_for_a_record(fenced: Fenced) -> None:
    fenced.write(5)
    copies_up_to(fenced.pump(fenced.driver()), 5)
    fenced.driver()  # it fences, and its pumps never get to read
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=fenced.target.bootstrap_servers)) as admin:
        admin.delete_records({TopicPartition(fenced.remote, 0): 6})
    fenced.write(3)
    pump = fenced.pump(fenced.driver())
    pump.turn_until(lambda: pump.copy.stage is Stage.PARKED)
    assert "nobody has noted how many of its offsets were markers of a fence" in pump.copy.reason
    pump.close()


def test_a_partition_into_which_nothing_was_claimed_gets_no_marker(fenced: Fenced) -> None:
    fenced.driver()
    driver = fenced.driver()
    assert not driver.order(driver.partitions()).routes[0].fenced
    fenced.write(2)
    pump = fenced.pump(driver)
    copies_up_to(pump, 2)
    pump.close()
    assert fenced.assert_exact() == []


def test_who_was_fenced_everywhere_is_feared_no_longer(fenced: Fenced) -> None:
    """However soon the next epoch ends; until somebody else is met again."""
    fenced.write(5)
    copies_up_to(fenced.pump(fenced.driver()), 5)
    driver = fenced.driver()

    def feared(*, unclean: bool = False) -> bool:
        driver.note_end(unclean=unclean)
        return driver.unclean

    assert feared(), "nothing was ordered from it, so nobody says that all is fenced"
    copies_up_to(fenced.pump(driver), 5)
    assert not feared()
    assert feared(unclean=True)
    assert feared()


def test_who_comes_second_gives_way_to_who_holds_the_lease_and_else_fences_them(fenced: Fenced) -> None:
    """Two take over from the same: the loser is the same producer as the winner, until it follows it."""
    fenced.write(5)
    first = fenced.driver()
    copies_up_to(fenced.pump(first), 5)
    winner = fenced.driver()
    where = fenced.remote, 0
    with contextlib.closing(Fence(fenced.flow, leased=True)) as fence:
        assert fence.succeed(first.identity, [where]) == (winner.identity, frozenset())
    with contextlib.closing(Fence(fenced.flow, leased=False)) as fence:
        identity, partitions = fence.succeed(first.identity, [where])
    assert identity.former == (*winner.identity.former, winner.identity.producer)
    assert partitions == {where}


def test_what_its_coordinator_has_forgotten_is_waited_for(fenced: Fenced, caplog: pytest.LogCaptureFixture) -> None:
    """As after a week without a use of the transactional id: here it never was the producer's."""
    fenced.write(5)
    driver = fenced.driver()
    copies_up_to(fenced.pump(driver), 5)
    begin = TransactionalId.begin
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionalId, "begin", lambda one: begin(one)._replace(producer_id=-7))
        with caplog.at_level("WARNING"):
            result = driver._fence._fence(driver.identity, [(fenced.remote, 0)])  # noqa: SLF001
    assert result == frozenset()
    assert "has forgotten" in caplog.text


def test_a_flow_that_could_not_be_fenced_can_be_from_its_next_start_on(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """The setting is new in its file. The end was in order, so nobody is fenced, and nothing costs an offset."""
    plain = Fenced(source_cluster, target_cluster, topic_name, tmp_path, "none")
    plain.write(5)
    driver = plain.driver()
    copies_up_to(plain.pump(driver), 5)
    driver.say(1, "ended")
    assert not driver.identity.transactional_id
    flow = plain.flow.model_copy(update={"takeover_fence": "marker"})
    plain.flow = flow
    driver = plain.driver()
    assert driver.identity.transactional_id.startswith(f"mm2-sparkmirror.{plain.alias}.")
    plain.write(4)
    copies_up_to(plain.pump(driver), 9)
    assert plain.assert_exact() == []
    driver = plain.driver()
    assert driver.order(driver.partitions()).routes[0].fenced
    plain.write(3)
    copies_up_to(plain.pump(driver), 12)
    assert plain.assert_exact() == [9]
    plain.close()


def test_a_flow_that_may_not_use_transactional_ids_is_copied_all_the_same(
    fenced: Fenced, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also after an end in order, when it would become one that can be fenced."""

    def refused(one: TransactionalId) -> Given:
        raise ClusterUnreachable("not authorized")

    monkeypatch.setattr(TransactionalId, "begin", refused)
    with caplog.at_level("WARNING"):
        for number, records in enumerate((5, 3), 1):
            fenced.write(records)
            driver = fenced.driver()
            assert not driver.identity.transactional_id
            copies_up_to(fenced.pump(driver), records if number == 1 else 8)
            driver.say(number, "ended")
    assert fenced.assert_exact() == []
    assert caplog.text.count("not authorized") == 3, "the first identity, and each epoch"


@pytest.fixture(scope="module")
def forgetful_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    cluster = KafkaCluster(
        tmp_path_factory.mktemp("fenced", numbered=False),
        properties={"producer.id.expiration.check.interval.ms": "1000"},
    )
    with running(cluster):
        yield cluster


@pytest.mark.full
def test_overlapping_takeovers_of_old_records(
    source_cluster: KafkaCluster, forgetful_target: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """As in `test_old_records`, with predecessors that go on: the successor fences them, and waits for nobody."""
    flow = LoadedFlow(source_cluster, forgetful_target, topic_name, tmp_path, FENCE)
    run_overlapping(flow)
    with flow.start("--once", log="last") as mirror:
        assert mirror.process.wait(90) == 0, mirror.log.read_text()[-3000:]
    assert "4 of 4 partitions are fenced" in (tmp_path / "mirror.log").read_text()
    assert_same_records(flow)


def assert_same_records(flow: LoadedFlow) -> None:
    """Markers lie between them."""
    ours = TopicReader(flow.source.bootstrap_servers, flow.topic)
    theirs = TopicReader(flow.target.bootstrap_servers, f"A.{flow.topic}")
    copies = theirs.contents()
    spent: Sequence[int] = [copies[one].offsets - copies[one].records for one in range(PARTITIONS)]
    assert all(spent), "no partition was fenced"
    for partition, part in ours.contents().items():
        copy = copies[partition]
        assert (copy.records, copy.digest) == (part.records, part.digest), (
            f"{partition}: {ours.first_difference(theirs, partition)} equal at first"
        )
