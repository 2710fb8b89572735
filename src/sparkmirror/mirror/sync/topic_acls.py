"""ACLs: a principal that may read a topic at the source may read its copy.

Settings: `sync.topic.acls.enabled`, `sync.topic.acls.interval.seconds` (`mm2.md` 3.2: syncTopicAcls). Like MirrorMaker
2, the duty adds topic ACLs by name and never removes them: an ACL revoked at the source stays at the target. The
log names such an ACL once, if this process has seen the ACL granted.

On request the duty does more than MirrorMaker 2: it carries prefixes and `*`, ACLs for groups and transactional ids,
and removes ACLs that this mirror has added when they are revoked.

A migration's own denials stay where the migration put them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping

from sparkmirror.config import FlowConfig
from sparkmirror.events import Event
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.kafka.cluster.acls import (
    PREFIXED,
    Acl,
    AclResource,
    SecurityDisabled,
    create_acls,
    delete_acls,
    read_acls,
)
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Groups
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.sync.access_memory import AccessMemory
from sparkmirror.mirror.sync.acl_rules import of_copies, of_groups, of_one_copy, while_mirrored
from sparkmirror.mirror.sync.migration_words import MigrationWords
from sparkmirror.mirror.sync.topic_rules import TopicRules
from sparkmirror.pump.messages.control import control_topic

logger = logging.getLogger(__name__)


def remote_acl(acl: Acl, rules: TopicRules) -> Acl | None:
    """Return the ACL that MirrorMaker 2 gives the copy; `None` if it gives none.

    Only literal ACLs are carried, and no permission to write: a copy has one writer. Allowing all operations becomes
    allowing to read; all else, denials too, stays word for word.
    """
    copies = of_one_copy(acl, rules)
    return None if copies is None else while_mirrored(copies)


class TopicAclSync:
    """The ACL duty, each `sync.topic.acls.interval.seconds`.

    The duty covers `sync.topic.acls.enabled` and sparkmirror's own ACL settings. `copies` maps source topics to their
    copies' names; `wanted_group` tells which groups are replicated; `moved` gives the copies whose writers have moved.
    """

    def __init__(
        self,
        flow: FlowConfig,
        rules: TopicRules,
        copies: Callable[[], Mapping[str, str]] = dict,
        wanted_group: Callable[[str], bool] = bool,
        moved: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._sync = flow.topic_sync
        self._rules = rules
        self._copies = copies
        self._wanted_group = wanted_group
        self._moved = moved
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-topic-acls")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-topic-acls")
        self._words = MigrationWords(TopicLog(self._target, control_topic(flow.source.alias)))
        self._memory = AccessMemory(TopicLog(self._target, losses_topic(flow.source.alias)), "acl")
        self._granted: dict[Acl, set[Acl]] = {}
        """ACLs at the target that were seen granted, with their origins at the source."""
        self._named: set[Acl] = set()
        self._without_acls: set[str] = set()

    def run(self) -> None:
        """Add missing ACLs, and remove revoked ACLs if removals are enabled.

        A refused ACL is one line in the log. Raises `ConnectionError` or `SparkMirrorError`.
        """
        try:
            fences = self._words.denials()
        except ConnectionError:
            self._read(self._source)  # who may read neither hears of the ACLs
            raise
        theirs = self._read(self._source)
        present = self._read(self._target) if theirs is not None else None
        if theirs is None or present is None:
            return
        theirs -= fences | self._words.denials()  # the words are there before the denials, and go after them
        origins = self._origins(theirs)
        missing = sorted(origins.keys() - present)
        if self._sync.acl_removals_enabled:
            self._remember(missing, origins)
        self._create(missing)
        if self._sync.acl_removals_enabled:
            self._remove(theirs, origins, present)
        else:
            self._name_revoked(theirs, origins, present)

    def close(self) -> None:
        self._source.close()
        self._target.close()

    def _origins(self, theirs: set[Acl]) -> dict[Acl, set[Acl]]:
        """Map each ACL wanted at the target to the source's ACLs that it stands for."""
        patterns = self._sync.acl_patterns_enabled
        copies = self._copies() if patterns else {}
        of_some = patterns and any(acl.resource is AclResource.GROUP and acl.is_pattern for acl in theirs)
        groups = Groups(self._source).listed() if of_some else {}
        origins: dict[Acl, set[Acl]] = {}
        for acl in theirs:
            for remote in self._at_target(acl, copies, groups):
                origins.setdefault(remote, set()).add(acl)
        return origins

    def _at_target(self, acl: Acl, copies: Mapping[str, str], groups: Iterable[str]) -> Iterator[Acl]:
        if acl.resource is AclResource.GROUP:
            yield from of_groups(acl, groups, self._wanted_group)
        elif acl.resource is AclResource.TRANSACTIONAL_ID:
            yield acl
        elif self._sync.acl_patterns_enabled:
            yield from filter(None, map(while_mirrored, of_copies(acl, self._rules, copies)))
        elif (remote := remote_acl(acl, self._rules)) is not None:
            yield remote

    def _read(self, client: ClusterClient) -> set[Acl] | None:
        alias = client.config.alias
        asked = {
            AclResource.TOPIC: self._sync.sync_topic_acls_enabled,
            AclResource.GROUP: self._sync.sync_group_acls_enabled,
            AclResource.TRANSACTIONAL_ID: self._sync.sync_transactional_id_acls_enabled,
        }
        try:
            return read_acls(client, *(resource for resource, enabled in asked.items() if enabled))
        except SecurityDisabled:
            level = logging.DEBUG if alias in self._without_acls else logging.INFO
            logger.log(
                level, "no ACLs are synced: cluster %s has no authorizer", alias, extra=Event.ACLS_NOT_SYNCED.extra
            )
            self._without_acls.add(alias)
            return None

    def _create(self, missing: Iterable[Acl]) -> None:
        alias = self._target.config.alias
        refused = []
        for acl, reason in create_acls(self._target, list(missing)).items():
            if reason is None:
                logger.info("ACL added on cluster %s: %s", alias, acl, extra=Event.ACL_ADDED.extra)
            else:
                refused.append(acl)
                logger.warning(
                    "ACL not synced to cluster %s: %s: %s", alias, acl, reason, extra=Event.ACLS_NOT_SYNCED.extra
                )
        if refused and self._sync.acl_removals_enabled:
            self._memory.forget(map(_written, refused))

    def _remember(self, missing: Iterable[Acl], origins: Mapping[Acl, set[Acl]]) -> None:
        """Write down the ACLs to add; ACLs present before belong to the target's operator.

        An operator's ACL stays even if the source has the same ACL.
        """
        ours = {*missing, *(acl for acl in origins if _written(acl) in self._memory.known)}
        self._memory.learn({_written(acl): map(_written, origins[acl]) for acl in ours})

    def _remove(self, theirs: set[Acl], origins: Mapping[Acl, set[Acl]], present: set[Acl]) -> None:
        """Remove added ACLs whose origins are all revoked at the source.

        A changed filter removes no ACL. If a copy is left alone, its ACLs are the operator's, also those of a prefix
        that covers further copies: the log names these.
        """
        granted = set(map(_written, theirs))
        wanted = set(map(_written, origins))
        gone = [name for name, known in self._memory.known.items() if name not in wanted and not known & granted]
        doomed = [acl for acl in map(_acl, gone) if acl in present and not self._is_left_alone(acl)]
        alias = self._target.config.alias
        moved = set(self._moved())
        for acl in [acl for acl in doomed if _is_prefix_of_any(acl, moved)]:
            doomed.remove(acl)
            logger.warning(
                "ACL not removed on cluster %s: %s: it covers copies whose topics have moved; remove it there if it is "
                "to go",
                alias,
                acl,
                extra=Event.ACL_NOT_REMOVED.extra,
            )
        kept = []
        for acl, reason in delete_acls(self._target, doomed).items():
            if reason is None:
                logger.info(
                    "ACL removed on cluster %s, as at the source: %s", alias, acl, extra=Event.ACL_REMOVED.extra
                )
            else:
                kept.append(_written(acl))
                if acl not in self._named:
                    logger.warning(
                        "ACL not removed on cluster %s: %s: %s", alias, acl, reason, extra=Event.ACL_NOT_REMOVED.extra
                    )
                self._named.add(acl)
        self._memory.forget(set(gone) - set(kept))

    def _name_revoked(self, theirs: set[Acl], origins: Mapping[Acl, set[Acl]], present: set[Acl]) -> None:
        """Name ACLs at the target whose origins are all revoked at the source."""
        former = {
            acl: seen
            for acl, seen in self._granted.items()
            if acl in present and acl not in origins and not self._is_left_alone(acl)
        }
        revoked = {acl for acl, seen in former.items() if not seen & theirs}
        for acl in sorted(revoked - self._named):
            logger.warning(
                "ACL revoked on cluster %s, and still there on cluster %s: %s; remove it there if it is to go",
                self._source.config.alias,
                self._target.config.alias,
                acl,
                extra=Event.ACL_NOT_REMOVED.extra,
            )
        self._named = revoked
        self._granted = {**former, **origins}

    def _is_left_alone(self, acl: Acl) -> bool:
        """Tell whether an ACL is about a copy whose topic's writers have moved."""
        if acl.resource is not AclResource.TOPIC or acl.is_pattern:
            return False
        rules = self._rules
        # Policies that keep all names may know no upstream topic.
        return any(
            rules.left_alone(topic) and rules.remote_name(topic) == acl.name
            for topic in {acl.name, rules.policy.upstream_topic(acl.name) or acl.name}
        )


def _is_prefix_of_any(acl: Acl, copies: Iterable[str]) -> bool:
    return acl.resource is AclResource.TOPIC and acl.pattern == PREFIXED and any(map(acl.is_about, copies))


def _written(acl: Acl) -> str:
    """Return the name under which the memory keeps an ACL."""
    return json.dumps(
        [int(acl.resource), acl.name, acl.pattern, acl.principal, acl.host, acl.operation, acl.permission]
    )


def _acl(written: str) -> Acl:
    resource, name, pattern, principal, host, operation, permission = json.loads(written)
    return Acl(
        name=name,
        principal=principal,
        host=host,
        operation=operation,
        permission=permission,
        pattern=pattern,
        resource=AclResource(resource),
    )
