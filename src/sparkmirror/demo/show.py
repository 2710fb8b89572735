"""The demo's stage: two real clusters, a shop, a mirror and the proof.

The shop writes to the first cluster, and the mirror copies to the second.

    with Show(directory, brokers=1) as show:
        show.start_clusters()
        backlog = show.fill(300_000, print)
        show.start_mirror()
        show.open_shop(2_000)
        show.wait_until_copied(backlog)
        show.wait_until_copied(show.close_shop())
        show.stop_mirror()
        print(show.prove())

This module prints nothing: the command line does.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sparkmirror.config import ClusterConfig, MirrorConfig, load_mm2_properties
from sparkmirror.demo.brokers import DemoCluster
from sparkmirror.demo.jars import BROKER, jar_directory
from sparkmirror.demo.java import java_home
from sparkmirror.demo.ports import free_ports
from sparkmirror.demo.proof import PartitionProof, compare_topics
from sparkmirror.demo.shop import SHOP
from sparkmirror.demo.shop_writer import ShopWriter
from sparkmirror.errors import CopyIncomplete, SetupError
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.wire.topic_partition import TopicPartition

if TYPE_CHECKING:
    from sparkmirror.mirror.engine.mirror import Mirror
    from sparkmirror.snapshot.snapshot import Snapshot

SOURCE, TARGET = "shop", "backup"
PATIENCE_S = 60.0
"""Longest time that the mirror may take to start, or make no progress.

In seconds; then the demo gives up.
"""

_POLL_S = 0.2
_STOP_S = 45.0
_MOST_LINES = 5

OnProgress = Callable[["Snapshot"], None]
Ends = dict[TopicPartition, int]
"""End offsets of the source's partitions, by topic and partition."""


