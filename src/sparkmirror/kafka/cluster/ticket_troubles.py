"""Explain Kerberos errors: one line each, with cause and advice.

Chosen by the codes in MIT's library (`krb5.h`): the library's own words name neither file nor principal.
"""

from __future__ import annotations

from typing import Protocol

from sparkmirror.config.credentials import Kerberos

_BASE = -1765328384
"""Base for Kerberos's codes: `ERROR_TABLE_BASE_krb5`."""
_ENDED = frozenset({11, 12})
"""Major codes for expired tickets, shifted right by 16 bits.

GSS_S_CREDENTIALS_EXPIRED and GSS_S_CONTEXT_EXPIRED (RFC 2744, section 3.9.1).
"""

_NO_TICKETS = frozenset({141, 194, 195, 199})
"""KRB5_CC_NOTFOUND, KRB5_FCC_PERM, KRB5_FCC_NOFILE, KRB5_CC_FORMAT."""
_NO_KDC = frozenset({154, 156, 220, 224})
"""Codes for a realm without a KDC that answers.

KRB5_REALM_UNKNOWN, KRB5_KDC_UNREACH, KRB5_REALM_CANT_RESOLVE, KRB5_CONFIG_NODEFREALM.
"""
_WRONG_KEY = frozenset({24, 31, 210})
"""KRB5KDC_ERR_PREAUTH_FAILED, KRB5KRB_AP_ERR_BAD_INTEGRITY, KRB5_PREAUTH_FAILED."""
_EXPIRED = frozenset({32})
"""KRB5KRB_AP_ERR_TKT_EXPIRED."""
_SKEW = frozenset({33, 37, 148})
"""KRB5KRB_AP_ERR_TKT_NYV, KRB5KRB_AP_ERR_SKEW, KRB5_KDCREP_SKEW."""
_LOCKED = frozenset({1, 18, 23})
"""KRB5KDC_ERR_NAME_EXP, KRB5KDC_ERR_CLIENT_REVOKED, KRB5KDC_ERR_KEY_EXP."""
_NO_CLIENT, _NO_SERVICE = 6, 7
"""KRB5KDC_ERR_C_PRINCIPAL_UNKNOWN, KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN."""


class GssTrouble(Protocol):
    """Interface that `gssapi.exceptions.GSSError` has."""

    maj_code: int
    min_code: int

    def get_all_statuses(self, code: int, is_maj: bool) -> list[str]:
        """Return the library's words for a code."""


def explain(error: GssTrouble, login: Kerberos, host: str) -> str:
    """Explain an error in one line; `host` is the ticket's broker, or empty."""
    code = _number(error.min_code)
    if login.keytab and (told := _about_keytab(code, login)):
        return told
    expired = code in _EXPIRED or error.maj_code >> 16 in _ENDED
    if not login.keytab and (expired or code in _NO_TICKETS):
        cache = f"the ticket cache {login.cache}" if login.cache else "the ticket cache that the environment names"
        return f"{cache} has {'only expired' if expired else 'no'} tickets: type kinit, or have a keytab used instead"
    if expired:
        return f"the tickets of {login.principal} ended during the sign-in: the next try gets new ones"
    words = " ".join(": ".join(error.get_all_statuses(error.min_code, False)).split())
    if code in _NO_KDC:
        return f"no KDC answers ({words}): see that it runs, and that krb5.conf, or KRB5_CONFIG's file, names it"
    if code in _SKEW:
        return f"the clocks of this machine, the KDC and {host or 'the brokers'} differ ({words}): set them, by NTP"
    if code == _NO_SERVICE and host:
        return (
            f"the KDC knows no such service ({words}): correct sasl.kerberos.service.name; or if the host's name is"
            " not the broker's, write dns_canonicalize_hostname = false and rdns = false in krb5.conf"
        )
    return f"Kerberos fails: {words}"


def _about_keytab(code: int, login: Kerberos) -> str:
    """Explain an error about keytab or principal; empty for other errors."""
    if code in _NO_TICKETS:
        return f"the keytab {login.keytab} has no key of {login.principal}: klist -k lists its keys"
    if code in _WRONG_KEY:
        return f"the KDC refuses the key of {login.principal} in the keytab {login.keytab}: export it again, by ktadd"
    if code == _NO_CLIENT:
        return f"the KDC knows no {login.principal}: correct principal in sasl.jaas.config, or add it, by addprinc"
    if code in _LOCKED:
        return f"the KDC knows {login.principal}, which is locked or has expired: have it renewed there"
    return ""


def _number(code: int) -> int:
    """Return a Kerberos code, counted from its table's base.

    Other tables' codes stay below 0 or very large.
    """
    return (code - (1 << 32) if code >> 31 else code) - _BASE
