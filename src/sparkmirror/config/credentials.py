"""Credentials for SASL: a small class for each way to sign in, and the token.

No secret is in a `repr`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import urlsplit

from sparkmirror.errors import HandledError


@dataclass(frozen=True, slots=True)
class Password:
    """PLAIN or SCRAM: user and password."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """OAUTHBEARER: a token that a server gives in answer to a form.

    See RFC 6749, section 4.
    """

    url: str = field(repr=False)
    principal: str
    """Presumed token owner: the user, or the client's id."""
    client: tuple[str, str] | None = field(repr=False)
    """Id and secret for the request's header; None if the form names the client."""
    form: tuple[tuple[str, str], ...] = field(repr=False)
    """`grant_type` and the fields that belong to the grant."""
    files: tuple[tuple[str, str], ...] = ()
    """Form fields with values in files.

    Each request reads the files again: another program renews the values.
    """
    urlencoded: bool = False
    """True if id and secret are URL-encoded for the header.

    See RFC 6749, section 2.3.1.
    """
    accepts_json: bool = True
    """True if a request header asks for an answer in JSON."""
    timeout_s: float = 10.0
    longest_life_s: float = float("inf")
    """Longest time in seconds to use a token, however long it is valid."""
    tls: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Kafka's `ssl.` settings for the token server."""
    extensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TokenFile:
    """OAUTHBEARER: a token in a file; another program writes and renews the file."""

    path: str
    extensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class GivenToken:
    """OAUTHBEARER: a token in the configuration, or behind a reference there."""

    text: str = field(repr=False)
    extensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsecuredToken:
    """OAUTHBEARER: a token without a signature; only test clusters accept it."""

    claims: tuple[tuple[str, str | float | tuple[str, ...]], ...]
    subject_claim: str
    scope_claim: str
    lifetime_s: int
    extensions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MskIam:
    """AWS_MSK_IAM: a token signed with AWS credentials."""

    profile: str = ""
    role_arn: str = ""
    session_name: str = ""
    external_id: str = ""
    sts_region: str = ""
    """Region where the token service is asked for the role.

    Empty: the environment's region, else the brokers'.
    """
    keys: tuple[str, str, str] | None = field(default=None, repr=False)
    """Access key id, secret and session token (or empty), for taking the role."""


@dataclass(frozen=True, slots=True)
class Kerberos:
    """GSSAPI: Kerberos tickets."""

    service: str
    """First part of the brokers' principals: `kafka` of `kafka/host@REALM`."""
    principal: str
    """The tickets' owner; empty: whoever owns the tickets in the cache."""
    keytab: str = ""
    """File with the principal's keys; empty: another program gets the tickets."""
    cache: str = ""
    """Ticket cache if there is no keytab, by Kerberos's name or as a path.

    Empty: the cache that the environment names.
    """


Login: TypeAlias = Password | TokenRequest | TokenFile | GivenToken | UnsecuredToken | MskIam | Kerberos


@dataclass(frozen=True, slots=True)
class Token:
    """Token for the brokers, with its expiry."""

    text: str = field(repr=False)
    expires_at: float
    """Seconds since 1970; infinite if the token doesn't tell."""


class LoginError(HandledError):
    """Error: the setting `setting` (without `sasl.`) can't be used.

    The reason holds no secret.
    """

    def __init__(self, setting: str, reason: str) -> None:
        self.setting = setting
        self.reason = reason
        super().__init__(reason)


def needed(options: Mapping[str, str], option: str) -> str:
    """Return an option in the JAAS line; raise `LoginError` if it is missing."""
    if not options.get(option):
        raise LoginError("jaas.config", f'option {option} is missing: write {option}="..."')
    return options[option]


def number(option: str, text: str) -> float:
    """Return the number in a JAAS line's option; raise `LoginError` otherwise."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise LoginError("jaas.config", f"option {option} must be a number")
    return value


def check_token_url(setting: str, named: str, url: str) -> None:
    """Raise `LoginError` if a URL is no server's address, or holds a secret itself."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise LoginError(setting, f"{named}must begin with https: or http:, and name a server")
    if "@" in parts.netloc:
        raise LoginError(setting, f"{named}must not hold a user or password: there are options for them")