class Show:
    """The demo's parts, each with its start and its end.

    As a context the demo leaves nothing running behind.
    """

    def __init__(self, directory: Path, *, brokers: int = 1) -> None:
        self.directory = directory.absolute()
        self.properties = self.directory / "mm2.properties"
        self.source = DemoCluster(self.directory / SOURCE, brokers=brokers)
        self.target = DemoCluster(self.directory / TARGET, brokers=brokers)
        self.on_progress: OnProgress = lambda snapshot: None
        """Receiver of the mirror's reports, called in the mirror's thread.

        May be changed while the mirror runs.
        """
        self.page = ""
        """The live page's address, set once the clusters have started."""
        self._replicas = min(3, brokers)
        self._writer: ShopWriter | None = None
        self._mirror: Mirror | None = None
        self._copying = threading.Event()
        self._mirroring: Future[None] | None = None
        self._closed = threading.Event()
        self._writing: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(keep=False)

    @staticmethod
    def fetch() -> None:
        """Get Java and Kafka's jars, if this machine has none.

        Raises SetupError.
        """
        os.environ.setdefault("JAVA_HOME", str(java_home()))  # Spark looks there
        jar_directory(BROKER)

    def start_clusters(self) -> None:
        """Start both clusters, create the shop's topics, write the mirror's file.

        Raises SetupError.
        """
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(DemoCluster.start, (self.source, self.target)))
        specs = [
            NewTopicSpec(topic.name, topic.partitions, self._replicas, {"cleanup.policy": "delete"}) for topic in SHOP
        ]
        with _admin(self.source, SOURCE) as admin:
            refused = [f"topic {name}: {why}" for name, why in admin.create_topics(specs).items() if why]
        if refused:
            raise SetupError("\n".join(refused))
        self._writer = ShopWriter(self.source.bootstrap_servers)
        self.page = f"http://127.0.0.1:{free_ports(1)[0]}"
        self.properties.write_text(self.mirror_file())

    def mirror_file(self) -> str:
        """Return the mirror's file."""
        return _PROPERTIES.format(
            page=self.page,
            source=SOURCE,
            target=TARGET,
            source_servers=self.source.bootstrap_servers,
            target_servers=self.target.bootstrap_servers,
            topics=", ".join(topic.name for topic in SHOP),
            replicas=self._replicas,
        )

    def copy_of(self, topic: str) -> str:
        """Return the name of a topic's copy at the target."""
        return f"{SOURCE}.{topic}"

    # --- the shop -------------------------------------------------------------------------------

    @property
    def written(self) -> tuple[int, int]:
        """Numbers of records and bytes that the shop has written."""
        writer = self._shop()
        return writer.records, writer.bytes

    def fill(self, records: int, on_count: Callable[[int], None]) -> Ends:
        """Write a backlog of `records`; return the source's end offsets."""
        self._shop().fill(records, on_count)
        return self.source_ends()

    def open_shop(self, records_per_s: float) -> None:
        """Let the shop write live, in the background."""
        self._closed = threading.Event()
        self._writing = _in_background(lambda: self._shop().live(records_per_s, self._closed), "shop")

    def close_shop(self) -> Ends:
        """Stop the shop's writing; return the source's end offsets.

        Raises the error that stopped the shop before, if any.
        """
        self._closed.set()
        if self._writing is not None:
            self._writing.result(_STOP_S)
        return self.source_ends()

    def source_ends(self) -> Ends:
        """Return the present end offsets of the shop's partitions."""
        return log_ends(self.source, SOURCE)

    def _shop(self) -> ShopWriter:
        if self._writer is None:
            raise RuntimeError("start the clusters first")
        return self._writer

    # --- the mirror -----------------------------------------------------------------------------

    def make_mirror(self) -> tuple[MirrorConfig, Mirror]:
        """Return the file's configuration, and a mirror for `start_mirror`.

        Raises ConfigError.
        """
        from sparkmirror.mirror.engine.mirror import Mirror  # Spark is slow to import

        config = load_mm2_properties(str(self.properties))
        self._mirror = Mirror(config, on_progress=self._note)
        return config, self._mirror

    def start_mirror(self) -> None:
        """Run the file as `sparkmirror run` does, in the background.

        Raises ConfigError.
        """
        if self._mirror is None:
            self.make_mirror()
        assert self._mirror is not None  # noqa: S101 - it was just made
        self._mirroring = _in_background(self._mirror.run, "mirror")

    def _note(self, snapshot: Snapshot) -> None:
        if any(flow.records or flow.parked or flow.waiting for flow in snapshot.flows):
            self._copying.set()
        self.on_progress(snapshot)

    def wait_until_copying(self) -> None:
        """Wait until the mirror reports copied records, parked partitions or a wait.

        Waits `PATIENCE_S` at most. Raises the error that ended the mirror or the shop.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not self._copying.is_set() and time.monotonic() < deadline:
            self.watch(_POLL_S)

    def wait_until_copied(self, goal: Mapping[TopicPartition, int]) -> None:
        """Wait until the target has everything up to `goal`.

        Raises CopyIncomplete if the target does not grow for `PATIENCE_S`, and any error that ended the mirror or the
        shop.
        """
        with _admin(self.target, TARGET) as admin:
            best, deadline = -1, time.monotonic() + PATIENCE_S
            while True:
                wanted = {(self.copy_of(topic), partition): end for (topic, partition), end in goal.items()}
                ends = admin.end_offsets(list(wanted))
                short = [
                    f"{topic}-{partition} has {ends.get((topic, partition), 0):,} of {end:,} records"
                    for (topic, partition), end in wanted.items()
                    if ends.get((topic, partition), 0) < end
                ]
                if not short:
                    return
                if sum(ends.values()) > best:
                    best, deadline = sum(ends.values()), time.monotonic() + PATIENCE_S
                if time.monotonic() > deadline:
                    reason = f"the mirror makes no progress for {PATIENCE_S:.0f} s; {len(short)} partitions are short"
                    raise CopyIncomplete("\n".join([reason, *short[:_MOST_LINES]]))
                self.watch(_POLL_S)

    def watch(self, seconds: float) -> None:
        """Let some time pass.

        Raises any error that ended the mirror or the shop meanwhile.
        """
        until = time.monotonic() + seconds
        while True:
            for what, running in (("mirror", self._mirroring), ("shop", self._writing)):
                if running is not None and running.done() and not (what == "shop" and self._closed.is_set()):
                    running.result()
                    raise CopyIncomplete(f"the {what} stopped by itself")
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, _POLL_S))

    def stop_mirror(self) -> None:
        """Stop the mirror as Ctrl-C stops `sparkmirror run`.

        Raises the error that stopped the mirror before, if any, and CopyIncomplete if the mirror continues.
        """
        if self._mirror is None or self._mirroring is None:
            return
        self._mirror.stop()
        wait([self._mirroring], _STOP_S)
        if not self._mirroring.done():
            raise CopyIncomplete(f"the mirror does not stop within {_STOP_S:.0f} s")
        self._mirroring.result()

    # --- the end --------------------------------------------------------------------------------

    def prove(self) -> list[PartitionProof]:
        """Compare every partition of the shop with its copy, byte for byte.

        The shop must be closed. Raises CopyIncomplete if all compared records are identical, but fewer were compared
        than the shop has written.
        """
        proofs = compare_topics(
            self.source.bootstrap_servers,
            self.target.bootstrap_servers,
            {topic.name: self.copy_of(topic.name) for topic in SHOP},
        )
        compared, (written, _) = sum(proof.records for proof in proofs), self.written
        if all(proof.identical for proof in proofs) and compared < written:
            raise CopyIncomplete(f"only {compared:,} of {written:,} records could be read to compare them")
        return proofs

    def close(self, *, keep: bool) -> None:
        """End everything that runs.

        `keep` leaves logs and the mirror's file in the directory; else the directory is deleted.
        """
        with suppress(Exception):  # the shop's error has been told, and everything else must end too
            self.close_shop()
        with suppress(Exception):
            self.stop_mirror()
        if self._writer is not None:
            self._writer.close()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda cluster: cluster.cleanup(keep_logs=keep), (self.source, self.target)))
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)


_PROPERTIES = """\
# Written by `sparkmirror demo`. MirrorMaker 2 takes the same file.
clusters = {source}, {target}
{source}.bootstrap.servers = {source_servers}
{target}.bootstrap.servers = {target_servers}

