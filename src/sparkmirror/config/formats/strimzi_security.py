"""Strimzi's `tls` and `authentication` as Kafka's own settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from sparkmirror.config.formats.secrets import Secrets
from sparkmirror.config.formats.yaml_files import as_text
from sparkmirror.config.oauth_login import SECURITY
from sparkmirror.config.strimzi_oauth import EXTENSION_NAME, STRIMZI_HANDLER
from sparkmirror.errors import HandledError

_Found = TypeVar("_Found")

_PASSWORDS = {
    "plain": ("PLAIN", SECURITY + "plain.PlainLoginModule"),
    "scram-sha-256": ("SCRAM-SHA-256", SECURITY + "scram.ScramLoginModule"),
    "scram-sha-512": ("SCRAM-SHA-512", SECURITY + "scram.ScramLoginModule"),
}
_OAUTH_TEXTS = {
    "clientId": "client.id",
    "tokenEndpointUri": "token.endpoint.uri",
    "scope": "scope",
    "audience": "audience",
    "grantType": "client.credentials.grant.type",
    "username": "password.grant.username",
    "clientAssertionType": "client.assertion.type",
    "connectTimeoutSeconds": "connect.timeout.seconds",
    "readTimeoutSeconds": "read.timeout.seconds",
    "maxTokenExpirySeconds": "max.token.expiry.seconds",
    "includeAcceptHeader": "include.accept.header",
}
_OAUTH_SECRETS = {
    "clientSecret": ("client.secret", "key"),
    "accessToken": ("access.token", "key"),
    "refreshToken": ("refresh.token", "key"),
    "clientAssertion": ("client.assertion", "key"),
    "passwordSecret": ("password.grant.password", "password"),
}
"""Option for each field, and the name that the field has for the Secret's key."""
OF_TYPES: Mapping[str, tuple[str, ...]] = {
    "tls": ("certificateAndKey",),
    **dict.fromkeys(_PASSWORDS, ("username", "passwordSecret")),
    "custom": ("sasl", "config"),
    "oauth": (
        *_OAUTH_TEXTS,
        *_OAUTH_SECRETS,
        "accessTokenLocation",
        "clientAssertionLocation",
        "saslExtensions",
        "tlsTrustedCertificates",
        "disableTlsHostnameVerification",
    ),
}
"""Fields for each authentication type, next to `type`."""
TYPES = tuple(OF_TYPES)
_RETRIES = "the token server is asked again with the next connection"
OAUTH_IDLE: Mapping[str, str] = {
    "httpRetries": _RETRIES,
    "httpRetryPauseMs": _RETRIES,
    "enableMetrics": "there is no JMX: see --metrics-port (docs/metrics.md)",
    "accessTokenIsJwt": "a token is looked into to see whether it is a JWT",
}
"""Further fields in `oauth`, without effect here, each with the reason."""


