"""Missing Secrets' values: checks without them, and the way to show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sparkmirror.config.effective import EffectiveValue
from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.merge import SECURITY
from sparkmirror.config.formats.secrets import is_unknown
from sparkmirror.config.originals import is_secret

NOT_KNOWN = "not known"
"""Text that is shown for such a value."""
_STAND_IN = "cluster:9092"
"""Stand-in for brokers."""


def without_unknown(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the entries that can be checked.

    An unknown value counts as not set, but a secret may be any text, and brokers get a stand-in.
    """
    for entry in entries:
        if not is_unknown(entry.value) or is_secret(entry.key) or SECURITY.fullmatch(_name(entry)):
            yield entry
        elif _name(entry) == "bootstrap.servers":
            yield replace(entry, value=_STAND_IN)


def as_not_known(entries: Sequence[Entry], values: Iterable[EffectiveValue]) -> Iterator[EffectiveValue]:
    """Yield the values, with unknown values shown as not known."""
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
    """Return an entry's name without a flow or an alias before it."""
    return entry.key.partition("->")[2].partition(".")[2] if "->" in entry.key else entry.key.partition(".")[2]