{source}->{target}.enabled = true
{source}->{target}.topics = {topics}

tasks.max = 2
refresh.topics.interval.seconds = 5
replication.factor = {replicas}
checkpoints.topic.replication.factor = {replicas}
heartbeats.topic.replication.factor = {replicas}
offset-syncs.topic.replication.factor = {replicas}
offset.storage.replication.factor = {replicas}
# The live page and metrics; MirrorMaker 2 ignores it.
sparkmirror.metrics.listeners = {page}
# So that the proof can compare every batch byte for byte; MirrorMaker 2 ignores it.
sparkmirror.merge.tiny.batches = false
"""


def log_ends(cluster: DemoCluster, alias: str) -> Ends:
    """Return the present end offsets of the shop's partitions at a cluster."""
    with _admin(cluster, alias) as admin:
        return admin.end_offsets([(topic.name, index) for topic in SHOP for index in range(topic.partitions)])


def _admin(cluster: DemoCluster, alias: str) -> ClusterAdmin:
    servers = tuple(cluster.bootstrap_servers.split(","))
    return ClusterAdmin.connect(ClusterConfig(alias=alias, bootstrap_servers=servers), "demo")


def _in_background(work: Callable[[], None], name: str) -> Future[None]:
    """Run `work` in a thread that does not keep the process alive."""
    outcome: Future[None] = Future()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # raised again in the thread that asks for the outcome
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    threading.Thread(target=run, name=name, daemon=True).start()
    return outcome
