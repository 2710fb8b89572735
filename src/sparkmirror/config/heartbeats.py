"""Cluster pairs that send heartbeats and copy nothing.

MirrorMaker 2 sends heartbeats `source->target` into the target for every pair, enabled or not (`mm2.md` section 1.6,
clusterPairs), so that a flow in the opposite direction has heartbeats to copy. The heartbeats need only the source's
alias.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import permutations

from sparkmirror.config.aliases import with_aliases
from sparkmirror.config.clusters import read_cluster
from sparkmirror.config.duty_settings import EMIT_HEARTBEATS, HEARTBEAT_SETTINGS
from sparkmirror.config.lookup import Lookup, Pair
from sparkmirror.config.model import ClusterConfig, FlowConfig, HeartbeatConfig
from sparkmirror.config.originals import originals_for
from sparkmirror.config.settings import BEAT_SETTINGS, SOURCE_SERVERS, TARGET_SERVERS
from sparkmirror.values import Flag

OF_PAIR = replace(EMIT_HEARTBEATS, kind=Flag())
"""Setting by which MirrorMaker 2 lets a pair without a flow send heartbeats.

See `MirrorMakerConfig.clusterPairs`.
"""


def heartbeat_pairs(aliases: Sequence[str], flows: Iterable[Pair], clusters: Sequence[str]) -> list[Pair]:
    """Return the pairs without a flow, into the targets in `clusters`.

    An empty `clusters` means all targets.
    """
    running = set(flows)
    pairs = [pair for pair in permutations(aliases, 2) if pair not in running]
    return [pair for pair in pairs if not clusters or pair[1] in clusters]


def is_stated(lookup: Lookup, pair: Pair) -> bool:
    """True if the file itself asks for heartbeats for exactly this pair.

    Other pairs send heartbeats merely by Kafka's default.
    """
    entry = lookup.entry(OF_PAIR, pair)
    own = EMIT_HEARTBEATS.place.keys(EMIT_HEARTBEATS.name, *pair)[0]
    return entry is not None and entry.key == own and bool(lookup.value(OF_PAIR, pair))


def read_beats(lookup: Lookup, pairs: Iterable[Pair]) -> tuple[FlowConfig, ...]:
    """Return the pairs that send heartbeats.

    A pair with mistakes in its settings is left out. The mistakes are warnings, or errors if the file itself asks for
    the pair's heartbeats.
    """
    beats = []
    for pair in pairs:
        if lookup.value(OF_PAIR, pair) is False:
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
    rest = [setting for setting in HEARTBEAT_SETTINGS if setting is not EMIT_HEARTBEATS]
    fields = {
        **lookup.given(BEAT_SETTINGS, pair),
        "source": ClusterConfig.model_validate({"alias": source, **brokers}),
        "target": read_cluster(lookup, TARGET_SERVERS, target, pair),
        "heartbeat": HeartbeatConfig.model_validate(lookup.given(rest, pair)),
    }
    beat = with_aliases(lookup, FlowConfig.model_validate(fields))
    return beat.model_copy(update={"originals": originals_for(beat, lookup)})
