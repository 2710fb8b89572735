"""More ways into a cluster of `brokers.KafkaCluster`: listeners that ask who is there, by TLS or SASL."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SECURITY = "org.apache.kafka.common.security."


@dataclass(frozen=True, slots=True)
class BrokerListener:
    """One listener: its protocol, and what each broker is told about it alone."""

    protocol: str
    """`SSL`, `SASL_PLAINTEXT` or `SASL_SSL`; with TLS the cluster needs an authority."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The broker's settings, without `listener.name.<name>.` before them."""


def mutual_tls() -> BrokerListener:
    """TLS for those who show a certificate of the cluster's authority."""
    return BrokerListener("SSL", {"ssl.client.auth": "required"})


def plain(users: Mapping[str, str], protocol: str = "SASL_PLAINTEXT") -> BrokerListener:
    """PLAIN, for these users and passwords."""
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    return _sasl(protocol, "PLAIN", f"{_SECURITY}plain.PlainLoginModule required {known};")


def scram(mechanism: str = "SCRAM-SHA-512", protocol: str = "SASL_SSL", *, reauth_ms: int = 0) -> BrokerListener:
    """SCRAM; its users are the cluster's own. They sign in again after `reauth_ms`, if it isn't 0."""
    return _sasl(protocol, mechanism, f"{_SECURITY}scram.ScramLoginModule required;", reauth_ms=reauth_ms)


def unsecured_tokens(protocol: str = "SASL_PLAINTEXT", *, reauth_ms: int = 0) -> BrokerListener:
    """OAUTHBEARER for everybody who has a token without a signature."""
    module = f'{_SECURITY}oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    return _sasl(protocol, "OAUTHBEARER", module, reauth_ms=reauth_ms)


def signed_tokens(keys_url: str, audience: str, protocol: str = "SASL_SSL") -> BrokerListener:
    """OAUTHBEARER for those whose token is signed by a key that `keys_url` lists.

    The brokers need the JVM option `-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=<keys_url>`.
    """
    return _sasl(
        protocol,
        "OAUTHBEARER",
        f"{_SECURITY}oauthbearer.OAuthBearerLoginModule required;",
        more={
            "oauthbearer.sasl.server.callback.handler.class": (
                f"{_SECURITY}oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            "sasl.oauthbearer.jwks.endpoint.url": keys_url,
            "sasl.oauthbearer.expected.audience": audience,
        },
    )


def kerberos(principal: str, keytab: Path, protocol: str = "SASL_PLAINTEXT", *, reauth_ms: int = 0) -> BrokerListener:
    """GSSAPI; the principal, which ends with the broker's host, and its keytab are the brokers'.

    They need the JVM option `-Djava.security.krb5.conf=<file>`.
    """
    module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
    listener = _sasl(protocol, "GSSAPI", f'{module} keyTab="{keytab}" principal="{principal}";', reauth_ms=reauth_ms)
    return replace(listener, settings={**listener.settings, "sasl.kerberos.service.name": principal.partition("/")[0]})


def _sasl(
    protocol: str, mechanism: str, jaas: str, *, reauth_ms: int = 0, more: Mapping[str, str] | None = None
) -> BrokerListener:
    prefix = mechanism.lower()
    settings = {"sasl.enabled.mechanisms": mechanism, f"{prefix}.sasl.jaas.config": jaas, **(more or {})}
    if reauth_ms:
        settings[f"{prefix}.connections.max.reauth.ms"] = str(reauth_ms)
    return BrokerListener(protocol, settings)
