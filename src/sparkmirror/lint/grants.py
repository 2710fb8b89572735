"""Commands that give sparkmirror's principal the rights that lint misses."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from sparkmirror.kafka.cluster.acls import DENY, EVERYBODY, Acl, AclResource
from sparkmirror.kafka.cluster.missing_rights import principal
from sparkmirror.kafka.cluster.tool_commands import ACL_WORDS, acl_lines, pascal, tool_options
from sparkmirror.lint.probe import FlowProbe, ProbedCluster

_OWN = "mm2-sparkmirror-"
"""Prefix of all sparkmirror's own topics."""
_MOST = 20
"""Most names in a command; more names are told by their number."""


def grant_topics(probe: FlowProbe, side: ProbedCluster, operations: Sequence[str], names: Iterable[str]) -> str:
    """Return the commands for rights on topics, or on topics to come.

    Copies and sparkmirror's own topics are granted by their prefix. An ACL that denies a right must go first.
    """
    literal = list(dict.fromkeys(names))
    denials = [] if side.acls is None else _denials(side, operations, literal)
    commands = acl_lines(denials, side.cluster, remove=True)
    prefixes = [_OWN]
    if side is probe.target and all(copy != name for name, copy in probe.names.items()):
        copies = {copy.removesuffix(name) for name, copy in probe.names.items() if copy.endswith(name)}
        prefixes += sorted(copies) if len(copies) == 1 else []
    for prefix in prefixes:
        if any(name.startswith(prefix) for name in literal):
            literal = [name for name in literal if not name.startswith(prefix)]
            commands.append(_allow(side, AclResource.TOPIC, operations, [prefix], prefixed=True))
    if literal:
        commands.append(_allow(side, AclResource.TOPIC, operations, literal[:_MOST]))
    more = f", and the same for {len(literal) - _MOST} topics more" if len(literal) > _MOST else ""
    return _run(commands) + more


def grant_groups(side: ProbedCluster, operation: str, groups: Sequence[str]) -> str:
    return _run([_allow(side, AclResource.GROUP, [operation], groups)])


def grant_cluster(side: ProbedCluster, operation: str) -> str:
    return _run([_allow(side, AclResource.CLUSTER, [operation], [])])


def _run(commands: Iterable[str]) -> str:
    return f"run {' and '.join(f'`{command}`' for command in commands)}, or grant it by the provider's own policies"


def _denials(side: ProbedCluster, operations: Sequence[str], names: Sequence[str]) -> list[Acl]:
    who = principal(side.cluster)
    return sorted(
        acl
        for acl in side.acls or ()
        if acl.permission == DENY
        and acl.principal in (who, EVERYBODY)
        and acl.operation_name in (*operations, "ALL", "DESCRIBE")
        and any(map(acl.is_about, names))
    )


def _allow(
    side: ProbedCluster,
    resource: AclResource,
    operations: Sequence[str],
    names: Sequence[str],
    *,
    prefixed: bool = False,
) -> str:
    option = ACL_WORDS[resource][0]
    words = [
        *("--add", "--allow-principal", principal(side.cluster) or "User:PRINCIPAL"),
        *(part for operation in operations for part in ("--operation", pascal(operation))),
        *([option] if resource is AclResource.CLUSTER else [part for name in names for part in (option, name)]),
        *(("--resource-pattern-type", "prefixed") if prefixed else ()),
    ]
    return f"kafka-acls.sh {tool_options(side.cluster)} {shlex.join(words)}"
