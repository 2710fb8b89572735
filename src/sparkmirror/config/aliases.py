"""Empty aliases: MirrorMaker 2's way to keep topic names before Kafka 3.0.

Kafka 3.0 brought a replication policy for the purpose. With an empty `source.cluster.alias` and an empty
`replication.policy.separator`, `orders` becomes `orders`. MirrorMaker 2 stores its data under the empty alias:
Connect's offsets have `"cluster": ""`, and its topics are called `checkpointsinternal` and
`mm2-offset-syncs<target>internal`. Tried with 4.3.1's own classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from sparkmirror.config.entries import Entry
from sparkmirror.config.lookup import Lookup
from sparkmirror.config.model import DEFAULT_POLICY, IDENTITY_POLICY, POLICIES, FlowConfig
from sparkmirror.config.settings import SOURCE_ALIAS, TARGET_ALIAS


def with_aliases(lookup: Lookup, flow: FlowConfig) -> FlowConfig:
    """Return the flow with its empty aliases taken into account.

    Mistakes go into `lookup.mistakes`.
    """
    pair = (flow.source.alias, flow.target.alias)
    source, target = lookup.entry(SOURCE_ALIAS, pair), lookup.entry(TARGET_ALIAS, pair)
    if target is not None and not target.value.strip():
        flow = flow.model_copy(update={"target_cluster_alias": ""})
    if source is None or source.value.strip():
        return flow
    flow = flow.model_copy(update={"source_cluster_alias": ""})
    if flow.replication_policy_class != DEFAULT_POLICY:
        if flow.replication_policy_class not in POLICIES:
            lookup.mistakes.add(source.error("is empty, and a policy of your own needs the source's name: write one"))
        return flow
    if flow.replication_policy_separator:
        copy = f"{flow.replication_policy_separator}orders"
        lookup.mistakes.add(
            source.error(
                f"is empty, so that MirrorMaker 2 would call the copy of orders {copy}, which it takes for an internal"
                f" topic: to keep names write replication.policy.class = {IDENTITY_POLICY}; for <alias>{copy} write the"
                " source's alias here"
            )
        )
        return flow
    lookup.warn(
        source.note(
            "is empty, and replication.policy.separator too, which is MirrorMaker 2's old way to keep topics' names:"
            " run as with IdentityReplicationPolicy, on from its offsets under the empty alias; names can't show"
            " which topics are copies, so flows between two clusters must go one way only"
        )
    )
    return flow.model_copy(update={"replication_policy_class": IDENTITY_POLICY})


def aliases_alike(stated: Entry | None, aliases: Sequence[str]) -> Iterator[str]:
    """Yield a warning for each group of aliases that differ only in case."""
    for _, group in groupby(sorted(aliases, key=str.lower), key=str.lower):
        alike = sorted(group)
        if stated is not None and len(alike) > 1:
            yield stated.note(f"{' and '.join(alike)} are clusters of their own, as their case counts")


def in_other_case(key: str, entries: Iterable[str]) -> str:
    """Return a hint if a missing key is there in another case; else nothing."""
    other = next((entry for entry in entries if entry != key and entry.lower() == key.lower()), None)
    return f" ({other} is for another alias, as case counts)" if other else ""
