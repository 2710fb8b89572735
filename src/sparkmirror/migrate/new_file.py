"""Make a first migration.yaml from the topics and groups at a flow's source.

Topics with a common group are in the same set. Comments help the person who continues. The clusters stay unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field

import yaml

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import ClusterUnreachable, ConfigError
from sparkmirror.kafka.cluster.acls import AclResource, SecurityDisabled, read_acls
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Groups
from sparkmirror.migrate.file import Fence, Policies
from sparkmirror.mirror.sync.topic_rules import group_filter, topic_rules

_ROLE = "sparkmirror-migration"
_PLAIN = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)
_UNITS = {"lag": " records", "batch": " groups"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFound:
    """State of a flow's source: topics to move, and groups."""

    source: str
    target: str
    topics: tuple[str, ...]
    """Topics in the flow."""
    groups: Mapping[str, frozenset[str]]
    """Topics with commits, by the group that committed."""
    left_out: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Further groups, left out by the flow's `groups` and `groups.exclude`."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Reasons why commits can't be read, by group."""
    authorizers: Mapping[str, bool | None] = field(default_factory=dict)
    """True if a cluster keeps ACLs, None if unknown; by the cluster's alias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedSet:
    """Topics tied together, and the groups that read the topics."""

    name: str
    topics: tuple[str, ...]
    groups: tuple[str, ...]


def look(flow: FlowConfig) -> SourceFound:
    """Ask the source for topics and groups, and the two clusters about ACLs.

    Raises `ConfigError` if the flow copies no topic, `ClusterUnreachable` and other `ConnectionError`s.
    """
    rules = topic_rules(flow)
    with ClusterAdmin.connect(flow.source, _ROLE) as admin:
        topics = sorted(name for name in admin.topics() if rules.wanted(name) and not rules.has_all_heartbeats(name))
    if not topics:
        why = f"flow {flow.name} copies none of the topics that cluster {flow.source.alias} has now"
        raise ConfigError(why, origin=flow.name, key="topics")
    filtered = group_filter(flow)
    with closing(ClusterClient(flow.source, _ROLE)) as client:
        groups = Groups(client)
        fetched = groups.committed(name for name in groups.listed() if name)
    reads: dict[str, frozenset[str]] = {}
    for name, offsets in sorted(fetched.offsets.items()):
        if mine := frozenset(topic for topic, _ in offsets).intersection(topics):
            reads[name] = mine
    return SourceFound(
        source=flow.source.alias,
        target=flow.target.alias,
        topics=tuple(topics),
        groups={name: mine for name, mine in reads.items() if filtered.should_replicate_group(name)},
        left_out={name: mine for name, mine in reads.items() if not filtered.should_replicate_group(name)},
        unread=fetched.refused,
        authorizers={cluster.alias: _keeps_acls(cluster) for cluster in (flow.source, flow.target)},
    )


def _keeps_acls(cluster: ClusterConfig) -> bool | None:
    with closing(ClusterClient(cluster, _ROLE)) as client:
        try:
            read_acls(client, AclResource.TOPIC)
        except SecurityDisabled:
            return False
        except ClusterUnreachable:  # the principal may not read ACLs: so there are some
            return None
    return True


def proposed_sets(shown: SourceFound, ties: Iterable[Collection[str]] = ()) -> list[ProposedSet]:
    """Divide the topics into sets: a group, or a tie, keeps topics together.

    Each tie holds topics tied by other means, for example by transactions.
    """
    leads = {topic: topic for topic in shown.topics}

    def lead(topic: str) -> str:
        while leads[topic] != topic:
            topic = leads[topic]
        return topic

    for tie in (*shown.groups.values(), *ties):
        first, *others = sorted({lead(topic) for topic in tie if topic in leads}) or [""]
        leads |= dict.fromkeys(others, first)
    names: set[str] = set()
    sets = []
    for first in dict.fromkeys(map(lead, shown.topics)):
        topics = tuple(topic for topic in shown.topics if lead(topic) == first)
        groups = tuple(name for name, mine in shown.groups.items() if mine & set(topics))
        sets.append(ProposedSet(name=_name(topics[0], names), topics=topics, groups=groups))
    return sets


