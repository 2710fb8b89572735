"""An unclean leader election: the cluster loses what it has acknowledged.

At the target the mirror has to copy it again; at the source it has copied some of what is taken back.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from kafka import TopicPartition
from lab import Broker, KafkaCluster

from chaos.arena import NoVictim, wait_in_sync
from chaos.cuts import Election
from chaos.mirror import remote
from chaos.records import Log, last_names, read_topic
from chaos.replicas import Replicas, configure, log_end, place, replicas, wait_for
from chaos.world import World
from sparkmirror.config.model import ClusterConfig
from sparkmirror.errors import SetupError, SparkMirrorError
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.leader_epochs import epoch_ends

_UNCLEAN = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
_PROGRESS_TIMEOUT_S = 90.0
_GOES_ON_TIMEOUT_S = 240.0
_POLL_S = 0.2


class UncleanElection:
    """One partition of these topics is left to two brokers, and then, since the other is killed, to its leader alone.

    At the end the leader is killed and the other one started: it leads with what it had. Only that partition's topic
    may elect like this, and only for so long; all others have a third replica, which continues.
    """

    lasts = True
    to_lose = 20
    """Records, at least, that only the doomed leader has."""

    def __init__(self, cluster: KafkaCluster, topics: Sequence[str], partitions: int, chance: random.Random) -> None:
        self._cluster = cluster
        self._part = TopicPartition(chance.choice(topics), chance.randrange(partitions))
        self._chance = chance
        self.lost = 0
        """Records that were acknowledged and that no broker has any more."""
        self.victim = f"{self._part.topic}-{self._part.partition}"

    def begin(self) -> None:
        found = replicas(self._cluster, [self._part.topic]).get(self._part)
        if found is None or len(found.brokers) < 3 or found.leader not in found.brokers:
            raise NoVictim("it takes three replicas, one of which leads")
        self._placed: Replicas = found
        self._leader = self._broker(found.leader)
        self._heir = self._broker(self._chance.choice([one for one in found.brokers if one != found.leader]))
        try:
            self._leave_to_the_leader()
        except BaseException:
            self._restore()
            raise

    def end(self) -> None:
        try:
            self.look()
            acknowledged = self._end()
            self._leader.kill()
            self._heir.start()
            wait_for("an unclean election", lambda: self._now().leader == self._heir.node_id)
            cut = self._cut()
        finally:
            self._restore()
        self.lost = max(acknowledged - cut, 0)
        self.note_cut(cut)
        self.victim += f": {self.lost} acknowledged records lost with broker {self._leader.node_id}"

    def settle(self) -> None:
        wait_in_sync(self._cluster)

    def logs_to_grow(self) -> Sequence[tuple[KafkaCluster, TopicPartition]]:
        """What must grow before there is something to lose."""
        return [(self._cluster, self._part)]

    def look(self) -> None:
        """The leader is about to be killed."""

    def note_cut(self, cut: int) -> None:
        """The log ends at that offset now."""

    def _leave_to_the_leader(self) -> None:
        configure(self._cluster, self._part.topic, _UNCLEAN)
        two = (self._leader.node_id, self._heir.node_id)
        place(self._cluster, {self._part: two})
        wait_for("two replicas", lambda: self._now().brokers == two)
        self._heir.kill()
        wait_for("one in sync", lambda: self._now().in_sync == {self._leader.node_id})
        if self._now().leader != self._leader.node_id:
            raise NoVictim("the leader moved meanwhile")
        logs = self.logs_to_grow()
        had, deadline = [log_end(*log) for log in logs], time.monotonic() + _PROGRESS_TIMEOUT_S
        while any(log_end(*log) < end + self.to_lose for log, end in zip(logs, had, strict=True)):
            if time.monotonic() > deadline:
                raise NoVictim("nothing was copied that could be lost")
            time.sleep(_POLL_S)

    def _restore(self) -> None:
        """Both brokers run, and the partition lies where it lay."""
        for broker in (self._heir, self._leader):
            if not broker.running:
                broker.start()
        place(self._cluster, {self._part: self._placed.brokers})
        wait_for("all replicas", lambda: self._now().in_sync == set(self._placed.brokers))
        configure(self._cluster, self._part.topic, dict.fromkeys(_UNCLEAN))

    def _broker(self, node_id: int) -> Broker:
        return next(broker for broker in self._cluster.brokers if broker.node_id == node_id)

    def _now(self) -> Replicas:
        return replicas(self._cluster, [self._part.topic]).get(self._part, Replicas(-1, (), frozenset()))

    def _end(self) -> int:
        """Return the end of what is acknowledged."""
        return log_end(self._cluster, self._part)

    def _cut(self) -> int:
        """Return where the new leader's log ended when it was elected: there its first epoch begins."""
        servers = tuple(self._cluster.direct_servers.split(","))
        client = ClusterClient(ClusterConfig(alias="unclean", bootstrap_servers=servers), "chaos")
        where = (self._part.topic, self._part.partition)
        try:
            deadline = time.monotonic() + _PROGRESS_TIMEOUT_S
            while True:
                try:
                    epoch = client.metadata([self._part.topic])[self._part.topic].partitions[where[1]].epoch
                    found = epoch_ends(client, self._heir.node_id, {where: epoch - 1})[where]
                    if not found.error:
                        return found.end
                except (SparkMirrorError, ConnectionError):
                    pass
                if time.monotonic() > deadline:
                    raise SetupError("the new leader does not say where its epoch begins")
                time.sleep(_POLL_S)
        finally:
            client.close()


