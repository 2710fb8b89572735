"""How we sign in to a cluster by SASL, made of Kafka's own settings: one small class for each way.

The settings are those of Kafka 4.3.1 (`SaslConfigs`), with the older ones that stand as options in the JAAS line,
and those of Amazon's `aws-msk-iam-auth`. Which is meant is told by mechanism, login module and callback handler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sparkmirror.config.jaas import JaasEntry, parse_jaas
from sparkmirror.config.model import SaslConfig

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER = "OAUTHBEARER"
AWS_MSK_IAM = "AWS_MSK_IAM"
MECHANISMS = ("PLAIN", *SCRAM, OAUTHBEARER, AWS_MSK_IAM)

_SECURITY = "org.apache.kafka.common.security."
_OAUTH_MODULE = _SECURITY + "oauthbearer.OAuthBearerLoginModule"
_MSK = "software.amazon.msk.auth.iam."
_MODULES = {
    "PLAIN": _SECURITY + "plain.PlainLoginModule",
    **dict.fromkeys(SCRAM, _SECURITY + "scram.ScramLoginModule"),
    OAUTHBEARER: _OAUTH_MODULE,
    AWS_MSK_IAM: _MSK + "IAMLoginModule",
}
MSK_CLIENT_HANDLER = _MSK + "IAMClientCallbackHandler"
MSK_OAUTH_CLIENT_HANDLER = _MSK + "IAMOAuthBearerClientCallbackHandler"
MSK_LOGIN_HANDLER = _MSK + "IAMOAuthBearerLoginCallbackHandler"
UNSECURED_HANDLER = _SECURITY + "oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
OAUTH_HANDLERS = (
    _SECURITY + "oauthbearer.OAuthBearerLoginCallbackHandler",
    _SECURITY + "oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
LOGIN_HANDLERS = ("", *OAUTH_HANDLERS, UNSECURED_HANDLER, MSK_LOGIN_HANDLER)
CLIENT_HANDLERS = ("", MSK_CLIENT_HANDLER, MSK_OAUTH_CLIENT_HANDLER)
RETRIEVERS = (
    _SECURITY + "oauthbearer.DefaultJwtRetriever",
    _SECURITY + "oauthbearer.ClientCredentialsJwtRetriever",
    _SECURITY + "oauthbearer.FileJwtRetriever",
)

_UNSECURED = "unsecuredLoginStringClaim_", "unsecuredLoginNumberClaim_", "unsecuredLoginListClaim_"
_EXTENSION = "extension_"
KERBEROS = (
    "Kerberos (GSSAPI) is not supported: give sparkmirror a user of its own with SCRAM-SHA-512, OAUTHBEARER or a"
    " certificate, and write sasl.mechanism and sasl.jaas.config for it; one more listener at the brokers is enough"
)


@dataclass(frozen=True, slots=True)
class Password:
    """PLAIN or SCRAM."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """OAUTHBEARER: a token from an OIDC server, for an id and a secret."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str
    urlencoded: bool
    """Whether id and secret are URL-encoded before they go into the header (RFC 6749, section 2.3.1)."""
    tls: tuple[tuple[str, str], ...] = field(repr=False)
    """`ssl.` options of the JAAS line: how the token server is spoken with."""
    extensions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TokenFile:
    """OAUTHBEARER: a token that somebody else writes to a file and renews."""

    path: str
    extensions: tuple[tuple[str, str], ...]


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


Login: TypeAlias = Password | ClientCredentials | TokenFile | UnsecuredToken | MskIam


def read_login(sasl: SaslConfig) -> Login:
    """How to sign in; references to secrets must be resolved before.

    Raises `LoginError`, which names the setting to blame and never a secret.
    """
    mechanism = sasl.mechanism
    if mechanism == "GSSAPI":
        raise LoginError("mechanism", KERBEROS)
    text = sasl.jaas_config.get_secret_value()
    if not text:
        raise LoginError("jaas.config", f'is missing: write {_MODULES[mechanism]} required <option>="<value>";')
    try:
        entry = parse_jaas(text)
    except ValueError as error:
        raise LoginError("jaas.config", str(error)) from None
    if entry.module != _MODULES[mechanism]:
        raise LoginError("jaas.config", f"sasl.mechanism {mechanism} needs the login module {_MODULES[mechanism]}")
    if sasl.login_callback_handler_class == MSK_LOGIN_HANDLER or mechanism == AWS_MSK_IAM:
        return _msk(entry.options)
    if mechanism == OAUTHBEARER:
        return _oauth(sasl, entry)
    username, password = (_need(entry.options, option) for option in ("username", "password"))
    return Password(mechanism, username, password)


