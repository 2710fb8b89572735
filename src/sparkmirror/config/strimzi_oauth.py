"""OAUTHBEARER by Strimzi's login handler: `oauth.` options in the JAAS line.

The handler belongs to `kafka-oauth-client`. Strimzi's operator writes the options for `type: oauth`. Since its resource
has no such type (v1), users write the options themselves, below `type: custom`. Rules, defaults and their order are
those of `JaasClientOauthLoginCallbackHandler` and `OAuthAuthenticator` in kafka-oauth 0.15 and later, but settings from
the environment are not looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sparkmirror.config.credentials import (
    GivenToken,
    LoginError,
    TokenFile,
    TokenRequest,
    check_token_url,
    needed,
    number,
)

STRIMZI_HANDLER = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"

_OAUTH = "oauth."
EXTENSION_NAME = re.compile(r"(?!auth$)[A-Za-z]+")
"""Names for extensions that brokers take (`validateSaslExtension`)."""
_EXTENSION = "oauth.sasl.extension."
_TIMEOUT_S = "60"
_TRUE, _FALSE = ("true", "yes", "y", "1"), ("false", "no", "n", "0")


def read_strimzi_oauth(options: Mapping[str, str]) -> TokenRequest | TokenFile | GivenToken:
    """Return where the token comes from; raise `LoginError`.

    A given token comes first, then a request with a refresh token, a password, a secret or an assertion.
    """
    extensions = tuple(_extensions(options))
    if "oauth.access.token.location" in options:
        return TokenFile(options["oauth.access.token.location"], extensions)
    if "oauth.access.token" in options:
        return GivenToken(needed(options, "oauth.access.token"), extensions)
    url = needed(options, "oauth.token.endpoint.uri")
    check_token_url("jaas.config", "option oauth.token.endpoint.uri ", url)
    grant, files = _grant(options)
    asked = [(name, options[f"oauth.{name}"]) for name in ("scope", "audience") if f"oauth.{name}" in options]
    return TokenRequest(
        url=url,
        principal=grant.get("username") or options["oauth.client.id"],
        client=_client(options, grant["grant_type"]),
        form=(*grant.items(), *asked),
        files=files,
        urlencoded=True,
        accepts_json=_truth(options, "oauth.include.accept.header", default=True),
        timeout_s=max(_seconds(options, f"oauth.{part}.timeout.seconds") for part in ("connect", "read")),
        longest_life_s=_longest_life_s(options),
        tls=_tls(options),
        extensions=extensions,
    )


def _grant(options: Mapping[str, str]) -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
    """Return the form's first fields, and the fields with values in files."""
    client_id = needed(options, "oauth.client.id")
    username = options.get("oauth.password.grant.username")
    if _is_there(options, "refresh.token"):
        text, files = _value_or_file(options, "refresh_token")
        return {"grant_type": "refresh_token", **text, "client_id": client_id}, files
    if username is not None:
        password = needed(options, "oauth.password.grant.password")
        return {"grant_type": "password", "username": username, "password": password}, ()
    grant_type = options.get("oauth.client.credentials.grant.type", "client_credentials")
    if "oauth.client.secret" in options:
        return {"grant_type": grant_type}, ()
    if _is_there(options, "client.assertion"):
        text, files = _value_or_file(options, "client_assertion")
        kind = options.get("oauth.client.assertion.type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
        return {"grant_type": grant_type, "client_id": client_id, **text, "client_assertion_type": kind}, files
    raise LoginError(
        "jaas.config",
        "says nothing to sign in with: write oauth.client.secret, oauth.refresh.token, oauth.access.token,"
        " oauth.client.assertion or oauth.password.grant.username",
    )


def _is_there(options: Mapping[str, str], name: str) -> bool:
    return f"{_OAUTH}{name}" in options or f"{_OAUTH}{name}.location" in options


def _value_or_file(options: Mapping[str, str], field: str) -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
    """Return a field with its value, or with its file; a file counts more."""
    option = _OAUTH + field.replace("_", ".")
    if (path := options.get(f"{option}.location")) is not None:
        return {}, ((field, path),)
    return {field: needed(options, option)}, ()


def _client(options: Mapping[str, str], grant_type: str) -> tuple[str, str] | None:
    """Return id and secret for the request's header; None: neither is sent there.

    A client with the password grant is named in the header even without a secret.
    """
    if "oauth.client.secret" not in options and grant_type != "password":
        return None
    return options["oauth.client.id"], options.get("oauth.client.secret", "")


def _extensions(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for option, value in options.items():
        if not option.startswith(_EXTENSION):
            continue
        name = option.removeprefix(_EXTENSION)
        if not EXTENSION_NAME.fullmatch(name) or not re.fullmatch(r"[\x21-\x7e \t\r\n]+", value):
            raise LoginError("jaas.config", f"option {_EXTENSION}<name> needs a name of letters, not auth, and a value")
        yield name, value


def _seconds(options: Mapping[str, str], option: str) -> float:
    stated = number(option, options.get(option, _TIMEOUT_S))
    return stated if stated > 0 else float(_TIMEOUT_S)


def _longest_life_s(options: Mapping[str, str]) -> float:
    option = "oauth.max.token.expiry.seconds"
    stated = number(option, options.get(option, "-1"))
    if 0 < stated < 60:
        raise LoginError("jaas.config", f"option {option} must be 60 at least")
    return stated if stated > 0 else float("inf")


def _truth(options: Mapping[str, str], option: str, *, default: bool) -> bool:
    stated = options.get(option, "").lower()
    if stated and stated not in (*_TRUE, *_FALSE):
        raise LoginError("jaas.config", f"option {option} must be true or false")
    return stated in _TRUE if stated else default


def _tls(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the TLS settings in Kafka's words; certificates in the line are PEM."""
    given = {
        name.removeprefix(_OAUTH): value for name, value in options.items() if name.startswith("oauth.ssl.truststore.")
    }
    if "ssl.truststore.certificates" in given:
        given["ssl.truststore.type"] = "PEM"
    elif "ssl.truststore.type" in given:
        given["ssl.truststore.type"] = given["ssl.truststore.type"].upper()
    checked = "ssl.endpoint.identification.algorithm"
    if options.get(_OAUTH + checked) == "":
        given[checked] = ""
    return tuple(sorted(given.items()))
