"""The demo's stage for a migration: the shop moves there and back.

Topics keep their names, and two flows take turns. The demo itself is the person who stops and starts clients, so the
migration's fence is `none`.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from sparkmirror.demo.shop import SHOP
from sparkmirror.demo.shop_reader import ShopReader, read_logs
from sparkmirror.demo.show import PATIENCE_S, SOURCE, TARGET, Ends, Show, log_ends
from sparkmirror.errors import CopyIncomplete

GROUP = "billing"


class MovingShow(Show):
    """The demo's parts, and a group of consumers."""

    def __init__(self, directory: Path, *, brokers: int = 1) -> None:
        super().__init__(directory, brokers=brokers)
        self.migration_file = self.directory / "migration.yaml"
        self.reader = ShopReader(GROUP)

    def start_clusters(self) -> None:
        """Start both clusters, and write both files. Raises SetupError."""
        super().start_clusters()
        self.migration_file.write_text(_MIGRATION.format(topics=", ".join(topic.name for topic in SHOP), group=GROUP))

    def mirror_file(self) -> str:
        """Return the file of both flows."""
        return super().mirror_file() + _BACK.format(
            source=SOURCE, target=TARGET, topics=", ".join(topic.name for topic in SHOP)
        )

    def copy_of(self, topic: str) -> str:
        """Return the topic's own name."""
        return topic

    def move_shop(self, bootstrap_servers: str) -> None:
        """Let the shop write to this cluster when it opens again."""
        self._shop().move(bootstrap_servers)

    def wait_until_equal(self) -> Ends:
        """Wait until both clusters are equal; return the ends.

        The shop must be closed.
        """
        until = time.monotonic() + PATIENCE_S
        while (here := self.source_ends()) != (there := log_ends(self.target, TARGET)):
            if time.monotonic() > until:
                lacking = next(place for place in here if here[place] != there.get(place))
                raise CopyIncomplete(f"{lacking[0]}-{lacking[1]} ends at {here[lacking]} and {there.get(lacking)}")
            self.watch(0.2)
        return here

    def reader_differs(self, ends: Ends) -> list[str]:
        """Return partitions that the group has not read once and in order."""
        read, whole = self.reader.seen.of_partitions(), read_logs(self.source.bootstrap_servers, ends).of_partitions()
        places = read.keys() | whole.keys()
        return sorted(
            f"{topic}-{part}" for topic, part in places if read.get((topic, part)) != whole.get((topic, part))
        )

    def close(self, *, keep: bool) -> None:
        """End everything that runs."""
        with suppress(Exception):  # its error has been told, and everything else must end too
            self.reader.close()
        super().close(keep=keep)


_BACK = """
# The way back: topics keep their names, and the two flows take turns with each topic.
replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy
{target}->{source}.enabled = true
{target}->{source}.topics = {topics}
{source}->{target}.sparkmirror.turn = first
{target}->{source}.sparkmirror.turn = second
"""

_MIGRATION = """\
# Written by `sparkmirror demo --migration`.
mirror: mm2.properties
flow: shop->backup
type: consumers-first
sets:
  - name: shop
    topics: [{topics}]
    groups: [{group}]
policies: {{lag: 10000 records, still: 1 s}}
fence: none
"""
