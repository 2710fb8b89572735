"""Rules that turn the source's ACLs into ACLs for the names at the target.

MirrorMaker 2 carries topics' literal ACLs (`mm2.md` 3.2, syncTopicAcls), and never a permission to write: a copy has
one writer. Patterns, groups and transactional ids are sparkmirror's additions, on request.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping

from sparkmirror.kafka.cluster.acls import (
    ALL,
    ALLOW,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    LITERAL,
    PREFIXED,
    READ,
    WRITE,
    Acl,
)
from sparkmirror.mirror.sync.topic_rules import TopicRules
from sparkmirror.policy import DefaultReplicationPolicy

_LOOKING = frozenset({READ, DESCRIBE, DESCRIBE_CONFIGS})


def of_one_copy(acl: Acl, rules: TopicRules) -> Acl | None:
    """Return a literal ACL for the name of the copy, all else word for word.

    Return `None` for a pattern, and for a topic that is not replicated.
    """
    if acl.pattern != LITERAL or not rules.wanted(acl.name):
        return None
    return dataclasses.replace(acl, name=rules.remote_name(acl.name))


def of_copies(acl: Acl, rules: TopicRules, copies: Mapping[str, str]) -> Iterator[Acl]:
    """Yield the ACLs that a topic ACL becomes for the copies, word for word.

    `copies` maps source topics to their copies' names.

    A prefix stays a prefix if only copies can begin with the renamed prefix, which the default policy ensures: `or`
    becomes `us.or`, and `*` becomes the prefix `us.`. A policy that keeps names gives no such prefix: the prefix would
    cover other writers' topics too, so each existing copy gets a literal ACL. Each existing copy also gets a literal
    ACL where the renamed prefix covers the checkpoints topic (`us.`) and the ACL allows more than reading and
    describing.
    """
    if not acl.is_pattern:
        alone = of_one_copy(acl, rules)
        if alone is not None:
            yield alone
        return
    prefix = acl.name if acl.pattern == PREFIXED else ""
    remotes = sorted(remote for source, remote in copies.items() if source.startswith(prefix))
    renamed = _renamed_prefix(prefix, rules)
    harmless = acl.permission == DENY or acl.operation in _LOOKING
    if remotes and renamed and (harmless or not _checkpoints(rules).startswith(renamed)):
        yield dataclasses.replace(acl, name=renamed, pattern=PREFIXED)
    else:
        for remote in remotes:
            yield dataclasses.replace(acl, name=remote, pattern=LITERAL)


def while_mirrored(acl: Acl) -> Acl | None:
    """Return an ACL as it is while the mirror writes the copy; `None` to grant WRITE.

    Allowing all operations becomes allowing to read.
    """
    allows = acl.permission == ALLOW
    if allows and acl.operation == WRITE:
        return None
    return dataclasses.replace(acl, operation=READ) if allows and acl.operation == ALL else acl


def of_groups(acl: Acl, groups: Iterable[str], wanted: Callable[[str], bool]) -> Iterator[Acl]:
    """Yield an ACL for each wanted group; a pattern counts for existing groups."""
    named = [group for group in groups if acl.is_about(group)] if acl.is_pattern else [acl.name]
    for group in sorted(named):
        if wanted(group):
            yield dataclasses.replace(acl, name=group, pattern=LITERAL)


def _renamed_prefix(prefix: str, rules: TopicRules) -> str:
    """Return the prefix of exactly the copies whose sources begin with `prefix`.

    Return an empty string if the policy gives no such prefix.
    """
    if type(rules.policy) is not DefaultReplicationPolicy:
        return ""
    renamed = rules.remote_name(prefix)
    return renamed if renamed != prefix else ""


def _checkpoints(rules: TopicRules) -> str:
    return rules.policy.checkpoints_topic(rules.source_alias)
