"""Client quotas: a client throttled at the source is throttled at the target.

Setting: `sparkmirror.sync.client.quotas.enabled`, each `sync.topic.acls.interval.seconds`; MirrorMaker 2 has no such
feature. Quotas for IP addresses are left out: they concern the brokers' own network.
"""

from __future__ import annotations

import json
import logging

from sparkmirror.config import FlowConfig
from sparkmirror.events import Event
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.client_quotas import Entity, change_quotas, read_quotas
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.sync.access_memory import AccessMemory

logger = logging.getLogger(__name__)


class ClientQuotaSync:
    """The client quota duty; the source's values win.

    Target quotas without a counterpart at the source stay as they are.
    """

    def __init__(self, flow: FlowConfig) -> None:
        self._removals = flow.topic_sync.acl_removals_enabled
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-client-quotas")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-client-quotas")
        self._memory = AccessMemory(TopicLog(self._target, losses_topic(flow.source.alias)), "quota")
        self._named: set[tuple[Entity, str]] = set()

    def run(self) -> None:
        """Set differing quotas, and remove revoked quotas if removals are enabled.

        A refused quota is one line in the log. Raises `ConnectionError` or `SparkMirrorError`.
        """
        theirs = {entity: values for entity, values in read_quotas(self._source).items() if _is_clients(entity)}
        present = read_quotas(self._target)
        changes: dict[Entity, dict[str, float | None]] = {}
        for entity, values in theirs.items():
            for key, value in values.items():
                if present.get(entity, {}).get(key) != value:
                    changes.setdefault(entity, {})[key] = value
        if self._removals:
            self._memory.learn(
                {
                    _written(entity, key): ()
                    for entity, ops in changes.items()
                    for key in ops
                    if key not in present.get(entity, {})
                }
            )
            for entity, key in self._gone(theirs):
                if key in present.get(entity, {}):
                    changes.setdefault(entity, {})[key] = None
        refused = self._change(changes)
        if self._removals:
            self._memory.forget(_written(entity, key) for entity, key in refused if key not in present.get(entity, {}))
            there = read_quotas(self._target)
            self._memory.forget(
                _written(entity, key) for entity, key in self._gone(theirs) if key not in there.get(entity, {})
            )

    def close(self) -> None:
        self._source.close()
        self._target.close()

    def _gone(self, theirs: dict[Entity, dict[str, float]]) -> list[tuple[Entity, str]]:
        """Return the quotas set by this mirror that the source no longer has."""
        ours = [_read(name) for name in self._memory.known]
        return [(entity, key) for entity, key in ours if key not in theirs.get(entity, {})]

    def _change(self, changes: dict[Entity, dict[str, float | None]]) -> list[tuple[Entity, str]]:
        """Set or remove quotas; return those that the target refused."""
        alias = self._target.config.alias
        refused = []
        for entity, reason in change_quotas(self._target, changes).items():
            for key, value in changes[entity].items():
                what = f"{key} of {_words(entity)}"
                if reason is None:
                    said = "removed, as at the source" if value is None else f"set to {value:g}"
                    logger.info("quota on cluster %s: %s %s", alias, what, said, extra=Event.QUOTA_SYNCED.extra)
                    continue
                refused.append((entity, key))
                if (entity, key) not in self._named:
                    self._named.add((entity, key))
                    logger.warning(
                        "quota not synced to cluster %s: %s: %s",
                        alias,
                        what,
                        reason,
                        extra=Event.QUOTA_NOT_SYNCED.extra,
                    )
        return refused


def _is_clients(entity: Entity) -> bool:
    return all(kind in ("user", "client-id") for kind, _ in entity)


def _words(entity: Entity) -> str:
    return ", ".join(f"{kind} {name}" if name is not None else f"every {kind}" for kind, name in entity)


def _written(entity: Entity, key: str) -> str:
    return json.dumps([entity, key])


def _read(written: str) -> tuple[Entity, str]:
    entity, key = json.loads(written)
    return tuple((kind, name) for kind, name in entity), key