class FieldError(HandledError):
    """Error: a field can't be used; `field` is its path below the cluster."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"{field}: {reason}")


def security_settings(cluster: Mapping[str, Any], secrets: Secrets) -> Iterator[tuple[str, str, str]]:
    """Yield fields below the cluster, each with Kafka's key and value.

    Raise `FieldError`.
    """
    tls, authentication = cluster.get("tls"), cluster.get("authentication") or {}
    kind = authentication.get("type")
    if authentication and kind not in TYPES:
        raise FieldError("authentication.type", f"must be one of {', '.join(TYPES)}")
    custom_sasl = kind == "custom" and authentication.get("sasl") is not False
    sasl = kind in _PASSWORDS or kind == "oauth" or custom_sasl
    protocol = "PLAINTEXT" if tls is None else "SSL"
    yield (
        "tls" if tls is not None else "authentication" if sasl else "bootstrapServers",
        "security.protocol",
        f"SASL_{protocol}" if sasl else protocol,
    )
    if tls is not None:
        yield from _trusted(tls, secrets)
    if kind == "tls":
        yield from _own_certificate(authentication, tls, secrets)
    elif kind in _PASSWORDS:
        yield from _password(kind, authentication, secrets)
    elif kind == "custom":
        yield from _custom(authentication)
    elif kind == "oauth":
        yield from _oauth(authentication, secrets)


def _trusted(tls: Any, secrets: Secrets) -> Iterator[tuple[str, str, str]]:
    texts = []
    for index, trusted in enumerate((tls or {}).get("trustedCertificates") or ()):
        field = f"tls.trustedCertificates[{index}]"
        texts += list(_certificates(trusted, field, secrets, lambda name, key: secrets.text(name, key)))
    if texts:
        yield "tls.trustedCertificates", "ssl.truststore.type", "PEM"
        yield "tls.trustedCertificates", "ssl.truststore.certificates", "\n".join(texts)


def _certificates(
    trusted: Mapping[str, Any], field: str, secrets: Secrets, look: Callable[[str, str], str]
) -> Iterator[str]:
    name = str(trusted.get("secretName") or "")
    if "certificate" in trusted:
        keys = [str(trusted["certificate"])]
    elif "pattern" in trusted:
        keys = _found(field, lambda: secrets.matching(name, str(trusted["pattern"])))
    else:
        raise FieldError(field, "needs certificate or pattern")
    for key in keys:
        yield _found(field, lambda key=key: look(name, key))  # type: ignore[misc]


def _own_certificate(authentication: Mapping[str, Any], tls: Any, secrets: Secrets) -> Iterator[tuple[str, str, str]]:
    if tls is None:
        raise FieldError("authentication.type", "tls needs tls next to it: certificates are shown over TLS only")
    field = "authentication.certificateAndKey"
    pair = authentication.get("certificateAndKey") or {}
    for part in ("secretName", "certificate", "key"):
        if not pair.get(part):
            raise FieldError(f"{field}.{part}", "is missing")
    yield field, "ssl.keystore.type", "PEM"
    chain = _found(field, lambda: secrets.text(pair["secretName"], pair["certificate"]))
    yield field, "ssl.keystore.certificate.chain", chain
    yield field, "ssl.keystore.key", _found(field, lambda: secrets.text(pair["secretName"], pair["key"]))


def _password(kind: str, authentication: Mapping[str, Any], secrets: Secrets) -> Iterator[tuple[str, str, str]]:
    mechanism, module = _PASSWORDS[kind]
    username = authentication.get("username")
    if not username:
        raise FieldError("authentication.username", "is missing")
    yield "authentication.type", "sasl.mechanism", mechanism
    password = _secret(authentication, "passwordSecret", "password", secrets)
    line = f"{module} required username={quoted(str(username))} password={quoted(password)};"
    yield "authentication.passwordSecret", "sasl.jaas.config", line


def _custom(authentication: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for key, value in (authentication.get("config") or {}).items():
        if not key.startswith(("sasl.", "ssl.keystore.")):
            raise FieldError(f"authentication.config.{key}", "Strimzi lets sasl. and ssl.keystore. keys through only")
        yield f"authentication.config.{key}", key, as_text(value)


def _oauth(authentication: Mapping[str, Any], secrets: Secrets) -> Iterator[tuple[str, str, str]]:
    """Yield the settings for Strimzi's own login handler, as the operator writes them."""
    if not (authentication.get("accessToken") or authentication.get("accessTokenLocation")):
        for field in ("tokenEndpointUri", "clientId"):
            if not authentication.get(field):
                raise FieldError(f"authentication.{field}", "is missing")
    yield "authentication.type", "sasl.mechanism", "OAUTHBEARER"
    yield "authentication.type", "sasl.login.callback.handler.class", STRIMZI_HANDLER
    options = {
        option: as_text(authentication[field])
        for field, option in _OAUTH_TEXTS.items()
        if authentication.get(field) is not None
    }
    for field, (option, key) in _OAUTH_SECRETS.items():
        if authentication.get(field):
            options[option] = _secret(authentication, field, key, secrets)
    for field, option in (("accessToken", "access.token"), ("clientAssertion", "client.assertion")):
        if authentication.get(f"{field}Location"):
            options[f"{option}.location"] = str(authentication[f"{field}Location"])
    options |= _token_servers_tls(authentication, secrets)
    for name in authentication.get("saslExtensions") or {}:
        if not EXTENSION_NAME.fullmatch(name):
            raise FieldError(f"authentication.saslExtensions.{name}", "must be made of letters, and not auth")
    options |= {
        f"sasl.extension.{name}": as_text(value) for name, value in (authentication.get("saslExtensions") or {}).items()
    }
    words = " ".join(f"oauth.{name}={quoted(value)}" for name, value in options.items())
    yield "authentication", "sasl.jaas.config", f"{SECURITY}oauthbearer.OAuthBearerLoginModule required {words};"


def _token_servers_tls(authentication: Mapping[str, Any], secrets: Secrets) -> dict[str, str]:
    """Return the token server's TLS settings.

    Mounted certificates are given by their file, which may be renewed; a manifest's certificates are in the line
    itself.
    """
    options: dict[str, str] = {}
    field = "authentication.tlsTrustedCertificates"
    given = authentication.get("tlsTrustedCertificates") or ()
    paths: list[str] = []

    def read(name: str, key: str) -> str:
        path = secrets.path(name, key)
        if path is None:
            return secrets.text(name, key)
        paths.append(path)
        return ""

    texts = [text for trusted in given for text in _certificates(trusted, field, secrets, read)]
    if paths and len(texts) > 1:
        raise FieldError(field, "put the certificates into one file: the token server is trusted by one")
    if texts:
        options["ssl.truststore.type"] = "PEM"
        options |= {"ssl.truststore.location": paths[0]} if paths else {"ssl.truststore.certificates": "\n".join(texts)}
    if authentication.get("disableTlsHostnameVerification") is True:
        options["ssl.endpoint.identification.algorithm"] = ""
    return options


def _secret(authentication: Mapping[str, Any], field: str, key: str, secrets: Secrets) -> str:
    stated = authentication.get(field) or {}
    path = f"authentication.{field}"
    for part in ("secretName", key):
        if not stated.get(part):
            raise FieldError(f"{path}.{part}", "is missing")
    return _found(path, lambda: secrets.text(str(stated["secretName"]), str(stated[key])))


def _found(field: str, look: Callable[[], _Found]) -> _Found:
    try:
        return look()
    except ValueError as error:
        raise FieldError(field, str(error)) from None


def quoted(text: str) -> str:
    """Quote a value for a JAAS line."""
    return '"' + re.sub(r'(["\\])', r"\\\1", text).replace("\r", "\\r").replace("\n", "\\n") + '"'
