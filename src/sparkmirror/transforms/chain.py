"""Transforms in order, each with a condition."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.errors import TransformFailed
from sparkmirror.transforms.conditions import TopicNameMatches
from sparkmirror.transforms.record import Record
from sparkmirror.transforms.refusal import UnfitRecord
from sparkmirror.transforms.routing import RegexRouter
from sparkmirror.transforms.shape import Predicate, Transform


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLink:
    """Transform with its name in the file, and a condition."""

    name: str
    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False

    @property
    def is_by_topic(self) -> bool:
        """True if the condition holds for all of a topic's records, or for none."""
        return self.predicate is None or isinstance(self.predicate, TopicNameMatches)

    def may_apply(self, topic: str) -> bool:
        """False if the condition leaves a topic's records alone."""
        if not isinstance(self.predicate, TopicNameMatches):
            return True
        return self.predicate.holds(Record(topic=topic)) != self.negate

    def apply(self, record: Record) -> Record | None:
        if self.predicate is not None and self.predicate.holds(record) == self.negate:
            return record
        return self.transform.apply(record)


@dataclass(frozen=True, slots=True)
class Chain:
    """Transforms in order; can be pickled."""

    links: tuple[ChainLink, ...] = ()
    unread: tuple[str, ...] = ()
    """Keys for unnamed transforms and predicates, which Connect passes over."""

    def __bool__(self) -> bool:
        return bool(self.links)

    @property
    def is_order_keeping(self) -> bool:
        """True if each record stays in its topic and partition."""
        return not any(link.transform.reroutes for link in self.links)

    def may_change(self, topic: str) -> bool:
        """True if records may be changed, dropped or rerouted.

        `topic` is the name at the target.
        """
        return any(link.may_apply(topic) for link in self.links)

    def targets_of(self, topic: str) -> frozenset[str]:
        """Return the topics to which records may go by a topic's name.

        Topics named by time are not among them.
        """
        names = {topic}
        for link in self.links:
            if isinstance(link.transform, RegexRouter):
                renamed = {
                    name: link.transform.apply(Record(topic=name)).topic for name in names if link.may_apply(name)
                }
                kept = names - renamed.keys() if link.is_by_topic else names
                names = kept | set(renamed.values())
        return frozenset(names)

    def apply(self, record: Record) -> Record | None:
        """Return the changed record, or None if a filter drops it.

        Raises `TransformFailed`: Java stops there, too, with errors.tolerance=none.
        """
        changed: Record | None = record
        for link in self.links:
            if changed is None:
                return None
            try:
                changed = link.apply(changed)
            except (UnfitRecord, RecursionError) as error:
                why = str(error) if isinstance(error, UnfitRecord) else "its JSON is nested too deeply"
                raise TransformFailed(link.name, record.topic, record.partition, record.offset, why) from None
        return changed
