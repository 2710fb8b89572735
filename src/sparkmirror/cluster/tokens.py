"""Tokens for OAUTHBEARER: from a token server, from a file, given, without a signature, or signed with AWS credentials.

One is kept for all connections of this process, and fetched anew when four fifths of its life are over, as Kafka's
clients do.
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
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote_plus, urlencode
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from sparkmirror.cluster.msk_tokens import signed_token
from sparkmirror.cluster.tls import ssl_context
from sparkmirror.config.credentials import GivenToken, MskIam, Token, TokenFile, TokenRequest, UnsecuredToken
from sparkmirror.config.model import ClusterConfig, SslConfig
from sparkmirror.config.settings import SSL_SETTINGS
from sparkmirror.errors import ConfigError
from sparkmirror.wire.sasl import SaslError

TokenLogin = TokenRequest | TokenFile | GivenToken | UnsecuredToken | MskIam

RENEWED_AFTER = 0.8
"""Of a token's life: `sasl.login.refresh.window.factor` of Kafka's clients."""

_SECRET_FIELDS = ("refresh_token", "client_assertion", "password")
"""Of the form."""

LARGEST_ANSWER = 1 << 20
"""Bytes; what is larger is no token."""


class TokenKeeper:
    """Fetches tokens by `fetch`, and keeps the last one; for all threads."""

    def __init__(self, fetch: Callable[[], Token]) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._renew_at = 0.0

    def token(self) -> str:
        """One that is good for a while. Raises `SaslError`."""
        with self._lock:
            now = time.time()
            if self._token is None or now >= self._renew_at:
                try:
                    self._token = self._fetch()
                except SaslError:
                    if self._token is None or now >= self._token.expires_at:
                        raise
                    # The old one is good for a while yet; the next connection tries again.
                    return self._token.text
                self._renew_at = now + (self._token.expires_at - now) * RENEWED_AFTER
            return self._token.text


@functools.lru_cache(maxsize=32)
def keeper(login: TokenLogin, region: str = "") -> TokenKeeper:
    """The one keeper of this process for a way to get tokens; `region` matters to AWS only."""
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
    """By the grant that the form names (RFC 6749, sections 4.3, 4.4 and 6; RFC 7523 for assertions)."""
    form = dict(login.form) | {field: _content(path) for field, path in login.files}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if login.accepts_json:
        headers["Accept"] = "application/json"
    if login.client is not None:
        words = map(_encoded_by_java, login.client) if login.urlencoded else login.client
        headers["Authorization"] = "Basic " + base64.b64encode(":".join(words).encode()).decode()
    request = Request(login.url, data=urlencode(form).encode(), headers=headers)  # noqa: S310 - its scheme was looked at
    where = f"the token server {login.url.partition('?')[0]}"
    try:
        opener = build_opener(ProxyHandler(), HTTPSHandler(context=_server_tls(login)), NoRedirects())
        with opener.open(request, timeout=login.timeout_s) as answer:
            content = answer.read(LARGEST_ANSWER)
    except HTTPError as error:
        raise SaslError(
            f"{where} answers {error.code} {error.reason}{_its_reason(error.read(LARGEST_ANSWER), form)}"
        ) from None
    except (OSError, HTTPException, ValueError, OverflowError) as error:  # the latter two: an address, a time, a store
        reason = getattr(error, "reason", None) or error
        raise SaslError(f"{where} can't be asked: {' '.join(str(reason).split())}") from None
    try:
        said = json.loads(content)
        text = said.get("access_token") or said["id_token"]
    except (ValueError, KeyError, AttributeError, RecursionError):
        raise SaslError(f"{where} gave no token") from None
    token = _token(str(text), where, said.get("expires_in"))
    expires_at = min(token.expires_at, time.time() + login.longest_life_s)
    if math.isinf(expires_at):
        raise SaslError(f"{where} gave a token without expires_in: nobody could tell when to ask for the next one")
    return Token(token.text, expires_at)


class NoRedirects(HTTPRedirectHandler):
    """Takes a redirection for an error: another server would get the secret that is sent along."""

    def redirect_request(self, *_: object) -> None:
        return None


def _encoded_by_java(word: str) -> str:
    """As Java's `URLEncoder` has it, for servers that compare and don't decode."""
    return quote_plus(word, safe="*").replace("~", "%7E")


def _server_tls(login: TokenRequest) -> ssl.SSLContext:
    """As the JAAS line's options say; else the system's own certificates are trusted."""
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
    assert context is not None  # noqa: S101 - it speaks TLS
    return context


def _its_reason(content: bytes, form: Mapping[str, str]) -> str:
    """What an OAuth error says (RFC 6749, section 5.2): a code, and a description, without our secrets."""
    try:
        said = json.loads(content)
        words = [str(said[key]) for key in ("error", "error_description") if said.get(key)]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return ""
    text = " ".join(": ".join(words).split())
    for name, value in form.items():
        if name in _SECRET_FIELDS and value:
            text = text.replace(value, "…")
    return f" ({text[:200]})" if text else ""


def _from_file(login: TokenFile) -> Token:
    token = _token(_content(login.path), f"the token file {login.path}", None)
    if token.expires_at <= time.time():
        raise SaslError(f"the token in {login.path} has expired: whoever writes the file must renew it")
    # It may be replaced at any time, so it is read for each connection.
    return Token(token.text, time.time())


def _content(path: str) -> str:
    try:
        return Path(path).read_text("ascii").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no token"
        raise SaslError(f"the token file {path} can't be read: {reason}") from None


def _given(login: GivenToken) -> Token:
    token = _token(login.text, "the sasl.jaas.config", None)
    if token.expires_at <= time.time():
        raise SaslError("the token in sasl.jaas.config has expired: write a new one, or let a file or server give them")
    return token


def _token(text: str, where: str, expires_in: object) -> Token:
    """A JWT says itself when it expires; another kind of token does not, and then `expires_in` counts."""
    if not re.fullmatch(r"[\x21-\x7e]+", text):
        raise SaslError(f"{where} gave no token")
    try:
        body = text.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return Token(text, float(claims["exp"]))
    except (IndexError, ValueError, KeyError, TypeError, RecursionError):
        return Token(text, time.time() + _seconds(expires_in))


def _seconds(expires_in: object) -> float:
    """Some servers say it as text."""
    try:
        return float(str(expires_in))
    except ValueError:
        return math.inf


def _unsecured(login: UnsecuredToken) -> Token:
    """A JWS with algorithm `none`, as Kafka's own login module for tests makes it."""
    now = time.time()
    expires_at = now + login.lifetime_s
    claims: dict[str, object] = {"iat": now, "exp": expires_at} | {
        name: list(value) if isinstance(value, tuple) else value for name, value in login.claims
    }
    return Token(f"{_encoded({'alg': 'none'})}.{_encoded(claims)}.", expires_at)


def _encoded(content: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()
