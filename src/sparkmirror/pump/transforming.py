"""Connect's transforms on the records of one partition's batches."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from sparkmirror.errors import TransformFailed
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.wire.record_body import Body, decoded, encoded
from sparkmirror.kafka.wire.records import NotChanged, RecordChange, Records
from sparkmirror.transforms import Chain, Record, parse_chain

_NAMES = "surrogateescape"
"""Way to decode header names: bytes that are no UTF-8 come back as they were."""


def transform_of(keys: Mapping[str, str], route: PartitionPair) -> RecordChange | None:
    """Return the change to a partition's records by the transforms of these keys.

    None if the transforms leave the topic alone: then batches go whole. Callers leave heartbeats out.
    """
    if not keys:
        return None
    chain = _chain(tuple(keys.items()))
    return RecordTransform(chain, route) if chain.may_change(route.target_topic) else None


class RecordTransform:
    """A chain of transforms for one partition."""

    def __init__(self, chain: Chain, route: PartitionPair) -> None:
        self._chain = chain
        self._route = route

    def __call__(self, records: Records, start: int) -> None:
        """Change the records from index `start` on, and drop those that a filter drops.

        Raises `NotChanged`, and has changed nothing then.
        """
        kept: list[int] = []
        bodies: list[bytes] = []
        for at in range(start, len(records)):
            body = self._changed(records.offsets[at], records.timestamps[at], records.bodies[at])
            if body is not None:
                kept.append(at)
                bodies.append(body)
        if len(kept) < len(records) - start:
            records.offsets[start:] = [records.offsets[at] for at in kept]
            records.timestamps[start:] = [records.timestamps[at] for at in kept]
            records.attributes[start:] = bytes(records.attributes[at] for at in kept)
        records.bodies[start:] = bodies

    def _changed(self, offset: int, timestamp: int, body: bytes) -> bytes | None:
        """Return a record's new body; None for a record that is dropped."""
        try:
            key, value, headers = decoded(body)
        except (IndexError, ValueError) as error:
            raise NotChanged(offset, f"is damaged: {error}") from error
        record = Record(
            topic=self._route.target_topic,
            partition=self._route.partition,
            timestamp=None if timestamp < 0 else timestamp,
            key=key,
            value=value,
            headers=tuple((name.decode(errors=_NAMES), content) for name, content in headers),
            offset=offset,
        )
        try:
            changed = self._chain.apply(record)
        except TransformFailed as error:
            raise NotChanged(offset, f"can't be transformed by {error.transform}: {error.why}") from error
        if changed is None:
            return None
        if changed is record:
            return body
        named = tuple((name.encode(errors=_NAMES), content) for name, content in changed.headers)
        return encoded(Body(changed.key, changed.value, named))


@lru_cache(16)
def _chain(keys: tuple[tuple[str, str], ...]) -> Chain:
    return parse_chain(dict(keys))