class UncleanElectionAtTarget(UncleanElection):
    """The mirror has to copy the records again."""

    def __init__(self, world: World, chance: random.Random) -> None:
        super().__init__(world.arena.target, world.copies("orders", "payments", "archive"), world.load.busy, chance)
        self._meter = world.meter
        self._cuts = world.aftermath.target_cuts

    def note_cut(self, cut: int) -> None:
        self._cuts.setdefault(self._part, []).append(cut)
        self._meter.target_lost(self._part.topic, self._part.partition, cut)


class UncleanElectionAtSource(UncleanElection):
    """The source takes back what it has promised, some of which was copied: that stays in the copy, and is named."""

    def __init__(self, world: World, chance: random.Random) -> None:
        super().__init__(world.arena.source, [world.topics["drafts"]], world.load.busy, chance)
        self._partitions = world.partitions
        self._target = world.arena.target
        self._copy = (self._target, TopicPartition(remote(self._part.topic), self._part.partition))
        self._elections = world.aftermath.elections
        self._before: Log = ()

    def logs_to_grow(self) -> Sequence[tuple[KafkaCluster, TopicPartition]]:
        return [*super().logs_to_grow(), self._copy]

    def look(self) -> None:
        logs = read_topic(self._cluster.direct_servers, self._part.topic, self._partitions, "read_uncommitted")
        self._before = logs[self._part.partition]

    def note_cut(self, cut: int) -> None:
        self._elections.setdefault(self._part, []).append(Election(cut, self._before))

    def settle(self) -> None:
        """Wait until the mirror continues behind it, too: nobody could tell two such losses in a row apart."""
        super().settle()
        old, deadline = {record.id for record in self._before}, time.monotonic() + _GOES_ON_TIMEOUT_S
        while time.monotonic() < deadline:
            names = last_names(self._target.direct_servers, self._copy[1].topic, self._partitions)
            last = names.get(self._part.partition)
            if last is not None and last not in old and self._log_has(last):
                return
            time.sleep(_POLL_S)
        self.victim += f"; the mirror did not continue behind it for {_GOES_ON_TIMEOUT_S:.0f} s"

    def _log_has(self, name: str) -> bool:
        """Whether the source's log, as it is now, holds a record of this name."""
        logs = read_topic(self._cluster.direct_servers, self._part.topic, self._partitions, "read_uncommitted")
        return any(record.id == name for record in logs[self._part.partition])
