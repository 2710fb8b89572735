"""GSSAPI (Kerberos): tickets got with a keytab, or taken from a ticket cache.

Another program fills the cache. The options are those of Java's `Krb5LoginModule`, and Kafka's `serviceName`. The Java
module's further options are about typed passwords, and about how Java stores keys; both have no meaning here.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config.credentials import Kerberos, LoginError, needed
from sparkmirror.config.model import SaslConfig

KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"

_NOTHING = (
    'says nothing to sign in with: write useKeyTab=true keyTab="/etc/mirror.keytab" principal="mirror@REALM", or'
    " useTicketCache=true"
)


def read_kerberos(sasl: SaslConfig, options: Mapping[str, str]) -> Kerberos:
    """Return who owns the tickets and where they come from; raise `LoginError`.

    `options` are the JAAS line's options. A keytab goes before a cache: it leads to tickets for the same principal.
    """
    service = _service(sasl.kerberos_service_name, options.get("serviceName", ""))
    if _is_true(options, "useKeyTab"):
        keytab = needed(options, "keyTab")
        return Kerberos(service, needed(options, "principal"), keytab=_without_type(keytab))
    if _is_true(options, "useTicketCache"):
        return Kerberos(service, options.get("principal", ""), cache=options.get("ticketCache", ""))
    raise LoginError("jaas.config", _NOTHING)


def _service(stated: str, in_jaas: str) -> str:
    """Return the brokers' service, as Kafka's `KerberosLogin` finds it."""
    if stated and in_jaas and stated != in_jaas:
        raise LoginError(
            "kerberos.service.name",
            f"is {stated}, and serviceName in sasl.jaas.config {in_jaas}: write the same, or one",
        )
    if not stated and not in_jaas:
        raise LoginError(
            "kerberos.service.name", "is missing: write the beginning of the brokers' principals, as kafka"
        )
    return stated or in_jaas


def _is_true(options: Mapping[str, str], option: str) -> bool:
    return options.get(option, "").lower() == "true"


def _without_type(keytab: str) -> str:
    """Return a keytab's path; Java takes `FILE:` before it."""
    return keytab[len("FILE:") :] if keytab.upper().startswith("FILE:") else keytab
