"""Topics' ACLs: who may read a topic at the source may read its copy.

Settings: `sync.topic.acls.enabled`, `sync.topic.acls.interval.seconds` (`mm2.md` 3.2: syncTopicAcls). As
MirrorMaker 2 does it, ACLs are added and never removed: what is revoked at the source stays at the target.
That is named in the log once, as far as this process has seen it granted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from sparkmirror.cluster.acls import Acl, Resource, SecurityDisabled, create_acls, read_acls
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.config import FlowConfig
from sparkmirror.sync.acl_rules import of_one_copy, while_mirrored
from sparkmirror.sync.topic_rules import TopicRules

logger = logging.getLogger(__name__)


def remote_acl(acl: Acl, rules: TopicRules) -> Acl | None:
    """The ACL that the copy gets; None if it gets none.

    Literal ones only, and none that allows to write: a copy has one writer. Allowing all becomes allowing to
    read; all else, denials too, stays word for word.
    """
    copies = of_one_copy(acl, rules)
    return None if copies is None else while_mirrored(copies)


class TopicAclSync:
    """The duty of `sync.topic.acls.enabled`, each `sync.topic.acls.interval.seconds`."""

    def __init__(self, flow: FlowConfig, rules: TopicRules) -> None:
        self._rules = rules
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-topic-acls")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-topic-acls")
        self._granted: set[Acl] = set()
        self._named: set[Acl] = set()
        self._without_acls: set[str] = set()

    def run(self) -> None:
        """Add what the target lacks. A refused ACL is one line in the log.

        Raises `ConnectionError` or `SparkMirrorError`.
        """
        theirs = self._read(self._source)
        present = self._read(self._target) if theirs is not None else None
        if theirs is None or present is None:
            return
        wanted = {remote for acl in theirs if (remote := remote_acl(acl, self._rules)) is not None}
        self._create(sorted(wanted - present))
        self._name_revoked(wanted, present)

    def close(self) -> None:
        """Hang up."""
        self._source.close()
        self._target.close()

    def _read(self, client: ClusterClient) -> set[Acl] | None:
        alias = client.config.alias
        try:
            return read_acls(client, Resource.TOPIC)
        except SecurityDisabled:
            level = logging.DEBUG if alias in self._without_acls else logging.INFO
            logger.log(level, "no ACLs are synced: cluster %s has no authorizer", alias)
            self._without_acls.add(alias)
            return None

    def _create(self, missing: Iterable[Acl]) -> None:
        alias = self._target.config.alias
        for acl, reason in create_acls(self._target, list(missing)).items():
            if reason is None:
                logger.info("ACL added on cluster %s: %s", alias, acl)
            else:
                logger.warning("ACL not synced to cluster %s: %s: %s", alias, acl, reason)

    def _name_revoked(self, wanted: set[Acl], present: set[Acl]) -> None:
        revoked = (self._granted - wanted) & present
        for acl in sorted(revoked - self._named):
            logger.warning(
                "ACL revoked on cluster %s, and still there on cluster %s: %s; remove it there if it is to go",
                self._source.config.alias,
                self._target.config.alias,
                acl,
            )
        self._named = revoked
        self._granted = wanted | revoked
