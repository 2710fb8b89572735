"""Listeners in a `brokers.DemoCluster` that authenticate by TLS or SASL."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SECURITY = "org.apache.kafka.common.security."


@dataclass(frozen=True, slots=True)
class BrokerListener:
    """One listener: its protocol and its broker settings."""

    protocol: str
    """Protocol: `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`.

    With TLS the cluster needs an authority.
    """
    settings: Mapping[str, str] = field(default_factory=dict)
    """Broker settings, without the prefix `listener.name.<name>.`."""


def mutual_tls() -> BrokerListener:
    """TLS for clients that show a certificate from the cluster's authority."""
    return BrokerListener("SSL", {"ssl.client.auth": "required"})


def plain(users: Mapping[str, str], protocol: str = "SASL_PLAINTEXT") -> BrokerListener:
    """PLAIN, for these users and passwords."""
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    return _sasl(protocol, "PLAIN", f"{_SECURITY}plain.PlainLoginModule required {known};")


def scram(mechanism: str = "SCRAM-SHA-512", protocol: str = "SASL_SSL", *, reauth_ms: int = 0) -> BrokerListener:
    """SCRAM; the cluster itself stores the users.

    Clients sign in again after `reauth_ms`, unless it is 0.
    """
    return _sasl(protocol, mechanism, f"{_SECURITY}scram.ScramLoginModule required;", reauth_ms=reauth_ms)


def unsecured_tokens(protocol: str = "SASL_PLAINTEXT", *, reauth_ms: int = 0) -> BrokerListener:
    """OAUTHBEARER for every client with a token, which needs no signature."""
    module = f'{_SECURITY}oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    return _sasl(protocol, "OAUTHBEARER", module, reauth_ms=reauth_ms)


def signed_tokens(keys_url: str, audience: str, protocol: str = "SASL_SSL") -> BrokerListener:
    """OAUTHBEARER for clients whose token is signed by a key in `keys_url`'s list.

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
    """GSSAPI with the brokers' principal and keytab.

    The principal ends with the broker's host. The brokers need the JVM option `-Djava.security.krb5.conf=<file>`.
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
