"""Tokens for OAUTHBEARER, from each supported source.

A token comes from a token server, from a file or from the configuration, or it is unsigned, or signed with AWS
credentials. The process keeps one token for all its connections, and fetches a new one after four fifths of the token's
life, as Kafka's clients do.
"""

from __future__ import annotations

import base64
import functools
import json
import math
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException, responses
from urllib.error import HTTPError
from urllib.parse import quote_plus, urlencode
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from sparkmirror.config.credentials import GivenToken, MskIam, Token, TokenFile, TokenRequest, UnsecuredToken
from sparkmirror.config.model import ClusterConfig, SslConfig
from sparkmirror.config.named_file import read_named_file
from sparkmirror.errors import ConfigError
from sparkmirror.kafka.cluster.msk_tokens import signed_token
from sparkmirror.kafka.cluster.tls_contexts import ssl_context
from sparkmirror.kafka.wire.sasl import SaslError

TokenLogin = TokenRequest | TokenFile | GivenToken | UnsecuredToken | MskIam

RENEWED_AFTER = 0.8
"""Share of a token's life after which a new one is fetched.

As `sasl.login.refresh.window.factor` in Kafka's clients.
"""

_ERROR_CODES = (
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
)
"""Error codes from RFC 6749, section 5.2; nothing else in an answer is shown.

The server may be none of OAuth, and its words for no other eyes.
"""

LARGEST_ANSWER = 1 << 20
"""Most bytes read from a server's answer; a larger one is no token."""


class TokenKeeper:
    """The newest token, got by `fetch`; thread-safe."""

    def __init__(self, fetch: Callable[[], Token]) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._renew_at = 0.0

    def token(self) -> str:
        """Return a token that is valid for a while. Raises `SaslError`."""
        with self._lock:
            now = time.time()
            if self._token is None or now >= self._renew_at:
                try:
                    self._token = self._fetch()
                except SaslError:
                    if self._token is None or now >= self._token.expires_at:
                        raise
                    # The old token is still valid; the next connection tries again.
                    return self._token.text
                self._renew_at = now + (self._token.expires_at - now) * RENEWED_AFTER
            return self._token.text


@functools.lru_cache(maxsize=32)
def keeper(login: TokenLogin, region: str = "") -> TokenKeeper:
    """Return this process's only keeper for a login; `region` matters to AWS only."""
    match login:
        case TokenRequest():
            return TokenKeeper(lambda: _from_server(login))
        case TokenFile():
            return TokenKeeper(lambda: _from_file(login))
        case GivenToken():
            return TokenKeeper(lambda: _given(login))
        case UnsecuredToken():
            return TokenKeeper(lambda: _unsecured(login))
        case MskIam():
            return TokenKeeper(lambda: signed_token(login, region))


def _from_server(login: TokenRequest) -> Token:
    """Get a token from a token server, by the grant in the login's form.

    RFC 6749, sections 4.3, 4.4 and 6; RFC 7523 for assertions.
    """
    form = dict(login.form) | {field: _content(path) for field, path in login.files}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if login.accepts_json:
        headers["Accept"] = "application/json"
    if login.client is not None:
        words = map(_encoded_by_java, login.client) if login.urlencoded else login.client
        headers["Authorization"] = "Basic " + base64.b64encode(":".join(words).encode()).decode()
    request = Request(login.url, data=urlencode(form).encode(), headers=headers)  # noqa: S310 - its scheme was looked at
    origin = f"the token server {login.url.partition('?')[0]}"
    try:
        opener = build_opener(ProxyHandler(), HTTPSHandler(context=_server_tls(login)), NoRedirects())
        with opener.open(request, timeout=login.timeout_s) as answer:
            content = answer.read(LARGEST_ANSWER)
    except HTTPError as error:
        raise SaslError(f"{origin} answers {error.code} {responses.get(error.code, '')}{_error_code(error)}") from None
    except HTTPException:  # its text would be the server's words
        raise SaslError(f"{origin} can't be asked: its answer is no HTTP") from None
    except (OSError, ValueError, OverflowError) as error:  # the last two: bad address, time, store
        reason = getattr(error, "reason", None) or error
        raise SaslError(f"{origin} can't be asked: {' '.join(str(reason).split())}") from None
    try:
        said = json.loads(content)
        text = said.get("access_token") or said["id_token"]
    except (ValueError, KeyError, AttributeError, RecursionError):
        raise SaslError(f"{origin} gave no token") from None
    token = _token(str(text), origin, said.get("expires_in"))
    expires_at = min(token.expires_at, time.time() + login.longest_life_s)
    if math.isinf(expires_at):
        raise SaslError(f"{origin} gave a token without expires_in: its renewal can't be timed")
    return Token(token.text, expires_at)


