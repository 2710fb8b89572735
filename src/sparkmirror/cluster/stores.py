"""Truststores and keystores as Kafka's clients take them: PEM, PKCS12 or JKS files, or PEM text in the configuration.

PKCS12 is what `keytool` has written by default since Java 9, whatever the file is called, and Java reads it
also where the type says JKS, and the other way round; so do we.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_der_private_key, pkcs12
from cryptography.x509 import Certificate, InvalidVersion, load_der_x509_certificate

from sparkmirror.cluster.jks import MAGIC, JksError, read_jks
from sparkmirror.config.model import ClusterConfig
from sparkmirror.errors import ConfigError

Store = Literal["truststore", "keystore"]

_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, InvalidVersion)
"""What `cryptography` raises for keys and certificates that are damaged, or that it does not know."""

_BLOCK = re.compile(r"(?<!-)-+BEGIN ([A-Z0-9 ]+)-+([A-Za-z0-9+/=\s]+)-+END \1-+")
"""One PEM block; line ends may have become spaces, as in a value on one line (Kafka's `PemParser` allows it)."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Our key, and our certificate with its issuers'."""

    key: PrivateKeyTypes
    chain: tuple[Certificate, ...]


def store_bytes(config: ClusterConfig, store: Store, location: str) -> bytes | None:
    """What is in the file; None if none is named."""
    if not location:
        return None
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise store_error(config, f"{store}.location", f"{location} can't be read: {error.strerror}") from None


def read_trust_store(config: ClusterConfig, content: bytes | None) -> tuple[Certificate, ...] | None:
    """The certificates that are trusted; None: the system's own are."""
    settings = config.ssl
    if settings.truststore_certificates:
        _need_pem(config, "truststore", settings.truststore_type, "certificates")
        return _certificates(config, "truststore.certificates", settings.truststore_certificates)
    if content is None:
        return None
    where = "truststore.location"
    if settings.truststore_type == "PEM":
        return _certificates(config, where, content.decode("latin-1"))
    password = settings.truststore_password.get_secret_value()
    if content.startswith(MAGIC):
        certificates = _from_jks(config, content, password)
    else:
        opened = _open(config, "truststore", settings.truststore_location, content, password)
        certificates = [one.certificate for one in (opened.cert, *opened.additional_certs) if one is not None]
    if not certificates:
        raise store_error(config, where, f"{settings.truststore_location} holds no certificate")
    return tuple(certificates)


def read_key_store(config: ClusterConfig, content: bytes | None) -> KeyPair | None:
    """Our own key and certificates; None: we have none."""
    settings = config.ssl
    key_password = settings.key_password.get_secret_value()
    inline = settings.keystore_key.get_secret_value()
    if inline or settings.keystore_certificate_chain:
        _need_pem(config, "keystore", settings.keystore_type, "key")
        chain = _certificates(config, "keystore.certificate.chain", settings.keystore_certificate_chain)
        return KeyPair(_key(config, "keystore.key", inline, key_password), chain)
    if content is None:
        return None
    where = "keystore.location"
    if settings.keystore_type == "PEM":
        text = content.decode("latin-1")
        return KeyPair(_key(config, where, text, key_password), _certificates(config, where, text))
    password = settings.keystore_password.get_secret_value()
    if content.startswith(MAGIC):
        return _pair_from_jks(config, content, password, key_password or password)
    opened = _open(config, "keystore", settings.keystore_location, content, password)
    if opened.key is None or opened.cert is None:
        raise store_error(config, where, f"{settings.keystore_location} holds no key with a certificate")
    chain = (opened.cert.certificate, *(one.certificate for one in opened.additional_certs))
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
    """What a JKS truststore trusts; as in Java, a key's own chain is not."""
    location = config.ssl.truststore_location
    try:
        return [load_der_x509_certificate(one) for one in read_jks(content, password).certificates]
    except _UNREADABLE as error:
        reason = str(error) if isinstance(error, JksError) else "it holds a certificate that can't be read"
        raise store_error(
            config, "truststore.location", f"{location}: {reason}; check ssl.truststore.password"
        ) from None


def _pair_from_jks(config: ClusterConfig, content: bytes, password: str, key_password: str) -> KeyPair:
    """The first key of a JKS keystore."""
    where, location = "keystore.location", config.ssl.keystore_location
    try:
        store = read_jks(content, password)
        if not store.keys or not store.keys[0].chain:
            raise store_error(config, where, f"{location} holds no key with a certificate")
        own = store.keys[0]
        key = load_der_private_key(own.unlock(key_password), None)
        return KeyPair(key, tuple(load_der_x509_certificate(one) for one in own.chain))
    except _UNREADABLE as error:
        reason = str(error) if isinstance(error, JksError) else "it holds a key or certificate that can't be read"
        raise store_error(config, where, f"{location}: {reason}; check ssl.keystore.password") from None


def _need_pem(config: ClusterConfig, store: Store, type_: str, name: str) -> None:
    if type_ != "PEM":
        raise store_error(config, f"{store}.{name}", f"needs {config.alias}.ssl.{store}.type = PEM, as with Kafka")


def _certificates(config: ClusterConfig, where: str, text: str) -> tuple[Certificate, ...]:
    try:
        found = [
            load_der_x509_certificate(_content(body)) for label, body in _BLOCK.findall(text) if label == "CERTIFICATE"
        ]
    except _UNREADABLE:
        raise store_error(config, where, "holds a certificate that can't be read") from None
    if not found:
        raise store_error(config, where, "holds no certificate in PEM format")
    return tuple(found)


def _key(config: ClusterConfig, where: str, text: str, password: str) -> PrivateKeyTypes:
    for label, body in _BLOCK.findall(text):
        if label.endswith("PRIVATE KEY"):
            encrypted = label.startswith("ENCRYPTED")
            try:
                return load_der_private_key(_content(body), password.encode() if encrypted else None)
            except _UNREADABLE:
                reason = "holds a private key that can't be read; check ssl.key.password"
                raise store_error(config, where, reason) from None
    raise store_error(config, where, "holds no private key in PEM format")


def _content(body: str) -> bytes:
    """What a PEM block holds. Raises `ValueError`."""
    return base64.b64decode("".join(body.split()), validate=True)


def store_error(config: ClusterConfig, name: str, reason: str) -> ConfigError:
    """An error that names cluster and key; `reason` must not hold a secret."""
    return ConfigError(reason, where=f"cluster {config.alias}", key=f"ssl.{name}")
