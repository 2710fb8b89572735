"""Basic authentication as Connect's extension does it.

Users come from a JAAS file's `PropertyFileLoginModule`. The JAAS file is named as for Java:
`-Djava.security.auth.login.config=FILE` in `KAFKA_OPTS`.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import javaproperties
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sparkmirror.config.named_file import read_named_file
from sparkmirror.errors import ConfigError

EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
_MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
_SECTION = "KafkaConnect"
_FLAG = "-Djava.security.auth.login.config="
_REFUSED = b"User cannot access the resource."


@dataclass(frozen=True, slots=True)
class Users:
    """REST users with their passwords.

    An empty table admits every request, as in Connect.
    """

    passwords: Mapping[str, str]
    file: str = ""
    """The users' file."""

    @property
    def are_asked(self) -> bool:
        """True if clients must sign in."""
        return bool(self.passwords)

    @property
    def warning(self) -> str:
        """Sentence about an empty file; empty if there is a user."""
        if self.are_asked:
            return ""
        return f"{self.file}: has no user: every client is let in, as with Connect, and may look at the page only"

    def __repr__(self) -> str:
        return f"Users({', '.join(self.passwords)})"

    def admit(self, authorization: str | None) -> bool:
        """Tell whether the header `Authorization` names a user with the right password."""
        if not self.are_asked:
            return True
        scheme, _, encoded = (authorization or "").partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        known = self.passwords.get(name)
        return bool(colon) and known is not None and hmac.compare_digest(known.encode(), password.encode())


class BasicAuth:
    """ASGI middleware that answers 401 unless `users` admit the request."""

    def __init__(self, app: ASGIApp, users: Users) -> None:
        self._app = app
        self._users = users

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._users.admit(Headers(scope=scope).get("authorization")):
            await self._app(scope, receive, send)
            return
        # As Connect: no WWW-Authenticate, so that browsers show no login window, and a plain text.
        headers = [(b"content-length", b"%d" % len(_REFUSED))]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": _REFUSED})


def jaas_file(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the JAAS file that `KAFKA_OPTS` names, or None. Raises `ConfigError`."""
    try:
        words = shlex.split(environment.get("KAFKA_OPTS", ""))
    except ValueError:
        raise ConfigError("has a quote or a backslash that nothing follows", origin="KAFKA_OPTS") from None
    flags = [word for word in words if word.startswith(_FLAG)]
    return flags[-1].removeprefix(_FLAG) if flags else None


def read_users(jaas: str | None, worker_file: str) -> Users:
    """Read the users in the credentials file that the JAAS file names.

    `worker_file` is named in the error if `jaas` is None or unreadable. Raises `ConfigError`.
    """
    if jaas is None:
        reason = f"asks for users, but no JAAS file is named: set KAFKA_OPTS={_FLAG}FILE, or --jaas FILE"
        raise ConfigError(reason, origin=worker_file, key="rest.extension.classes")
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", _text(jaas, worker_file), flags=re.DOTALL)
    section = re.search(rf"\b{_SECTION}\s*\{{(.*?)\}}", text, re.DOTALL)
    if section is None:
        raise ConfigError(f"has no section {_SECTION} {{ … }};", origin=jaas)
    if _MODULE not in section[1]:
        raise ConfigError(f"its {_SECTION} names another login module: only {_MODULE} is known here", origin=jaas)
    named = re.search(r"""\bfile\s*=\s*["']?([^"';\s]+)""", section[1])
    if named is None:
        raise ConfigError(f'its {_SECTION} names no file: write file="/path/to/credentials.properties"', origin=jaas)
    try:
        return Users(javaproperties.loads(_text(named[1], jaas)), named[1])
    except javaproperties.InvalidUEscapeError:
        raise ConfigError(r"has a \u that four hexadecimal digits don't follow", origin=named[1]) from None


def _text(path: str, named_in: str) -> str:
    try:
        return read_named_file(path).decode("latin-1")
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", origin=named_in) from None