class NoRedirects(HTTPRedirectHandler):
    """Handler that rejects redirections.

    A redirected request would carry its secret to another server.
    """

    def redirect_request(self, *_: object) -> None:
        return None


def _encoded_by_java(word: str) -> str:
    """Encode as Java's `URLEncoder` does: some servers compare without decoding."""
    return quote_plus(word, safe="*").replace("~", "%7E")


def _server_tls(login: TokenRequest) -> ssl.SSLContext:
    """Return the token server's TLS context, from the options in the JAAS line.

    Without options the system's certificates are trusted.
    """
    # Here, since most tasks ask no token server, and need no settings.
    from sparkmirror.config.settings import SSL_SETTINGS

    given = dict(login.tls)
    fields = {
        setting.field: setting.kind.parse(given[setting.name]) for setting in SSL_SETTINGS if setting.name in given
    }
    server = ClusterConfig(
        alias="of the token server",
        bootstrap_servers=(),
        security_protocol="SSL",
        ssl=SslConfig.model_validate(fields),
    )
    try:
        context = ssl_context(server)
    except ConfigError as error:
        raise SaslError(str(error)) from None
    assert context is not None  # noqa: S101 - security_protocol is SSL
    return context


def _error_code(error: HTTPError) -> str:
    """Return an OAuth error's code in brackets; empty if the answer has none."""
    try:
        code = json.loads(error.read(LARGEST_ANSWER))["error"]
    except (OSError, HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f" ({code})" if code in _ERROR_CODES else ""


def _from_file(login: TokenFile) -> Token:
    token = _token(_content(login.path), f"the token file {login.path}", None)
    if token.expires_at <= time.time():
        raise SaslError(f"the token in {login.path} has expired: the program that writes the file must renew it")
    # The file may be replaced at any time, so it is read for each connection.
    return Token(token.text, time.time())


def _content(path: str) -> str:
    try:
        return read_named_file(path).decode("ascii").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no token"
        raise SaslError(f"the token file {path} can't be read: {reason}") from None


def _given(login: GivenToken) -> Token:
    token = _token(login.text, "the sasl.jaas.config", None)
    if token.expires_at <= time.time():
        raise SaslError("the token in sasl.jaas.config has expired: write a new one, or let a file or server give them")
    return token


def _token(text: str, origin: str, expires_in: object) -> Token:
    """Return a token with its expiry: from the JWT, or else after `expires_in`.

    Only a JWT holds its own expiry.
    """
    if not re.fullmatch(r"[\x21-\x7e]+", text):
        raise SaslError(f"{origin} gave no token")
    try:
        body = text.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return Token(text, float(claims["exp"]))
    except (IndexError, ValueError, KeyError, TypeError, RecursionError):
        return Token(text, time.time() + _seconds(expires_in))


def _seconds(expires_in: object) -> float:
    """Read `expires_in`, which some servers send as text; infinity without a number."""
    try:
        return float(str(expires_in))
    except ValueError:
        return math.inf


def _unsecured(login: UnsecuredToken) -> Token:
    """Make a JWS with algorithm `none`, as Kafka's login module for tests does."""
    now = time.time()
    expires_at = now + login.lifetime_s
    claims: dict[str, object] = {"iat": now, "exp": expires_at} | {
        name: list(value) if isinstance(value, tuple) else value for name, value in login.claims
    }
    return Token(f"{_encoded({'alg': 'none'})}.{_encoded(claims)}.", expires_at)


def _encoded(content: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()
