"""Reader of JKS, Java's old keystore format.

`keytool` wrote JKS before Java 9, and still does with `-storetype JKS`. A file has a magic number, a list of entries,
and at its end a SHA-1 digest of password and content. Certificates are stored in clear; a key is encrypted with a
stream of SHA-1 digests that begins with the password and a salt (OpenJDK 17's `sun.security.provider.JavaKeyStore` and
`KeyProtector`).
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass

from sparkmirror.errors import HandledError

MAGIC = b"\xfe\xed\xfe\xed"
_WHITENER = b"Mighty Aphrodite"
_DIGEST = 20
"""Size of a SHA-1 digest, and of a salt, in bytes."""

_PRIVATE_KEY, _TRUSTED = 1, 2
_PROTECTOR_OID = bytes.fromhex("060a2b060104012a02110101")
"""Object identifier 1.3.6.1.4.1.42.2.17.1.1 of the only algorithm, as DER."""


class JksError(HandledError, ValueError):
    """Error for an unreadable file; the message holds no secret."""


@dataclass(frozen=True, slots=True)
class JksKey:
    """Entry with an encrypted key; its password may differ from the file's."""

    protected: bytes
    chain: tuple[bytes, ...]
    """Certificates as DER; the key's own certificate is the first."""

    def unlock(self, password: str) -> bytes:
        """Decrypt the key, as PKCS8 DER. Raises `JksError` for a wrong password."""
        salt, encrypted, check = (
            self.protected[:_DIGEST],
            self.protected[_DIGEST:-_DIGEST],
            self.protected[-_DIGEST:],
        )
        secret = password.encode("utf-16-be")
        stream, block = bytearray(), salt
        while len(stream) < len(encrypted):
            block = _sha1(secret + block)
            stream += block
        key = bytes(cipher ^ mask for cipher, mask in zip(encrypted, stream, strict=False))
        if not hmac.compare_digest(check, _sha1(secret + key)):
            raise JksError("its key can't be read; check ssl.key.password")
        return key


@dataclass(frozen=True, slots=True)
class JksStore:
    """A file's entries, in the file's order."""

    keys: tuple[JksKey, ...]
    certificates: tuple[bytes, ...]
    """Trusted certificates, as DER."""


def read_jks(content: bytes, password: str) -> JksStore:
    """Parse a file; raise `JksError` if its digest or an entry is wrong.

    Without a password the digest isn't checked, as in Java.
    """
    body, digest = content[:-_DIGEST], content[-_DIGEST:]
    if password and not hmac.compare_digest(digest, _sha1(password.encode("utf-16-be") + _WHITENER + body)):
        raise JksError("it is damaged, or its password is wrong")
    try:
        return _JksReader(body).store()
    except (struct.error, IndexError, UnicodeDecodeError):
        raise JksError("it is damaged") from None


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data).digest()  # noqa: S324 - the format's own


class _JksReader:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def store(self) -> JksStore:
        magic, version, count = struct.unpack(">4sII", self._take(12))
        if magic != MAGIC or version not in (1, 2):
            raise JksError("it is no JKS file")
        keys: list[JksKey] = []
        certificates: list[bytes] = []
        for _ in range(count):
            kind = self._number()
            self._text()  # the entry's alias
            self._take(8)  # the entry's creation time
            if kind == _PRIVATE_KEY:
                protected = _unwrapped(self._block())
                keys.append(JksKey(protected, tuple(self._certificate(version) for _ in range(self._number()))))
            elif kind == _TRUSTED:
                certificates.append(self._certificate(version))
            else:
                raise JksError(f"it holds an entry of an unknown kind ({kind})")
        return JksStore(tuple(keys), tuple(certificates))

    def _take(self, size: int) -> bytes:
        if self._at + size > len(self._body):
            raise IndexError
        self._at += size
        return self._body[self._at - size : self._at]

    def _number(self) -> int:
        return int(struct.unpack(">I", self._take(4))[0])

    def _block(self) -> bytes:
        return self._take(self._number())

    def _text(self) -> str:
        return self._take(struct.unpack(">H", self._take(2))[0]).decode(errors="replace")

    def _certificate(self, version: int) -> bytes:
        if version == 2 and self._text() != "X.509":
            raise JksError("it holds a certificate of an unknown kind")
        return self._block()


def _unwrapped(encoded: bytes) -> bytes:
    """Return the encrypted key in an EncryptedPrivateKeyInfo (PKCS8, section 6).

    The structure is an algorithm, then an octet string.
    """
    outer, _ = _der(encoded, 0x30)
    algorithm, rest = _der(outer, 0x30)
    if not algorithm.startswith(_PROTECTOR_OID):
        raise JksError("its key is encrypted in a way that JKS does not have")
    return _der(rest, 0x04)[0]


def _der(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return what the first DER element in `data` holds, and the rest."""
    if data[0] != tag:
        raise JksError("it is damaged")
    size, at = data[1], 2
    if size & 0x80:
        at += size & 0x7F
        size = int.from_bytes(data[2:at], "big")
    return data[at : at + size], data[at + size :]
