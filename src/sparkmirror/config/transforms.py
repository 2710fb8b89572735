"""Read a flow's transforms: Kafka Connect's by their keys, and Spark queries.

`A->B.transforms` and `A->B.predicates` with their families are Connect's. `A->B.transform.<name>.sql` is a query over
the topics of `A->B.transform.<name>.topics`. A flow's key counts before the same key without prefix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sparkmirror.config.entries import Entry
from sparkmirror.config.lookup import Lookup, Pair
from sparkmirror.config.model import FlowConfig, TransformQuery
from sparkmirror.errors import ConfigError
from sparkmirror.policy.java_regex import compile_java
from sparkmirror.transforms import parse_chain
from sparkmirror.values import Names

TRANSFORMS, PREDICATES = "transforms", "predicates"
_CONNECT = re.compile(r"(transforms|predicates)(\..+)?")
_QUERY = re.compile(r"transform\.([^.]+)\.(\w+)")
_PARTS = ("sql", "topics")
REROUTED = TransformQuery(name="transforms", topics=(".*",), is_connect=True)
"""Query for a flow whose Connect transforms send records to other topics.

The query copies all topics but heartbeats, which no query copies.
"""


def read_connect_transforms(lookup: Lookup, pair: Pair) -> dict[str, str]:
    """Return Connect's keys for transforms and predicates.

    No keys if both lists are empty. Mistakes go into `lookup.mistakes`.
    """
    entries = _entries(lookup, pair, _CONNECT.fullmatch)
    keys = {name: _text(lookup, entry) for name, entry in entries.items()}
    stated = next((entries[name] for name in (TRANSFORMS, PREDICATES) if keys.get(name, "").strip()), None)
    if stated is None:
        lookup.looked_up.update(entries[name].key for name in (TRANSFORMS, PREDICATES) if name in entries)
        return {}
    lookup.looked_up.update(entry.key for entry in entries.values())
    try:
        chain = parse_chain(keys, origin=stated.spot)
    except ConfigError as error:
        for mistake in error.mistakes:
            entry = entries.get(mistake.key or "")
            lookup.mistakes.add(mistake if entry is None else entry.error(mistake.reason))
        return {}
    for key in chain.unread:
        lookup.warn(entries[key].note("has no effect: no transform or predicate has this name"))
    return keys


def with_queries(lookup: Lookup, flow: FlowConfig) -> FlowConfig:
    """Return the flow with its Spark queries, by name.

    Mistakes go into `lookup.mistakes`.
    """
    queries = _queries(lookup, (flow.source.alias, flow.target.alias))
    if not parse_chain(flow.connect_transforms).is_order_keeping:
        queries = (*queries, REROUTED)
    return flow.model_copy(update={"transform_queries": queries})


def _queries(lookup: Lookup, pair: Pair) -> tuple[TransformQuery, ...]:
    parts: dict[str, dict[str, Entry]] = {}
    for key, entry in _entries(lookup, pair, _QUERY.fullmatch).items():
        _, name, part = key.split(".")
        lookup.looked_up.add(entry.key)
        if part in _PARTS:
            parts.setdefault(name, {})[part] = entry
        else:
            lookup.mistakes.add(entry.error(f"a query has {' and '.join(_PARTS)}, and no {part}"))
    queries = []
    for name, entries in sorted(parts.items()):
        if name == REROUTED.name:
            first = next(iter(entries.values()))
            lookup.mistakes.add(first.error("is the name of Connect's own transforms: give the query another one"))
            continue
        missing = [part for part in _PARTS if part not in entries or not entries[part].value.strip()]
        stated = next(iter(entries.values()))
        if missing:
            key = f"{stated.key.rpartition('.')[0]}.{missing[0]}"
            lookup.mistakes.add(ConfigError("is missing: a query has both", origin=stated.spot, key=key))
            continue
        with lookup.mistakes.gathered():
            sql = lookup.text(entries["sql"]).strip()
            queries.append(TransformQuery(name=name, topics=_patterns(lookup, entries["topics"]), sql=sql))
    return tuple(queries)


def _entries(lookup: Lookup, pair: Pair, wanted: Callable[[str], object]) -> Mapping[str, Entry]:
    """Return the strongest entry of each wanted name."""
    prefix = "->".join(pair) + "."
    own = {key.removeprefix(prefix): key for key in lookup.properties if key.startswith(prefix)}
    names = {key: key for key in lookup.properties} | own
    return {name: lookup.properties[key] for name, key in names.items() if wanted(name)}


def _patterns(lookup: Lookup, entry: Entry) -> tuple[str, ...]:
    try:
        patterns = Names().parse(lookup.text(entry))
        for pattern in patterns:
            compile_java(pattern)
    except ValueError as error:
        raise entry.error(str(error)) from None
    return patterns


def _text(lookup: Lookup, entry: Entry) -> str:
    try:
        return lookup.text(entry)
    except ConfigError as error:
        lookup.mistakes.add(error)
        return ""
