"""Segments: what a range of sequences of a target partition stands for upstream (invariant 3, R14).

A segment is a claim. It is durable in `mm2-sparkmirror-segments.<source>.internal` on the target before the
first batch of it is sent. Its key holds the incarnation of the pump that made it, so that claims of rivals
stand side by side and the log decides between them.

Records are binary, big-endian, versioned. Key: int16 version, int8 kind, then
- kind 0, an identity proposal: 16 bytes, unique;
- kind 1, a segment: 16 bytes target topic id, int32 partition, int64 sequence, int64 incarnation.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from crc32c import crc32c

_VERSION = 0
_IDENTITY, _SEGMENT = 0, 1
_KIND = struct.Struct(">hb")
_SEGMENT_KEY = struct.Struct(">hb16siqq")
_SEGMENT_VALUE = struct.Struct(">hqh16siqqI")
_IDENTITY_VALUE = struct.Struct(">hqh")


@dataclass(frozen=True, slots=True)
class Segment:
    """From `sequence` on, one record a sequence, one upstream and one downstream offset a record."""

    target_topic_id: bytes
    partition: int
    sequence: int
    """The count of this flow's records in the partition before it; not wrapped."""
    incarnation: int
    """Which pump claimed it; random."""
    producer_id: int
    producer_epoch: int
    source_topic_id: bytes
    source_leader_epoch: int
    upstream: int
    downstream: int
    crc: int
    """CRC-32C of the first batch it announces, as sent."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a flow is at its target (invariant 7): void if the cluster is another one."""

    cluster_id: str
    producer_id: int
    producer_epoch: int


_VALUE_VERSION = _VERSION.to_bytes(2, "big")

Record = tuple[bytes, bytes | None]


def segment_record(segment: Segment) -> Record:
    """Key and value of a segment's record."""
    return (
        _SEGMENT_KEY.pack(
            _VERSION,
            _SEGMENT,
            segment.target_topic_id,
            segment.partition,
            segment.sequence,
            segment.incarnation,
        ),
        _SEGMENT_VALUE.pack(
            _VERSION,
            segment.producer_id,
            segment.producer_epoch,
            segment.source_topic_id,
            segment.source_leader_epoch,
            segment.upstream,
            segment.downstream,
            segment.crc,
        ),
    )


def identity_record(identity: Identity, unique: bytes) -> Record:
    """Key and value of a proposal; `unique` is 16 random bytes, so that no proposal replaces another."""
    return (
        _KIND.pack(_VERSION, _IDENTITY) + unique,
        _IDENTITY_VALUE.pack(_VERSION, identity.producer_id, identity.producer_epoch) + identity.cluster_id.encode(),
    )


def read_record(key: bytes | None, value: bytes | None) -> Segment | Identity | None:
    """The record's meaning; None for a tombstone, or what a newer version of sparkmirror wrote."""
    if key is None or value is None:
        return None
    try:
        return _read(key, value)
    except (struct.error, UnicodeDecodeError):
        return None


def _read(key: bytes, value: bytes) -> Segment | Identity | None:
    version, kind = _KIND.unpack_from(key)
    if version != _VERSION or value[:2] != _VALUE_VERSION:
        return None
    if kind == _IDENTITY:
        _, producer_id, epoch = _IDENTITY_VALUE.unpack_from(value)
        return Identity(value[_IDENTITY_VALUE.size :].decode(), producer_id, epoch)
    if kind != _SEGMENT:
        return None
    _, _, target_topic_id, partition, sequence, incarnation = _SEGMENT_KEY.unpack(key)
    _, producer_id, epoch, source_topic_id, leader_epoch, upstream, downstream, crc = _SEGMENT_VALUE.unpack(value)
    return Segment(
        target_topic_id,
        partition,
        sequence,
        incarnation,
        producer_id,
        epoch,
        source_topic_id,
        leader_epoch,
        upstream,
        downstream,
        crc,
    )


def segments_topic(source_alias: str) -> str:
    """Its name ends so that no MirrorMaker 2 mirrors it (design section 6)."""
    return f"mm2-sparkmirror-segments.{source_alias}.internal"


def home_partition(target_topic_id: bytes, partition: int, partitions: int) -> int:
    """Which partition of the segments topic holds a target partition's segments. Identities live in 0."""
    return int(crc32c(target_topic_id + partition.to_bytes(4, "big"))) % partitions
