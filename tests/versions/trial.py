"""One pair of versions tried: what the mirror does with it, cell by cell."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import topics
from cluster_of import cluster_of
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.admin import KafkaAdminClient
from lab import KafkaCluster, RealMirrorMaker
from outcomes import REFUSED, Outcomes, Pair
from tests.support import mirror_process as mp

from sparkmirror.demo.jvm import QUICK_START

GROUP = "application"
KILLS = 2

_ONCE_S = 240
_PROGRESS_S = 120
_GROUPS_S = 90
_BESIDE_S = 240
_PER_S = 400
_STANDS = 97, 211
"""Where the group stands in each partition."""

_SETTINGS = {
    "A.consumer.isolation.level": "read_committed",
    "groups": GROUP,
    "sync.group.offsets.enabled": "true",
}
_SHORT = {
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
}


class Trial:
    """Two clusters of the pair's versions with data at the source, as a context; nothing of them is kept."""

    def __init__(self, pair: Pair, directory: Path) -> None:
        self.outcomes = Outcomes(pair.title)
        self._directory = directory
        self._pause = random.Random(str(pair))
        # What the target's own cleaner takes would not be ours to answer for.
        self.target = cluster_of(pair.target, directory / "target", properties={"log.cleaner.enable": "false"})
        self.source = cluster_of(pair.source, directory / "source")
        self.topics = topics.topics_of(pair.source)

    def __enter__(self) -> Trial:
        try:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda cluster: cluster.start(), (self.source, self.target)))
            topics.write(self.source, self.topics)
            mp.create_topic(self.source.bootstrap_servers, topics.LOAD, topics.PARTITIONS)
        except BaseException:
            self.__exit__()
            raise
        self.file = self._properties("mm2.properties", _SETTINGS)
        self.running_file = self._properties("running.properties", {**_SETTINGS, **_SHORT})
        return self

    def __exit__(self, *_: object) -> None:
        self.source.cleanup(keep_logs=True)
        self.target.cleanup(keep_logs=True)

    def _properties(self, name: str, settings: Mapping[str, str]) -> Path:
        servers = self.source.bootstrap_servers, self.target.bootstrap_servers
        return mp.write_properties(self._directory / name, *servers, topics.PATTERN, settings)

    def lint(self) -> None:
        """Nothing is wrong with clusters of these versions; what is wrong with the file alone is meant so."""
        with self.outcomes.cell("lint --connect"):
            meant, linted = self._linted(), self._linted("--connect")
            assert linted <= meant, f"{sorted(linted - meant)}"

    def copy_once(self) -> None:
        """All topics arrive as they are."""
        with self.outcomes.cell("run --once"):
            self._copy_the_rest()

    def kill_twice(self) -> None:
        """The mirror is killed with all its processes while it copies what is written."""
        with self.outcomes.cell("two kills"):
            with mp.load(self.source.bootstrap_servers, topics.LOAD, topics.PARTITIONS, per_s=_PER_S):
                for number in range(KILLS):
                    with mp.MirrorProcess(self.running_file, self._directory / f"killed-{number}.log") as mirror:
                        self._wait_for_progress()
                        time.sleep(self._pause.random())
                        mirror.kill_all()
            self._copy_the_rest()

    def sync_groups(self) -> None:
        """A running mirror puts a group that has stopped exactly where it continues."""
        with self.outcomes.cell("groups"):
            stands = {
                (topic.name, index): stand
                for topic in self.topics
                for index, stand in enumerate(_STANDS)
                if topic.kind != "old"
            }
            commit(self.source.bootstrap_servers, stands)
            wanted = {
                (f"A.{name}", index): topics.copied_offset(records[index], stand)
                for (name, index), stand in stands.items()
                for records in [topics.read(self.source.bootstrap_servers, name)]
            }
            with mp.MirrorProcess(self.running_file, self._directory / "groups.log") as mirror:
                synced: dict[tuple[str, int], int] = {}
                deadline = time.monotonic() + _GROUPS_S
                while synced != wanted and time.monotonic() < deadline:
                    time.sleep(1)
                    synced = committed(self.target.bootstrap_servers)
                assert mirror.terminate() == 0
            assert synced == wanted

    def translate(self) -> None:
        """An application with offsets of its own is told the same, also inside a compacted log."""
        with self.outcomes.cell("translate"):
            rows, wanted = ["topic,partition,offset"], []
            for topic in self.topics:
                records = topics.read(self.source.bootstrap_servers, topic.name)
                for index, stand in enumerate(_STANDS):
                    rows.append(f"{topic.name},{index},{stand}")
                    wanted.append((f"A.{topic.name}", index, topics.copied_offset(records[index], stand)))
            table = self._directory / "offsets.csv"
            table.write_text("\n".join(rows) + "\n")
            told = self._sparkmirror("offsets", "translate", "--csv", str(table), "-o", "json")
            assert told.returncode == 0, told.stderr[-600:]
            answers = [
                (row["translated_topic"], int(row["partition"]), int(row["translated_offset"]))
                for row in json.loads(told.stdout)
            ]
            assert answers == wanted

    def verify(self) -> None:
        """Our own comparison finds nothing."""
        with self.outcomes.cell("verify"):
            verified = self._sparkmirror("verify")
            assert verified.returncode == 0, verified.stdout[-600:] + verified.stderr[-600:]
            assert "equal: " in verified.stdout, verified.stdout[-600:]

    def list_losses(self) -> None:
        """The ledger is empty."""
        with self.outcomes.cell("losses"):
            listed = self._sparkmirror("losses")
            assert listed.stdout.strip() == "nothing was lost", listed.stdout + listed.stderr[-600:]

    def beside_mirror_maker(self) -> None:
        """What the real MirrorMaker 2 copies into the same target is the same, topic by topic.

        It is not asked for old formats: a topic with `message.format.version` stops it, on all its topics.
        """
        with self.outcomes.cell("next to MirrorMaker 2"):
            names = [topic.name for topic in self.topics if topic.kind != "old"]
            settings = {
                "clusters": "M, B",
                "M.bootstrap.servers": self.source.bootstrap_servers,
                "B.bootstrap.servers": self.target.bootstrap_servers,
                "M->B.enabled": "true",
                "B->M.enabled": "false",
                "M->B.topics": ",".join(names),
                "M.consumer.isolation.level": "read_committed",
                "emit.heartbeats.enabled": "false",
                "heartbeats.replication.enabled": "false",
                **mp.ONE_REPLICA,
            }
            servers = self.target.bootstrap_servers
            sizes = {name: _sizes(topics.read(servers, f"A.{name}")) for name in names}

            def all_there() -> bool:
                """Ends first: they cost less than to read it all."""
                return all(
                    mp.end_offsets(servers, f"M.{name}", topics.PARTITIONS) >= size for name, size in sizes.items()
                )

            with RealMirrorMaker(settings, self._directory / "mm2", jvm_options=QUICK_START):
                mp.wait_for(all_there, _BESIDE_S, "MirrorMaker 2 has copied all")
            for name in names:
                self._assert_equal(name, f"M.{name}", f"A.{name}", self.target)

    def refuse(self) -> None:
        """One clear line says what is wrong, in the same words by lint, and nothing is created at the target."""
        there = self._target_topics()
        lines: list[str] = []
        with self.outcomes.cell("run --once", REFUSED) as words:
            ran = self._sparkmirror("run", "--once")
            lines = [line for line in ran.stderr.splitlines() if "2.8" in line]
            assert ran.returncode == 3, f"exit code {ran.returncode}: {ran.stderr[-600:]}"
            assert len(lines) == 1, f"not one line that names what is needed: {ran.stderr[-600:]}"
            assert all(word in lines[0] for word in ("B", "broker 1", "Kafka")), lines[0]
            assert "Traceback" not in ran.stderr
            assert self._target_topics() == there, "it has created topics"
            words += lines
        with self.outcomes.cell("lint --connect", REFUSED) as words:
            said = self._linted("--connect") - self._linted()
            ran_says = lines[0].removeprefix("sparkmirror: ") if lines else "(nothing)"
            same = [what for what in said if ran_says in what or what in ran_says]
            assert same, f"not as `run` says it: {sorted(said)}"
            words += same

    def _linted(self, *arguments: str) -> set[str]:
        linted = self._sparkmirror("lint", *arguments, "-o", "json")
        assert linted.returncode in {0, 1}, f"exit code {linted.returncode}: {linted.stderr[-600:]}"
        findings = [finding for finding in json.loads(linted.stdout) if finding["severity"] != "info"]
        return {place["what"] for finding in findings for place in finding["places"]}

    def _copy_the_rest(self) -> None:
        ran = self._sparkmirror("run", "--once")
        assert ran.returncode == 0, f"exit code {ran.returncode}: {(ran.stdout + ran.stderr)[-600:]}"
        for name in (*(topic.name for topic in self.topics), topics.LOAD):
            self._assert_equal(name, name, f"A.{name}", self.source)

    def _assert_equal(self, name: str, left: str, right: str, cluster: KafkaCluster) -> None:
        """`left` is read at `cluster`, `right` at the target."""
        pair = topics.read(cluster.bootstrap_servers, left), topics.read(self.target.bootstrap_servers, right)
        differs = topics.difference(*pair)
        assert not differs, f"{left} and {right}: {differs}"
        assert name == topics.LOAD or any(pair[0].values()), f"{left} is empty"

    def _wait_for_progress(self) -> None:
        remote = f"A.{topics.LOAD}"

        def copied() -> int:
            return sum(mp.end_offsets(self.target.bootstrap_servers, remote, topics.PARTITIONS))

        before = copied()
        mp.wait_for(lambda: copied() > before, _PROGRESS_S, f"fresh records in {remote}")

    def _target_topics(self) -> set[str]:
        admin = KafkaAdminClient(bootstrap_servers=self.target.bootstrap_servers)
        try:
            return set(admin.list_topics())
        finally:
            admin.close()

    def _sparkmirror(self, verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Of the verbs that have verbs of their own the file comes after these."""
        verbs, rest = ([verb, arguments[0]], arguments[1:]) if verb == "offsets" else ([verb], arguments)
        command = [mp.COMMAND, *verbs, str(self.file), *rest]
        return subprocess.run(command, capture_output=True, text=True, timeout=_ONCE_S, check=False)


def commit(servers: str, stands: Mapping[tuple[str, int], int]) -> None:
    """Commit as an application does that assigns its partitions itself."""
    consumer = KafkaConsumer(bootstrap_servers=servers, group_id=GROUP, enable_auto_commit=False)
    try:
        consumer.assign([TopicPartition(*place) for place in stands])
        consumer.commit({TopicPartition(*place): OffsetAndMetadata(stand, "", -1) for place, stand in stands.items()})
    finally:
        consumer.close()


def committed(servers: str) -> dict[tuple[str, int], int]:
    """What the group has committed, of the topics that it was committed for."""
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        offsets = admin.list_group_offsets([GROUP])[GROUP]
        return {(part.topic, part.partition): stored.offset for part, stored in offsets.items()}
    finally:
        admin.close()


def _sizes(records: Mapping[int, Mapping[int, topics.Record]]) -> list[int]:
    return [len(records[index]) for index in sorted(records)]
