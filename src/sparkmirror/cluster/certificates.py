"""When certificates end that a cluster's settings name."""

from __future__ import annotations

from sparkmirror.cluster.stores import read_key_store, read_trust_store, store_bytes
from sparkmirror.config import ClusterConfig
from sparkmirror.errors import SparkMirrorError


def first_end_ms(config: ClusterConfig) -> int | None:
    """When the first of them ends, in milliseconds since 1970; None: there are none, or they can't be read."""
    try:
        trusted = read_trust_store(config, store_bytes(config, "truststore", config.ssl.truststore_location))
        pair = read_key_store(config, store_bytes(config, "keystore", config.ssl.keystore_location))
    except SparkMirrorError:
        return None
    certificates = (*(trusted or ()), *(pair.chain if pair is not None else ()))
    ends = [int(one.not_valid_after_utc.timestamp() * 1000) for one in certificates]
    return min(ends, default=None)
