"""TLS contexts (`ssl.SSLContext`) from a cluster's configuration and files."""

from __future__ import annotations

import functools
import secrets
import ssl
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography.hazmat.primitives import serialization
from cryptography.x509 import Certificate

from sparkmirror.config.model import ClusterConfig
from sparkmirror.config.providers import with_secrets
from sparkmirror.errors import ConfigError
from sparkmirror.kafka.cluster.stores import KeyPair, read_key_store, read_trust_store, store_bytes, store_error

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


def ssl_context(config: ClusterConfig) -> ssl.SSLContext | None:
    """Return the TLS context for this cluster; None if the cluster is without TLS.

    Files are read each time, so that the next connection uses renewed certificates; the same content gives the same
    context. Raises `ConfigError`.
    """
    if not config.encrypted:
        return None
    try:
        config = with_secrets(config)
    except ValueError as error:
        raise ConfigError(str(error), origin=f"cluster {config.alias}", key="ssl") from None
    trusted = store_bytes(config, "truststore", config.ssl.truststore_location)
    own = store_bytes(config, "keystore", config.ssl.keystore_location)
    return _context(config, trusted, own)


@functools.lru_cache(maxsize=32)
def _context(config: ClusterConfig, trusted: bytes | None, own: bytes | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(config.ssl.endpoint_identification_algorithm)
    versions = [_VERSIONS[name] for name in config.ssl.enabled_protocols]
    newest = _VERSIONS.get(config.ssl.protocol, max(versions))
    context.minimum_version = min(*versions, newest)
    context.maximum_version = min(max(versions), newest)
    certificates = read_trust_store(config, trusted)
    if certificates is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cadata=b"".join(map(_der, certificates)))
        # Java trusts every certificate in a truststore, also an intermediate issuer's, or a broker's own.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    pair = read_key_store(config, own)
    if pair is not None:
        try:
            _load(context, pair)
        except ssl.SSLError as error:
            reason = (error.reason or "it can't be used").replace("_", " ").lower()
            raise store_error(config, "keystore", f"its key does not fit its certificate ({reason})") from None
    return context


def server_context(config: ClusterConfig, client_auth: str) -> ssl.SSLContext:
    """Return a server's TLS context, with the keystore from `config`.

    `client_auth` is Kafka's `ssl.client.auth`, about clients' certificates: none, requested or required. Raises
    `ConfigError`.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    versions = [_VERSIONS[name] for name in config.ssl.enabled_protocols]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    pair = read_key_store(config, store_bytes(config, "keystore", config.ssl.keystore_location))
    if pair is None:
        raise store_error(config, "keystore.location", "is missing: a server needs a key and a certificate")
    _load(context, pair)
    context.verify_mode = _CLIENT_AUTH[client_auth]
    if context.verify_mode is not ssl.CERT_NONE:
        trusted = read_trust_store(config, store_bytes(config, "truststore", config.ssl.truststore_location))
        if trusted is None:
            reason = f"is missing: with ssl.client.auth = {client_auth} it says whose certificates are taken"
            raise store_error(config, "truststore.location", reason)
        context.load_verify_locations(cadata=b"".join(map(_der, trusted)))
    return context


def _load(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Load key and certificates into the context, by a temporary file.

    `ssl` takes keys from files only. For that moment the key is encrypted in a file that only this user can read.
    """
    password = secrets.token_bytes(32).hex().encode()
    key = pair.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password),
    )
    with TemporaryDirectory() as directory:
        path = Path(directory, "key.pem")
        path.write_bytes(key + b"".join(cert.public_bytes(serialization.Encoding.PEM) for cert in pair.chain))
        context.load_cert_chain(path, password=password)


def _der(certificate: Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)
