"""A private certificate authority, so that brokers on this machine can speak TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trustme
from cryptography.hazmat.primitives import serialization

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

HOST = "127.0.0.1"
"""Only name in the brokers' certificates: `localhost` is a different name."""


class Authority:
    """Certificate authority whose own certificate is `ca.pem` in `directory`."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._authority = trustme.CA()
        self.certificate = directory / "ca.pem"
        self._authority.cert_pem.write_to_path(self.certificate)

    def issue(self, path: Path, name: str = HOST, *, valid_until: datetime | None = None) -> Path:
        """Write a key and its certificate for `name`; return the file's path.

        The file is a PEM keystore as Kafka reads it. The certificate is valid for decades unless `valid_until` is
        given.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        issued = self._authority.issue_cert(name, not_after=valid_until)
        key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
        path.touch(mode=0o600)
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        )
        return path

    def client_settings(self) -> dict[str, str]:
        """Return Kafka's settings for a client that trusts this authority's certificates."""
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificate),
        }