def _name(topic: str, taken: set[str]) -> str:
    """Return a free name for a set, and add the name to `taken`."""
    base = re.sub(r"[^a-zA-Z0-9_-]", "-", topic).lstrip("_-") or "set"
    name = next(each for each in _numbered(base) if each not in taken)
    taken.add(name)
    return name


def _numbered(base: str) -> Iterator[str]:
    yield base
    number = 2
    while True:
        yield f"{base}-{number}"
        number += 1


def new_file(mirror: str, shown: SourceFound, *, flow: str = "", ties: Iterable[Collection[str]] = ()) -> str:
    """Return a first migration.yaml as text.

    `mirror` is the mirror's file as the new file shall name it; `flow` is given if the mirror's file has several flows.
    """
    fence, why = _fence(shown)
    lines = [
        f"# Moves topics, producers and consumers from {shown.source} to {shown.target}, and back. Written from what",
        "# the clusters show; read it, and change what you know better. docs/migration-1.json has all keys.",
        f"mirror: {_scalar(mirror)}",
    ]
    if flow:
        lines.append(f"flow: {_scalar(flow)}")
    lines += [
        "# Who moves first: consumers-first, producers-first, or all-at-once.",
        "type: consumers-first",
        "",
        "# Each set moves as a whole. Topics that a group reads in common are in one set; only you know which others",
        "# belong together. `owner` is whom to ask, and is given to your hooks.",
        "sets:",
    ]
    for proposed in proposed_sets(shown, ties):
        lines += [
            f"  - name: {_scalar(proposed.name)}",
            *_listed("topics", proposed.topics),
            *_listed("groups", proposed.groups),
            '    owner: ""',
        ]
        lines += [f"    # {told}" for told in _left_out(shown, proposed)]
    if shown.unread:
        lines.append("# Groups that may read these topics, too, but can't be asked:")
        lines += [f"#   {_one_line(name)}: {_one_line(reason)}" for name, reason in sorted(shown.unread.items())]
    lines += ["", *(f"# {line}" for line in why), f"fence: {fence}", "", *_policies(), ""]
    return "\n".join(lines)


def _fence(shown: SourceFound) -> tuple[Fence, list[str]]:
    """Return the fence to propose, and the reasons."""
    keeps, back = shown.authorizers.get(shown.source), shown.authorizers.get(shown.target)
    if keeps is False:
        return Fence.NONE, [
            f"{shown.source} has no authorizer, so nothing there can refuse producers: people stop them, and the ends",
            "are watched. With your own commands that stop and start them, write `fence: hook` and `hooks.fence`.",
        ]
    why = [f"ACLs deny each principal that may write at {shown.source}."]
    if keeps is None:
        why = [
            f"ACLs deny each principal that may write. Cluster {shown.source} keeps ACLs, but does not show them to",
            "sparkmirror's principal: grant it DESCRIBE and ALTER on the cluster.",
        ]
    if back is False:
        why += [
            f"{shown.target} has no authorizer: for the way back, producers there need `fence: hook` or `fence: none`."
        ]
    return Fence.ACL, why


def _left_out(shown: SourceFound, proposed: ProposedSet) -> Iterator[str]:
    for name, mine in shown.left_out.items():
        if mine & set(proposed.topics):
            yield f"group {_one_line(name)} reads here, too, but the mirror's groups or groups.exclude leaves it out"


def _listed(key: str, names: Collection[str]) -> list[str]:
    if not names:
        return [f"    {key}: []"]
    return [f"    {key}:", *(f"      - {_scalar(name)}" for name in names)]


def _policies() -> list[str]:
    """Return the defaults as comments, each with a description."""
    lines = ["# Limits of each switch, with their defaults.", "# policies:"]
    for key, each in Policies.model_fields.items():
        default = each.get_default()
        value = f"{default}{_UNITS[key]}" if key in _UNITS else f"{default:g} s"
        lines += [f"#   # {each.description}", f"#   {key}: {value}"]
    return lines


def _scalar(text: str) -> str:
    """Return a YAML scalar for a text, in quotes if needed."""
    if _PLAIN.fullmatch(text) and yaml.safe_load(text) == text:
        return text
    return json.dumps(text, ensure_ascii=False)


def _one_line(text: str) -> str:
    return " ".join(text.split())
