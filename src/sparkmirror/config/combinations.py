"""Settings that are right each and odd together.

MirrorMaker 2 stops at some combinations (`mm2.md` 1.3 and 3.2).
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.config.duty_settings import GROUP_SETTINGS, OFFSET_SYNC_SETTINGS
from sparkmirror.config.entries import Entry
from sparkmirror.config.lookup import Lookup
from sparkmirror.config.model import FlowConfig
from sparkmirror.config.settings import PRODUCE_SETTINGS

_BY_NAME = {setting.name: setting for setting in (*GROUP_SETTINGS, *OFFSET_SYNC_SETTINGS, *PRODUCE_SETTINGS)}
_LEVELLED = ("gzip", "lz4", "zstd")
_WITHOUT = "has no effect with emit.offset-syncs.enabled = false"


def combination_notes(lookup: Lookup, flow: FlowConfig) -> Iterator[str]:
    """Yield a note for each odd combination among the flow's settings."""
    pair = (flow.source.alias, flow.target.alias)

    def entry(name: str) -> Entry | None:
        return lookup.entry(_BY_NAME[name], pair)

    syncs_off = None if flow.offset_sync.emit_offset_syncs_enabled else entry("emit.offset-syncs.enabled")
    if syncs_off is not None:
        if flow.group.emit_checkpoints_enabled:
            yield syncs_off.note("checkpoints are written all the same, from exact offsets; MirrorMaker 2 stops them")
        for name in ("offset-syncs.topic.location", "offset-syncs.topic.replication.factor"):
            if (given := entry(name)) is not None:
                yield given.note(f"{_WITHOUT}, which MirrorMaker 2 refuses")
        if (given := entry("offset.lag.max")) is not None:
            yield given.note(_WITHOUT)
    offsets_set = entry("sync.group.offsets.enabled") if flow.group.sync_group_offsets_enabled else None
    if offsets_set is not None and not flow.group.emit_checkpoints_enabled:
        yield offsets_set.note("has no effect with emit.checkpoints.enabled = false, as with MirrorMaker 2")
    for codec in _LEVELLED:
        level = entry(f"compression.{codec}.level")
        if level is not None and codec != flow.produce.compression_type:
            yield level.note(f"has no effect without compression.type = {codec}, as with Kafka's producer")