class LoginError(Exception):
    """`setting` (without `sasl.`) can't be used, and why; no secret in it."""

    def __init__(self, setting: str, reason: str) -> None:
        self.setting = setting
        self.reason = reason
        super().__init__(reason)


def _need(options: Mapping[str, str], option: str) -> str:
    if not options.get(option):
        raise LoginError("jaas.config", f'option {option} is missing: write {option}="..."')
    return options[option]


def _msk(options: Mapping[str, str]) -> MskIam:
    known = {"awsProfileName", "awsRoleArn", "awsRoleSessionName", "awsDebugCreds"}
    for option in options:
        if option not in known and not option.startswith("awsMaxRetries") and option != "awsMaxBackOffTimeMs":
            raise LoginError("jaas.config", f"option {option} of IAMLoginModule is not supported")
    return MskIam(
        profile=options.get("awsProfileName", ""),
        role_arn=options.get("awsRoleArn", ""),
        session_name=options.get("awsRoleSessionName", ""),
    )


def _oauth(sasl: SaslConfig, entry: JaasEntry) -> Login:
    options = entry.options
    extensions = tuple(
        (name.removeprefix(_EXTENSION), value) for name, value in options.items() if name.startswith(_EXTENSION)
    )
    url = sasl.oauthbearer_token_endpoint_url
    handler = sasl.login_callback_handler_class
    if handler == UNSECURED_HANDLER or (not handler and not url):
        return _unsecured(options)
    if not url:
        raise LoginError("oauthbearer.token.endpoint.url", "is missing: write the URL that tokens come from")
    scheme, _, rest = url.partition(":")
    retriever = sasl.oauthbearer_jwt_retriever_class.rpartition(".")[2]
    if retriever == "FileJwtRetriever" or (scheme == "file" and retriever != "ClientCredentialsJwtRetriever"):
        if scheme != "file" or not rest.startswith("/"):
            raise LoginError("oauthbearer.token.endpoint.url", "names no file: write file:///<path>")
        return TokenFile("/" + rest.lstrip("/"), extensions)
    if scheme not in ("http", "https"):
        raise LoginError("oauthbearer.token.endpoint.url", "must begin with https:, http: or file:")
    secret = sasl.oauthbearer_client_credentials_client_secret.get_secret_value()
    return ClientCredentials(
        url=url,
        client_id=sasl.oauthbearer_client_credentials_client_id or _need(options, "clientId"),
        client_secret=secret or _need(options, "clientSecret"),
        scope=sasl.oauthbearer_scope or options.get("scope", ""),
        urlencoded=sasl.oauthbearer_header_urlencode,
        tls=tuple(sorted((name, value) for name, value in options.items() if name.startswith("ssl."))),
        extensions=extensions,
    )


def _unsecured(options: Mapping[str, str]) -> UnsecuredToken:
    """As Kafka's `OAuthBearerUnsecuredLoginCallbackHandler` reads its options."""
    claims: list[tuple[str, str | float | tuple[str, ...]]] = []
    extensions: list[tuple[str, str]] = []
    string, number, listed = _UNSECURED
    for name, value in options.items():
        if name.startswith(string):
            claims.append((name.removeprefix(string), value))
        elif name.startswith(number):
            claims.append((name.removeprefix(number), _number(name, value)))
        elif name.startswith(listed):
            # The first character is what stands between the items.
            claims.append((name.removeprefix(listed), tuple(value[1:].split(value[0])) if value else ()))
        elif name.startswith("unsecuredLoginExtension_"):
            extensions.append((name.removeprefix("unsecuredLoginExtension_"), value))
    subject_claim = options.get("unsecuredLoginPrincipalClaimName", "sub")
    if subject_claim not in {name for name, _ in claims}:
        raise LoginError(
            "jaas.config",
            f"names no principal: write {string}{subject_claim} for a test cluster without signatures, or"
            " sasl.oauthbearer.token.endpoint.url for a real one",
        )
    lifetime = _number("unsecuredLoginLifetimeSeconds", options.get("unsecuredLoginLifetimeSeconds", "3600"))
    scope_claim = options.get("unsecuredLoginScopeClaimName", "scope")
    return UnsecuredToken(tuple(claims), subject_claim, scope_claim, int(lifetime), tuple(extensions))


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise LoginError("jaas.config", f"option {name} must be a number") from None
