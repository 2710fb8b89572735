"""Tokens for OAUTHBEARER: from an OIDC server, from a file, without a signature, or signed with AWS credentials.

One is kept for all connections of this process, and fetched anew when four fifths of its life are over, as Kafka's
clients do.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from sparkmirror.cluster.tls import ssl_context
from sparkmirror.config.login import ClientCredentials, MskIam, TokenFile, UnsecuredToken
from sparkmirror.config.model import ClusterConfig, SslConfig
from sparkmirror.config.settings import SSL_SETTINGS
from sparkmirror.errors import ConfigError
from sparkmirror.wire.sasl import SaslError

TokenLogin = ClientCredentials | TokenFile | UnsecuredToken | MskIam

RENEWED_AFTER = 0.8
"""Of a token's life: `sasl.login.refresh.window.factor` of Kafka's clients."""

LARGEST_ANSWER = 1 << 20
"""Bytes; what is larger is no token."""

MSK_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com")
"""Brokers of Amazon MSK; the group is their region."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and until when it is good."""

    text: str
    expires_at: float
    """Seconds since 1970; infinite where it doesn't tell."""


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
def keeper(login: TokenLogin, timeout_s: float, region: str) -> TokenKeeper:
    """The one keeper of this process for a way to get tokens; `region` matters to AWS only."""
    match login:
        case ClientCredentials():
            return TokenKeeper(lambda: _from_server(login, timeout_s))
        case TokenFile():
            return TokenKeeper(lambda: _from_file(login))
        case UnsecuredToken():
            return TokenKeeper(lambda: _unsecured(login))
        case MskIam():
            return TokenKeeper(lambda: _from_aws(login, region))


def region_of(login: MskIam, host: str) -> str:
    """The AWS region of a broker, by its name, or by what `AWS_REGION`, `AWS_DEFAULT_REGION` or the profile say."""
    found = MSK_HOST.search(host)
    if found:
        return found[1]
    from botocore.session import Session

    region = os.environ.get("AWS_REGION") or Session(profile=login.profile or None).get_config_variable("region")
    if not region:
        raise SaslError(f"the AWS region of {host} is not known: set AWS_REGION")
    return str(region)


def _from_server(login: ClientCredentials, timeout_s: float) -> Token:
    """By the grant `client_credentials` (RFC 6749, section 4.4)."""
    identity, secret = login.client_id, login.client_secret
    if login.urlencoded:
        identity, secret = quote(identity, safe=""), quote(secret, safe="")
    form = {"grant_type": "client_credentials"} | ({"scope": login.scope} if login.scope else {})
    request = Request(  # noqa: S310 - the scheme was looked at when the file was read
        login.url,
        data=urlencode(form).encode(),
        headers={
            "Accept": "application/json",
            "Authorization": "Basic " + base64.b64encode(f"{identity}:{secret}".encode()).decode(),
            "Content-Type": "application/x-www-form-urlencoded",
        },
    )
    where = f"the token server {login.url.partition('?')[0]}"
    try:
        opener = build_opener(ProxyHandler(), HTTPSHandler(context=_server_tls(login)))
        with opener.open(request, timeout=timeout_s) as answer:
            content = answer.read(LARGEST_ANSWER)
    except HTTPError as error:
        raise SaslError(
            f"{where} answers {error.code} {error.reason}{_its_reason(error.read(LARGEST_ANSWER))}"
        ) from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise SaslError(f"{where} can't be asked: {' '.join(str(reason).split())}") from None
    try:
        said = json.loads(content)
        text = said.get("access_token") or said["id_token"]
    except (ValueError, KeyError, AttributeError):
        raise SaslError(f"{where} gave no token") from None
    return _token(str(text), where, said.get("expires_in"))


def _server_tls(login: ClientCredentials) -> ssl.SSLContext:
    """As the JAAS line's `ssl.` options say; else the system's own certificates are trusted."""
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


def _its_reason(content: bytes) -> str:
    """What an OAuth error says (RFC 6749, section 5.2): a code from a list, and a description."""
    try:
        said = json.loads(content)
        words = [str(said[key]) for key in ("error", "error_description") if said.get(key)]
    except (ValueError, AttributeError, TypeError):
        return ""
    return f" ({': '.join(words)[:200]})" if words else ""


def _from_file(login: TokenFile) -> Token:
    try:
        text = Path(login.path).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no token"
        raise SaslError(f"the token file {login.path} can't be read: {reason}") from None
    token = _token(text, f"the token file {login.path}", None)
    if token.expires_at <= time.time():
        raise SaslError(f"the token in {login.path} has expired: whoever writes the file must renew it")
    # It may be replaced at any time, so it is read for each connection.
    return Token(token.text, time.time())


def _token(text: str, where: str, expires_in: object) -> Token:
    """A JWT says itself when it expires; another kind of token does not, and then `expires_in` counts."""
    if not re.fullmatch(r"[\x21-\x7e]+", text):
        raise SaslError(f"{where} gave no token")
    try:
        body = text.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return Token(text, float(claims["exp"]))
    except (IndexError, ValueError, KeyError, TypeError):
        lifetime_s = float(expires_in) if isinstance(expires_in, int | float) else float("inf")
        return Token(text, time.time() + lifetime_s)


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


def _from_aws(login: MskIam, region: str) -> Token:
    """By the AWS library: for OAUTHBEARER, which MSK takes at the same port as the Java library's own mechanism."""
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        if login.role_arn:
            name = (login.session_name,) if login.session_name else ()
            made = MSKAuthTokenProvider.generate_auth_token_from_role_arn(region, login.role_arn, *name)
        elif login.profile:
            made = MSKAuthTokenProvider.generate_auth_token_from_profile(region, login.profile)
        else:
            made = MSKAuthTokenProvider.generate_auth_token(region)
    except AttributeError:  # the library's own answer where there are none
        raise SaslError("there are no AWS credentials: set them in the environment, a profile or the role") from None
    except (BotoCoreError, ClientError, ValueError) as error:
        raise SaslError(f"AWS gives no credentials: {' '.join(str(error).split())}") from None
    text, expires_ms = made
    return Token(text, expires_ms / 1000)
