"""What we sign in with, by SASL: one small class for each way, and for what it comes to. Secrets are in no `repr`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Password:
    """PLAIN or SCRAM."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """OAUTHBEARER: a token that a server gives in answer to a form (RFC 6749, section 4)."""

    url: str = field(repr=False)
    principal: str
    """Whom the token is for, as far as we know: the user, or the client's id."""
    client: tuple[str, str] | None = field(repr=False)
    """Id and secret for the request's header; None where the form says who asks."""
    form: tuple[tuple[str, str], ...] = field(repr=False)
    """`grant_type` and what belongs to it."""
    files: tuple[tuple[str, str], ...] = ()
    """Fields of the form whose values stand in files, read for each request: somebody else renews them."""
    urlencoded: bool = False
    """Whether id and secret are URL-encoded before they go into the header (RFC 6749, section 2.3.1)."""
    accepts_json: bool = True
    """Whether a header says that the answer is to be JSON."""
    timeout_s: float = 10.0
    longest_life_s: float = float("inf")
    """A token is used no longer than this, however long it is good for."""
    tls: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Kafka's `ssl.` settings for the token server."""
    extensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TokenFile:
    """OAUTHBEARER: a token that somebody else writes to a file and renews."""

    path: str
    extensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class GivenToken:
    """OAUTHBEARER: a token that stands in the configuration, or in what that refers to."""

    text: str = field(repr=False)
    extensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class UnsecuredToken:
    """OAUTHBEARER: a token without a signature, that only test clusters accept."""

    claims: tuple[tuple[str, str | float | tuple[str, ...]], ...]
    subject_claim: str
    scope_claim: str
    lifetime_s: int
    extensions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class MskIam:
    """AWS_MSK_IAM: a token signed with AWS credentials."""

    profile: str = ""
    role_arn: str = ""
    session_name: str = ""
    external_id: str = ""
    sts_region: str = ""
    """Whose token service is asked for the role; empty: as the environment says, else the brokers'."""
    keys: tuple[str, str, str] | None = field(default=None, repr=False)
    """Access key's id, its secret and a session's token (or nothing), to take the role with."""


@dataclass(frozen=True, slots=True)
class Kerberos:
    """GSSAPI: Kerberos tickets."""

    service: str
    """What the brokers' principals begin with: `kafka` of `kafka/host@REALM`."""
    principal: str
    """Whose tickets; empty: whoever's are in the cache."""
    keytab: str = ""
    """The file with the principal's keys; empty: the tickets are somebody else's to get."""
    cache: str = ""
    """Where they are kept then, by Kerberos's name or as a path; empty: where the environment says."""


Login: TypeAlias = Password | TokenRequest | TokenFile | GivenToken | UnsecuredToken | MskIam | Kerberos


@dataclass(frozen=True, slots=True)
class Token:
    """What brokers are shown, and until when it is good."""

    text: str = field(repr=False)
    expires_at: float
    """Seconds since 1970; infinite where it doesn't tell."""


class LoginError(Exception):
    """`setting` (without `sasl.`) can't be used, and why; no secret in it."""

    def __init__(self, setting: str, reason: str) -> None:
        self.setting = setting
        self.reason = reason
        super().__init__(reason)


def needed(options: Mapping[str, str], option: str) -> str:
    """An option of the JAAS line. Raises `LoginError` where it is missing."""
    if not options.get(option):
        raise LoginError("jaas.config", f'option {option} is missing: write {option}="..."')
    return options[option]


def number(option: str, text: str) -> float:
    """What an option of the JAAS line says. Raises `LoginError`."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise LoginError("jaas.config", f"option {option} must be a number")
    return found


def check_token_url(setting: str, named: str, url: str) -> None:
    """Raise `LoginError` for what is no server's address, or holds a secret itself."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise LoginError(setting, f"{named}must begin with https: or http:, and name a server")
    if "@" in parts.netloc:
        raise LoginError(setting, f"{named}must not hold a user or password: there are options for them")
