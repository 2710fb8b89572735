"""Keystores and truststores that are damaged or absurd: one line, soon, and no secret in it."""

from __future__ import annotations

import base64
import hashlib
import os
import struct
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.serialization import PrivateFormat, pkcs12
from cryptography.x509 import load_pem_x509_certificate
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkmirror.config.model import ClusterConfig, SslConfig
from sparkmirror.errors import ConfigError
from sparkmirror.kafka.cluster.jks import MAGIC, JksError, JksKey, read_jks
from sparkmirror.kafka.cluster.stores import read_key_store, read_trust_store

brief = settings(
    max_examples=int(os.environ.get("SPARKMIRROR_FUZZ", "60")), suppress_health_check=[HealthCheck.too_slow]
)
SECRET = "hunter2"
types = st.sampled_from(["JKS", "PKCS12", "PEM"])
OURS = trustme.CA().issue_cert("us")
KEY: Any = serialization.load_pem_private_key(OURS.private_key_pem.bytes(), None)
CERTIFICATE = load_pem_x509_certificate(OURS.cert_chain_pems[0].bytes())
DER = CERTIFICATE.public_bytes(serialization.Encoding.DER)
KEY_DER = KEY.private_bytes(serialization.Encoding.DER, PrivateFormat.PKCS8, serialization.NoEncryption())
MANY = 1_000_000
OID = bytes.fromhex("060a2b060104012a02110101")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The library warns of what is damaged in some ways."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes((size,)) if size < 0x80 else b"\x82" + size.to_bytes(2, "big")
    return bytes((tag,)) + length + content


def protected(key: bytes, password: str) -> bytes:
    """As Java's `KeyProtector` encrypts."""
    secret, salt = password.encode("utf-16-be"), bytes(20)
    stream, block = bytearray(), salt
    while len(stream) < len(key):
        block = hashlib.sha1(secret + block).digest()  # noqa: S324
        stream += block
    hidden = bytes(one ^ other for one, other in zip(key, stream, strict=False))
    return salt + hidden + hashlib.sha1(secret + key).digest()  # noqa: S324


def text(of: str) -> bytes:
    return struct.pack(">H", len(of)) + of.encode()


def sealed(body: bytes, password: str = SECRET) -> bytes:
    """With the digest that makes it whole."""
    return body + hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()  # noqa: S324


def jks_body() -> bytes:
    """A key with its certificate, and one that is trusted."""
    key = der(0x30, der(0x30, OID + b"\x05\0") + der(0x04, protected(KEY_DER, SECRET)))
    certificate = text("X.509") + struct.pack(">I", len(DER)) + DER
    ours = struct.pack(">I", 1) + text("us") + bytes(8) + struct.pack(">I", len(key)) + key
    theirs = struct.pack(">I", 2) + text("ca") + bytes(8) + certificate
    return MAGIC + struct.pack(">II", 2, 2) + ours + struct.pack(">I", 1) + certificate + theirs


JKS = sealed(jks_body())
PKCS12 = pkcs12.serialize_key_and_certificates(
    b"us",
    KEY,
    CERTIFICATE,
    None,
    PrivateFormat.PKCS12.encryption_builder()
    .kdf_rounds(10)
    .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
    .hmac_hash(hashes.SHA256())
    .build(SECRET.encode()),
)
PEM = OURS.private_key_pem.bytes() + OURS.cert_chain_pems[0].bytes()


def config(type_: str) -> ClusterConfig:
    ssl = SslConfig.model_validate(
        {
            "keystore_location": "k",
            "keystore_type": type_,
            "keystore_password": SECRET,
            "truststore_location": "t",
            "truststore_type": type_,
            "truststore_password": SECRET,
        }
    )
    return ClusterConfig(alias="us", bootstrap_servers=("127.0.0.1:1",), security_protocol="SSL", ssl=ssl)


def read(content: bytes, type_: str) -> list[object]:
    """What either store makes of it; a `ConfigError` is an answer."""
    found: list[object] = []
    for reader in (read_key_store, read_trust_store):
        began, said = time.thread_time(), ""
        try:
            found.append(reader(config(type_), content))
        except ConfigError as error:
            said = str(error)
        assert SECRET not in said
        assert "\n" not in said
        assert time.thread_time() - began < 5
    return found


def damaged(content: bytes, draw: Callable[..., Any]) -> bytes:
    out = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(out)))
        match draw(st.integers(0, 3)):
            case 0:
                out[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case 1:
                out[at : at + 4] = struct.pack(">I", draw(st.sampled_from((0, 1, 2**31 - 1, 2**32 - 1))))
            case 2:
                del out[at : at + draw(st.integers(1, 40))]
            case 3:
                del out[at:]
    return bytes(out)


@pytest.mark.parametrize(("content", "type_"), [(JKS, "JKS"), (PKCS12, "PKCS12"), (PEM, "PEM")])
def test_what_is_whole_is_read(content: bytes, type_: str) -> None:
    assert len(read(content, type_)) == 2


@brief
@given(st.sampled_from([(JKS, "JKS"), (PKCS12, "PKCS12"), (PKCS12, "JKS"), (PEM, "PEM")]), st.data())
def test_damaged_stores(store: tuple[bytes, str], data: st.DataObject) -> None:
    content, type_ = store
    read(damaged(content, data.draw), type_)


@brief
@given(st.data())
def test_damaged_jks_whose_digest_is_right(data: st.DataObject) -> None:
    content = sealed(damaged(jks_body(), data.draw))
    read(content, "JKS")
    try:
        store = read_jks(content, SECRET)
        for key in store.keys:
            key.unlock(SECRET)
    except JksError:
        pass


@brief
@given(
    st.sampled_from(["JKS", "PKCS12", "PEM"]),
    st.binary(max_size=200),
    st.sampled_from([b"", MAGIC, MAGIC + b"\0\0\0\2"]),
)
def test_whatever_bytes(type_: str, content: bytes, head: bytes) -> None:
    read(head + content, type_)
    read(sealed(head + content), type_)


def test_jks_cut_off_at_each_byte() -> None:
    body = jks_body()
    for end in range(len(body)):
        with pytest.raises(JksError):
            read_jks(sealed(body[:end]), SECRET)
        with pytest.raises(JksError, match="it is damaged, or its password is wrong"):
            read_jks(JKS[:end], SECRET)


@brief
@given(st.data())
def test_certificates_and_keys_that_are_damaged(data: st.DataObject) -> None:
    def pem(label: str, content: bytes) -> bytes:
        return f"-----BEGIN {label}-----\n{base64.b64encode(content).decode()}\n-----END {label}-----\n".encode()

    certificate, key = damaged(DER, data.draw), damaged(KEY_DER, data.draw)
    read(pem("CERTIFICATE", certificate) + pem("PRIVATE KEY", KEY_DER), "PEM")
    read(pem("CERTIFICATE", DER) + pem("PRIVATE KEY", key), "PEM")


def test_a_key_of_megabytes_takes_no_hours() -> None:
    began = time.thread_time()
    with pytest.raises(JksError, match="its key can't be read"):
        JksKey(bytes(3_000_000), ()).unlock(SECRET)
    assert time.thread_time() - began < 20


@pytest.mark.parametrize(
    "content", [b"-" * 1_000_000, b"-----BEGIN A" * 100_000, b"-----BEGIN A-----" + b"A" * 1_000_000]
)
def test_text_of_megabytes_takes_no_hours(content: bytes) -> None:
    began = time.thread_time()
    assert read(content, "PEM") == []
    assert time.thread_time() - began < 20
