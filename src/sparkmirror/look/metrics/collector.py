"""A mirror's metrics for prometheus-client, and as text for large mirrors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from sparkmirror.look.metrics.own import HighWater, own_families
from sparkmirror.look.metrics.profile import Profile
from sparkmirror.look.metrics.profiles import add_profiles
from sparkmirror.snapshot.snapshot import Snapshot
from sparkmirror.web.series import exposition


class MirrorCollector(Collector):
    """A snapshot's metrics, under sparkmirror's own and the profiles' names.

    `text` is the answer of `/metrics`: a text of 10,000 partitions without an object for each sample.
    """

    def __init__(self, snapshots: Callable[[], Snapshot], profiles: Collection[Profile] = ()) -> None:
        self._snapshots = snapshots
        self._profiles = frozenset(profiles)
        self._high_water = HighWater()

    def text(self) -> bytes:
        """Return a scrape, in Prometheus' text format 0.0.4."""
        snapshot = self._snapshots()
        families = own_families(snapshot, self._high_water)
        add_profiles(families, snapshot, self._profiles)
        return exposition(families.values())

    def collect(self) -> Iterable[Metric]:
        """Return the same metrics for a prometheus-client registry."""
        return text_string_to_metric_families(self.text().decode())
