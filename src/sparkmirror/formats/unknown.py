"""Values that stand in Secrets that are not there: what can be said without them, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sparkmirror.config import EffectiveValue, Entry
from sparkmirror.config.originals import is_secret
from sparkmirror.formats.merge import SECURITY
from sparkmirror.formats.secrets import is_unknown

NOT_KNOWN = "not known"
"""What is shown of such a value."""
_STAND_IN = "cluster:9092"
"""For brokers."""


def without_unknown(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries that can be looked at: what is not known counts as not set, but secrets may be any text."""
    for entry in entries:
        if not is_unknown(entry.value) or is_secret(entry.key) or SECURITY.fullmatch(_name(entry)):
            yield entry
        elif _name(entry) == "bootstrap.servers":
            yield replace(entry, value=_STAND_IN)


def as_not_known(entries: Sequence[Entry], values: Iterable[EffectiveValue]) -> Iterator[EffectiveValue]:
    """The values, with those shown as not known that are not."""
    unknown = [entry for entry in entries if is_unknown(entry.value)]
    places = {f"{entry.where}: {entry.key}" for entry in unknown}
    names = {entry.key: f"{entry.where}: {entry.key}" for entry in unknown}
    for value in values:
        place = names.get(f"{value.flow}.{value.key}")
        if place is not None:
            yield replace(value, value=NOT_KNOWN, where=place)
        else:
            yield replace(value, value=NOT_KNOWN) if value.where in places else value


def _name(entry: Entry) -> str:
    """Without a flow or an alias before it."""
    return entry.key.partition("->")[2].partition(".")[2] if "->" in entry.key else entry.key.partition(".")[2]
