"""OAUTHBEARER by Kafka's own login handlers.

The token comes from an OIDC server or from a file, or has no signature. The settings are Kafka 4.3.1's (`SaslConfigs`),
with the older settings that stand as options in the JAAS line.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config.credentials import (
    LoginError,
    TokenFile,
    TokenRequest,
    UnsecuredToken,
    check_token_url,
    needed,
    number,
)
from sparkmirror.config.model import SaslConfig

SECURITY = "org.apache.kafka.common.security."
UNSECURED_HANDLER = SECURITY + "oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
OAUTH_HANDLERS = (
    SECURITY + "oauthbearer.OAuthBearerLoginCallbackHandler",
    SECURITY + "oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
RETRIEVERS = (
    SECURITY + "oauthbearer.DefaultJwtRetriever",
    SECURITY + "oauthbearer.ClientCredentialsJwtRetriever",
    SECURITY + "oauthbearer.FileJwtRetriever",
)

_UNSECURED = "unsecuredLoginStringClaim_", "unsecuredLoginNumberClaim_", "unsecuredLoginListClaim_"
_EXTENSION = "extension_"


def read_oauth(sasl: SaslConfig, options: Mapping[str, str]) -> TokenRequest | TokenFile | UnsecuredToken:
    """Return where the token comes from; raise `LoginError`.

    `options` are the JAAS line's options.
    """
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
            raise LoginError("oauthbearer.token.endpoint.url", "must be a file's URL: file:///<path>")
        return TokenFile("/" + rest.lstrip("/"), extensions)
    if scheme not in ("http", "https"):
        raise LoginError("oauthbearer.token.endpoint.url", "must begin with https:, http: or file:")
    check_token_url("oauthbearer.token.endpoint.url", "", url)
    client_id = sasl.oauthbearer_client_credentials_client_id or needed(options, "clientId")
    secret = sasl.oauthbearer_client_credentials_client_secret.get_secret_value() or needed(options, "clientSecret")
    scope = sasl.oauthbearer_scope or options.get("scope", "")
    return TokenRequest(
        url=url,
        principal=client_id,
        client=(client_id, secret),
        form=(("grant_type", "client_credentials"), *((("scope", scope),) if scope else ())),
        urlencoded=sasl.oauthbearer_header_urlencode,
        timeout_s=max(sasl.login_connect_timeout_ms, sasl.login_read_timeout_ms) / 1000,
        tls=tuple(sorted((name, value) for name, value in options.items() if name.startswith("ssl."))),
        extensions=extensions,
    )


def _unsecured(options: Mapping[str, str]) -> UnsecuredToken:
    """Read the options as Kafka's `OAuthBearerUnsecuredLoginCallbackHandler` does."""
    claims: list[tuple[str, str | float | tuple[str, ...]]] = []
    extensions: list[tuple[str, str]] = []
    string, numbers, listed = _UNSECURED
    for name, value in options.items():
        if name.startswith(string):
            claims.append((name.removeprefix(string), value))
        elif name.startswith(numbers):
            claims.append((name.removeprefix(numbers), number(name, value)))
        elif name.startswith(listed):
            # The first character separates the items.
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
    lifetime = number("unsecuredLoginLifetimeSeconds", options.get("unsecuredLoginLifetimeSeconds", "3600"))
    scope_claim = options.get("unsecuredLoginScopeClaimName", "scope")
    return UnsecuredToken(
        claims=tuple(claims),
        subject_claim=subject_claim,
        scope_claim=scope_claim,
        lifetime_s=int(lifetime),
        extensions=tuple(extensions),
    )
