"""Truststores and keystores in the formats that Kafka's clients read.

PEM, PKCS12 or JKS files, or PEM text in the configuration. Since Java 9 `keytool` writes PKCS12 by default, whatever
the file's name. Java reads PKCS12 even if the configured type is JKS, and the reverse; so does this module.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Literal

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_der_private_key, pkcs12
from cryptography.x509 import Certificate, InvalidVersion, load_der_x509_certificate

from sparkmirror.config.model import ClusterConfig
from sparkmirror.config.named_file import read_named_file
from sparkmirror.errors import ConfigError
from sparkmirror.kafka.cluster.jks import MAGIC, JksError, read_jks

Store = Literal["truststore", "keystore"]

_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, InvalidVersion)
"""Errors that `cryptography` raises for damaged or unknown keys and certificates."""

_BLOCK = re.compile(r"(?<!-)-+BEGIN ([A-Z0-9 ]+)-+([A-Za-z0-9+/=\s]+)-+END \1-+")
"""PEM block pattern; spaces may replace line ends, as in a value on one line.

Kafka's `PemParser` allows that, too.
"""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """The client's key, and its certificate followed by the issuers' certificates."""

    key: PrivateKeyTypes
    chain: tuple[Certificate, ...]


def store_bytes(config: ClusterConfig, store: Store, location: str) -> bytes | None:
    """Read a store's file; None without a location. Raises `ConfigError`."""
    if not location:
        return None
    try:
        return read_named_file(location)
    except OSError as error:
        raise store_error(config, f"{store}.location", f"{location} can't be read: {error.strerror}") from None


def read_trust_store(config: ClusterConfig, content: bytes | None) -> tuple[Certificate, ...] | None:
    """Read the trusted certificates; None if the system's certificates are trusted."""
    settings = config.ssl
    if settings.truststore_certificates:
        _need_pem(config, "truststore", settings.truststore_type, "certificates")
        return _certificates(config, "truststore.certificates", settings.truststore_certificates)
    if content is None:
        return None
    name = "truststore.location"
    if settings.truststore_type == "PEM":
        return _certificates(config, name, content.decode("latin-1"))
    password = settings.truststore_password.get_secret_value()
    if content.startswith(MAGIC):
        certificates = _from_jks(config, content, password)
    else:
        opened = _open(config, "truststore", settings.truststore_location, content, password)
        certificates = [entry.certificate for entry in (opened.cert, *opened.additional_certs) if entry is not None]
    if not certificates:
        raise store_error(config, name, f"{settings.truststore_location} holds no certificate")
    return tuple(certificates)


def read_key_store(config: ClusterConfig, content: bytes | None) -> KeyPair | None:
    """Read the client's key and certificates; None if none are configured."""
    settings = config.ssl
    key_password = settings.key_password.get_secret_value()
    inline = settings.keystore_key.get_secret_value()
    if inline or settings.keystore_certificate_chain:
        _need_pem(config, "keystore", settings.keystore_type, "key")
        chain = _certificates(config, "keystore.certificate.chain", settings.keystore_certificate_chain)
        return KeyPair(_key(config, "keystore.key", inline, key_password), chain)
    if content is None:
        return None
    name = "keystore.location"
    if settings.keystore_type == "PEM":
        text = content.decode("latin-1")
        return KeyPair(_key(config, name, text, key_password), _certificates(config, name, text))
    password = settings.keystore_password.get_secret_value()
    if content.startswith(MAGIC):
        return _pair_from_jks(config, content, password, key_password or password)
    opened = _open(config, "keystore", settings.keystore_location, content, password)
    if opened.key is None or opened.cert is None:
        raise store_error(config, name, f"{settings.keystore_location} holds no key with a certificate")
    chain = (opened.cert.certificate, *(issuer.certificate for issuer in opened.additional_certs))
    return KeyPair(opened.key, chain)


def _open(
    config: ClusterConfig, store: Store, location: str, content: bytes, password: str
) -> pkcs12.PKCS12KeyAndCertificates:
    if content.lstrip().startswith(b"-----BEGIN"):
        reason = f"{location} is a PEM file; write {config.alias}.ssl.{store}.type = PEM"
        raise store_error(config, f"{store}.type", reason)
    try:
        return pkcs12.load_pkcs12(content, password.encode() or None)
    except _UNREADABLE:
        reason = f"{location} is no PKCS12 file, or ssl.{store}.password is wrong"
        raise store_error(config, f"{store}.location", reason) from None


def _from_jks(config: ClusterConfig, content: bytes, password: str) -> list[Certificate]:
    """Read a JKS truststore's trusted certificates; without keys' chains, as in Java."""
    location = config.ssl.truststore_location
    try:
        return [load_der_x509_certificate(encoded) for encoded in read_jks(content, password).certificates]
    except _UNREADABLE as error:
        reason = str(error) if isinstance(error, JksError) else "it holds a certificate that can't be read"
        raise store_error(
            config, "truststore.location", f"{location}: {reason}; check ssl.truststore.password"
        ) from None


def _pair_from_jks(config: ClusterConfig, content: bytes, password: str, key_password: str) -> KeyPair:
    """Read a JKS keystore's first key, with its certificates."""
    name, location = "keystore.location", config.ssl.keystore_location
    try:
        store = read_jks(content, password)
        if not store.keys or not store.keys[0].chain:
            raise store_error(config, name, f"{location} holds no key with a certificate")
        own = store.keys[0]
        key = load_der_private_key(own.unlock(key_password), None)
        return KeyPair(key, tuple(load_der_x509_certificate(encoded) for encoded in own.chain))
    except _UNREADABLE as error:
        reason = str(error) if isinstance(error, JksError) else "it holds a key or certificate that can't be read"
        raise store_error(config, name, f"{location}: {reason}; check ssl.keystore.password") from None


def _need_pem(config: ClusterConfig, store: Store, type_: str, name: str) -> None:
    if type_ != "PEM":
        raise store_error(config, f"{store}.{name}", f"needs {config.alias}.ssl.{store}.type = PEM, as with Kafka")


def _certificates(config: ClusterConfig, name: str, text: str) -> tuple[Certificate, ...]:
    try:
        certificates = [
            load_der_x509_certificate(_content(body)) for label, body in _BLOCK.findall(text) if label == "CERTIFICATE"
        ]
    except _UNREADABLE:
        raise store_error(config, name, "holds a certificate that can't be read") from None
    if not certificates:
        raise store_error(config, name, "holds no certificate in PEM format")
    return tuple(certificates)


def _key(config: ClusterConfig, name: str, text: str, password: str) -> PrivateKeyTypes:
    for label, body in _BLOCK.findall(text):
        if label.endswith("PRIVATE KEY"):
            encrypted = label.startswith("ENCRYPTED")
            try:
                return load_der_private_key(_content(body), password.encode() if encrypted else None)
            except _UNREADABLE:
                reason = "holds a private key that can't be read; check ssl.key.password"
                raise store_error(config, name, reason) from None
    raise store_error(config, name, "holds no private key in PEM format")


def _content(body: str) -> bytes:
    """Decode a PEM block's body. Raises `ValueError`."""
    return base64.b64decode("".join(body.split()), validate=True)


def store_error(config: ClusterConfig, name: str, reason: str) -> ConfigError:
    """Return an error that names cluster and key; `reason` must not hold a secret."""
    return ConfigError(reason, origin=f"cluster {config.alias}", key=f"ssl.{name}")
