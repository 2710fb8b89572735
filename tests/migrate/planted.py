"""Observations with one topic, or one group, in a certain state: the rows of tests' tables are made of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sparkmirror.migrate.file import Fence, MigrationFile, Set
from sparkmirror.migrate.observation import (
    ClusterSeen,
    FenceSeen,
    FlowSeen,
    GroupSeen,
    MemberSeen,
    Observation,
    Side,
    TopicSeen,
    WordSeen,
)

SOURCE, TARGET = Side.SOURCE, Side.TARGET
WRITERS = frozenset({"User:shop", "User:batch"})
FENCES = {
    "open": FenceSeen(writers=WRITERS),
    "one of two": FenceSeen(writers=WRITERS, denied=frozenset({"User:shop"}), added=frozenset({"User:shop"})),
    "one broker": FenceSeen(writers=WRITERS, denied_somewhere=WRITERS, added=WRITERS),
    "closed": FenceSeen(writers=WRITERS, denied=WRITERS, denied_somewhere=WRITERS, added=WRITERS),
    "an operator's": FenceSeen(writers=WRITERS, denied=WRITERS, denied_somewhere=WRITERS),
    "nobody": FenceSeen(),
}
"""Fences by what a table calls them."""
WORDS = {
    "none": WordSeen(copy="orders", lag=0),
    "ends": WordSeen(copy="orders", lag=3, done=True, ends={0: 100, 1: 50}, reached={}),
    "some": WordSeen(copy="orders", lag=3, done=True, ends={0: 100, 1: 50}, reached={1: 50}),
    "all": WordSeen(copy="orders", lag=0, done=True, ends={0: 100, 1: 50}, reached={0: 100, 1: 50}),
}
"""A flow's word by how much of the topic is reached."""


def turned(word: WordSeen) -> WordSeen:
    """Return the word of the flow whose turn is the newest."""
    return replace(word, begun=True)


def renamed(word: WordSeen, side: Side) -> WordSeen:
    """Return the word of a flow that renames its copies."""
    return replace(word, copy=f"{'A' if side is SOURCE else 'B'}.orders")


def topic(ends: Mapping[int, int], fence: str = "open", *, steady: bool = True, name: str = "orders") -> TopicSeen:
    """Return a topic; steady ends are also still."""
    return TopicSeen(
        name=name,
        ends=ends,
        watermarks=ends,
        steady=steady,
        still_s=60.0 if steady else 0.0,
        fence=FENCES[fence],
    )


def group(members: int = 0, offset: int | None = None, *, other: int | None = None, state: str = "") -> GroupSeen:
    """Return a group with its commits in partition 0, and in partition 1."""
    offsets = {("orders", part): each for part, each in ((0, offset), (1, other)) if each is not None}
    return GroupSeen(
        state=state or ("Stable" if members else "Empty"),
        members=tuple(MemberSeen(f"app-{number}", "10.0.3.7") for number in range(members)),
        offsets=offsets,
        readers=frozenset({"User:app"}),
    )


def seen(
    *,
    here: TopicSeen | None = None,
    there: TopicSeen | None = None,
    forth: WordSeen = WORDS["none"],
    back: WordSeen | None = WORDS["none"],
    group_here: GroupSeen | None = None,
    group_there: GroupSeen | None = None,
    positions: Mapping[Side, Mapping[int, int | None]] | None = None,
    at_work: bool = True,
    live: Side = SOURCE,
) -> Observation:
    """Return an observation of one topic and one group, seen from the side `live`: `here` and `forth` are there."""
    names = {SOURCE: "A", TARGET: "B"}
    topics = {live: here, live.other: there}
    groups = {live: group_here, live.other: group_there}
    words = {live: forth, live.other: back}
    positions = {side if live is SOURCE else side.other: told for side, told in (positions or {}).items()}
    return Observation(
        at_ms=0,
        clusters={
            side: ClusterSeen(
                alias=names[side],
                bootstrap=f"{names[side].lower()}1:9092",
                authorizer=True,
                topics={found.name: found} if (found := topics[side]) else {},
                groups={"billing": one} if (one := groups[side]) else {},
            )
            for side in Side
        },
        flows={
            side: FlowSeen(
                name=f"{names[side]}->{names[side.other]}",
                at_work=at_work,
                topics={"orders": word},
                positions={"billing": {("orders", part): at for part, at in positions.get(side, {}).items()}},
                untranslated={"billing": "orders-0: not copied yet"}
                if None in positions.get(side, {}).values()
                else {},
            )
            for side, word in words.items()
            if word is not None
        },
    )


def with_flow(at: Observation, side: Side, flow: FlowSeen) -> Observation:
    """Return an observation with another flow."""
    return replace(at, flows={**at.flows, side: flow})


def with_cluster(at: Observation, side: Side, cluster: ClusterSeen) -> Observation:
    """Return an observation with another cluster."""
    return replace(at, clusters={**at.clusters, side: cluster})


def file(fence: Fence = Fence.ACL, kind: str = "all-at-once", groups: tuple[str, ...] = ("billing",)) -> MigrationFile:
    """Return a migration of one set with the topic, or with two."""
    return MigrationFile.model_validate(
        {
            "mirror": "mm2.properties",
            "type": kind,
            "fence": fence,
            "hooks": {"fence": {"stop": "./stop", "start": "./start"}} if fence is Fence.HOOK else {},
            "sets": [{"name": "shop", "topics": ["orders"], "groups": groups}],
        }
    )


def the_set(one: MigrationFile) -> Set:
    """Return a file's only set."""
    (found,) = one.sets
    return found
