"""A scrape of a snapshot made up, by name and labels."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from sparkmirror.look.metrics.collector import MirrorCollector
from sparkmirror.look.metrics.profile import Profile
from sparkmirror.snapshot.snapshot import Snapshot


def scraped(of: Snapshot, *profiles: Profile) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Return the samples; no series may be there twice."""
    text = MirrorCollector(lambda: of, profiles).text().decode()
    samples: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = tuple(sorted(sample.labels.items()))
            assert key not in samples.setdefault(sample.name, {}), f"twice: {sample}"
            samples[sample.name][key] = sample.value
    return samples
