"""Ends of copies without a record, by a pump's report; stand-ins answer for the target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.maps.map_keeper import MapKeeper
from sparkmirror.exact.maps.offset_map import Copied
from sparkmirror.exact.maps.partition_map import NOTHING_YET, Unmapped
from sparkmirror.kafka.cluster.client import ClusterClient, PartitionLeader, TopicLeaders
from sparkmirror.kafka.cluster.list_offsets import ListedOffset
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync import offsets_and_ids
from sparkmirror.mirror.sync.application_translator import ApplicationTranslator
from sparkmirror.policy import DefaultReplicationPolicy

TARGET = ClusterConfig(alias="B", bootstrap_servers=("127.0.0.1:1",))
PRESENT, EARLIER = b"t" * 16, b"e" * 16


class Reported(ApplicationTranslator):
    """A translator that has read one report."""

    def __init__(self, report: ReportedProgress) -> None:
        super().__init__(TARGET, "A", DefaultReplicationPolicy())
        self._reached["A.orders", 0] = report

    def _read_receipts(self) -> None:
        """Read none besides."""


@pytest.fixture
def log_end(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """End of the target's log, of which no record is claimed."""
    end: int = request.param

    def metadata(_: ClusterClient, names: Iterable[str]) -> dict[str, TopicLeaders]:
        return {name: TopicLeaders(name, PRESENT, 0, {0: PartitionLeader(1, 0)}) for name in names}

    def listed(_: object, __: int, asked: Mapping[str, list[int]], ___: int) -> dict[TopicPartition, ListedOffset]:
        return {(topic, number): ListedOffset(end, 0) for topic in asked for number in asked[topic]}

    monkeypatch.setattr(MapKeeper, "refresh", lambda _, asked: dict.fromkeys(asked, NOTHING_YET))
    monkeypatch.setattr(ClusterClient, "metadata", metadata)
    monkeypatch.setattr(offsets_and_ids, "list_offsets", listed)
    return end


@pytest.mark.parametrize(
    ("log_end", "told_of", "ends_at"),
    [
        (20, PRESENT.hex(), Copied(0, 1000, 20)),
        (20, "", Copied(0, 1000, 20)),
        (20, EARLIER.hex(), NOTHING_YET),
        (0, "", NOTHING_YET),
    ],
    indirect=["log_end"],
)
@pytest.mark.usefixtures("log_end")
def test_a_report_counts_if_it_is_about_the_present_target_topic(told_of: str, ends_at: Copied | Unmapped) -> None:
    """A pump that has appended nothing since its start names no topic: then the log is too short."""
    with Reported(ReportedProgress(1000, 20, -1, told_of)) as translator:
        assert translator.copied([("orders", 0)]) == {("orders", 0): ends_at}
