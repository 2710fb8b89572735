"""Expiry of the certificates in a cluster's truststore and keystore."""

from __future__ import annotations

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.kafka.cluster.stores import read_key_store, read_trust_store, store_bytes


def first_end_ms(config: ClusterConfig) -> int | None:
    """Return when the first certificate expires, in milliseconds since 1970.

    None if the settings name no certificates, or unreadable ones.
    """
    try:
        trusted = read_trust_store(config, store_bytes(config, "truststore", config.ssl.truststore_location))
        pair = read_key_store(config, store_bytes(config, "keystore", config.ssl.keystore_location))
    except SparkMirrorError:
        return None
    certificates = (*(trusted or ()), *(pair.chain if pair is not None else ()))
    ends = [int(certificate.not_valid_after_utc.timestamp() * 1000) for certificate in certificates]
    return min(ends, default=None)
