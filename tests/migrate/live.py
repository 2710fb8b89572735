"""Two clusters with ACLs, a mirror of both directions between them, and clients, for tests of switches."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from chaos.mirror import STEADY, MirrorProcess
from chaos.switches.arena import BILLING, SHOP, SOURCE, STRANGER, TARGET, Arena, write_mirror_file
from chaos.switches.jvm import LoadJvm
from chaos.switches.plan import Names
from kafka import KafkaAdminClient
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.in_process import sparkmirror

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.acls import ALLOW, ANYWHERE, WRITE, Acl, AclResource, create_acls, read_acls
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Groups
from sparkmirror.kafka.cluster.log_ends import read_log_ends
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.sync.migration_words import MigrationWords

PARTITIONS = 2
_PUBLISHED = ("status", "receipts", "heartbeats", "checkpoints", "control")
"""Topics that a mirror writes to all the time."""


class Live:
    """Clusters, a mirror and the clients' JVM that run; each test has topics of its own."""

    def __init__(self, arena: Arena, jvm: LoadJvm, mirror_file: Path) -> None:
        self.arena, self.jvm, self.mirror_file = arena, jvm, mirror_file
        self._count = 100

    def migration(self, **content: Any) -> LiveMigration:
        """Begin a migration of one topic and one group; `content` is added to its file."""
        self._count += 1
        return LiveMigration(self, f"r{self._count}-", content)


