"""Which ACLs count at the target, and for which names there.

MirrorMaker 2 carries the literal ACLs of topics (`mm2.md` 3.2, syncTopicAcls), and none that allows to write: a
copy has one writer. What else is asked for here, patterns, groups and transactional ids, is ours.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping

from sparkmirror.cluster.acls import (
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
from sparkmirror.policy import DefaultReplicationPolicy
from sparkmirror.sync.topic_rules import TopicRules

_LOOKING = frozenset({READ, DESCRIBE, DESCRIBE_CONFIGS})


def of_one_copy(acl: Acl, rules: TopicRules) -> Acl | None:
    """A literal ACL for the copy's name, word for word; None for a pattern, or where there is no copy."""
    if acl.pattern != LITERAL or not rules.wanted(acl.name):
        return None
    return dataclasses.replace(acl, name=rules.remote_name(acl.name))


def of_copies(acl: Acl, rules: TopicRules, copies: Mapping[str, str]) -> Iterator[Acl]:
    """What an ACL of topics becomes for the copies, word for word; `copies` are their names by their sources'.

    A prefix stays one where only copies can begin with it, as the default policy names them: `or` becomes `us.or`,
    and `*` the prefix `us.`. Elsewhere, where names are kept among them, it would count for others' topics too: each
    copy that there is gets the ACL. So it is where `us.` is more than looked at, since checkpoints are there.
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
    """What of an ACL a copy has as long as the mirror writes it: allowing all becomes allowing to read."""
    allows = acl.permission == ALLOW
    if allows and acl.operation == WRITE:
        return None
    return dataclasses.replace(acl, operation=READ) if allows and acl.operation == ALL else acl


def of_groups(acl: Acl, groups: Iterable[str], wanted: Callable[[str], bool]) -> Iterator[Acl]:
    """What an ACL of groups becomes: theirs that are wanted, by name; of a pattern's those that there are."""
    named = [group for group in groups if acl.is_about(group)] if acl.is_pattern else [acl.name]
    for group in sorted(named):
        if wanted(group):
            yield dataclasses.replace(acl, name=group, pattern=LITERAL)


def _renamed_prefix(prefix: str, rules: TopicRules) -> str:
    """What copies begin with whose sources begin with `prefix`, and nothing else does; empty if there is no such."""
    if type(rules.policy) is not DefaultReplicationPolicy:
        return ""
    renamed = rules.remote_name(prefix)
    return renamed if renamed != prefix else ""


def _checkpoints(rules: TopicRules) -> str:
    return rules.policy.checkpoints_topic(rules.source_alias)
