"""Pairs of clusters that copy nothing and still send heartbeats (`mm2.md` section 1.6, clusterPairs).

MirrorMaker 2 sends heartbeats `source->target` into the target for every pair, enabled or not, so that a flow the
other way has some to copy. They need nothing of the source but its alias.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations

from sparkmirror.config.clusters import read_cluster
from sparkmirror.config.control_settings import EMIT_HEARTBEATS, HEARTBEAT_SETTINGS
from sparkmirror.config.lookup import Lookup, Pair
from sparkmirror.config.model import ClusterConfig, FlowConfig, HeartbeatConfig
from sparkmirror.config.originals import originals_for
from sparkmirror.config.settings import BEAT_SETTINGS, SOURCE_SERVERS, TARGET_SERVERS


def heartbeat_pairs(aliases: Sequence[str], flows: Iterable[Pair], clusters: Sequence[str]) -> list[Pair]:
    """The pairs that are no flows, into the targets chosen."""
    running = set(flows)
    pairs = [pair for pair in permutations(aliases, 2) if pair not in running]
    return [pair for pair in pairs if not clusters or pair[1] in clusters]


def is_stated(lookup: Lookup, pair: Pair) -> bool:
    """Whether the file asks for this very pair's heartbeats; elsewhere they are merely Kafka's default."""
    entry = lookup.entry(EMIT_HEARTBEATS, pair)
    own = EMIT_HEARTBEATS.place.keys(EMIT_HEARTBEATS.name, *pair)[0]
    return entry is not None and entry.key == own and bool(lookup.value(EMIT_HEARTBEATS, pair))


def read_beats(lookup: Lookup, pairs: Iterable[Pair]) -> tuple[FlowConfig, ...]:
    """Those of the pairs that send heartbeats.

    Where nobody asked for them, a target that can't be spoken with is passed over with a warning.
    """
    beats = []
    for pair in pairs:
        if lookup.value(EMIT_HEARTBEATS, pair) is False:
            continue
        with lookup.mistakes.apart() as mistakes:
            beat = _beat(lookup, pair)
        if not mistakes:
            beats.append(beat)
        for mistake in mistakes:
            if is_stated(lookup, pair):
                lookup.mistakes.add(mistake)
            else:
                lookup.warn(f"{mistake}; until then no heartbeats are sent into {pair[1]}")
    return tuple(beats)


def _beat(lookup: Lookup, pair: Pair) -> FlowConfig:
    source, target = pair
    brokers = {"bootstrap_servers": (), **lookup.given((SOURCE_SERVERS,), pair)}
    beat = FlowConfig.model_validate(
        {
            **lookup.given(BEAT_SETTINGS, pair),
            "source": ClusterConfig.model_validate({"alias": source, **brokers}),
            "target": read_cluster(lookup, TARGET_SERVERS, target, pair),
            "heartbeat": HeartbeatConfig.model_validate(lookup.given(HEARTBEAT_SETTINGS, pair)),
        }
    )
    return beat.model_copy(update={"originals": originals_for(beat, lookup)})