class LiveMigration:
    """One topic, its producer and its group, at A to begin with."""

    def __init__(self, live: Live, prefix: str, content: Mapping[str, Any]) -> None:
        self._live, self.prefix = live, prefix
        self.topic, self.group = f"{prefix}orders", f"{prefix}billing"
        arena = live.arena
        self.file = arena.directory / f"{prefix}migration.yaml"
        told = {
            "mirror": str(live.mirror_file),
            "flow": f"{SOURCE}->{TARGET}",
            "type": "producers-first",
            "sets": [{"name": "shop", "topics": [self.topic], "groups": [self.group]}],
            **content,
        }
        self.file.write_text(json.dumps(told))
        live.jvm.begin_round(arena.directory / f"{prefix}history")
        arena.create_topics(SOURCE, {self.topic: {}}, PARTITIONS)
        arena.let_write(SOURCE, literal=self.topic, prefix=prefix)

    def verb(self, *verb: str) -> CompletedProcess[str]:
        """Run a verb of `sparkmirror migration` on the file."""
        return sparkmirror("migration", *verb, str(self.file))

    def status(self) -> dict[str, Any]:
        """Return the only set's row."""
        told = self.verb("status", "-o", "json")
        assert told.returncode == 0, told.stderr
        (row,) = json.loads(told.stdout)
        assert isinstance(row, dict)
        return row

    @contextmanager
    def writing(self, alias: str = SOURCE, rate: float = 50.0) -> Iterator[None]:
        """Write for a while."""
        name = f"{self.prefix}web"
        self._live.jvm.produce(
            f"{SHOP} at {alias}",
            kind="idempotent",
            topic=self.topic,
            partitions=PARTITIONS,
            rate=rate,
            keys=5,
            name=name,
        )
        try:
            yield
        finally:
            self._live.jvm.stop_producers([name])

    @contextmanager
    def reading(self, alias: str = SOURCE) -> Iterator[None]:
        """Let the group read for a while."""
        self._live.jvm.consume(
            f"{BILLING} at {alias}",
            group=self.group,
            protocol="classic",
            isolation="read_uncommitted",
            members=1,
            topics=[self.topic],
        )
        try:
            yield
        finally:
            self._live.jvm.stop_consumers([self.group])

    def count(self, what: str) -> int:
        """Return how many lines the history has, such as `ack shop at A` or `read billing at B`."""
        return sum(count for line, count in self._live.jvm.counts().items() if line.startswith(what))

    def write_and_copy(self, records: int = 20) -> None:
        """Write some records, have the group read them, and wait until all are copied; then nobody works."""
        with self.writing(), self.reading():
            mp.wait_for(lambda: self.count(f"ack {SHOP} at {SOURCE}") >= records, 60, "acknowledged records")
            read = self.count(f"read {BILLING} at {SOURCE}") + 1
            mp.wait_for(lambda: self.count(f"read {BILLING} at {SOURCE}") > read, 60, "records that were read")
        mp.wait_for(lambda: self.status()["lagForth"] == 0, 240, "copies")

    def state(self) -> dict[str, Any]:
        """Return all that a switch could change, at both clusters."""
        return {alias: _state(self._live.arena.cluster(alias), alias, self) for alias in (SOURCE, TARGET)}

    def phase(self) -> str:
        """Return the set's phase as another process sees it, while this one may be in the middle of a verb."""
        command = [sys.executable, "-m", "sparkmirror", "migration", "status", str(self.file), "-o", "json"]
        (row,) = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        return str(row["phase"])

    def let_write(self, principal: str) -> None:
        """Give one more principal the right to write at the source."""
        with closing(_client(self._live.arena.cluster(SOURCE), SOURCE)) as client:
            create_acls(
                client,
                [Acl(name=self.topic, principal=principal, host=ANYWHERE, operation=WRITE, permission=ALLOW)],
            )

    def begin(self, *verb: str) -> subprocess.Popen[str]:
        """Run a verb in a process of its own."""
        command = [sys.executable, "-m", "sparkmirror", "migration", *verb, str(self.file)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def straggle(self) -> None:
        """Write a record at the source past all ACLs."""
        self._live.jvm.stray(STRANGER + SOURCE, self.topic, 0)

    def denials(self) -> list[Acl]:
        """Return the denials on the topic and the group at both clusters."""
        return [
            acl
            for alias in (SOURCE, TARGET)
            for acl in _acls(self._live.arena.cluster(alias), alias)
            if acl.name in (self.topic, self.group) and str(acl).startswith("DENY")
        ]


@contextmanager
def running(directory: Path, version: str, names: Names = Names.KEPT, *, back: bool = True) -> Iterator[Live]:
    """Start clusters, mirror and JVM; all end with the `with`."""
    with Arena(directory, version) as arena, LoadJvm(directory, arena.clients()) as jvm:
        file = write_mirror_file(directory / "mm2.properties", arena, names, syncs_groups=False, back=back)
        mirror = MirrorProcess(STEADY, file, directory / "mirror.log")
        try:
            yield Live(arena, jvm, file)
        finally:
            mirror.stop()


def _state(cluster: KafkaCluster, alias: str, migration: LiveMigration) -> dict[str, Any]:
    with closing(_client(cluster, alias)) as client:
        admin = KafkaAdminClient(bootstrap_servers=cluster.direct_servers)
        topics = sorted(admin.list_topics())
        admin.close()
        still = [name for name in topics if not any(word in name for word in _PUBLISHED) and not name.startswith("__")]
        wanted = [(name, index) for name, found in client.metadata(still).items() for index in found.partitions]
        ends = {where: end.log_end for where, end in read_log_ends(client, wanted).ends.items()}
        offsets = Groups(client).committed([migration.group]).offsets
        controls = [name for name in topics if name.startswith("mm2-sparkmirror-control.")]
        words = {name: _words(TopicLog(client, name)) for name in controls}
        return {"topics": topics, "ends": ends, "acls": _acls(cluster, alias), "offsets": offsets, "words": words}


def _words(control: TopicLog) -> tuple[object, ...]:
    """Return what a migration writes to a control topic; the mirror's own words there come all the time."""
    words = MigrationWords(control)
    fences = dict(words.read())
    state = words.state
    fences |= {f"there:{key}": acls for key, acls in MigrationWords(control, there=True).read().items()}
    return fences, words.closed, words.stopped, words.own, state.done, state.turns


def _acls(cluster: KafkaCluster, alias: str) -> list[Acl]:
    with closing(_client(cluster, alias)) as client:
        return sorted(read_acls(client, AclResource.TOPIC, AclResource.GROUP))


def _client(cluster: KafkaCluster, alias: str) -> ClusterClient:
    config = ClusterConfig(alias=alias, bootstrap_servers=tuple(cluster.direct_servers.split(",")))
    return ClusterClient(config, f"test-{time.monotonic_ns()}")
