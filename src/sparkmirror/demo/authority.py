"""A certificate authority of our own, so that brokers on this machine can speak TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trustme
from cryptography.hazmat.primitives import serialization

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

HOST = "127.0.0.1"
"""The only name in the brokers' certificates: `localhost` is another one."""


class Authority:
    """Signs certificates; its own one lies in `directory` as `ca.pem`."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._authority = trustme.CA()
        self.certificate = directory / "ca.pem"
        self._authority.cert_pem.write_to_path(self.certificate)

    def issue(self, path: Path, name: str = HOST, *, valid_until: datetime | None = None) -> Path:
        """Write a key and its certificate for `name`, a PEM keystore as Kafka takes it; returns its path.

        It is valid for decades, if it is not said until when.
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
        """Kafka's settings for a client that trusts what is signed here."""
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificate),
        }
